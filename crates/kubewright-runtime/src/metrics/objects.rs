//! Gauges with a series for each object of a kind.

use std::{collections::BTreeSet, sync::Arc};

use parking_lot::Mutex;
use prometheus::{GaugeVec, Opts, Registry};

use crate::{Change, Informer, Key, Object};

/// How many objects a gauge tells of. A series costs memory here and in Prometheus.
pub(crate) const MOST_OBJECTS: usize = 2000;

/// A gauge of the objects of kind `K`, with the labels `namespace` and `name`.
pub(crate) struct ObjectGauge<K> {
    name: String,
    help: String,
    value: Value<K>,
}

/// What a gauge tells of an object, if anything.
type Value<K> = Arc<dyn Fn(&K) -> Option<f64> + Send + Sync>;

/// The series of a gauge.
struct Series {
    family: GaugeVec,
    shown: BTreeSet<Key>,
    /// Whether it was said that there are too many.
    is_full: bool,
}

impl<K: Object> ObjectGauge<K> {
    pub(crate) fn new(
        name: String,
        help: String,
        value: impl Fn(&K) -> Option<f64> + Send + Sync + 'static,
    ) -> Self {
        Self { name, help, value: Arc::new(value) }
    }

    /// Tells of the objects of an informer from now on; says what is wrong with its name.
    pub(crate) fn connect(&self, informer: &Informer<K>, registry: &Registry) -> Result<(), String> {
        let wrong = |error| format!("the metric {}: {error}", self.name);
        let family =
            GaugeVec::new(Opts::new(&self.name, &self.help), &["namespace", "name"]).map_err(wrong)?;
        registry.register(Box::new(family.clone())).map_err(wrong)?;
        let (value, series) = (self.value.clone(), Mutex::new(Series::of(family)));
        informer.subscribe(move |change| match change {
            Change::Created(object) | Change::Updated { new: object, .. } => {
                series.lock().show(Key::of(&**object), value(object));
            }
            Change::Deleted(object) => series.lock().show(Key::of(&**object), None),
        });
        Ok(())
    }
}

impl Series {
    fn of(family: GaugeVec) -> Self {
        Self { family, shown: BTreeSet::new(), is_full: false }
    }

    fn show(&mut self, key: Key, value: Option<f64>) {
        let labels = [key.namespace.as_deref().unwrap_or_default(), &key.name];
        let Some(value) = value else {
            if self.shown.remove(&key) {
                // It was there.
                let _ = self.family.remove_label_values(&labels);
            }
            return;
        };
        if self.shown.len() >= MOST_OBJECTS && !self.shown.contains(&key) {
            if !std::mem::replace(&mut self.is_full, true) {
                tracing::warn!(%key, most = MOST_OBJECTS, "a metric has too many objects; others are not told of");
            }
            return;
        }
        self.family.with_label_values(&labels).set(value);
        self.shown.insert(key);
    }
}

#[cfg(test)]
mod tests {
    use prometheus::core::Collector;

    use super::*;

    #[test]
    fn a_series_goes_with_its_object_and_there_are_only_so_many() {
        let family = GaugeVec::new(Opts::new("size", "Size"), &["namespace", "name"]).expect("a family");
        let mut series = Series::of(family.clone());
        let told = || family.collect().iter().map(|family| family.get_metric().len()).sum::<usize>();
        for number in 0..MOST_OBJECTS + 10 {
            series.show(Key::namespaced("default", number.to_string()), Some(1.0));
        }
        assert_eq!(told(), MOST_OBJECTS);
        series.show(Key::namespaced("default", "0"), None);
        series.show(Key::namespaced("default", "unknown"), None);
        assert_eq!(told(), MOST_OBJECTS - 1);
        series.show(Key::cluster_scoped("node"), Some(2.0));
        assert_eq!(told(), MOST_OBJECTS);
    }
}
