//! Points and spans of time, as Go has them: nanoseconds in 64 bits for spans; an offset that is kept for points.

use std::cmp::Ordering;
use std::fmt;

use kubewright_meta::duration::nanoseconds;

/// A span of time, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration(pub i64);

/// A point in time, with the offset that it was written with.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds of the second.
    pub nanoseconds: u32,
    /// The offset from UTC in seconds.
    pub offset: i32,
}

const NANOSECONDS: i64 = 1_000_000_000;
const DAY: i64 = 86_400;
/// The year 1, and the end of the year 9999.
const FIRST_SECOND: i64 = -62_135_596_800;
const LAST_SECOND: i64 = 253_402_300_799;

/// The day and the time of a timestamp in some offset.
pub(crate) struct Civil {
    pub(crate) year: i64,
    /// From 1.
    pub(crate) month: i64,
    /// From 1.
    pub(crate) day: i64,
    /// From 0.
    pub(crate) day_of_year: i64,
    /// From 0, Sunday.
    pub(crate) weekday: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
}

impl Duration {
    /// Reads what Go's `time.ParseDuration` reads: `1h30m`, `-1.5s`, `100ms`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        nanoseconds(text).ok().map(Self)
    }

    /// Reads what a schema's `format: duration` takes: also words (`3 hours`), as in k8s.io/kube-openapi's
    /// pkg/validation/strfmt/duration.go.
    pub(crate) fn parse_lenient(text: &str) -> Option<Self> {
        Self::parse(text).or_else(|| duration_in_words(text))
    }

    /// The span in seconds.
    pub(crate) fn seconds(self) -> f64 {
        (self.0 / NANOSECONDS) as f64 + (self.0 % NANOSECONDS) as f64 / 1e9
    }
}

/// Numbers with words for units; what is not understood is passed over.
fn duration_in_words(text: &str) -> Option<Duration> {
    let mut total: Option<i64> = None;
    let mut rest = text;
    while let Some(start) = rest.find(|character: char| character.is_ascii_digit()) {
        rest = &rest[start..];
        let end = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
        let (number, behind) = rest.split_at(end);
        let behind = behind.trim_start_matches(|one: char| one.is_ascii_whitespace());
        let end = behind
            .find(|character: char| !character.is_ascii_alphabetic() && character != 'µ')
            .unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        if let Some(unit) = unit_in_words(&unit.to_lowercase()) {
            let part = number.parse::<i64>().ok()?.wrapping_mul(unit);
            total = Some(total.unwrap_or(0).wrapping_add(part));
        }
        rest = behind;
    }
    total.map(Duration)
}

fn unit_in_words(unit: &str) -> Option<i64> {
    let second = NANOSECONDS;
    Some(match unit {
        "ns" | "nano" => 1,
        "us" | "µs" | "micro" => 1_000,
        "ms" | "milli" => 1_000_000,
        "s" | "sec" => second,
        "m" | "min" => 60 * second,
        "h" | "hr" | "hour" => 3_600 * second,
        "d" | "day" => DAY * second,
        "w" | "wk" | "week" => 7 * DAY * second,
        _ if unit.starts_with("nano") => 1,
        _ if unit.starts_with("micro") => 1_000,
        _ if unit.starts_with("milli") => 1_000_000,
        _ if unit.starts_with("sec") => second,
        _ if unit.starts_with("min") => 60 * second,
        _ if unit.starts_with("hour") => 3_600 * second,
        _ if unit.starts_with("day") => DAY * second,
        _ if unit.starts_with("week") => 7 * DAY * second,
        _ => return None,
    })
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s", self.seconds())
    }
}

impl Timestamp {
    /// The point that many seconds after 1970, if CEL can tell it.
    #[must_use]
    pub fn from_seconds(seconds: i64) -> Option<Self> {
        Self { seconds, nanoseconds: 0, offset: 0 }.in_range()
    }

