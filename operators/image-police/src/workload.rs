//! What is judged: workloads of all kinds, reduced to what counts.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
    batch::v1::{CronJob, Job},
    core::v1::{
        Container, EphemeralContainer, Pod, PodSpec, PodStatus, PodTemplateSpec, ReplicationController,
        Volume,
    },
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;
use kubewright::{Object, owner};
use serde_json::{Value, json};

/// Says why a workload is exempt.
pub const EXEMPT: &str = "police.foo.bar/exempt";
/// Says until when, as RFC 3339.
pub const EXEMPT_UNTIL: &str = "police.foo.bar/exempt-until";
/// How many replicas there were before they were scaled to zero.
pub const SCALED_FROM: &str = "police.foo.bar/scaled-from";
/// On the API server's images of pods that a kubelet has from a file.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// The kinds that are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkloadKind {
    /// `apps/v1`
    Deployment,
    /// `apps/v1`
    StatefulSet,
    /// `apps/v1`
    DaemonSet,
    /// `apps/v1`
    ReplicaSet,
    /// `v1`
    ReplicationController,
    /// `batch/v1`
    CronJob,
    /// `batch/v1`
    Job,
    /// `v1`
    Pod,
}

impl WorkloadKind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Deployment,
        Self::StatefulSet,
        Self::DaemonSet,
        Self::ReplicaSet,
        Self::ReplicationController,
        Self::CronJob,
        Self::Job,
        Self::Pod,
    ];

    /// As manifests spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::DaemonSet => "DaemonSet",
            Self::ReplicaSet => "ReplicaSet",
            Self::ReplicationController => "ReplicationController",
            Self::CronJob => "CronJob",
            Self::Job => "Job",
            Self::Pod => "Pod",
        }
    }

    /// The kind that is spelled so.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Whether one can be scaled to zero, or suspended.
    #[must_use]
    pub fn can_rest(self) -> bool {
        !matches!(self, Self::DaemonSet | Self::Pod)
    }
}

/// A use of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// The container's name, or `volume NAME`.
    pub container: String,
    /// The image as it is written.
    pub image: String,
    /// Whether somebody put it into a pod that runs (`kubectl debug`).
    pub ephemeral: bool,
}

/// What counts of a workload. Equal ones are judged alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its kind.
    pub kind: WorkloadKind,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Since when it is there.
    pub created: Option<Timestamp>,
    /// The uid of the object that controls it, of whatever kind.
    pub owner: Option<String>,
    /// Whether that one is of a kind that is judged.
    pub owner_is_judged: bool,
    /// The images that it uses.
    pub uses: Vec<Use>,
    /// Whether it is scaled to zero or suspended.
    pub rests: bool,
    /// Whether it has come to its end: nothing of it runs any more.
    pub is_over: bool,
    /// Whether it only shows a pod that a kubelet has from a file.
    pub is_mirror: bool,
    /// The service account of its pods.
    pub account: Option<String>,
    /// The annotations that exempt it: why, and until when.
    pub exemption: Option<(String, Option<String>)>,
}

impl Workload {
    /// What counts of `object`; `None` when it is on its way out.
    pub fn of<K: Judged>(object: &K) -> Option<Self> {
        let meta = object.meta();
        if meta.deletion_timestamp.is_some() {
            return None;
        }
        let pod = object.pod();
        let annotation = |name: &str| meta.annotations.as_ref()?.get(name).cloned();
        Some(Self {
            kind: K::KIND,
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
            created: meta.creation_timestamp.as_ref().map(|time| time.0),
            owner: owner::controller_of(meta).map(|reference| reference.uid.clone()),
            owner_is_judged: owner::controller_of(meta).is_some_and(is_judged),
            uses: pod.map(uses).unwrap_or_default(),
            rests: object.rests(),
            is_over: object.is_over(),
            is_mirror: annotation(MIRROR).is_some(),
            account: pod.and_then(|pod| pod.service_account_name.clone()),
            exemption: annotation(EXEMPT).map(|why| (why, annotation(EXEMPT_UNTIL))),
        })
    }
}

/// Whether an owner is of a kind that is judged.
fn is_judged(owner: &OwnerReference) -> bool {
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    WorkloadKind::named(&owner.kind).is_some() && matches!(group, "" | "apps" | "batch")
}

