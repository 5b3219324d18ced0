//! Families of metrics whose names are written in this crate.

use prometheus::{
    GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry, core::Collector,
};

/// Registers a collector.
///
/// # Panics
/// When one of its families is registered already: names and registry are both this crate's.
pub(super) fn register(registry: &Registry, collector: impl Collector + 'static) {
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
