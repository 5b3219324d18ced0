//! Points in time as people read them: how long ago.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::value::text;

/// A duration in two or three figures, such as `5s`, `2m30s`, `3h`, `4d2h`, `3y10d`
/// (`HumanDuration` of `k8s.io/apimachinery/pkg/util/duration`). Small negative ones are taken for a clock that is off.
pub(super) fn human(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    let two = |large: i64, unit: &str, small: i64, small_unit: &str| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit}{small}{small_unit}"),
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => two(days, "d", hours % 24, "h"),
        _ if years < 2 => format!("{days}d"),
        _ if years < 8 => two(years, "y", days % 365, "d"),
        _ => format!("{years}y"),
    }
}

/// How long before `now` a time is; `<unknown>` where there is none.
pub(super) fn ago(time: &str, now: Timestamp) -> String {
    time.parse::<Timestamp>().map_or_else(|_| "<unknown>".to_owned(), |time| human(now.duration_since(time)))
}

/// The age of an object.
pub(super) fn age(object: &Value, now: Timestamp) -> String {
    ago(text(object, "/metadata/creationTimestamp"), now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_or_three_figures() {
        const MINUTE: i64 = 60;
        const HOUR: i64 = 60 * MINUTE;
        const DAY: i64 = 24 * HOUR;
        for (seconds, expected) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (2 * MINUTE, "2m"),
            (2 * MINUTE + 30, "2m30s"),
            (10 * MINUTE + 30, "10m"),
            (179 * MINUTE, "179m"),
            (3 * HOUR, "3h"),
            (7 * HOUR + 59 * MINUTE, "7h59m"),
            (8 * HOUR + 59 * MINUTE, "8h"),
            (47 * HOUR, "47h"),
            (2 * DAY, "2d"),
            (4 * DAY + 2 * HOUR, "4d2h"),
            (8 * DAY + 2 * HOUR, "8d"),
            (729 * DAY, "729d"),
            (2 * 365 * DAY, "2y"),
            (3 * 365 * DAY + 10 * DAY, "3y10d"),
            (8 * 365 * DAY + 10 * DAY, "8y"),
        ] {
            assert_eq!(human(SignedDuration::from_secs(seconds)), expected, "{seconds}");
        }
    }

    #[test]
    fn a_time_that_is_not_there_is_unknown() {
        assert_eq!(ago("", Timestamp::UNIX_EPOCH), "<unknown>");
        assert_eq!(ago("1970-01-01T00:00:00Z", "1970-01-01T00:00:05.9Z".parse().expect("a time")), "5s");
    }
}
