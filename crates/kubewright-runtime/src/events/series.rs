//! Events of `events.k8s.io/v1`: what goes on is one event with a series.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Client,
    api::{ObjectMeta, Patch, PatchParams},
};
use kubewright_meta::events::{EventType, shortened};
use kubewright_world::World;
use parking_lot::Mutex;
use serde_json::json;

use super::name;
use crate::{
    Error, Object,
    endpoint::{Endpoint, encode},
};

/// Repetitions within this time become one event with a count (`finishTime` in
/// `k8s.io/client-go/tools/events/event_broadcaster.go`).
const SERIES_ENDS_AFTER: Duration = Duration::from_secs(6 * 60);
/// How many series are remembered at most.
const MOST_SERIES: usize = 4096;

/// Events that are the same: the object's uid, type, reason and note.
type Same = (String, EventType, String, String);

#[derive(Clone)]
struct Series {
    namespace: String,
    name: String,
    count: i32,
    last: Timestamp,
}

/// Records events of one controller.
#[derive(Clone)]
pub(crate) struct Recorder {
    client: Client,
    world: World,
    controller: String,
    recent: Arc<Mutex<BTreeMap<Same, Series>>>,
}

impl Recorder {
    pub(super) fn new(client: Client, world: World, controller: &str) -> Self {
        Self { client, world, controller: controller.to_owned(), recent: Arc::default() }
    }

    /// Records an event, or that it happened once more.
    pub(super) async fn record<K: Object>(
        &self,
        object: &K,
        event_type: EventType,
        reason: &str,
        note: &str,
    ) -> Result<(), Error> {
        let regarding = object.object_ref(&());
        let uid = regarding.uid.clone().unwrap_or_default();
        let same = (uid, event_type, reason.to_owned(), note.to_owned());
        let now = self.world.clock.now();
        if let Some(series) = self.repeat(&same, now)
            && self.count(&series).await?
        {
            return Ok(());
        }
        let event = self.event(regarding, &same, now);
        let (namespace, name) = (event.metadata.namespace.clone(), event.metadata.name.clone());
        let (namespace, name) = (namespace.unwrap_or_default(), name.unwrap_or_default());
        Endpoint::<v1::Event>::new(&self.client, &(), Some(&namespace)).create(encode(&event)?).await?;
        self.remember(same, Series { namespace, name, count: 1, last: now });
        Ok(())
    }

    fn remember(&self, same: Same, series: Series) {
        let mut recent = self.recent.lock();
        if recent.len() >= MOST_SERIES {
            forget_some(&mut recent, series.last);
        }
        recent.insert(same, series);
    }

    /// Counts a repetition, if it is one.
    fn repeat(&self, same: &Same, now: Timestamp) -> Option<Series> {
        let mut recent = self.recent.lock();
        let series = recent.get_mut(same)?;
        if now.duration_since(series.last).unsigned_abs() >= SERIES_ENDS_AFTER {
            recent.remove(same);
            return None;
        }
        series.count = series.count.saturating_add(1);
        series.last = now;
        Some(series.clone())
    }

    /// Writes the count of a series; false when its event is gone.
    async fn count(&self, series: &Series) -> Result<bool, Error> {
        let patch = json!({"series": {"count": series.count, "lastObservedTime": MicroTime(series.last)}});
        let events = Endpoint::<v1::Event>::new(&self.client, &(), Some(&series.namespace));
        match events.patch(&series.name, None, &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn event(&self, regarding: ObjectReference, same: &Same, now: Timestamp) -> v1::Event {
        let (_, event_type, reason, note) = same;
        // Events of cluster-scoped objects live in `default`.
        let namespace = regarding.namespace.clone().unwrap_or_else(|| "default".to_owned());
        let name = name(&self.world, regarding.name.as_deref().unwrap_or_default());
        v1::Event {
            metadata: ObjectMeta { namespace: Some(namespace), name: Some(name), ..ObjectMeta::default() },
            event_time: Some(MicroTime(now)),
            reporting_controller: Some(self.controller.clone()),
            reporting_instance: Some(self.controller.clone()),
            action: Some("Reconcile".to_owned()),
            reason: Some(reason.clone()),
            note: Some(shortened(note)),
            type_: Some(event_type.to_string()),
            regarding: Some(regarding),
            ..v1::Event::default()
        }
    }
}

/// Makes room: for those that have ended by now, or for half of them if none has, those that are longest ago.
fn forget_some(recent: &mut BTreeMap<Same, Series>, now: Timestamp) {
    let before = recent.len();
    recent.retain(|_, series| now.duration_since(series.last).unsigned_abs() < SERIES_ENDS_AFTER);
    if recent.len() == before {
        let mut times: Vec<Timestamp> = recent.values().map(|series| series.last).collect();
        times.sort_unstable();
        let middle = times[before / 2];
        recent.retain(|_, series| series.last > middle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series_at(seconds: &[i64]) -> BTreeMap<Same, Series> {
        let series = |(number, second): (usize, &i64)| {
            let same = (number.to_string(), EventType::Normal, String::new(), String::new());
            let last = Timestamp::constant(*second, 0);
            (same, Series { namespace: String::new(), name: String::new(), count: 1, last })
        };
        seconds.iter().enumerate().map(series).collect()
    }

    fn left(seconds: &[i64], now: i64) -> Vec<i64> {
        let mut recent = series_at(seconds);
        forget_some(&mut recent, Timestamp::constant(now, 0));
        recent.values().map(|series| series.last.as_second()).collect()
    }

    #[test]
    fn series_that_have_ended_are_forgotten_first() {
        assert_eq!(left(&[0, 100, 500, 600], 600), [500, 600]);
    }

    #[test]
    fn of_series_that_go_on_the_newer_half_is_kept() {
        assert_eq!(left(&[596, 600, 597, 599, 598], 600), [600, 599]);
        assert_eq!(left(&[600, 600, 600], 600), [0; 0]);
    }
}