/// The images of a pod, in the order of its fields.
pub fn uses(pod: &PodSpec) -> Vec<Use> {
    let container = |container: &Container| use_of(container.name.clone(), container.image.as_ref(), false);
    let init = pod.init_containers.iter().flatten().filter_map(container);
    let main = pod.containers.iter().filter_map(container);
    let ephemeral = pod.ephemeral_containers.iter().flatten();
    let ephemeral =
        ephemeral.filter_map(|container| use_of(container.name.clone(), container.image.as_ref(), true));
    let volumes = pod.volumes.iter().flatten().filter_map(|volume| {
        use_of(format!("volume {}", volume.name), volume.image.as_ref()?.reference.as_ref(), false)
    });
    init.chain(main).chain(ephemeral).chain(volumes).collect()
}

fn use_of(container: String, image: Option<&String>, ephemeral: bool) -> Option<Use> {
    let image = image.filter(|image| !image.is_empty())?.clone();
    Some(Use { container, image, ephemeral })
}

/// A kind that is judged.
pub trait Judged: Object {
    /// Which.
    const KIND: WorkloadKind;

    /// Its pod, or the template of its pods.
    fn pod(&self) -> Option<&PodSpec>;

    /// The same, to be made small.
    fn pod_mut(&mut self) -> Option<&mut PodSpec>;

    /// Whether it is scaled to zero or suspended.
    fn rests(&self) -> bool {
        false
    }

    /// Whether it has come to its end.
    fn is_over(&self) -> bool {
        false
    }

    /// The merge patch that scales it to zero or suspends it, if that is possible.
    fn rest(&self) -> Option<Value> {
        None
    }

    /// Takes away what is neither metadata nor pod and that nobody here reads.
    fn drop_rest(&mut self);
}

/// Takes away what is not judged, so that a cache of all workloads stays small.
pub fn project<K: Judged>(object: &mut K) {
    let meta = object.meta_mut();
    *meta = ObjectMeta {
        name: meta.name.take(),
        namespace: meta.namespace.take(),
        uid: meta.uid.take(),
        resource_version: meta.resource_version.take(),
        creation_timestamp: meta.creation_timestamp.take(),
        deletion_timestamp: meta.deletion_timestamp.take(),
        owner_references: meta.owner_references.take(),
        annotations: meta.annotations.take().map(kept_annotations).filter(|kept| !kept.is_empty()),
        ..ObjectMeta::default()
    };
    if let Some(pod) = object.pod_mut() {
        let container = |container: Container| Container {
            name: container.name,
            image: container.image,
            ..Container::default()
        };
        let containers = |all: Vec<Container>| all.into_iter().map(container).collect();
        *pod = PodSpec {
            containers: containers(std::mem::take(&mut pod.containers)),
            init_containers: pod.init_containers.take().map(containers),
            ephemeral_containers: pod.ephemeral_containers.take().map(ephemeral),
            volumes: pod.volumes.take().map(image_volumes).filter(|volumes| !volumes.is_empty()),
            service_account_name: pod.service_account_name.take(),
            ..PodSpec::default()
        };
    }
    object.drop_rest();
}

fn kept_annotations(mut all: BTreeMap<String, String>) -> BTreeMap<String, String> {
    all.retain(|name, _| [EXEMPT, EXEMPT_UNTIL, MIRROR].contains(&name.as_str()));
    all
}

fn ephemeral(all: Vec<EphemeralContainer>) -> Vec<EphemeralContainer> {
    let container = |container: EphemeralContainer| EphemeralContainer {
        name: container.name,
        image: container.image,
        ..EphemeralContainer::default()
    };
    all.into_iter().map(container).collect()
}

fn image_volumes(all: Vec<Volume>) -> Vec<Volume> {
    let images = all.into_iter().filter(|volume| volume.image.is_some());
    images.map(|volume| Volume { name: volume.name, image: volume.image, ..Volume::default() }).collect()
}

fn template(template: &PodTemplateSpec) -> Option<&PodSpec> {
    template.spec.as_ref()
}

