//! What a flag's value must look like.

use std::{net::IpAddr, time::Duration};

use kubewright_meta::duration::parse_or_none;

/// The types that are checked. Lists, maps and names are texts here: who uses one reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// True or false; true when it stands alone.
    Switch,
    Integer,
    Float,
    Duration,
    Address,
    Text,
}

impl Type {
    /// Whether a value is of this type.
    ///
    /// # Errors
    /// Why not, in the words of Go's `strconv`, `time` and `net`.
    pub(super) fn check(self, value: &str) -> Result<(), String> {
        let parsing = |function: &str| format!("strconv.Parse{function}: parsing {value:?}: invalid syntax");
        match self {
            Self::Switch => switch(value).map(drop).ok_or_else(|| parsing("Bool")),
            Self::Integer => integer(value).map(drop).ok_or_else(|| parsing("Int")),
            Self::Float => value.parse::<f64>().map(drop).map_err(|_| parsing("Float")),
            Self::Duration => parse_or_none(value).map(drop).map_err(|why| format!("time: {why}")),
            Self::Address => {
                value.parse::<IpAddr>().map(drop).map_err(|_| format!("failed to parse IP: {value:?}"))
            }
            Self::Text => Ok(()),
        }
    }
}

/// Go's `strconv.ParseBool`.
pub(crate) fn switch(value: &str) -> Option<bool> {
    match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// An integer as Go's flags take it: decimal, or with the prefix of another base.
pub(super) fn integer(value: &str) -> Option<i64> {
    let (sign, digits) = match value.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", value.strip_prefix('+').unwrap_or(value)),
    };
    let (base, digits) = match digits.get(..2) {
        Some("0x" | "0X") => (16, &digits[2..]),
        Some("0b" | "0B") => (2, &digits[2..]),
        Some("0o" | "0O") => (8, &digits[2..]),
        _ => (10, digits),
    };
    i64::from_str_radix(&format!("{sign}{digits}"), base).ok().filter(|_| !digits.starts_with(['+', '-']))
}

/// Go's `time.ParseDuration`: numbers with units, such as `1h30m` or `1.5s`; 0 needs no unit. A negative one is none at all.
pub(super) fn duration(value: &str) -> Option<Duration> {
    parse_or_none(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_go_reads_them() {
        let table: [(Type, &[&str], &[&str]); 6] = [
            (Type::Switch, &["true", "T", "1", "false", "F", "0", "False"], &["", "yes", "tRue", "2"]),
            (
                Type::Integer,
                &["0", "-1", "+7", "0x1F", "0b101", "0o17", "9223372036854775807"],
                &["", "abc", "1.5", "--1", "+-1", "0x", "9223372036854775808"],
            ),
            (Type::Float, &["0", "-1.5", "1e3", ".5"], &["", "x", "1,5"]),
            (
                Type::Duration,
                &["0", "1s", "1h30m", "-1.5h", "100ms", "3us", "3µs", ".5s", "1m1ms"],
                &["", "3", "s", "-", "1 s", "1s3", "1..5s", ".s", "1d"],
            ),
            (Type::Address, &["127.0.0.1", "::1", "0.0.0.0"], &["", "localhost", "1.2.3", "1.2.3.4:5"]),
            (Type::Text, &["", "anything at all"], &[]),
        ];
        for (kind, good, bad) in table {
            for value in good {
                assert_eq!(kind.check(value), Ok(()), "{kind:?} {value}");
            }
            for value in bad {
                assert!(kind.check(value).is_err(), "{kind:?} {value}");
            }
        }
        assert_eq!(duration("1h1m1.5s"), Some(Duration::from_millis(3_661_500)));
        assert_eq!(duration("-1s"), Some(Duration::ZERO));
        assert_eq!(duration("99999999999999999999h"), None);
        assert_eq!((integer("0x1F"), integer("-0b11"), integer("007")), (Some(31), Some(-3), Some(7)));
    }
}
