//! How the engine treats a kind's objects where kinds differ: facts of the registry strategies of kube-apiserver v1.36
//! (`pkg/registry/*/*/{strategy,storage}.go`).

/// The part that a kind plays in the engine itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// None: it is stored.
    #[default]
    Ordinary,
    /// Other objects live in it.
    Namespace,
    /// It makes kinds.
    Definition,
    /// It has addresses and ports that are unique in the cluster.
    Service,
    /// Its status tells what is wrong with the types of its expressions.
    ValidatingPolicy,
    /// It runs as a service account, is bound to a node, and ends gracefully.
    Pod,
    /// Its status tells whether its priority level is there.
    FlowSchema,
    /// Flow schemas name it.
    PriorityLevel,
}

/// How the engine treats a kind's objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Behaviour {
    /// See [`Role`].
    pub role: Role,
    /// Whether the status that a client creates an object with is kept: a node tells its own.
    pub born_with_status: bool,
    /// Whether an update of an object that is not there creates it.
    pub create_on_update: bool,
    /// Whether an update must say which resource version it is based on.
    pub conditional_update: bool,
    /// The fields of metadata that a write to `/status` may change too.
    pub metadata_of_status_writes: &'static [&'static str],
    /// Whether a deletion that does not say lets the dependents live.
    pub orphans_by_default: bool,
    /// Whether a deletion is answered with the object instead of a Status.
    pub deletion_answers_object: bool,
}

impl Behaviour {
    /// Of a custom resource.
    #[must_use]
    pub fn custom() -> Self {
        Self { conditional_update: true, ..Self::default() }
    }

    /// Of a built-in kind.
    #[must_use]
    pub fn built_in(group: &str, plural: &str) -> Self {
        Self {
            role: match (group, plural) {
                ("", "namespaces") => Role::Namespace,
                ("", "services") => Role::Service,
                ("", "pods") => Role::Pod,
                ("apiextensions.k8s.io", "customresourcedefinitions") => Role::Definition,
                ("admissionregistration.k8s.io", "validatingadmissionpolicies") => Role::ValidatingPolicy,
                ("flowcontrol.apiserver.k8s.io", "flowschemas") => Role::FlowSchema,
                ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations") => Role::PriorityLevel,
                _ => Role::Ordinary,
            },
            born_with_status: (group, plural) == ("", "nodes"),
            create_on_update: matches!(
                (group, plural),
                ("", "endpoints" | "events" | "limitranges" | "services")
                    | ("events.k8s.io", "events")
                    | ("coordination.k8s.io", "leases")
                    | ("node.k8s.io", "runtimeclasses")
                    | ("rbac.authorization.k8s.io", _)
            ),
            conditional_update: matches!(
                (group, plural),
                (
                    "coordination.k8s.io"
                        | "admissionregistration.k8s.io"
                        | "apiextensions.k8s.io"
                        | "node.k8s.io",
                    _
                ) | ("policy", "poddisruptionbudgets")
                    | (
                        "storage.k8s.io",
                        "csidrivers" | "csinodes" | "csistoragecapacities" | "volumeattachments"
                    )
            ),
            metadata_of_status_writes: match (group, plural) {
                (
                    "apiextensions.k8s.io"
                    | "admissionregistration.k8s.io"
                    | "flowcontrol.apiserver.k8s.io"
                    | "resource.k8s.io",
                    _,
                )
                | ("storage.k8s.io", "volumeattachments") => &[],
                ("apps", "deployments") => &["annotations", "finalizers", "ownerReferences"],
                ("", "pods") => &["annotations", "finalizers", "labels"],
                _ => &["annotations", "finalizers", "labels", "ownerReferences"],
            },
            orphans_by_default: matches!((group, plural), ("", "replicationcontrollers") | ("batch", "jobs")),
            deletion_answers_object: matches!(
                (group, plural),
                (
                    "",
                    "namespaces"
                        | "persistentvolumeclaims"
                        | "persistentvolumes"
                        | "pods"
                        | "podtemplates"
                        | "resourcequotas"
                        | "serviceaccounts"
                        | "services"
                ) | (
                    "storage.k8s.io",
                    "csidrivers"
                        | "csinodes"
                        | "storageclasses"
                        | "volumeattachments"
                        | "volumeattributesclasses"
                )
            ),
        }
    }
}
