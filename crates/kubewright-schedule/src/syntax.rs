//! The text of a schedule (`parser.go` of the library).

use kubewright_meta::duration::parse_or_none;

use super::{Due, Schedule, zone};

const MINUTES: Unit = Unit { low: 0, high: 59, names: &[] };
const HOURS: Unit = Unit { low: 0, high: 23, names: &[] };
const DAYS: Unit = Unit { low: 1, high: 31, names: &[] };
const MONTHS: Unit = Unit {
    low: 1,
    high: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const WEEKDAYS: Unit = Unit { low: 0, high: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

/// The words, and the five fields that they stand for.
const WORDS: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// The times of the wall clock at which a schedule is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) minutes: Values,
    pub(super) hours: Values,
    pub(super) days: Values,
    pub(super) months: Values,
    pub(super) weekdays: Values,
}

/// Numbers below 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Values {
    bits: u64,
    /// Whether they were given as `*`: of the two fields for days, the other one alone decides then.
    pub(super) any: bool,
}

impl Values {
    pub(super) fn contains(self, value: i8) -> bool {
        u32::try_from(value)
            .ok()
            .and_then(|value| 1_u64.checked_shl(value))
            .is_some_and(|bit| self.bits & bit != 0)
    }

    pub(super) fn is_empty(self) -> bool {
        self.bits == 0
    }

    fn and(self, other: Self) -> Self {
        Self { bits: self.bits | other.bits, any: self.any || other.any }
    }
}

struct Unit {
    low: u64,
    high: u64,
    names: &'static [&'static str],
}

/// Reads a schedule; the error is in the words of the library.
pub(super) fn parse(text: &str) -> Result<Schedule, String> {
    if text.is_empty() {
        return Err("empty spec string".to_owned());
    }
    let Some(zoned) = text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ=")) else {
        return Ok(Schedule { due: due(text)?, zone: None });
    };
    // Without a space the library panics; Kubernetes makes an error of that (`pkg/util/parsers`).
    let Some((name, rest)) = zoned.split_once(' ') else {
        return Err("invalid schedule format: runtime error: slice bounds out of range [:-1]".to_owned());
    };
    let Some(zone) = zone(name) else {
        return Err(format!("provided bad location {name}: unknown time zone {name}"));
    };
    Ok(Schedule { due: due(rest.trim())?, zone: Some(zone) })
}

fn due(text: &str) -> Result<Due, String> {
    if text.starts_with('@') { word(text) } else { fields(text).map(Due::At) }
}

fn word(word: &str) -> Result<Due, String> {
    if let Some((_, text)) = WORDS.iter().find(|(name, _)| *name == word) {
        return fields(text).map(Due::At);
    }
    let Some(delay) = word.strip_prefix("@every ") else {
        return Err(format!("unrecognized descriptor: {word}"));
    };
    match parse_or_none(delay) {
        Ok(delay) => Ok(Due::Every(delay.as_secs().max(1))),
        Err(why) => Err(format!("failed to parse duration {word}: time: {why}")),
    }
}

fn fields(text: &str) -> Result<Fields, String> {
    let parts: Vec<&str> = text.split_whitespace().collect();
    let &[minutes, hours, days, months, weekdays] = parts.as_slice() else {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", parts.len(), parts.join(" ")));
    };
    Ok(Fields {
        minutes: MINUTES.values(minutes)?,
        hours: HOURS.values(hours)?,
        days: DAYS.values(days)?,
        months: MONTHS.values(months)?,
        weekdays: WEEKDAYS.values(weekdays)?,
    })
}

impl Unit {
    /// The values of a list of ranges. Empty ranges are none, and a list of nothing else is never due.
    fn values(&self, list: &str) -> Result<Values, String> {
        let ranges = list.split(',').filter(|range| !range.is_empty());
        ranges.map(|range| self.range(range)).try_fold(Values::default(), |all, next| Ok(all.and(next?)))
    }

    /// One range: `*`, `?`, `n` or `n-m`, each with `/step` or without; `n/step` goes on to the end.
    fn range(&self, range: &str) -> Result<Values, String> {
        let parts: Vec<&str> = range.split('/').collect();
        let ends: Vec<&str> = parts[0].split('-').collect();
        let any = matches!(ends[0], "*" | "?");
        let (mut start, mut end) = (self.low, self.high);
        if !any {
            start = self.number(ends[0])?;
            end = match ends.as_slice() {
                [_] => start,
                [_, end] => self.number(end)?,
                _ => return Err(format!("too many hyphens: {range}")),
            };
        }
        let step = match parts.as_slice() {
            [_] => 1,
            [_, step] => {
                if ends.len() == 1 {
                    end = self.high;
                }
                number(step)?
            }
            _ => return Err(format!("too many slashes: {range}")),
        };
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
        if step == 0 {
            return Err(format!("step of range should be a positive number: {range}"));
        }
        let step = usize::try_from(step).unwrap_or(usize::MAX);
        let bits = (start..=end).step_by(step).fold(0, |bits, value| bits | 1 << value);
        Ok(Values { bits, any: any && step == 1 })
    }

    fn number(&self, text: &str) -> Result<u64, String> {
        let lower = text.to_lowercase();
        match self.names.iter().zip(self.low..).find(|(name, _)| **name == lower) {
            Some((_, value)) => Ok(value),
            None => number(text),
        }
    }
}

/// A number as Go's `strconv.Atoi` reads it, not a negative one.
fn number(text: &str) -> Result<u64, String> {
    let wrong = |why: &str| format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: {why}");
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong("invalid syntax"));
    }
    let value: i64 = text.parse().map_err(|_| wrong("value out of range"))?;
    u64::try_from(value).map_err(|_| format!("negative number ({value}) not allowed: {text}"))
}
