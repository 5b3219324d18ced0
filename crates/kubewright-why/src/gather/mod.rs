//! Reads what is needed to explain an object: it, its owners, what it made, and what these refer to.

mod operator;
mod read;
mod references;
mod target;

use jiff::Timestamp;
use kube::Client;

pub(crate) use self::operator::{accounts, programs};
use self::read::{Listing, ReadError, Reader, get, is_private};
pub(crate) use self::references::named;
pub use self::target::{Target, TargetError};
use crate::kinds::{ServedKind, ServedKinds};
use crate::object::{Id, Object};
use crate::picture::Picture;

/// How far up owners are followed, and how far down what was made.
const DEPTH: usize = 8;

/// Kinds of a namespace that are read whole, with their groups.
const NAMESPACED: [(&str, &str); 17] = [
    ("", "Pod"),
    ("", "Event"),
    ("", "Service"),
    ("", "PersistentVolumeClaim"),
    ("", "ResourceQuota"),
    ("", "LimitRange"),
    ("", "ServiceAccount"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("batch", "Job"),
    ("batch", "CronJob"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("policy", "PodDisruptionBudget"),
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("networking.k8s.io", "Ingress"),
];
/// Kinds of the cluster that are read whole.
const OF_CLUSTER: [(&str, &str); 5] = [
    ("", "Node"),
    ("", "PersistentVolume"),
    ("storage.k8s.io", "StorageClass"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
];

/// Why nothing can be explained.
#[derive(Debug, thiserror::Error)]
pub enum GatherError {
    /// The cluster has no such kind.
    #[error("kind {word:?} is not served by this cluster{}: `kubectl api-resources` lists those that are", similar(.like))]
    NoKind {
        /// What was said.
        word: String,
        /// Kinds that begin alike.
        like: Vec<String>,
    },
    /// There is no such object.
    #[error("{id} not found{}", place(.id))]
    NotFound {
        /// Which.
        id: Id,
    },
    /// It may not be read, or the read failed.
    #[error("{id} cannot be read: {why}")]
    Unreadable {
        /// Which.
        id: Id,
        /// What the server says.
        why: String,
    },
    /// The cluster does not say what it serves.
    #[error(
        "the cluster does not say which kinds it serves (aggregated discovery, Kubernetes 1.27 and later)"
    )]
    Discovery(#[source] Box<kube::Error>),
}

fn similar(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!(" (it has {})", names.join(", ")) }
}

fn place(id: &Id) -> String {
    if id.namespace.is_empty() { String::new() } else { format!(" in namespace {}", id.namespace) }
}

/// Reads what is needed to explain an object. `now` is the time by which leases and deadlines are judged.
///
/// It takes the rights of who asks: what may not be read is in [`Report::unread`](crate::Report::unread), and causes that need
/// it are not found. At most 500 objects of a kind are read, each request takes at most ten seconds.
///
/// # Errors
/// When the cluster has no such kind, there is no such object, or it cannot be read itself.
pub async fn gather(client: &Client, target: &Target, now: Timestamp) -> Result<Picture, GatherError> {
    let kinds = ServedKinds::discover(client).await.map_err(|error| GatherError::Discovery(error.into()))?;
    let kind = kinds
        .find(&target.kind)
        .ok_or_else(|| GatherError::NoKind { word: target.kind.clone(), like: kinds.like(&target.kind) })?;
    let namespace = if kind.is_namespaced { target.namespace.as_str() } else { "" };
    let id = Id::new(&kind.group, &kind.kind, namespace, &target.name);
    let mut picture = Picture::new(now, id.clone());
    let mut reader = Reader { client, kinds: &kinds, picture: &mut picture };
    reader.objects(vec![id.clone()]).await;
    if reader.picture.target().is_none() {
        return Err(match reader.picture.unread.pop() {
            Some(unread) => GatherError::Unreadable { id, why: unread.why },
            None => GatherError::NotFound { id },
        });
    }
    reader.neighbourhood(kind, &id).await;
    reader.owners(&id).await;
    reader.made(&id).await;
    reader.references().await;
    if is_custom(&id.group) {
        reader.operator(kind, namespace).await;
    }
    picture.unread.sort();
    picture.unread.dedup();
    Ok(picture)
}

/// Whether a group is somebody's own: none of Kubernetes'.
pub(crate) fn is_custom(group: &str) -> bool {
    const BUILT_IN: [&str; 16] = [
        "admissionregistration",
        "apiextensions",
        "apiregistration",
        "authentication",
        "authorization",
        "certificates",
        "coordination",
        "discovery",
        "events",
        "flowcontrol.apiserver",
        "networking",
        "node",
        "rbac.authorization",
        "resource",
        "scheduling",
        "storage",
    ];
    group.contains('.') && !group.strip_suffix(".k8s.io").is_some_and(|group| BUILT_IN.contains(&group))
}

impl Reader<'_> {
    /// The lists that most causes need, of the namespace and of the cluster.
    async fn neighbourhood(&mut self, kind: &ServedKind, id: &Id) {
        let namespace = if (kind.group.as_str(), kind.kind.as_str()) == ("", "Namespace") {
            &id.name
        } else {
            &id.namespace
        };
        let mut wanted = self.listings(&OF_CLUSTER, "");
        if namespace.is_empty() {
            wanted.extend(self.of_cluster_object(kind, id));
        } else {
            wanted.extend(self.listings(&NAMESPACED, namespace));
        }
        if kind.kind == "Namespace" || self.picture.target().is_some_and(Object::is_deleting) {
            wanted.extend(self.listings(&[("apiregistration.k8s.io", "APIService")], ""));
        }
        if is_custom(&kind.group)
            || kind.kind == "Namespace"
            || self.picture.target().is_some_and(Object::is_deleting)
        {
            wanted.extend(self.rest(namespace));
        }
        self.lists(wanted).await;
    }

    fn listings(&self, kinds: &[(&str, &str)], namespace: &str) -> Vec<Listing> {
        let served = kinds.iter().filter_map(|(group, kind)| self.kinds.get(group, kind));
        served.map(|kind| listing(kind, namespace, false)).collect()
    }

    /// What objects of the cluster need: the pods of a node, the objects of a definition, the events of all.
    fn of_cluster_object(&self, kind: &ServedKind, id: &Id) -> Vec<Listing> {
        let mut wanted = Vec::new();
        if let Some(events) = self.kinds.get("", "Event") {
            let mut events = listing(events, "", false);
            events.query = format!(
                "&fieldSelector=involvedObject.kind%3D{},involvedObject.name%3D{}",
                kind.kind, id.name
            );
            wanted.push(events);
        }
        if let ("Node", Some(pods)) = (kind.kind.as_str(), self.kinds.get("", "Pod")) {
            let mut pods = listing(pods, "", false);
            pods.query = format!("&fieldSelector=spec.nodeName%3D{}", id.name);
            wanted.push(pods);
        }
        wanted
    }

    /// The metadata of all other kinds in a namespace: children, and what is left of a namespace.
    fn rest(&self, namespace: &str) -> Vec<Listing> {
        let other = |kind: &&ServedKind| {
            let known = (kind.group.as_str(), kind.kind.as_str());
            kind.is_listed
                && kind.is_namespaced != namespace.is_empty()
                && !NAMESPACED.contains(&known)
                && !OF_CLUSTER.contains(&known)
                && known.1 != "Event"
        };
        self.kinds.iter().filter(other).map(|kind| listing(kind, namespace, true)).collect()
    }

    /// The owners of an object, and theirs.
    async fn owners(&mut self, id: &Id) {
        let mut of = id.clone();
        for _ in 0..DEPTH {
            let Some(object) = self.picture.get(&of.group, &of.kind, &of.namespace, &of.name) else { return };
            let namespaced =
                |group: &str, kind: &str| self.kinds.get(group, kind).is_none_or(|kind| kind.is_namespaced);
            let ids: Vec<Id> = object
                .owners()
                .map(|one| {
                    let place = if namespaced(one.group(), one.kind) { object.namespace() } else { "" };
                    Id::new(one.group(), one.kind, place, one.name)
                })
                .collect();
            let Some(next) = ids.first().cloned() else { return };
            self.objects(ids).await;
            of = next;
        }
    }

    /// What an object made, in full: of what was read as metadata alone, the rest.
    async fn made(&mut self, id: &Id) {
        let Some(target) = self.picture.get(&id.group, &id.kind, &id.namespace, &id.name) else { return };
        let mut uids = vec![target.uid().to_owned()];
        let mut partial = Vec::new();
        let mut next = 0;
        while let Some(uid) = uids.get(next).cloned() {
            next += 1;
            for object in &self.picture.objects {
                let is_owned = object.owners().any(|one| one.uid == uid);
                if is_owned && !uids.iter().any(|one| one == object.uid()) {
                    uids.push(object.uid().to_owned());
                    let is_known = NAMESPACED.contains(&(object.group(), object.kind()));
                    if !is_known && !is_private(object.kind()) {
                        partial.push(object.id());
                    }
                }
            }
        }
        self.picture.objects.retain(|object| !partial.contains(&object.id()));
        self.objects(partial).await;
    }
}

fn listing(kind: &ServedKind, namespace: &str, metadata_only: bool) -> Listing {
    Listing {
        kind: kind.clone(),
        namespace: namespace.to_owned(),
        metadata_only: metadata_only || is_private(&kind.kind),
        query: String::new(),
    }
}

/// Reads what operators have told the server of their reconciles; only servers of Kubewright are told. `None` where none has.
async fn recorded_reconciles(client: &Client) -> Option<serde_json::Value> {
    let told = get(client, "/kubewright/reconciles", "application/json").await.ok()?;
    let has_any = told["controllers"].as_array().is_some_and(|controllers| !controllers.is_empty());
    has_any.then_some(told)
}

/// Reads what the server's own log says of requests that were refused; only servers of Kubewright have one.
async fn refused_requests(client: &Client) -> Vec<serde_json::Value> {
    match get(client, "/kubewright/requests?limit=1000", "application/json").await {
        Ok(log) => {
            let all = log["requests"].as_array().cloned().unwrap_or_default();
            all.into_iter().filter(|request| request["code"] == 403).collect()
        }
        Err(ReadError::Absent | ReadError::Other(_)) => Vec::new(),
    }
}
