//! What holds for all controllers of a manager that do not say otherwise.

use std::{collections::BTreeMap, time::Duration};

use super::{Controller, settings};
use crate::{Object, workqueue::RateLimit};

/// Settings of all controllers of a manager that do not say otherwise themselves (controller-runtime's `config.Controller`). For
/// [`Manager::defaults`](crate::Manager::defaults) and [`Operator::defaults`](crate::command::Operator::defaults).
///
/// ```
/// use std::time::Duration;
/// use kubewright_runtime::Defaults;
///
/// let defaults = Defaults::new().concurrency(4).timeout(Duration::from_secs(60));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Defaults {
    concurrency: Option<usize>,
    /// By group and kind of the own kind.
    concurrency_of: BTreeMap<(String, String), usize>,
    rate_limit: Option<RateLimit>,
    timeout: Option<Duration>,
    cache_sync_timeout: Option<Duration>,
    pub(crate) mistakes: Vec<String>,
}

impl Defaults {
    /// What holds where nothing is said: one key at a time, the usual back-off, no time-outs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`Controller::concurrency`].
    #[must_use]
    pub fn concurrency(mut self, workers: usize) -> Self {
        self.mistakes.extend(settings::concurrency_mistake(workers));
        self.concurrency = Some(workers);
        self
    }

    /// As [`Controller::concurrency`], of the controllers whose own kind is `K`: before what [`Defaults::concurrency`] says
    /// (controller-runtime's `GroupKindConcurrency`).
    #[must_use]
    pub fn concurrency_of<K: Object>(mut self, workers: usize) -> Self {
        self.mistakes.extend(settings::concurrency_mistake(workers));
        let kind = (K::group(&()).into_owned(), K::kind(&()).into_owned());
        self.concurrency_of.insert(kind, workers);
        self
    }

    /// As [`Controller::rate_limit`].
    #[must_use]
    pub fn rate_limit(mut self, limit: RateLimit) -> Self {
        self.mistakes.extend(limit.mistake().map(str::to_owned));
        self.rate_limit = Some(limit);
        self
    }

    /// As [`Controller::timeout`].
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.mistakes.extend(settings::timeout_mistake(limit));
        self.timeout = Some(limit);
        self
    }

    /// As [`Controller::cache_sync_timeout`].
    #[must_use]
    pub fn cache_sync_timeout(mut self, limit: Duration) -> Self {
        self.mistakes.extend(settings::sync_mistake(limit));
        self.cache_sync_timeout = Some(limit);
        self
    }

    /// Gives a controller what it does not say itself.
    pub(crate) fn apply(&self, controller: &mut Controller) {
        let of_kind = || self.concurrency_of.get(&controller.own_kind()?).copied();
        controller.concurrency = controller.concurrency.or_else(of_kind).or(self.concurrency);
        controller.rate_limit = controller.rate_limit.or(self.rate_limit);
        controller.timeout = controller.timeout.or(self.timeout);
        controller.cache_sync_timeout = controller.cache_sync_timeout.or(self.cache_sync_timeout);
    }
}
