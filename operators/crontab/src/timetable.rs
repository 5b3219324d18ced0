//! When the runs of a CronTab are due.

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use kubewright_schedule::{Schedule, zone};

use crate::CronTabSpec;

/// So many runs may have been missed without a warning (`pkg/controller/cronjob/utils.go`).
const MANY: usize = 100;

/// A schedule in its zone.
#[derive(Clone, Debug)]
pub(crate) struct Timetable {
    schedule: Schedule,
    pub(crate) zone: TimeZone,
    /// Whether each run is reckoned from the one before, not by the clock.
    is_interval: bool,
}

/// Why there is none: a word for programs, and a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct NoTimetable {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// The last of the runs that should have begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) at: Timestamp,
    /// Whether suspiciously many others were missed before it.
    pub(crate) after_many: bool,
}

impl Timetable {
    /// That of a CronTab.
    pub(crate) fn of(spec: &CronTabSpec) -> Result<Self, NoTimetable> {
        let text = spec.schedule.trim();
        let schedule = Schedule::parse(text).map_err(|error| NoTimetable {
            reason: "UnparseableSchedule",
            message: format!("unparseable schedule: {:?} : {error}", spec.schedule),
        })?;
        let name = spec.time_zone.as_deref().unwrap_or_default();
        let zone = zone(name).ok_or_else(|| NoTimetable {
            reason: "UnknownTimeZone",
            message: format!("invalid timeZone: {name:?}: unknown time zone {name}"),
        })?;
        Ok(Self { schedule, zone, is_interval: text.starts_with('@') && text.contains("every") })
    }

    /// The first run after this time.
    pub(crate) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        self.schedule.next(after, &self.zone)
    }

    /// The last run after `since` that should have begun by `now`.
    pub(crate) fn due(&self, since: Timestamp, now: Timestamp) -> Option<Due> {
        let first = self.next(since).filter(|first| *first <= now)?;
        let runs = |from: Timestamp| {
            std::iter::successors(Some(from), |run| self.next(*run)).take_while(move |run| *run <= now)
        };
        let after_many = runs(first).nth(MANY).is_some();
        let at = if !after_many {
            runs(first).last()?
        } else if self.is_interval {
            let between = first.duration_since(since).as_secs().max(1);
            let missed = now.duration_since(first).as_secs() / between;
            first.checked_add(SignedDuration::from_secs(missed * between)).ok()?
        } else {
            runs(self.last_stretch(first, now)).last()?
        };
        Some(Due { at, after_many })
    }

    /// A run not long before `now`, so that those of a year need not be counted one by one.
    fn last_stretch(&self, first: Timestamp, now: Timestamp) -> Timestamp {
        let mut back = SignedDuration::from_mins(2);
        loop {
            match now.checked_sub(back).ok().filter(|from| *from > first) {
                None => return first,
                Some(from) => match self.next(from).filter(|run| *run <= now) {
                    Some(run) => return run,
                    None => back = back.saturating_mul(2),
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn time(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    fn timetable(schedule: &str, zone: Option<&str>) -> Result<Timetable, NoTimetable> {
        let spec = json!({"schedule": schedule, "timeZone": zone, "jobTemplate": {}});
        Timetable::of(&kubewright::object::from_value(spec).expect("a spec"))
    }

    fn due(schedule: &str, since: &str, now: &str) -> Option<(String, bool)> {
        let due = timetable(schedule, None).expect("a timetable").due(time(since), time(now));
        due.map(|due| (due.at.to_string(), due.after_many))
    }

    /// CT-08.
    #[test]
    fn ct_08_five_fields_mean_the_start_of_a_minute() {
        assert_eq!(due("5 4 * * *", "2026-01-01T00:00:30Z", "2026-01-01T04:04:59Z"), None);
        let at = Some(("2026-01-01T04:05:00Z".to_owned(), false));
        assert_eq!(due("5 4 * * *", "2026-01-01T00:00:30Z", "2026-01-01T04:05:00Z"), at);
        assert_eq!(
            timetable("@daily", None).expect("a timetable").next(time("2026-01-01T10:00:00Z")),
            Some(time("2026-01-02T00:00:00Z"))
        );
    }

    /// Beyond 3.
    #[test]
    fn of_missed_runs_the_last_is_due_and_many_are_worth_a_warning() {
        let of = |now: &str| due("* * * * *", "2026-01-01T00:00:30Z", now).expect("it is due");
        assert_eq!(of("2026-01-01T01:40:10Z"), ("2026-01-01T01:40:00Z".to_owned(), false));
        assert_eq!(of("2026-01-01T01:41:10Z"), ("2026-01-01T01:41:00Z".to_owned(), true));
        assert_eq!(of("2030-01-01T00:00:10Z"), ("2030-01-01T00:00:00Z".to_owned(), true));
        let interval = due("@every 90s", "2026-01-01T00:00:00Z", "2026-12-31T23:59:59Z");
        assert_eq!(interval, Some(("2026-12-31T23:58:30Z".to_owned(), true)));
        assert_eq!(due("0 0 31 2 *", "2026-01-01T00:00:00Z", "2040-01-01T00:00:00Z"), None);
    }

    /// Beyond 1.
    #[test]
    fn zones_decide_and_unknown_ones_are_told() {
        let tokyo = timetable("0 9 * * *", Some("Asia/Tokyo")).expect("a timetable");
        assert_eq!(tokyo.next(time("2026-01-01T00:00:00Z")), Some(time("2026-01-02T00:00:00Z")));
        let mars = timetable("0 9 * * *", Some("Mars/Base")).expect_err("nobody knows it");
        assert_eq!(mars.message, "invalid timeZone: \"Mars/Base\": unknown time zone Mars/Base");
        assert_eq!(timetable("5-1 * * * *", None).expect_err("backwards").reason, "UnparseableSchedule");
    }

    proptest! {
        #[test]
        fn what_is_due_is_the_last_run_by_then(every in prop::sample::select(vec!["*/7 * * * *", "13 */5 * * *", "0 0 1 * *", "30 6 * * 1-5", "@every 7m"]), since in 0..100_000_i64, later in 0..2_000_000_i64) {
            let table = timetable(every, None).expect("a timetable");
            let since = time("2026-01-01T00:00:00Z") + SignedDuration::from_secs(since);
            let now = since + SignedDuration::from_secs(later);
            let runs = std::iter::successors(table.next(since), |run| table.next(*run));
            let last = runs.take_while(|run| *run <= now).last();
            prop_assert_eq!(table.due(since, now).map(|due| due.at), last);
        }
    }
}
