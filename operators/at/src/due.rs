//! When a command is due.

use jiff::{
    Timestamp,
    civil::DateTime,
    tz::{AmbiguousOffset, TimeZone},
};
use kubewright_schedule::zone;

/// What is missing where neither an offset nor a zone is told.
const UNCLEAR: &str = "it does not say which clocks it means: end it with Z, or set spec.timeZone";

/// Why a schedule says no time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTime {
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// Nobody knows the time zone.
    #[error("unknown time zone {0:?}: name one of the IANA database, such as Asia/Seoul")]
    UnknownZone(String),
}

/// The time that `schedule` says: with `Z` or an offset by itself, otherwise by the clocks of `time_zone`.
///
/// Where clocks are put forward, a time that they skip is as much later as they are put forward; where they are put
/// back, it is the first of the two (RFC 5545, 3.3.5).
///
/// # Errors
/// [`NoTime`].
pub fn due(schedule: &str, time_zone: Option<&str>) -> Result<Timestamp, NoTime> {
    let unreadable = |why: String| NoTime::Unreadable(format!("{schedule:?}: {why}"));
    let names_offset = schedule.ends_with('Z') || schedule.rfind(['+', '-']).is_some_and(|sign| sign > 10);
    match (time_zone, names_offset) {
        (Some(_), true) => {
            Err(unreadable("it says its offset itself: leave it out, or spec.timeZone".to_owned()))
        }
        (None, true) => schedule.parse().map_err(|error: jiff::Error| unreadable(error.to_string())),
        (name, false) => {
            let local: DateTime =
                schedule.parse().map_err(|error: jiff::Error| unreadable(error.to_string()))?;
            let name = name.ok_or_else(|| unreadable(UNCLEAR.to_owned()))?;
            let zone = zone(name).ok_or_else(|| NoTime::UnknownZone(name.to_owned()))?;
            on_clocks(local, &zone).map_err(|error| unreadable(error.to_string()))
        }
    }
}

fn on_clocks(local: DateTime, zone: &TimeZone) -> Result<Timestamp, jiff::Error> {
    let offset = match zone.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset,
        AmbiguousOffset::Gap { before, .. } | AmbiguousOffset::Fold { before, .. } => before,
    };
    offset.to_timestamp(local)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(schedule: &str, zone: Option<&str>) -> String {
        due(schedule, zone).map_or_else(|why| why.to_string(), |time| time.to_string())
    }

    /// AT-18, Beyond 1.
    #[test]
    fn at_18_offsets_and_zones_are_honoured() {
        assert_eq!(read("2026-07-14T10:12:00Z", None), "2026-07-14T10:12:00Z");
        assert_eq!(read("2026-07-14T10:12:00+09:00", None), "2026-07-14T01:12:00Z");
        assert_eq!(read("2026-07-14T10:12:00.5-00:30", None), "2026-07-14T10:42:00.5Z");
        assert_eq!(read("2026-07-14T10:12:00", Some("Asia/Seoul")), "2026-07-14T01:12:00Z");
    }

    /// Beyond 1: what is defined where clocks change.
    #[test]
    fn a_skipped_time_is_later_and_of_a_repeated_one_it_is_the_first() {
        assert_eq!(read("2026-03-08T02:30:00", Some("America/New_York")), "2026-03-08T07:30:00Z");
        assert_eq!(read("2026-11-01T01:30:00", Some("America/New_York")), "2026-11-01T05:30:00Z");
    }

    /// AT-18.
    #[test]
    fn at_18_what_is_no_time_is_told() {
        for (schedule, zone, told) in [
            ("2023-19-39T29:59:59Z", None, "\"2023-19-39T29:59:59Z\": "),
            ("2026-02-30T10:00:00Z", None, "\"2026-02-30T10:00:00Z\": "),
            ("2026-07-14T10:12:00Zgarbage", None, "\"2026-07-14T10:12:00Zgarbage\": "),
            ("2026-07-14T10:12:00", None, "it does not say which clocks it means"),
            ("2026-07-14T10:12:00Z", Some("Asia/Seoul"), "it says its offset itself"),
            ("2026-07-14T10:12:00", Some("asia/seoul"), "unknown time zone \"asia/seoul\""),
            ("2026-07-14T10:12:00", Some(""), "2026-07-14T10:12:00Z"),
        ] {
            let read = read(schedule, zone);
            assert!(read.contains(told), "{schedule}: {read}");
        }
    }
}
