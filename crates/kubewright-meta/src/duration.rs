//! Durations as Go writes them (`time.ParseDuration`).

use std::time::Duration;

use crate::go::quoted_by_time;

/// Why a text is no duration, in Go's words (without its `time: `).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DurationError {
    /// It is none, or longer than 64 bits of nanoseconds.
    Invalid(String),
    /// A number without a unit.
    MissingUnit(String),
    /// A unit that is none, and the text.
    UnknownUnit(String, String),
}

impl std::fmt::Display for DurationError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Invalid(text) => write!(f, "invalid duration {}", quoted_by_time(text)),
            Self::MissingUnit(text) => write!(f, "missing unit in duration {}", quoted_by_time(text)),
            Self::UnknownUnit(unit, text) => {
                write!(f, "unknown unit {} in duration {}", quoted_by_time(unit), quoted_by_time(text))
            }
        }
    }
}

impl std::error::Error for DurationError {}

/// The nanoseconds of a duration as Go's `time.ParseDuration` reads it: numbers with units, such as `1h30m`, `-1.5s` or
/// `500ms`; 0 needs no unit.
///
/// # Errors
/// What Go says.
pub fn nanoseconds(text: &str) -> Result<i64, DurationError> {
    let invalid = || DurationError::Invalid(text.to_owned());
    let negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (whole, after) = split_digits(rest);
        let (fraction, after) = after.strip_prefix('.').map_or(("", after), split_digits);
        let is_too_long = || whole.parse::<u64>().map_or(true, |whole| whole > MOST);
        if whole.is_empty() && fraction.is_empty() || !whole.is_empty() && is_too_long() {
            return Err(invalid());
        }
        let is_number = |character: char| character == '.' || character.is_ascii_digit();
        let (name, after) = after.split_at(after.find(is_number).unwrap_or(after.len()));
        if name.is_empty() {
            return Err(DurationError::MissingUnit(text.to_owned()));
        }
        let unit = unit(name).ok_or_else(|| DurationError::UnknownUnit(name.to_owned(), text.to_owned()))?;
        let part = part(whole, fraction, unit).ok_or_else(invalid)?;
        total = total.checked_add(part).filter(|total| *total <= MOST).ok_or_else(invalid)?;
        rest = after;
    }
    match (i64::try_from(total), negative) {
        (Ok(nanoseconds), false) => Ok(nanoseconds),
        (Ok(nanoseconds), true) => Ok(-nanoseconds),
        // 2^63, which is a number only below zero.
        (Err(_), true) => Ok(i64::MIN),
        (Err(_), false) => Err(invalid()),
    }
}

/// As [`nanoseconds`], where a negative duration is none at all.
///
/// # Errors
/// What Go says.
pub fn parse_or_none(text: &str) -> Result<Duration, DurationError> {
    nanoseconds(text).map(|nanoseconds| Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or_default()))
}

/// As [`nanoseconds`], where nothing but a duration that is not negative counts.
#[must_use]
pub fn parse_positive(text: &str) -> Option<Duration> {
    let nanoseconds = nanoseconds(text).ok()?;
    u64::try_from(nanoseconds).ok().map(Duration::from_nanos)
}

/// The longest duration that Go has on its way: 2^63 nanoseconds.
const MOST: u64 = 1 << 63;

fn unit(name: &str) -> Option<u64> {
    Some(match name {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len()))
}

