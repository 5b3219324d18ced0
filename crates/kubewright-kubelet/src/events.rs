//! Events of the kubelet about pods, their containers, and the node, as client-go's `tools/record` writes them: what
//! happened before is counted, and who tells too much is not listened to for a while (`events_cache.go`).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, Node, ObjectReference, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use kubewright_world::World;
use serde_json::json;
use tokio::sync::mpsc;

use crate::pod::Member;

/// How many different events are remembered, to be counted when they happen again.
const REMEMBERED: usize = 4096;
/// An object may have so many events at once, and one more every [`REFILL`] (`defaultSpamBurst`, `defaultSpamQPS`).
const BURST: u32 = 25;
const REFILL: Duration = Duration::from_secs(300);
/// The longest message that the API takes.
const LONGEST: usize = 1024;

/// How an event is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Normal,
    Warning,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

#[derive(Debug)]
struct Happened {
    about: ObjectReference,
    kind: Kind,
    reason: String,
    message: String,
    at: Timestamp,
}

/// Takes events, and writes them one after the other in a task of its own. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    queue: mpsc::UnboundedSender<Happened>,
    world: World,
}

impl Events {
    /// The events of the kubelet of this node, and what writes them for as long as anybody holds the former.
    pub(crate) fn new(client: Client, world: World, node: Arc<str>) -> (Self, impl Future<Output = ()>) {
        let (queue, mut happened) = mpsc::unbounded_channel();
        let mut writer = Writer { client, node, seen: Seen::default(), last: 0 };
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
    pub(crate) fn pod(&self, pod: &Pod, kind: Kind, reason: &str, message: impl Into<String>) {
        self.tell(about_pod(pod, None), kind, reason, message.into());
    }

    /// About a container of a pod.
    pub(crate) fn container(
        &self,
        pod: &Pod,
        member: &Member,
        kind: Kind,
        reason: &str,
        message: impl Into<String>,
    ) {
        let field = format!("spec.{}{{{}}}", member.role.list(), member.name());
        self.tell(about_pod(pod, Some(field)), kind, reason, message.into());
    }

    /// About the node.
    pub(crate) fn node(&self, node: &Node, kind: Kind, reason: &str, message: impl Into<String>) {
        let name = node.metadata.name.clone();
        // The kubelet names itself by the node's name in place of the uid that it may not know yet.
        let about = ObjectReference {
            kind: Some("Node".to_owned()),
            uid: name.clone(),
            name,
            ..ObjectReference::default()
        };
        self.tell(about, kind, reason, message.into());
    }

    fn tell(&self, about: ObjectReference, kind: Kind, reason: &str, message: String) {
        let at = self.world.clock.now();
        // When nobody writes any more, the node has ended.
        let _ = self.queue.send(Happened { about, kind, reason: reason.to_owned(), message, at });
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

/// What tells an event from all others.
type Identity = (String, String, Kind, String, String);

#[derive(Debug)]
struct Remembered {
    name: String,
    count: i32,
}

#[derive(Debug, Default)]
struct Seen {
    events: BTreeMap<Identity, Remembered>,
    order: VecDeque<Identity>,
    budgets: BTreeMap<String, Budget>,
}

/// How many events an object may still have.
#[derive(Debug)]
struct Budget {
    left: u32,
    filled: Timestamp,
}

impl Budget {
    fn take(&mut self, now: Timestamp) -> bool {
        let passed = Duration::try_from(now.duration_since(self.filled)).unwrap_or_default();
        let earned = u32::try_from(passed.as_secs() / REFILL.as_secs()).unwrap_or(BURST);
        if earned > 0 {
            self.left = self.left.saturating_add(earned).min(BURST);
            self.filled = now;
        }
        let has = self.left > 0;
        self.left = self.left.saturating_sub(1);
        has
    }
}

impl Seen {
    /// Whether the object may have one more event.
    fn allows(&mut self, object: &str, now: Timestamp) -> bool {
        if self.budgets.len() > REMEMBERED {
            self.budgets.clear();
        }
        let full = Budget { left: BURST, filled: now };
        self.budgets.entry(object.to_owned()).or_insert(full).take(now)
    }

    fn remember(&mut self, identity: Identity, name: String) {
        self.order.push_back(identity.clone());
        self.events.insert(identity, Remembered { name, count: 1 });
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.events.remove(&oldest);
        }
    }
}

struct Writer {
    client: Client,
    node: Arc<str>,
    seen: Seen,
    /// The nanosecond that the last event is named after.
    last: i128,
}

impl Writer {
    async fn write(&mut self, event: Happened) -> kube::Result<()> {
        let object = event.about.uid.clone().unwrap_or_default();
        if !self.seen.allows(&object, event.at) {
            return Ok(());
        }
        let message = cut(&event.message);
        let field = event.about.field_path.clone().unwrap_or_default();
        let identity = (object, field, event.kind, event.reason.clone(), message.clone());
        // Events about what is cluster-scoped are in `default`.
        let namespace = event.about.namespace.clone().unwrap_or_else(|| "default".to_owned());
        let api: Api<Event> = Api::namespaced(self.client.clone(), &namespace);
        if let Some(known) = self.seen.events.get_mut(&identity) {
            known.count = known.count.saturating_add(1);
            let patch = json!({"count": known.count, "lastTimestamp": Time(event.at)});
            match api.patch(&known.name, &PatchParams::default(), &Patch::Merge(&patch)).await {
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                patched => return patched.map(|_| ()),
            }
        }
        // As client-go does (`GenerateEventName`): what happened later is listed later. No two have the same.
        self.last = event.at.as_nanosecond().max(self.last + 1);
        let name = format!("{}.{:x}", event.about.name.as_deref().unwrap_or("node"), self.last);
        let body = self.event(event, &namespace, &name, message);
        api.create(&PostParams::default(), &body).await?;
        self.seen.remember(identity, name);
        Ok(())
    }

    fn event(&self, event: Happened, namespace: &str, name: &str, message: String) -> Event {
        let component = || Some("kubelet".to_owned());
        Event {
            count: Some(1),
            first_timestamp: Some(Time(event.at)),
            last_timestamp: Some(Time(event.at)),
            involved_object: event.about,
            message: Some(message),
            metadata: ObjectMeta {
                namespace: Some(namespace.to_owned()),
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            reason: Some(event.reason),
            reporting_component: component(),
            reporting_instance: Some(self.node.to_string()),
            source: Some(EventSource { component: component(), host: Some(self.node.to_string()) }),
            type_: Some(event.kind.name().to_owned()),
            ..Event::default()
        }
    }
}

fn cut(text: &str) -> String {
    let end = (0..=LONGEST.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_tells_too_much_is_heard_again_after_five_minutes() {
        let start: Timestamp = Timestamp::constant(1_767_225_600, 0);
        let mut seen = Seen::default();
        let heard = (0..100).filter(|_| seen.allows("pod", start)).count();
        assert_eq!(heard, 25);
        let later = start + REFILL;
        assert!(seen.allows("pod", later) && !seen.allows("pod", later));
    }
}
