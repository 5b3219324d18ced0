//! Which run of a CronJob is due, and when to look again (`pkg/controller/cronjob/utils.go`).

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec};
use kubewright_objects::optional;
use kubewright_schedule::Schedule;

/// How much later than the run a CronJob is looked at, for clocks that differ a little.
const PADDING: SignedDuration = SignedDuration::from_millis(100);
/// More missed runs than this are worth a warning.
const MANY: i64 = 100;

/// The schedule of a CronJob and the zone that it is read in.
pub(super) struct Timetable {
    pub(super) schedule: Schedule,
    pub(super) zone: TimeZone,
}

/// A run that should have begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) at: Timestamp,
    /// Whether suspiciously many others were missed before it.
    pub(super) after_many: bool,
}

/// The runs since the last one (or the CronJob's creation) leave no time between them: no day is the 31st of February.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("time difference between two schedules is less than 1 second")]
pub(super) struct NeverDue;

impl Timetable {
    fn next(&self, after: Timestamp) -> Option<Timestamp> {
        self.schedule.next(after, &self.zone)
    }

    /// The last run that should have begun by `now` and has not; none that is older than
    /// `spec.startingDeadlineSeconds`.
    ///
    /// # Errors
    /// [`NeverDue`].
    pub(super) fn due(&self, cron: &CronJob, now: Timestamp) -> Result<Option<Due>, NeverDue> {
        let mut since = last_run(cron);
        if let Some(seconds) =
            optional::<CronJobSpec>(&cron.spec).and_then(|spec| spec.starting_deadline_seconds)
        {
            let oldest = now.checked_sub(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MIN);
            since = since.max(oldest);
        }
        Ok(match self.latest(since, now)? {
            Latest::NotYet | Latest::Unclear => None,
            Latest::At(due) => Some(due),
        })
    }

    /// How long until the next run after `now`, when the last one was at `last`; `None` when there is none.
    pub(super) fn wait(&self, last: Timestamp, now: Timestamp) -> Option<Duration> {
        let from = match self.latest(last, now) {
            Ok(Latest::At(due)) => due.at,
            Ok(Latest::NotYet) => last,
            Ok(Latest::Unclear) | Err(NeverDue) => now,
        };
        let next = self.next(from)?.checked_add(PADDING).ok()?;
        Some(Duration::try_from(next.duration_since(now)).unwrap_or_default())
    }

    /// The last run after `since` that should have begun by `now` (`mostRecentScheduleTime`). That is reckoned from the
    /// time between the first two, so that a year of missed minutes takes no longer than one.
    fn latest(&self, since: Timestamp, now: Timestamp) -> Result<Latest, NeverDue> {
        let first = self.next(since).ok_or(NeverDue)?;
        if now < first {
            return Ok(Latest::NotYet);
        }
        let second = self.next(first).ok_or(NeverDue)?;
        if now < second {
            return Ok(Latest::At(Due { at: first, after_many: false }));
        }
        let between = second.as_second() - first.as_second();
        if between < 1 {
            return Err(NeverDue);
        }
        let missed = (now.as_second() - first.as_second()) / between + 1;
        let Ok(near) = first.checked_add(SignedDuration::from_secs((missed - 2) * between)) else {
            return Ok(Latest::Unclear);
        };
        let runs =
            std::iter::successors(self.next(near), |run| self.next(*run)).take_while(|run| *run <= now);
        Ok(runs.last().map_or(Latest::Unclear, |at| Latest::At(Due { at, after_many: missed > MANY })))
    }
}

/// What is known of the last run that should have begun.
enum Latest {
    /// None should have.
    NotYet,
    /// This one.
    At(Due),
    /// Some should have, but the reckoning found none.
    Unclear,
}

