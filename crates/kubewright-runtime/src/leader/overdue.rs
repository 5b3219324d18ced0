//! Work that goes on when the right to do it is lost.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Since when the right to work is lost while the work goes on.
#[derive(Debug, Default)]
pub(crate) struct Overdue(Mutex<Option<Instant>>);

impl Overdue {
    /// The right is lost while the work goes on, or the work has ended.
    pub(crate) fn set(&self, is_overdue: bool) {
        *self.0.lock() = is_overdue.then(Instant::now);
    }

    /// For how long that goes on, where it is longer than `tolerance`.
    pub(crate) fn longer_than(&self, tolerance: Duration) -> Option<Duration> {
        let overdue = self.0.lock().map(|since| Instant::now().saturating_duration_since(since));
        overdue.filter(|overdue| *overdue > tolerance)
    }
}