fn template_mut(template: &mut PodTemplateSpec) -> Option<&mut PodSpec> {
    template.metadata = None;
    template.spec.as_mut()
}

/// A patch that scales to zero and keeps in mind how many there were.
fn to_zero(replicas: Option<i32>) -> Value {
    let before = replicas.unwrap_or(1).to_string();
    json!({"metadata": {"annotations": {SCALED_FROM: before}}, "spec": {"replicas": 0}})
}

/// The kinds with `spec.replicas` and a template that has to be there.
macro_rules! replicated {
    ($($kind:ident),*) => { $(
        impl Judged for $kind {
            const KIND: WorkloadKind = WorkloadKind::$kind;

            fn pod(&self) -> Option<&PodSpec> {
                self.spec.as_ref().and_then(|spec| template(&spec.template))
            }

            fn pod_mut(&mut self) -> Option<&mut PodSpec> {
                self.spec.as_mut().and_then(|spec| template_mut(&mut spec.template))
            }

            fn rests(&self) -> bool {
                self.spec.as_ref().is_some_and(|spec| spec.replicas == Some(0))
            }

            fn rest(&self) -> Option<Value> {
                Some(to_zero(self.spec.as_ref().and_then(|spec| spec.replicas)))
            }

            fn drop_rest(&mut self) {
                self.status = None;
            }
        }
    )* };
}

replicated!(Deployment, StatefulSet);

/// The kinds with `spec.replicas` and a template that may be left out.
macro_rules! loosely_replicated {
    ($($kind:ident),*) => { $(
        impl Judged for $kind {
            const KIND: WorkloadKind = WorkloadKind::$kind;

            fn pod(&self) -> Option<&PodSpec> {
                self.spec.as_ref().and_then(|spec| template(spec.template.as_ref()?))
            }

            fn pod_mut(&mut self) -> Option<&mut PodSpec> {
                self.spec.as_mut().and_then(|spec| template_mut(spec.template.as_mut()?))
            }

            fn rests(&self) -> bool {
                self.spec.as_ref().is_some_and(|spec| spec.replicas == Some(0))
            }

            fn rest(&self) -> Option<Value> {
                Some(to_zero(self.spec.as_ref().and_then(|spec| spec.replicas)))
            }

            fn drop_rest(&mut self) {
                self.status = None;
            }
        }
    )* };
}

loosely_replicated!(ReplicaSet, ReplicationController);

impl Judged for DaemonSet {
    const KIND: WorkloadKind = WorkloadKind::DaemonSet;

    fn pod(&self) -> Option<&PodSpec> {
        self.spec.as_ref().and_then(|spec| template(&spec.template))
    }

    fn pod_mut(&mut self) -> Option<&mut PodSpec> {
        self.spec.as_mut().and_then(|spec| template_mut(&mut spec.template))
    }

    fn drop_rest(&mut self) {
        self.status = None;
    }
}

impl Judged for Job {
    const KIND: WorkloadKind = WorkloadKind::Job;

    fn pod(&self) -> Option<&PodSpec> {
        self.spec.as_ref().and_then(|spec| template(&spec.template))
    }

    fn pod_mut(&mut self) -> Option<&mut PodSpec> {
        self.spec.as_mut().and_then(|spec| template_mut(&mut spec.template))
    }

    fn rests(&self) -> bool {
        self.spec.as_ref().is_some_and(|spec| spec.suspend == Some(true))
    }

    fn is_over(&self) -> bool {
        let conditions = self.status.as_ref().and_then(|status| status.conditions.as_ref());
        let ends = |type_: &str| matches!(type_, "Complete" | "Failed");
        conditions.into_iter().flatten().any(|condition| ends(&condition.type_) && condition.status == "True")
    }

    fn rest(&self) -> Option<Value> {
        Some(json!({"spec": {"suspend": true}}))
    }

    fn drop_rest(&mut self) {}
}

impl Judged for CronJob {
    const KIND: WorkloadKind = WorkloadKind::CronJob;

    fn pod(&self) -> Option<&PodSpec> {
        self.spec.job_template.spec.as_ref().and_then(|job| template(&job.template))
    }

    fn pod_mut(&mut self) -> Option<&mut PodSpec> {
        self.spec.job_template.spec.as_mut().and_then(|job| template_mut(&mut job.template))
    }

