//! Events of the core API, as client-go's `tools/record` writes them: the built-in controllers of Kubernetes do.

use std::sync::Arc;

use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{
    Client,
    api::{ObjectMeta, Patch, PatchParams},
};
use kubewright_meta::events::{Correlator, EventType, Happening, Remembered, Write, shortened};
use kubewright_world::World;
use parking_lot::Mutex;
use serde_json::json;

use super::name;
use crate::{
    Error, Object,
    endpoint::{Endpoint, encode},
};

/// Records the events of one component.
#[derive(Clone)]
pub(crate) struct Recorder {
    client: Client,
    world: World,
    component: String,
    correlator: Arc<Mutex<Correlator>>,
}

impl Recorder {
    pub(super) fn new(client: Client, world: World, component: &str) -> Self {
        Self { client, world, component: component.to_owned(), correlator: Arc::default() }
    }

    pub(super) async fn record<K: Object>(
        &self,
        object: &K,
        event_type: EventType,
        reason: &str,
        note: &str,
    ) -> Result<(), Error> {
        let involved = object.object_ref(&());
        // Events of cluster-scoped objects live in `default`.
        let namespace = involved.namespace.clone().unwrap_or_else(|| "default".to_owned());
        let happening = Happening {
            object: identity(&involved),
            field: String::new(),
            event_type,
            reason: reason.to_owned(),
            note: shortened(note),
        };
        let now = self.world.clock.now();
        let write = self.correlator.lock().observe(happening, now);
        let event = match write {
            Write::Nothing => return Ok(()),
            Write::Create(event) => event,
            Write::Count(event) if self.count(&namespace, &event, Time(now)).await? => return Ok(()),
            Write::Count(event) => event,
        };
        let event =
            Remembered { name: name(&self.world, involved.name.as_deref().unwrap_or_default()), ..event };
        let body = self.event(involved, &namespace, &event, Time(now));
        Endpoint::<Event>::new(&self.client, &(), Some(&namespace)).create(encode(&body)?).await?;
        self.correlator.lock().remember(event, now);
        Ok(())
    }

    /// Writes that an event has happened once more; false when it is gone.
    async fn count(&self, namespace: &str, event: &Remembered, now: Time) -> Result<bool, Error> {
        let patch = json!({
            "count": event.count,
            "lastTimestamp": now,
            "message": shortened(&event.note),
        });
        let events = Endpoint::<Event>::new(&self.client, &(), Some(namespace));
        match events.patch(&event.name, None, &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn event(&self, involved: ObjectReference, namespace: &str, event: &Remembered, now: Time) -> Event {
        Event {
            count: Some(event.count),
            first_timestamp: Some(Time(event.first)),
            involved_object: involved,
            last_timestamp: Some(now),
            message: Some(shortened(&event.note)),
            metadata: ObjectMeta {
                namespace: Some(namespace.to_owned()),
                name: Some(event.name.clone()),
                ..ObjectMeta::default()
            },
            reason: Some(event.key.reason.clone()),
            reporting_component: Some(self.component.clone()),
            source: Some(EventSource { component: Some(self.component.clone()), host: None }),
            type_: Some(event.key.event_type.to_string()),
            ..Event::default()
        }
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
