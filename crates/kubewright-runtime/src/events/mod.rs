//! Events for people (`kubectl describe`, `kubectl events`), in the two forms that the API has for them: told by reconciles, which
//! do not wait, kept in a [queue], and written by one task of each controller, as far as they are [worth it](Correlator).

mod core;
mod new_event;
mod queue;
mod series;
mod writer;

use kubewright_meta::events::Correlator;
pub use kubewright_meta::events::{EventType, SpamFilter};

pub use self::new_event::NewEvent;
pub(crate) use self::{
    queue::{EventQueue, Happened},
    writer::EventWriter,
};

/// Which API events are recorded by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventApi {
    /// `events.k8s.io/v1`.
    Series,
    /// `v1`.
    Core,
}

impl EventApi {
    /// Which events are worth a write. In both forms many that differ in their note alone become one, and a source has only so
    /// many to tell of an object (`EventCorrelator` in `k8s.io/client-go/tools/record/events_cache.go`); what happens again
    /// is counted in both.
    fn correlator(self) -> Correlator {
        match self {
            Self::Series => Correlator::of_series(series::ENDS_AFTER),
            Self::Core => Correlator::default(),
        }
    }
}
