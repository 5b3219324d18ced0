//! Events of the kubelet about pods, their containers, and the node, as client-go's `tools/record` writes them.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, Node, ObjectReference, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
pub(crate) use kubewright_meta::events::EventType;
use kubewright_meta::events::{Correlator, Happening, Remembered, Write, shortened};
use kubewright_world::World;
use serde_json::json;
use tokio::sync::mpsc;

use crate::pod::PodContainer;

#[derive(Debug)]
struct Happened {
    about: ObjectReference,
    event_type: EventType,
    reason: String,
    message: String,
    at: Timestamp,
}

/// Records events: takes them, and writes them one after the other in a task of its own. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct EventRecorder {
    queue: mpsc::UnboundedSender<Happened>,
    world: World,
}

impl EventRecorder {
    /// The events of the kubelet of this node, and what writes them for as long as anybody holds the former.
    pub(crate) fn new(client: Client, world: World, node: Arc<str>) -> (Self, impl Future<Output = ()>) {
        let (queue, mut happened) = mpsc::unbounded_channel();
        let mut writer = Writer { client, node, correlator: Correlator::default(), last: 0 };
        let write = async move {
            while let Some(event) = happened.recv().await {
                if let Err(error) = writer.write(event).await {
                    tracing::debug!(%error, "an event was not recorded");
                }
            }
        };
        (Self { queue, world }, write)
    }

    /// About a pod.
    pub(crate) fn pod(&self, pod: &Pod, event_type: EventType, reason: &str, message: impl Into<String>) {
        self.record(about_pod(pod, None), event_type, reason, message.into());
    }

    /// About a container of a pod.
    pub(crate) fn container(
        &self,
        pod: &Pod,
        member: &PodContainer,
        event_type: EventType,
        reason: &str,
        message: impl Into<String>,
    ) {
        let field = format!("spec.{}{{{}}}", member.role.list(), member.name());
        self.record(about_pod(pod, Some(field)), event_type, reason, message.into());
    }

    /// About the node.
    pub(crate) fn node(&self, node: &Node, event_type: EventType, reason: &str, message: impl Into<String>) {
        let name = node.metadata.name.clone();
        // The kubelet names itself by the node's name in place of the uid that it may not know yet.
        let about = ObjectReference {
            kind: Some("Node".to_owned()),
            uid: name.clone(),
            name,
            ..ObjectReference::default()
        };
        self.record(about, event_type, reason, message.into());
    }

    fn record(&self, about: ObjectReference, event_type: EventType, reason: &str, message: String) {
        let at = self.world.clock.now();
        // When nobody writes any more, the node has ended.
        let _ = self.queue.send(Happened { about, event_type, reason: reason.to_owned(), message, at });
    }
}

fn about_pod(pod: &Pod, field: Option<String>) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        namespace: pod.metadata.namespace.clone(),
        name: pod.metadata.name.clone(),
        uid: pod.metadata.uid.clone(),
        resource_version: pod.metadata.resource_version.clone(),
        field_path: field,
    }
}

struct Writer {
    client: Client,
    node: Arc<str>,
    correlator: Correlator,
    /// The nanosecond that the last event is named after.
    last: i128,
}

impl Writer {
    async fn write(&mut self, event: Happened) -> kube::Result<()> {
        let happening = Happening {
            object: event.about.uid.clone().unwrap_or_default(),
            field: event.about.field_path.clone().unwrap_or_default(),
            event_type: event.event_type,
            reason: event.reason.clone(),
            note: shortened(&event.message),
        };
        // Events about what is cluster-scoped are in `default`.
        let namespace = event.about.namespace.clone().unwrap_or_else(|| "default".to_owned());
        let api: Api<Event> = Api::namespaced(self.client.clone(), &namespace);
        let known = match self.correlator.observe(happening, event.at) {
            Write::Nothing => return Ok(()),
            Write::Create(new) => new,
            Write::Count(known) => {
                let message = shortened(&known.note);
                let patch =
                    json!({"count": known.count, "lastTimestamp": Time(event.at), "message": message});
                match api.patch(&known.name, &PatchParams::default(), &Patch::Merge(&patch)).await {
                    Err(kube::Error::Api(status)) if status.is_not_found() => known,
                    patched => return patched.map(|_| ()),
                }
            }
        };
        // As client-go does (`GenerateEventName`): what happened later is listed later. No two have the same.
        self.last = event.at.as_nanosecond().max(self.last + 1);
        let name = format!("{}.{:x}", event.about.name.as_deref().unwrap_or("node"), self.last);
        let (at, known) = (event.at, Remembered { name, ..known });
        api.create(&PostParams::default(), &self.event(event, &namespace, &known)).await?;
        self.correlator.remember(known, at);
        Ok(())
    }

    fn event(&self, event: Happened, namespace: &str, known: &Remembered) -> Event {
        let component = || Some("kubelet".to_owned());
        Event {
            count: Some(known.count),
            first_timestamp: Some(Time(known.first)),
            last_timestamp: Some(Time(event.at)),
            involved_object: event.about,
            message: Some(shortened(&known.note)),
            metadata: ObjectMeta {
                namespace: Some(namespace.to_owned()),
                name: Some(known.name.clone()),
                ..ObjectMeta::default()
            },
            reason: Some(event.reason),
            reporting_component: component(),
            reporting_instance: Some(self.node.to_string()),
            source: Some(EventSource { component: component(), host: Some(self.node.to_string()) }),
            type_: Some(event.event_type.to_string()),
            ..Event::default()
        }
    }
}
