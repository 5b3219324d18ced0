//! The range of node ports (`--service-node-port-range`).

use std::fmt;
use std::ops::RangeInclusive;

/// The node ports that services get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePorts(RangeInclusive<u16>);

impl Default for NodePorts {
    /// 30000-32767.
    fn default() -> Self {
        Self(30_000..=32_767)
    }
}

impl NodePorts {
    /// Reads `first-last`, `first+more` or a single port (`k8s.io/apimachinery/pkg/util/net`, `PortRange`). Nothing is the
    /// default.
    ///
    /// # Errors
    /// What `PortRange.Set` says.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let number = |text: &str| -> Result<i64, String> {
            text.parse().map_err(|_| format!("strconv.Atoi: parsing {text:?}: invalid syntax"))
        };
        let (first, last) = match (text.split_once('-'), text.split_once('+')) {
            _ if text.is_empty() => return Ok(Self::default()),
            (None, None) => (number(text)?, number(text)?),
            (Some((first, last)), None) => (number(first)?, number(last)?),
            (None, Some((first, more))) => {
                let first = number(first)?;
                (first, first.saturating_add(number(more)?))
            }
            (Some(_), Some(_)) => return Err(format!("unable to parse port range: {text}")),
        };
        let port = |number: i64| u16::try_from(number);
        match (port(first), port(last)) {
            _ if first > 65_535 || last > 65_535 => {
                Err(format!("the port range cannot be greater than 65535: {text}"))
            }
            _ if last < first => Err(format!("end port cannot be less than start port: {text}")),
            (Ok(first), Ok(last)) => Ok(Self(first..=last)),
            _ => Err(format!("unable to parse port range: {text}")),
        }
    }

    /// Whether it is one of them.
    #[must_use]
    pub fn contains(&self, port: u64) -> bool {
        u16::try_from(port).is_ok_and(|port| self.0.contains(&port))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The port at this place.
    #[must_use]
    pub fn port(&self, place: usize) -> u64 {
        u64::from(*self.0.start()) + place as u64
    }
}

impl fmt::Display for NodePorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0.start(), self.0.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_kube_apiserver_reads_them() {
        for (text, printed) in
            [("30000-32767", "30000-32767"), ("80", "80-80"), ("100+10", "100-110"), ("", "30000-32767")]
        {
            assert_eq!(NodePorts::parse(text).map(|range| range.to_string()), Ok(printed.to_owned()));
        }
        for (text, told) in [
            ("9-1", "end port cannot be less than start port: 9-1"),
            ("1-70000", "the port range cannot be greater than 65535: 1-70000"),
            ("1-2+3", "unable to parse port range: 1-2+3"),
            ("a-2", "strconv.Atoi: parsing \"a\": invalid syntax"),
        ] {
            assert_eq!(NodePorts::parse(text), Err(told.to_owned()));
        }
    }
}
