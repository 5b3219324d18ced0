//! Durations as Go writes them.

use std::time::Duration;

/// A duration as Go writes it, such as `1m30s` or `500ms`; a negative one is none at all.
///
/// # Errors
/// What Go's `time.ParseDuration` says.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let invalid = || format!("invalid duration {text:?}");
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let is_digit = |character: char| character.is_ascii_digit() || character == '.';
        let (number, unit) = rest.split_at(rest.find(|character| !is_digit(character)).unwrap_or(rest.len()));
        let number: f64 = number.parse().map_err(|_| invalid())?;
        let (unit, after) = unit.split_at(unit.find(is_digit).unwrap_or(unit.len()));
        seconds += number
            * match unit {
                "" => return Err(format!("missing unit in duration {text:?}")),
                "h" => 3600.0,
                "m" => 60.0,
                "s" => 1.0,
                "ms" => 1e-3,
                "us" | "\u{b5}s" | "\u{3bc}s" => 1e-6,
                "ns" => 1e-9,
                other => return Err(format!("unknown unit {other:?} in duration {text:?}")),
            };
        rest = after;
    }
    let seconds = if text.starts_with('-') { 0.0 } else { seconds };
    Duration::try_from_secs_f64(seconds).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        for (text, millis) in
            [("1s", 1000), ("500ms", 500), ("1m0.5s", 60_500), ("0", 0), ("-5s", 0), ("1h", 3_600_000)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for (text, told) in [
            ("-", "invalid duration \"-\""),
            ("abc", "invalid duration \"abc\""),
            ("1..2s", "invalid duration \"1..2s\""),
            ("1", "missing unit in duration \"1\""),
            ("1x", "unknown unit \"x\" in duration \"1x\""),
        ] {
            assert_eq!(parse_duration(text), Err(told.to_owned()), "{text}");
        }
    }
}
