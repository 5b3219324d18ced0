//! Events for people (`kubectl describe`, `kubectl events`), in the two forms that the API has for them.

mod core;
mod series;

use kube::Client;
pub use kubewright_meta::events::{EventType, SpamFilter};
use kubewright_meta::text::is_dns_subdomain;
use kubewright_world::World;

use crate::{Error, Object};

/// Which API events are recorded by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventApi {
    /// `events.k8s.io/v1`.
    Series,
    /// `v1`.
    Core,
}

/// Records the events of one source.
#[derive(Clone)]
pub(crate) enum Recorder {
    Series(series::Recorder),
    Core(core::Recorder),
}

impl Recorder {
    /// `source` is who tells.
    pub(crate) fn new(event_api: EventApi, client: Client, world: World, source: &str) -> Self {
        match event_api {
            EventApi::Series => Self::Series(series::Recorder::new(client, world, source)),
            EventApi::Core => Self::Core(core::Recorder::new(client, world, source)),
        }
    }

    /// Records an event, or that it happened once more.
    pub(crate) async fn record<K: Object>(
        &self,
        object: &K,
        event_type: EventType,
        reason: &str,
        note: &str,
    ) -> Result<(), Error> {
        match self {
            Self::Series(recorder) => recorder.record(object, event_type, reason, note).await,
            Self::Core(recorder) => recorder.record(object, event_type, reason, note).await,
        }
    }
}

/// The name of a new event about an object; a random one where the object's name leaves no room for more
/// (`GenerateEventName` in `k8s.io/client-go/tools/record/util`).
fn name(world: &World, object: &str) -> String {
    let name = format!("{object}.{}", world.dice.suffix(16));
    if is_dns_subdomain(&name) { name } else { world.dice.uid() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_object_whose_name_leaves_no_room_gets_events_with_random_names() {
        let world = World::simulated(0);
        assert!(name(&world, "web").starts_with("web."));
        assert_eq!(name(&world, &"a".repeat(240)).len(), 36);
        assert_eq!(name(&world, "system:node").len(), 36);
    }
}
