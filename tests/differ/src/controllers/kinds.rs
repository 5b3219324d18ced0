//! The kinds that stories are about and that controllers write, and where they are served.

/// A kind: its name, its API version, its plural, and whether it belongs to a namespace.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) namespaced: bool,
}

const fn namespaced(name: &'static str, version: &'static str, plural: &'static str) -> Kind {
    Kind { name, version, plural, namespaced: true }
}

const fn cluster(name: &'static str, version: &'static str, plural: &'static str) -> Kind {
    Kind { name, version, plural, namespaced: false }
}

/// All that is watched and compared.
pub(crate) const KINDS: &[Kind] = &[
    cluster("Namespace", "v1", "namespaces"),
    cluster("Node", "v1", "nodes"),
    cluster("PersistentVolume", "v1", "persistentvolumes"),
    cluster("ClusterRole", "rbac.authorization.k8s.io/v1", "clusterroles"),
    cluster("CertificateSigningRequest", "certificates.k8s.io/v1", "certificatesigningrequests"),
    cluster("StorageClass", "storage.k8s.io/v1", "storageclasses"),
    cluster("PriorityClass", "scheduling.k8s.io/v1", "priorityclasses"),
    cluster("DeviceClass", "resource.k8s.io/v1", "deviceclasses"),
    cluster("ResourceSlice", "resource.k8s.io/v1", "resourceslices"),
    namespaced("ResourceClaim", "resource.k8s.io/v1", "resourceclaims"),
    namespaced("ResourceClaimTemplate", "resource.k8s.io/v1", "resourceclaimtemplates"),
    namespaced("ReplicaSet", "apps/v1", "replicasets"),
    namespaced("ControllerRevision", "apps/v1", "controllerrevisions"),
    namespaced("Pod", "v1", "pods"),
    namespaced("ReplicationController", "v1", "replicationcontrollers"),
    namespaced("Deployment", "apps/v1", "deployments"),
    namespaced("StatefulSet", "apps/v1", "statefulsets"),
    namespaced("DaemonSet", "apps/v1", "daemonsets"),
    namespaced("Job", "batch/v1", "jobs"),
    namespaced("CronJob", "batch/v1", "cronjobs"),
    namespaced("Service", "v1", "services"),
    namespaced("Endpoints", "v1", "endpoints"),
    namespaced("EndpointSlice", "discovery.k8s.io/v1", "endpointslices"),
    namespaced("PodDisruptionBudget", "policy/v1", "poddisruptionbudgets"),
    namespaced("HorizontalPodAutoscaler", "autoscaling/v2", "horizontalpodautoscalers"),
    namespaced("ResourceQuota", "v1", "resourcequotas"),
    namespaced("LimitRange", "v1", "limitranges"),
    namespaced("ServiceAccount", "v1", "serviceaccounts"),
    namespaced("Secret", "v1", "secrets"),
    namespaced("ConfigMap", "v1", "configmaps"),
    namespaced("PersistentVolumeClaim", "v1", "persistentvolumeclaims"),
    namespaced("Event", "v1", "events"),
];

/// The kind of a name.
pub(crate) fn kind(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

impl Kind {
    /// The path of all its objects.
    pub(crate) fn everywhere(&self) -> String {
        let root = if self.version.contains('/') { "/apis" } else { "/api" };
        format!("{root}/{}/{}", self.version, self.plural)
    }
}

/// The path of the objects in a story's namespace.
pub(crate) fn collection(name: &str) -> String {
    let Some(kind) = kind(name) else { return String::new() };
    let root = if kind.version.contains('/') { "/apis" } else { "/api" };
    if kind.namespaced {
        format!("{root}/{}/namespaces/@run@/{}", kind.version, kind.plural)
    } else {
        kind.everywhere()
    }
}
