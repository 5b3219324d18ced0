//! Times in RFC 3339, as `metav1.Time` and `metav1.MicroTime` read and write them (Go's `time.Parse`).

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime};
use kubewright_meta::go::quoted_by_time;

/// How fine a time is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precision {
    /// `metav1.Time`.
    Seconds,
    /// `metav1.Time` as it is in memory: with all parts of a second that it was sent with.
    Exact,
    /// `metav1.MicroTime`: exactly six decimals are read and written.
    Micros,
}

impl Precision {
    fn layout(self) -> &'static str {
        match self {
            Self::Seconds | Self::Exact => "2006-01-02T15:04:05Z07:00",
            Self::Micros => "2006-01-02T15:04:05.000000Z07:00",
        }
    }
}

/// The time as Kubernetes writes it back: in UTC.
///
/// # Errors
/// Text that is no such time, in the words of Go's `time.Parse`.
pub(crate) fn canonical(text: &str, precision: Precision) -> Result<String, String> {
    let time = parse(text, precision).map_err(|mistake| {
        let start = format!("parsing time {}", quoted_by_time(text));
        match mistake {
            Mistake::Element { rest, element } => {
                let rest = quoted_by_time(rest);
                format!("{start} as {:?}: cannot parse {rest} as {element:?}", precision.layout())
            }
            Mistake::Range(what) => format!("{start}: {what} out of range"),
            Mistake::Extra(rest) => format!("{start}: extra text: {}", quoted_by_time(rest)),
        }
    })?;
    Ok(match precision {
        Precision::Seconds => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        Precision::Exact => time.strftime("%Y-%m-%dT%H:%M:%S%.fZ").to_string(),
        Precision::Micros => time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
    })
}

/// The canonical text of a `metav1.Time`.
///
/// # Errors
/// As there.
pub fn seconds(text: &str) -> Result<String, String> {
    canonical(text, Precision::Seconds)
}

/// Whether the canonical text of a time is that of Go's zero time, which is written as `null`.
pub(crate) fn is_zero(time: &str) -> bool {
    let fraction = time.strip_prefix("0001-01-01T00:00:00").and_then(|rest| rest.strip_suffix('Z'));
    fraction.is_some_and(|fraction| fraction.bytes().all(|byte| matches!(byte, b'.' | b'0')))
}

/// Leaves out parts of a second, which are not written.
pub(crate) fn cut(time: &mut String) {
    if let Some(point) = time.find('.') {
        time.truncate(point);
        time.push('Z');
    }
}

enum Mistake<'a> {
    /// The rest does not begin with this element of the layout.
    Element { rest: &'a str, element: &'static str },
    /// This part is out of range.
    Range(&'static str),
    /// The time ends before the text does.
    Extra(&'a str),
}

/// Reads one element after another, and remembers where it stands.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn number(&mut self, digits: usize, element: &'static str) -> Result<i16, Mistake<'a>> {
        let mistake = Mistake::Element { rest: self.rest, element };
        match self.rest.split_at_checked(digits) {
            Some((number, rest)) if number.bytes().all(|one| one.is_ascii_digit()) => {
                self.rest = rest;
                number.parse().map_err(|_| mistake)
            }
            _ => Err(mistake),
        }
    }

    /// Hours may be one digit (`getnum`).
    fn hour(&mut self) -> Result<i16, Mistake<'a>> {
        let digits = self.rest.bytes().take(2).take_while(u8::is_ascii_digit).count();
        self.number(digits.max(1), "15")
    }

    fn mark(&mut self, mark: &'static str) -> Result<(), Mistake<'a>> {
        self.rest =
            self.rest.strip_prefix(mark).ok_or(Mistake::Element { rest: self.rest, element: mark })?;
        Ok(())
    }

    /// Nanoseconds: any number of decimals, or exactly six.
    fn fraction(&mut self, precision: Precision) -> Result<i32, Mistake<'a>> {
        let digits = self
            .rest
            .strip_prefix(['.', ','])
            .map_or("", |rest| &rest[..rest.bytes().take_while(u8::is_ascii_digit).count()]);
        match precision {
            Precision::Micros if digits.len() < 6 || !self.rest.starts_with('.') => {
                return Err(Mistake::Element { rest: self.rest, element: ".000000" });
            }
            _ if digits.is_empty() => return Ok(0),
            _ => {}
        }
        let taken = if precision == Precision::Micros { 6 } else { digits.len() };
        self.rest = &self.rest[1 + taken..];
        let nanos = format!("{:0<9.9}", &digits[..taken]);
        nanos.parse().map_err(|_| Mistake::Range("fractional second"))
    }

    /// Seconds east of UTC.
    fn zone(&mut self) -> Result<i64, Mistake<'a>> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let mistake = || Mistake::Element { rest: self.rest, element: "Z07:00" };
        let (zone, rest) = self.rest.split_at_checked(6).ok_or_else(mistake)?;
        let &[sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] = zone.as_bytes() else { return Err(mistake()) };
        if ![h1, h2, m1, m2].iter().all(u8::is_ascii_digit) {
            return Err(mistake());
        }
        let number = |tens: u8, ones: u8| i64::from(tens - b'0') * 10 + i64::from(ones - b'0');
        let (hours, minutes) = (number(h1, h2), number(m1, m2));
        if hours > 24 || minutes > 60 {
            return Err(Mistake::Range(if hours > 24 {
                "time zone offset hour"
            } else {
                "time zone offset minute"
            }));
        }
        self.rest = rest;
        let seconds = hours * 3600 + minutes * 60;
        Ok(if sign == b'-' { -seconds } else { seconds })
    }
}

