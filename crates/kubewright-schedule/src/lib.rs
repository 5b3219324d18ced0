//! When a cron schedule is due, as `github.com/robfig/cron/v3` has it: kube-apiserver checks CronJobs with that library
//! and kube-controller-manager runs them by it.
//!
//! A schedule is five fields or a word such as `@daily`, in a time zone. [`Schedule::parse`] reads one in the words of
//! that library when it cannot, [`Schedule::next`] tells when it is due, also where clocks are put forward or back.

mod next;
mod syntax;
mod zone;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use self::syntax::Fields;
pub use self::zone::zone;

/// When something is due, again and again.
#[derive(Clone, Debug)]
pub struct Schedule {
    due: Due,
    /// The time zone that the schedule itself names, `TZ=Asia/Tokyo 0 0 * * *`.
    zone: Option<TimeZone>,
}

#[derive(Clone, Debug)]
enum Due {
    /// At these times of the wall clock.
    At(Fields),
    /// So many seconds after the last time.
    Every(u64),
}

/// Why a schedule cannot be read, in the words of the library.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(String);

impl Schedule {
    /// Reads a schedule (`cron.ParseStandard`).
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn parse(text: &str) -> Result<Self, Unreadable> {
        syntax::parse(text).map_err(Unreadable)
    }

    /// The first time after `after` when it is due: by the clocks of the zone that it names itself, otherwise by those of
    /// `zone`. `None` when there is none within five years, such as for the 31st of February.
    #[must_use]
    pub fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match &self.due {
            Due::At(fields) => fields.next(after, self.zone.as_ref().unwrap_or(zone)),
            Due::Every(seconds) => {
                let second = Timestamp::from_second(after.as_second()).ok()?;
                second.checked_add(std::time::Duration::from_secs(*seconds)).ok()
            }
        }
    }
}

#[cfg(test)]
mod tests;