/// So many units in nanoseconds, what is less than one cut off; nothing when that is too long.
fn part(whole: &str, fraction: &str, unit: u64) -> Option<u64> {
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let nanoseconds = whole.checked_mul(unit).filter(|nanoseconds| *nanoseconds <= MOST)?;
    let (mut digits, mut scale) = (0_u64, 1.0_f64);
    for digit in fraction.bytes() {
        // As Go does: what does not fit any more counts for nothing.
        let more = digits.checked_mul(10).and_then(|digits| digits.checked_add(u64::from(digit - b'0')));
        let Some(more) = more.filter(|more| *more < MOST) else { break };
        (digits, scale) = (more, scale * 10.0);
    }
    let behind = (digits as f64 * (unit as f64 / scale)) as u64;
    nanoseconds.checked_add(behind).filter(|nanoseconds| *nanoseconds <= MOST)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The table of Go's own test (`time/time_test.go`, `parseDurationTests`).
    #[test]
    fn durations_are_read_as_go_reads_them() {
        const NS: i64 = 1;
        const US: i64 = 1000 * NS;
        const MS: i64 = 1000 * US;
        const S: i64 = 1000 * MS;
        const M: i64 = 60 * S;
        const H: i64 = 60 * M;
        for (text, read) in [
            ("0", 0),
            ("5s", 5 * S),
            ("30s", 30 * S),
            ("1478s", 1478 * S),
            ("-5s", -5 * S),
            ("+5s", 5 * S),
            ("-0", 0),
            ("+0", 0),
            ("5.0s", 5 * S),
            ("5.6s", 5 * S + 600 * MS),
            ("5.s", 5 * S),
            (".5s", 500 * MS),
            ("1.0s", S),
            ("1.00s", S),
            ("1.004s", S + 4 * MS),
            ("1.0040s", S + 4 * MS),
            ("100.00100s", 100 * S + MS),
            ("10ns", 10 * NS),
            ("11us", 11 * US),
            ("12\u{b5}s", 12 * US),
            ("12\u{3bc}s", 12 * US),
            ("13ms", 13 * MS),
            ("14s", 14 * S),
            ("15m", 15 * M),
            ("16h", 16 * H),
            ("3h30m", 3 * H + 30 * M),
            ("10.5s4m", 4 * M + 10 * S + 500 * MS),
            ("-2m3.4s", -(2 * M + 3 * S + 400 * MS)),
            ("1h2m3s4ms5us6ns", H + 2 * M + 3 * S + 4 * MS + 5 * US + 6 * NS),
            ("39h9m14.425s", 39 * H + 9 * M + 14 * S + 425 * MS),
            ("52763797000ns", 52_763_797_000),
            ("0.3333333333333333333h", 20 * M),
            ("9007199254740993ns", 9_007_199_254_740_993),
            ("9223372036854775807ns", i64::MAX),
            ("9223372036854775.807us", i64::MAX),
            ("9223372036s854ms775us807ns", i64::MAX),
            ("-9223372036854775808ns", i64::MIN),
            ("-9223372036854775.808us", i64::MIN),
            ("-9223372036s854ms775us808ns", i64::MIN),
            ("-2562047h47m16.854775808s", i64::MIN),
            ("0.100000000000000000000h", 6 * M),
            ("0.830103483285477580700h", 49 * M + 48 * S + 372_539_827),
        ] {
            assert_eq!(nanoseconds(text), Ok(read), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_in_gos_words() {
        for text in [
            "",
            "-",
            "+",
            "s",
            ".",
            "-.",
            ".s",
            "+.s",
            "abc",
            "1 s2.",
            "9223372036854775810ns",
            "9223372036854775808ns",
            "9223372036854775.808us",
            "9223372036854ms775us808ns",
            "99999999999999999999h",
            "99999999999h",
            "--1s",
            "1s-1s",
        ] {
            let told = nanoseconds(text).expect_err(text).to_string();
            let unit = text == "1 s2." || text == "1s-1s";
            assert!(unit || told == format!("invalid duration {text:?}"), "{text}: {told}");
        }
        for (text, told) in [
            ("3000000h", "invalid duration \"3000000h\""),
            ("1", "missing unit in duration \"1\""),
            ("30", "missing unit in duration \"30\""),
            ("1s2", "missing unit in duration \"1s2\""),
            ("1..2s", "missing unit in duration \"1..2s\""),
            ("1x", "unknown unit \"x\" in duration \"1x\""),
            ("1d", "unknown unit \"d\" in duration \"1d\""),
            ("1 s", "unknown unit \" s\" in duration \"1 s\""),
        ] {
            assert_eq!(nanoseconds(text).map_err(|error| error.to_string()), Err(told.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_is_negative_is_none_or_nothing_as_the_caller_wants() {
        assert_eq!(parse_or_none("-5s"), Ok(Duration::ZERO));
        assert_eq!(parse_or_none("1m0.5s"), Ok(Duration::from_millis(60_500)));
        assert_eq!(parse_positive("-5s"), None);
        assert_eq!(parse_positive("1.5h"), Some(Duration::from_secs(5400)));
        assert_eq!(parse_positive("0"), Some(Duration::ZERO));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[0-9.+a-zµ-]{0,30}") {
            let _ = nanoseconds(&text);
        }
    }
}
