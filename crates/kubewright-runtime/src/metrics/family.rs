//! Families of metrics whose names are written in this crate.

use prometheus::{
    GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry, core::Collector,
};

#[cfg(test)]
thread_local! {
    /// The families that this thread has registered: a registry tells only those that have a value.
    pub(super) static REGISTERED: std::cell::RefCell<std::collections::BTreeSet<String>> = const {
        std::cell::RefCell::new(std::collections::BTreeSet::new())
    };
}

/// Registers a collector.
///
/// # Panics
/// When one of its families is registered already: names and registry are both this crate's.
pub(super) fn register(registry: &Registry, collector: impl Collector + 'static) {
    #[cfg(test)]
    REGISTERED
        .with_borrow_mut(|names| names.extend(collector.desc().iter().map(|family| family.fq_name.clone())));
    registry.register(Box::new(collector)).expect("a name is registered once");
}

macro_rules! family {
    ($function:ident, $family:ty) => {
        pub(super) fn $function(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> $family {
            let family = <$family>::new(Opts::new(name, help), labels).expect("a valid name");
            register(registry, family.clone());
            family
        }
    };
}

family!(counters, IntCounterVec);
family!(gauges, IntGaugeVec);
family!(seconds, GaugeVec);

pub(super) fn histograms(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
    buckets: &[f64],
) -> HistogramVec {
    let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
    let family = HistogramVec::new(options, labels).expect("a valid name");
    register(registry, family.clone());
    family
}
