//! Writes events, one after the other.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::api::{
    core::v1::{self, ObjectReference},
    events,
};
use kube::{Client, api::Patch};
use kubewright_meta::{
    events::{Correlator, Happening, Remembered, Write, shortened},
    text::is_dns_subdomain,
};
use kubewright_world::World;
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{EventApi, EventQueue, Happened, core, series};
use crate::{
    Error, Object,
    context::ClusterContexts,
    endpoint::{Action, Endpoint, WriteOptions, encode},
};

/// Writes the events of one source. Clones share what was told lately.
#[derive(Clone)]
pub(crate) struct EventWriter {
    event_api: EventApi,
    client: Client,
    world: World,
    /// Who tells.
    source: Arc<str>,
    correlator: Arc<Mutex<Correlator>>,
    /// The clients of further clusters.
    clusters: Option<Arc<ClusterContexts>>,
}

impl EventWriter {
    pub(crate) fn new(event_api: EventApi, client: Client, world: World, source: &str) -> Self {
        let correlator = Arc::new(Mutex::new(event_api.correlator()));
        Self { event_api, client, world, source: source.into(), correlator, clusters: None }
    }

    /// And the events of these clusters, in each its own.
    pub(crate) fn in_clusters(mut self, clusters: &Arc<ClusterContexts>) -> Self {
        self.clusters = Some(clusters.clone());
        self
    }

    /// The client of the cluster in which something happened; none when it has gone.
    fn client_of(&self, happened: &Happened) -> Option<Client> {
        match &happened.cluster {
            None => Some(self.client.clone()),
            Some(cluster) => self.clusters.as_ref()?.client(cluster),
        }
    }

    /// Writes what is added to `queue` from now on, until `ended` and all that waits by then is written. What cannot be written
    /// is told to `failed`, with its reason, and whether the one before was lost for the same cause: it is lost.
    pub(crate) fn write_all(
        &self,
        queue: &Arc<EventQueue>,
        ended: CancellationToken,
        failed: impl Fn(&str, &Error, bool) + Send + Sync + 'static,
    ) -> BoxFuture<'static, ()> {
        let (open, writer) = (queue.open(), self.clone());
        let writing = async move {
            let mut before = None;
            while let Some(happened) = open.next(&ended).await {
                let reason = happened.event.reason.clone();
                let lost = writer.write(happened).await.err();
                let cause = lost.as_ref().map(|error| error.condition_reason().to_owned());
                if let Some(error) = &lost {
                    failed(&reason, error, before == cause);
                }
                before = cause;
            }
        };
        writing.boxed()
    }

    /// Writes an event, or that it happened once more, or nothing when there is too much of it.
    pub(crate) async fn write(&self, happened: Happened) -> Result<(), Error> {
        let Some(client) = self.client_of(&happened) else { return Ok(()) };
        let at = happened.at;
        // Events of cluster-scoped objects live in `default`.
        let namespace = happened.regarding.namespace.clone().unwrap_or_else(|| "default".to_owned());
        let write = self.correlator.lock().observe(happening(&happened), at);
        let event = match write {
            Write::Nothing => return Ok(()),
            Write::Count(event) if self.count(&client, &namespace, &event, &happened).await? => return Ok(()),
            // One that is gone begins anew.
            Write::Create(event) | Write::Count(event) => event,
        };
        let about = happened.regarding.name.as_deref().unwrap_or_default();
        let event = Remembered { name: name(&self.world, about), ..event };
        match self.event_api {
            EventApi::Series => {
                let body = encode(&series::event(&self.source, &namespace, &event, happened))?;
                create::<events::v1::Event>(&client, &namespace, &body).await?;
            }
            EventApi::Core => {
                let body = encode(&core::event(&self.source, &namespace, &event, happened))?;
                create::<v1::Event>(&client, &namespace, &body).await?;
            }
        }
        self.correlator.lock().remember(event, at);
        Ok(())
    }

    /// Writes that an event has happened once more; false when it is gone.
    async fn count(
        &self,
        client: &Client,
        namespace: &str,
        event: &Remembered,
        happened: &Happened,
    ) -> Result<bool, Error> {
        match self.event_api {
            EventApi::Series => {
                let counted = series::count(event, happened.at);
                patch::<events::v1::Event>(client, namespace, &event.name, counted).await
            }
            EventApi::Core => {
                let counted = core::count(event, happened.at);
                patch::<v1::Event>(client, namespace, &event.name, counted).await
            }
        }
    }
}

async fn create<K: Object>(client: &Client, namespace: &str, body: &[u8]) -> Result<(), Error> {
    let (options, action) = (WriteOptions::default(), Action::Create(body));
    endpoint::<K>(client, namespace).write("", None, &options, action).await?;
    Ok(())
}

async fn patch<K: Object>(client: &Client, namespace: &str, name: &str, patch: Value) -> Result<bool, Error> {
    let (options, action) = (WriteOptions::default(), Action::Patch(Patch::Merge(&patch)));
    match endpoint::<K>(client, namespace).write(name, None, &options, action).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn endpoint<'a, K: Object>(client: &'a Client, namespace: &str) -> Endpoint<'a, K> {
    Endpoint::new(client, &(), Some(namespace))
}

/// What is counted as the same when it happens again.
fn happening(happened: &Happened) -> Happening {
    let event = &happened.event;
    // Another action, or another second object, is another event.
    let related = event.related.as_ref().map(identity);
    let field = [event.action.clone(), related].into_iter().flatten().collect::<Vec<_>>().join("/");
    Happening {
        object: identity(&happened.regarding),
        field,
        event_type: event.event_type,
        reason: event.reason.clone(),
        note: shortened(&event.note),
    }
}

/// What tells an object from all others.
fn identity(object: &ObjectReference) -> String {
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    match &object.uid {
        Some(uid) => uid.clone(),
        None => [part(&object.kind), part(&object.namespace), part(&object.name)].join("/"),
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