/// When the last run was to begin, or when the CronJob was made.
pub(super) fn last_run(cron: &CronJob) -> Timestamp {
    let last = cron.status.as_ref().and_then(|status| status.last_schedule_time.as_ref());
    last.or(cron.metadata.creation_timestamp.as_ref()).map_or(Timestamp::UNIX_EPOCH, |time| time.0)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use proptest::prelude::*;

    use super::super::tests::cron_job;
    use super::*;

    fn time(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    fn timetable(schedule: &str) -> Timetable {
        Timetable { schedule: Schedule::parse(schedule).expect("a schedule"), zone: TimeZone::UTC }
    }

    fn made(at: &str) -> CronJob {
        let mut cron = cron_job(serde_json::json!({}));
        cron.metadata.creation_timestamp = Some(Time(time(at)));
        cron
    }

    fn due(schedule: &str, cron: &CronJob, now: &str) -> Option<(String, bool)> {
        let due = timetable(schedule).due(cron, time(now)).expect("a schedule that is due");
        due.map(|due| (due.at.to_string(), due.after_many))
    }

    #[test]
    fn only_the_last_of_the_missed_runs_is_due() {
        let cron = made("2026-01-01T10:00:30Z");
        assert_eq!(due("0 * * * *", &cron, "2026-01-01T10:59:59Z"), None);
        assert_eq!(
            due("0 * * * *", &cron, "2026-01-01T11:00:00Z"),
            Some(("2026-01-01T11:00:00Z".into(), false))
        );
        assert_eq!(
            due("0 * * * *", &cron, "2026-01-01T15:20:00Z"),
            Some(("2026-01-01T15:00:00Z".into(), false))
        );
        assert_eq!(
            due("0 * * * *", &cron, "2026-01-09T15:20:00Z"),
            Some(("2026-01-09T15:00:00Z".into(), true))
        );
        let office = "30 6-16/4 * * 1-5";
        assert_eq!(due(office, &cron, "2026-01-02T17:20:00Z"), Some(("2026-01-02T14:30:00Z".into(), false)));
        // The reckoning looks at the last four hours, as kube-controller-manager's does.
        assert_eq!(due(office, &cron, "2026-01-04T15:20:00Z"), None);
    }

    #[test]
    fn a_run_beyond_the_starting_deadline_is_not_due() {
        let mut cron = made("2026-01-01T10:00:30Z");
        cron.spec.starting_deadline_seconds = Some(60);
        assert_eq!(
            due("0 * * * *", &cron, "2026-01-01T15:00:59Z"),
            Some(("2026-01-01T15:00:00Z".into(), false))
        );
        assert_eq!(due("0 * * * *", &cron, "2026-01-01T15:01:01Z"), None);
    }

    #[test]
    fn a_day_that_never_comes_is_never_due() {
        let cron = made("2026-01-01T10:00:30Z");
        assert_eq!(timetable("59 23 31 2 *").due(&cron, time("2026-02-01T00:00:00Z")), Err(NeverDue));
    }

    #[test]
    fn it_is_looked_at_again_a_little_after_the_next_run() {
        let wait = |now| timetable("@hourly").wait(time("2026-01-01T10:00:30Z"), time(now));
        assert_eq!(wait("2026-01-01T10:59:59Z"), Some(Duration::from_millis(1100)));
        assert_eq!(wait("2026-01-01T11:00:00.1Z"), Some(Duration::from_secs(3600)));
        assert_eq!(wait("2026-01-05T11:00:00Z"), Some(Duration::from_millis(3_600_100)));
    }

    proptest! {
        #[test]
        fn what_is_due_is_the_last_run_by_then(every in prop::sample::select(vec![1, 2, 3, 5, 10, 15, 30]), hours in 0..100_i64, seconds in 0..3600_i64) {
            let (cron, table) = (made("2026-01-01T10:00:30Z"), timetable(&format!("*/{every} * * * *")));
            let now = time("2026-01-01T10:00:30Z") + SignedDuration::from_secs(hours * 3600 + seconds);
            let runs = std::iter::successors(table.next(last_run(&cron)), |run| table.next(*run));
            let last = runs.take_while(|run| *run <= now).last();
            prop_assert_eq!(table.due(&cron, now).map(|due| due.map(|due| due.at)), Ok(last));
        }
    }
}
