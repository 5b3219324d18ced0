//! Cron schedules as `github.com/robfig/cron/v3` reads them: five fields, or a word such as `@daily`.

const FIELDS: [Field; 5] = [
    Field { low: 0, high: 59, names: &[] },
    Field { low: 0, high: 23, names: &[] },
    Field { low: 1, high: 31, names: &[] },
    Field {
        low: 1,
        high: 12,
        names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    },
    Field { low: 0, high: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] },
];
const WORDS: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

struct Field {
    low: i64,
    high: i64,
    names: &'static [&'static str],
}

/// Whether a schedule can be read.
///
/// # Errors
/// What is wrong with it, in the words of that library.
pub(super) fn check(schedule: &str) -> Result<(), String> {
    let rest = match schedule.strip_prefix("TZ=").or_else(|| schedule.strip_prefix("CRON_TZ=")) {
        Some(zoned) => zoned.split_once(' ').map_or("", |(_, rest)| rest.trim()),
        None => schedule,
    };
    if rest.is_empty() {
        return Err("empty spec string".to_owned());
    }
    if rest.starts_with('@') {
        return check_word(rest);
    }
    let parts: Vec<&str> = rest.split_whitespace().collect();
    if parts.len() != FIELDS.len() {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", parts.len(), parts.join(" ")));
    }
    parts.iter().zip(&FIELDS).try_for_each(|(part, field)| field.check(part))
}

fn check_word(word: &str) -> Result<(), String> {
    if WORDS.contains(&word) {
        return Ok(());
    }
    match word.strip_prefix("@every ") {
        None => Err(format!("unrecognized descriptor: {word}")),
        Some(duration) if is_duration(duration) => Ok(()),
        Some(duration) => {
            Err(format!("failed to parse duration {word}: time: invalid duration {duration:?}"))
        }
    }
}

/// A duration of Go's: numbers with units.
fn is_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    let mut any = false;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let number = &rest[..digits];
        if !number.bytes().any(|byte| byte.is_ascii_digit()) || number.matches('.').count() > 1 {
            return false;
        }
        rest = &rest[digits..];
        let Some(unit) = ["ns", "us", "µs", "ms", "s", "m", "h"].iter().find(|unit| rest.starts_with(**unit))
        else {
            return false;
        };
        rest = &rest[unit.len()..];
        any = true;
    }
    any
}

impl Field {
    fn check(&self, list: &str) -> Result<(), String> {
        list.split(',').filter(|range| !range.is_empty()).try_for_each(|range| self.check_range(range))
    }

    /// One range: `*`, `?`, `n` or `n-m`, each with `/step` or without.
    fn check_range(&self, range: &str) -> Result<(), String> {
        let steps: Vec<&str> = range.split('/').collect();
        let ends: Vec<&str> = steps[0].split('-').collect();
        let (mut start, mut end) = (self.low, self.high);
        if !matches!(ends[0], "*" | "?") {
            start = self.number(ends[0])?;
            end = match ends.as_slice() {
                [_] => start,
                [_, end] => self.number(end)?,
                _ => return Err(format!("too many hyphens: {range}")),
            };
        }
        match steps.as_slice() {
            [_] => {}
            [_, step] => {
                if ends.len() == 1 {
                    end = self.high;
                }
                if number(step)? == 0 {
                    return Err(format!("step of range should be a positive number: {range}"));
                }
            }
            _ => return Err(format!("too many slashes: {range}")),
        }
        let (low, high) = (self.low, self.high);
        if start < low {
            return Err(format!("beginning of range ({start}) below minimum ({low}): {range}"));
        }
        if end > high {
            return Err(format!("end of range ({end}) above maximum ({high}): {range}"));
        }
        if start > end {
            return Err(format!("beginning of range ({start}) beyond end of range ({end}): {range}"));
        }
        Ok(())
    }

    fn number(&self, text: &str) -> Result<i64, String> {
        let lower = text.to_lowercase();
        match self.names.iter().zip(self.low..).find(|(name, _)| **name == lower) {
            Some((_, value)) => Ok(value),
            None => number(text),
        }
    }
}

fn number(text: &str) -> Result<i64, String> {
    let wrong = |why: &str| format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: {why}");
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong("invalid syntax"));
    }
    let value: i64 = text.parse().map_err(|_| wrong("value out of range"))?;
    if value < 0 { Err(format!("negative number ({value}) not allowed: {text}")) } else { Ok(value) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::check;

    #[test]
    fn usual_schedules_are_read() {
        for good in [
            "* * * * *",
            "0 0 1 1 *",
            "*/5 1-3,4 ? JAN-dec mon",
            "@daily",
            "@every 1h30m",
            "TZ=UTC 0 0 * * *",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_told_in_the_words_of_the_library() {
        for (bad, why) in [
            ("bad", "expected exactly 5 fields, found 1: [bad]"),
            ("@often", "unrecognized descriptor: @often"),
            ("@every x", "failed to parse duration @every x: time: invalid duration \"x\""),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            ("x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
        ] {
            assert_eq!(check(bad), Err(why.to_owned()), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,40}") {
            let _ = check(&text);
        }
    }
}
