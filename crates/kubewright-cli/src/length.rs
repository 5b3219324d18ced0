//! Lengths of time in arguments.

use std::time::Duration;

use jiff::SignedDuration;

/// The longest that a command waits for anything.
const LONGEST: Duration = Duration::from_hours(24);

/// A length of time as people write it: `90s`, `10m`, `1h30m`.
///
/// # Errors
/// When it is none, or no time at all.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let parsed: Result<SignedDuration, _> = text.parse();
    let duration = parsed.ok().and_then(|length| Duration::try_from(length).ok());
    duration
        .filter(|length| !length.is_zero())
        .ok_or_else(|| "say how long, such as 90s, 10m or 1h30m".to_owned())
}

/// A length of up to a day; a number without a unit is one of seconds.
///
/// # Errors
/// When it is none, no time at all, or more than a day.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    up_to_a_day(text, 1)
}

/// The same; a number without a unit is one of minutes.
///
/// # Errors
/// As [`seconds`].
pub(crate) fn minutes(text: &str) -> Result<Duration, String> {
    up_to_a_day(text, 60)
}

fn up_to_a_day(text: &str, unit: u64) -> Result<Duration, String> {
    let plain = text.parse::<u64>().map(|number| Duration::from_secs(number.saturating_mul(unit)));
    let length = plain.or_else(|_| duration(text))?;
    match length {
        Duration::ZERO => Err("say how long, such as 90s, 10m or 1h30m".to_owned()),
        length if length > LONGEST => Err("that is more than a day".to_owned()),
        length => Ok(length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_a_number_of_its_unit_or_has_one() {
        for (text, length) in [("2", 2), ("90s", 90), ("10m", 600), ("1h30m", 5400)] {
            assert_eq!(seconds(text), Ok(Duration::from_secs(length)), "{text}");
        }
        assert_eq!(seconds("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!((minutes("2"), minutes("2s")), (Ok(Duration::from_secs(120)), Ok(Duration::from_secs(2))));
    }

    #[test]
    fn what_is_no_length_is_refused() {
        for text in ["", "soon", "0", "0s", "-5s", "1.5"] {
            assert!(seconds(text).is_err_and(|why| why.starts_with("say how long")), "{text:?}");
        }
        assert!(minutes("1441").is_err_and(|why| why.contains("a day")));
        assert!(seconds("99999999999999999999").is_err());
    }
}