    /// Reads RFC 3339.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::parse_any(text)?.in_range()
    }

    /// Reads what a schema's `format: date-time` takes: RFC 3339, or the same without an offset.
    pub(crate) fn parse_lenient(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self { seconds: 0, nanoseconds: 0, offset: 0 });
        }
        Self::parse_any(text).or_else(|| {
            let utc = format!("{text}Z");
            (text.len() == 19 || matches!(text.get(19..20), Some("." | ",")))
                .then(|| Self::parse_any(&utc))
                .flatten()
        })
    }

    /// Reads a date.
    pub(crate) fn parse_date(text: &str) -> Option<Self> {
        (text.len() == 10).then(|| Self::parse_any(&format!("{text}T00:00:00Z"))).flatten()
    }

    fn parse_any(text: &str) -> Option<Self> {
        // Go takes an hour of one digit.
        let padded;
        let text = if text.get(12..13) == Some(":") {
            padded = format!("{}0{}", text.get(..11)?, text.get(11..)?);
            &padded
        } else {
            text
        };
        let number = |range: std::ops::Range<usize>| {
            let digits = text.get(range)?;
            digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<i64>().ok()).flatten()
        };
        let separators = [(4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":")];
        if !separators.iter().all(|(at, separator)| text.get(*at..at + 1) == Some(separator)) {
            return None;
        }
        let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
        let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
        if !(1..=12).contains(&month)
            || day < 1
            || day > days_in(year, month)
            || hour > 23
            || minute > 59
            || second > 59
        {
            return None;
        }
        let (nanoseconds, rest) = parse_fraction(text.get(19..)?)?;
        let offset = parse_offset(rest)?;
        let seconds =
            days_from_civil(year, month, day) * DAY + hour * 3_600 + minute * 60 + second - i64::from(offset);
        Some(Self { seconds, nanoseconds, offset })
    }

    pub(crate) fn in_range(self) -> Option<Self> {
        (FIRST_SECOND..=LAST_SECOND).contains(&self.seconds).then_some(self)
    }

    /// The point that much later, if CEL can tell it.
    pub(crate) fn plus(self, duration: Duration) -> Option<Self> {
        let nanoseconds = i64::from(self.nanoseconds) + duration.0.rem_euclid(NANOSECONDS);
        let seconds = self.seconds + duration.0.div_euclid(NANOSECONDS) + nanoseconds / NANOSECONDS;
        let nanoseconds = u32::try_from(nanoseconds % NANOSECONDS).ok()?;
        Self { seconds, nanoseconds, offset: self.offset }.in_range()
    }

    /// How much later it is than the other.
    pub(crate) fn since(self, other: Self) -> Option<Duration> {
        let seconds = i128::from(self.seconds) - i128::from(other.seconds);
        let nanoseconds = i128::from(self.nanoseconds) - i128::from(other.nanoseconds);
        i64::try_from(seconds * i128::from(NANOSECONDS) + nanoseconds).ok().map(Duration)
    }

    /// The day and time at an offset from UTC.
    pub(crate) fn civil(self, offset: i64) -> Civil {
        let local = self.seconds + offset;
        let days = local.div_euclid(DAY);
        let time = local.rem_euclid(DAY);
        let (year, month, day) = civil_from_days(days);
        Civil {
            year,
            month,
            day,
            day_of_year: days - days_from_civil(year, 1, 1),
            weekday: (days + 4).rem_euclid(7),
            hour: time / 3_600,
            minute: time / 60 % 60,
            second: time % 60,
        }
    }
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Timestamp {}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.seconds, self.nanoseconds).cmp(&(other.seconds, other.nanoseconds))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.civil(self.offset.into());
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            at.year, at.month, at.day, at.hour, at.minute, at.second
        )?;
        if self.nanoseconds > 0 {
            let digits = format!("{:09}", self.nanoseconds);
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        if self.offset == 0 {
            return f.write_str("Z");
        }
        let minutes = self.offset.abs() / 60;
        write!(f, "{}{:02}:{:02}", if self.offset < 0 { '-' } else { '+' }, minutes / 60, minutes % 60)
    }
}

/// The nanoseconds behind the point, and what stands behind them.
fn parse_fraction(text: &str) -> Option<(u32, &str)> {
    let Some(behind) = text.strip_prefix(['.', ',']) else { return Some((0, text)) };
    let end = behind.find(|character: char| !character.is_ascii_digit()).unwrap_or(behind.len());
    let (digits, rest) = behind.split_at(end);
    if digits.is_empty() {
        return None;
    }
    let padded = format!("{:0<9}", &digits[..digits.len().min(9)]);
    Some((padded.parse().ok()?, rest))
}

fn parse_offset(text: &str) -> Option<i32> {
    if text == "Z" {
        return Some(0);
    }
    let bytes = text.as_bytes();
    if bytes.len() != 6 || bytes[3] != b':' {
        return None;
    }
    let number = |at: usize| {
        let digits = text.get(at..at + 2)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<i32>().ok()).flatten()
    };
    let (hours, minutes) = (number(1)?, number(4)?);
    if hours > 24 || minutes > 60 {
        return None;
    }
    let seconds = hours * 3_600 + minutes * 60;
    match bytes[0] {
        b'+' => Some(seconds),
        b'-' => Some(-seconds),
        _ => None,
    }
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970 of a day in the Gregorian calendar.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}
