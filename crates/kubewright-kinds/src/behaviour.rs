//! How the engine treats a kind's objects where kinds differ: facts of the registry strategies of kube-apiserver v1.36
//! (`pkg/registry/*/*/{strategy,storage}.go`).

use kubewright_identity::authz::review::Asks;

/// The part that a kind plays in the engine itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// None: it is stored.
    Ordinary,
    /// Other objects live in it.
    Namespace,
    /// It makes kinds.
    Definition,
    /// Says who serves a group and version: this API server, or one behind a Service.
    ApiService,
    /// It has addresses and ports that are unique in the cluster.
    Service,
    /// A policy of admission that refuses. Its status tells what is wrong with the types of its expressions.
    ValidatingPolicy,
    /// A policy of admission that changes objects.
    MutatingPolicy,
    /// Says where a policy that refuses applies.
    ValidatingPolicyBinding,
    /// Says where a policy that changes objects applies.
    MutatingPolicyBinding,
    /// Names webhooks of admission.
    WebhookConfiguration,
    /// It runs as a service account, is bound to a node, and ends gracefully.
    Pod,
    /// Its status tells whether its priority level is there.
    FlowSchema,
    /// Flow schemas name it.
    PriorityLevel,
    /// Asks for a certificate: who may decide and sign is asked, and when it was done is set by the server.
    SigningRequest,
    /// It asks for devices: those that only administrators may have, and its status, have rights of their own.
    DeviceClaim,
    /// Claims of devices are made of it.
    DeviceClaimTemplate,
    /// Asks for a certificate of a pod: who may sign is asked, and what is issued has to fit the time of the server.
    PodCertificateRequest,
    /// Nothing is stored: the answer says how the programs of the control plane are.
    ComponentStatus,
    /// Nothing is stored: a pod is bound.
    Binding,
    /// Nothing is stored: the answer says whose a token is.
    TokenReview,
    /// Nothing is stored: the answer says who asks.
    SelfSubjectReview,
    /// Nothing is stored: the answer says what somebody may do.
    AccessReview(Asks),
}

/// How objects of a kind count for the quotas of their namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// By their number, as `count/` and the resource.
    Objects,
    /// The same; a quota may also leave out the `count/`.
    Aliased,
    /// By their number, and no write is charged (`DefaultIgnoredResources` in `pkg/quota/v1/install`).
    Uncharged,
    /// As pods: what they ask for and are limited to.
    Pods,
    /// As services: their node ports and load balancers.
    Services,
    /// As claims: the storage that they ask for.
    Claims,
    /// As claims of devices: how many of each class.
    Devices,
}

/// How the engine treats a kind's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behaviour {
    /// See [`Role`].
    pub role: Role,
    /// Whether the status that a client creates an object with is kept: a node tells its own.
    pub born_with_status: bool,
    /// Whether a deletion may wait for dependents, or leave them alone: events have none.
    pub has_dependents: bool,
    /// Whether kube-apiserver keeps its objects in a cache, which may be about to learn of a version.
    pub is_cached: bool,
    /// The annotations by which its version tells what others have fields for: its metadata alone is told without them.
    pub annotations_of_version: &'static [&'static str],
    /// Whether an object that has no name gets one of the server.
    pub names_itself: bool,
    /// Whether an update of an object that is not there creates it.
    pub create_on_update: bool,
    /// Whether a configuration that is applied to the status of an object that is not there creates it.
    pub create_on_status_apply: bool,
    /// Whether an update must say which resource version it is based on.
    pub conditional_update: bool,
    /// The fields of metadata that a write to `/status` may change too.
    pub metadata_of_status_writes: &'static [&'static str],
    /// Whether a deletion that does not say lets the dependents live.
    pub orphans_by_default: bool,
    /// Whether a deletion is answered with the object instead of a Status.
    pub deletion_answers_object: bool,
    /// Whether what is served as `/status` cannot be shown as a table.
    pub status_has_no_table: bool,
}

impl Role {
    /// Whether it asks who somebody is or what they may do.
    #[must_use]
    pub fn is_review(self) -> bool {
        matches!(self, Self::TokenReview | Self::SelfSubjectReview | Self::AccessReview(_))
    }

    /// Whether it configures admission itself: no webhook or policy ever sees it.
    #[must_use]
    pub fn configures_admission(self) -> bool {
        matches!(
            self,
            Self::ValidatingPolicy
                | Self::MutatingPolicy
                | Self::ValidatingPolicyBinding
                | Self::MutatingPolicyBinding
                | Self::WebhookConfiguration
        )
    }
}

impl Behaviour {
    /// Of most built-in kinds.
    pub const BUILT_IN: Self = Self {
        role: Role::Ordinary,
        born_with_status: false,
        has_dependents: true,
        is_cached: true,
        annotations_of_version: &[],
        names_itself: false,
        create_on_update: false,
        create_on_status_apply: false,
        conditional_update: false,
        metadata_of_status_writes: &["annotations", "finalizers", "labels", "ownerReferences"],
        orphans_by_default: false,
        deletion_answers_object: false,
        status_has_no_table: false,
    };

    /// Of a custom resource.
    pub const CUSTOM: Self =
        Self { conditional_update: true, metadata_of_status_writes: &[], ..Self::BUILT_IN };
}