    fn rests(&self) -> bool {
        self.spec.suspend == Some(true)
    }

    fn rest(&self) -> Option<Value> {
        Some(json!({"spec": {"suspend": true}}))
    }

    fn drop_rest(&mut self) {
        self.status = None;
    }
}

impl Judged for Pod {
    const KIND: WorkloadKind = WorkloadKind::Pod;

    fn pod(&self) -> Option<&PodSpec> {
        self.spec.as_ref()
    }

    fn pod_mut(&mut self) -> Option<&mut PodSpec> {
        self.spec.as_mut()
    }

    fn is_over(&self) -> bool {
        let phase = self.status.as_ref().and_then(|status| status.phase.as_deref());
        matches!(phase, Some("Succeeded" | "Failed"))
    }

    fn drop_rest(&mut self) {
        let phase = self.status.take().and_then(|status| status.phase);
        self.status = phase.map(|phase| PodStatus { phase: Some(phase), ..PodStatus::default() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Value {
        json!({
            "initContainers": [{"name": "init", "image": "a"}],
            "containers": [{"name": "main", "image": "b", "command": ["x"]}, {"name": "none"}],
            "volumes": [{"name": "data", "image": {"reference": "d"}}, {"name": "tmp", "emptyDir": {}}],
            "serviceAccountName": "robot",
        })
    }

    fn meta() -> Value {
        json!({
            "name": "x", "namespace": "default", "uid": "u",
            "annotations": {EXEMPT: "why", "other": "thing"},
            "managedFields": [{"manager": "kubectl"}],
            "ownerReferences": [{"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "owner", "controller": true}],
        })
    }

    fn check<K: Judged>(spec: &Value) {
        let object: K =
            kubewright::object::from_value(json!({"metadata": meta(), "spec": spec})).expect("an object");
        let workload = Workload::of(&object).expect("it lives");
        let listed: Vec<_> =
            workload.uses.iter().map(|one| format!("{}={}", one.container, one.image)).collect();
        assert_eq!(listed, ["init=a", "main=b", "volume data=d"], "{:?}", K::KIND);
        assert_eq!((workload.kind, workload.owner.as_deref()), (K::KIND, Some("owner")));
        assert_eq!(workload.account.as_deref(), Some("robot"));
        assert_eq!(workload.exemption, Some(("why".to_owned(), None)));

        let mut small = object.clone();
        project(&mut small);
        assert_eq!(Workload::of(&small).as_ref(), Some(&workload), "what is kept is judged alike");
        let (small, large) = (json!(small).to_string().len(), json!(object).to_string().len());
        assert!(small < large, "{small} of {large} bytes are kept");
        assert_eq!(object.rest().is_some(), K::KIND.can_rest());
    }

    /// IP-09, Beyond 4: every kind, every type of container, and images that are volumes.
    #[test]
    fn ip_09_every_image_of_every_kind_is_seen() {
        let template = json!({"template": {"spec": pod()}, "selector": {}});
        check::<Deployment>(&template);
        check::<DaemonSet>(&template);
        check::<StatefulSet>(&template);
        check::<ReplicaSet>(&template);
        check::<ReplicationController>(&json!({"template": {"spec": pod()}}));
        check::<Job>(&template);
        check::<CronJob>(&json!({"schedule": "@daily", "jobTemplate": {"spec": template}}));
        check::<Pod>(&pod());
    }

    #[test]
    fn what_is_on_its_way_out_is_not_judged() {
        let mut pod: Pod =
            kubewright::object::from_value(json!({"metadata": meta(), "spec": pod()})).expect("a Pod");
        pod.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH));
        assert_eq!(Workload::of(&pod), None);
    }

    #[test]
    fn a_patch_to_zero_keeps_in_mind_how_many_there_were() {
        let spec = json!({"replicas": 3, "selector": {}, "template": {}});
        let deployment: Deployment =
            kubewright::object::from_value(json!({"spec": spec})).expect("a Deployment");
        assert_eq!(
            deployment.rest(),
            Some(json!({"metadata": {"annotations": {SCALED_FROM: "3"}}, "spec": {"replicas": 0}}))
        );
    }
}