/// The date and time in UTC: jiff's timestamps end a day before Go's.
fn parse(text: &str, precision: Precision) -> Result<DateTime, Mistake<'_>> {
    let mut reader = Reader { rest: text };
    let year = reader.number(4, "2006")?;
    reader.mark("-")?;
    let month = within(reader.number(2, "01")?, 1, 12, "month")?;
    reader.mark("-")?;
    let day = reader.number(2, "02")?;
    reader.mark("T")?;
    let hour = within(reader.hour()?, 0, 23, "hour")?;
    reader.mark(":")?;
    let minute = within(reader.number(2, "04")?, 0, 59, "minute")?;
    reader.mark(":")?;
    let second = within(reader.number(2, "05")?, 0, 59, "second")?;
    let nanos = reader.fraction(precision)?;
    let zone = reader.zone()?;
    if !reader.rest.is_empty() {
        return Err(Mistake::Extra(reader.rest));
    }
    let day = i8::try_from(day).map_err(|_| Mistake::Range("day"))?;
    let date = Date::new(year, month, day).map_err(|_| Mistake::Range("day"))?;
    let local = date.at(hour, minute, second, nanos);
    local.checked_sub(SignedDuration::from_secs(zone)).map_err(|_| Mistake::Range("year"))
}

fn within(number: i16, least: i16, most: i16, what: &'static str) -> Result<i8, Mistake<'static>> {
    i8::try_from(number).ok().filter(|_| (least..=most).contains(&number)).ok_or(Mistake::Range(what))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        for (given, written) in [
            ("2024-02-29T12:00:00Z", "2024-02-29T12:00:00Z"),
            ("2024-02-29T12:00:00+02:00", "2024-02-29T10:00:00Z"),
            ("2024-02-29T1:00:00Z", "2024-02-29T01:00:00Z"),
            ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
            ("2024-02-29T12:00:00.987654321Z", "2024-02-29T12:00:00Z"),
        ] {
            assert_eq!(canonical(given, Precision::Seconds).as_deref(), Ok(written));
        }
        assert_eq!(
            canonical("2024-02-29T12:00:00.120000Z", Precision::Micros).as_deref(),
            Ok("2024-02-29T12:00:00.120000Z")
        );
    }

    #[test]
    fn mistakes_are_told_as_go_tells_them() {
        let layout = "2006-01-02T15:04:05Z07:00";
        for (given, why) in [
            ("x", format!("parsing time \"x\" as \"{layout}\": cannot parse \"x\" as \"2006\"")),
            ("2024-1", format!("parsing time \"2024-1\" as \"{layout}\": cannot parse \"1\" as \"01\"")),
            (
                "2024-02-01 x",
                format!("parsing time \"2024-02-01 x\" as \"{layout}\": cannot parse \" x\" as \"T\""),
            ),
            ("2024-13-01T00:00:00Z", "parsing time \"2024-13-01T00:00:00Z\": month out of range".to_owned()),
            ("2024-02-30T00:00:00Z", "parsing time \"2024-02-30T00:00:00Z\": day out of range".to_owned()),
            ("2024-02-01T00:00:00Zx", "parsing time \"2024-02-01T00:00:00Zx\": extra text: \"x\"".to_owned()),
        ] {
            assert_eq!(canonical(given, Precision::Seconds), Err(why));
        }
        let micro = canonical("2024-02-01T00:00:00Z", Precision::Micros).unwrap_err();
        assert!(micro.ends_with("cannot parse \"Z\" as \".000000\""), "{micro}");
    }

    proptest! {
        #[test]
        fn any_text_has_an_answer(text in ".*", near in "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.,]?[0-9]{0,12}(Z|[+-][0-9é]{2}:[0-9]{2})") {
            for precision in [Precision::Seconds, Precision::Micros] {
                let _ = canonical(&text, precision);
                if let Ok(once) = canonical(&near, precision) {
                    prop_assert_eq!(canonical(&once, precision), Ok(once.clone()));
                }
            }
        }
    }
}
