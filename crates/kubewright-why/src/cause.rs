//! The causes that are looked for.

use serde::{Serialize, Serializer};

macro_rules! causes {
    ($($cause:ident $family:ident $name:literal $doc:literal,)+) => {
        /// Why an object is not as it should be.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Cause {
            $(#[doc = $doc] $cause,)+
        }

        impl Cause {
            /// All of them, those of a family together.
            pub const ALL: &[Self] = &[$(Self::$cause,)+];

            /// Its name: `crash-loop`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$cause => $name,)+ }
            }

            /// What it is, in a line.
            #[must_use]
            pub fn describe(self) -> &'static str {
                match self { $(Self::$cause => $doc,)+ }
            }

            /// What it is about.
            #[must_use]
            pub fn family(self) -> Family {
                match self { $(Self::$cause => Family::$family,)+ }
            }
        }
    };
}

/// What causes are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Pods.
    Pods,
    /// What is deleted and still there.
    Deletion,
    /// What makes pods, and what counts them.
    Workloads,
    /// Services and Ingresses.
    Services,
    /// PersistentVolumeClaims.
    Claims,
    /// Namespaces that end.
    Namespaces,
    /// Objects of custom kinds, and their definitions.
    CustomResources,
    /// Configurations of webhooks, requests for certificates.
    WebhooksCertificates,
}

impl Family {
    /// Its heading.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pods => "Pods",
            Self::Deletion => "Deletion",
            Self::Workloads => "Workloads",
            Self::Services => "Services",
            Self::Claims => "Claims",
            Self::Namespaces => "Namespaces",
            Self::CustomResources => "Custom resources",
            Self::WebhooksCertificates => "Webhooks and certificates",
        }
    }
}

impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

causes! {
    InsufficientResources Pods "insufficient-resources" "no node has the cpu, memory or other resource that the pod requests",
    UntoleratedTaint Pods "untolerated-taint" "nodes have taints that the pod does not tolerate",
    NodeSelectorMismatch Pods "node-selector-mismatch" "no node has the labels that the pod's selector or affinity wants",
    NoNodes Pods "no-nodes" "the cluster has no nodes",
    Unschedulable Pods "unschedulable" "the scheduler refuses the pod for another reason: ports, spread, volumes, its own affinity",
    SchedulingGated Pods "scheduling-gated" "the pod waits for its scheduling gates to be removed",
    NoScheduler Pods "no-scheduler" "no scheduler has looked at the pod",
    ClaimMissing Pods "claim-missing" "the pod names a claim that does not exist",
    ClaimUnbound Pods "claim-unbound" "the pod waits for a claim that is not bound",
    NodeNotReady Pods "node-not-ready" "the node is not ready, or gone",
    ImagePull Pods "image-pull" "the image cannot be pulled",
    CrashLoop Pods "crash-loop" "a container ends again and again",
    OutOfMemory Pods "out-of-memory" "a container was killed because it used more memory than its limit",
    ProbeFails Pods "probe-fails" "a container runs and is not ready",
    ReadinessGate Pods "readiness-gate" "a readiness gate of the pod is not met",
    InitContainer Pods "init-container" "an init container has not ended",
    ConfigMissing Pods "config-missing" "a ConfigMap or Secret that the pod needs does not exist",
    ContainerConfig Pods "container-config" "a container cannot be made from what its pod says",
    Starting Pods "starting" "the containers have not started yet",
    Evicted Pods "evicted" "the pod was evicted from its node",
    PodFailed Pods "pod-failed" "the pod has ended with a failure",
    Finalizer Deletion "finalizer" "a finalizer holds the object",
    GracePeriod Deletion "grace-period" "the pod is being stopped and has time left",
    NodeGone Deletion "node-gone" "the pod's node does not answer, so nobody confirms that it is gone",
    ForegroundDeletion Deletion "foreground-deletion" "the object waits for its dependents, which are deleted first",
    OwnerMissing Deletion "owner-missing" "an owner of the object does not exist, so the garbage collector will delete it",
    Quota Workloads "quota" "a quota of the namespace is used up",
    LimitRange Workloads "limit-range" "a LimitRange of the namespace forbids the pod",
    PodSecurity Workloads "pod-security" "the namespace's level of pod security forbids the pod",
    ServiceAccountMissing Workloads "service-account-missing" "the pod's service account does not exist",
    WebhookDenied Workloads "webhook-denied" "an admission webhook refuses the objects",
    WebhookUnreachable Workloads "webhook-unreachable" "an admission webhook that has to be asked does not answer",
    PolicyDenied Workloads "policy-denied" "a ValidatingAdmissionPolicy refuses the objects",
    CreateFailed Workloads "create-failed" "objects cannot be created for another reason",
    NotObserved Workloads "not-observed" "no controller has looked at the latest change of the object",
    ScaledToZero Workloads "scaled-to-zero" "no pods are wanted",
    Paused Workloads "paused" "the rollout is paused",
    ProgressDeadline Workloads "progress-deadline" "the rollout has taken longer than its deadline",
    RolloutWaiting Workloads "rollout-waiting" "the rollout goes on: old pods are there until new ones are ready",
    OrdinalWaiting Workloads "ordinal-waiting" "a StatefulSet waits for one pod before it makes the next",
    NoFittingNode Workloads "no-fitting-node" "no node is fit for a DaemonSet's pods",
    BackoffLimit Workloads "backoff-limit" "a Job has failed more often than it may",
    JobDeadline Workloads "job-deadline" "a Job has taken longer than it may",
    JobFailed Workloads "job-failed" "a Job has failed for another reason",
    Suspended Workloads "suspended" "a Job or CronJob is suspended",
    ScheduleMissed Workloads "schedule-missed" "a CronJob did not start when it was due",
    DisruptionBudget Workloads "disruption-budget" "a budget allows no eviction now",
    BudgetSelectsNothing Workloads "budget-selects-nothing" "a budget's selector matches no pods",
    AutoscalerTarget Workloads "autoscaler-target" "an autoscaler cannot read or scale its target",
    AutoscalerMetrics Workloads "autoscaler-metrics" "an autoscaler has no metrics",
    ServiceSelectsNothing Services "service-selects-nothing" "a Service's selector matches no pods",
    ServicePodsNotReady Services "service-pods-not-ready" "no pod of a Service is ready",
    ServicePortMissing Services "service-port-missing" "a Service's port is named as no port of its pods",
    ServiceNoEndpoints Services "service-no-endpoints" "a Service without a selector has no endpoints",
    LoadBalancerPending Services "load-balancer-pending" "a Service of type LoadBalancer has no address",
    BackendMissing Services "backend-missing" "an Ingress names a Service that does not exist",
    ClaimNoClass Claims "claim-no-class" "a claim names no storage class and there is no default",
    ClassMissing Claims "class-missing" "a claim names a storage class that does not exist",
    NoProvisioner Claims "no-provisioner" "nobody provides the volume of a claim",
    FirstConsumer Claims "first-consumer" "a claim waits for a pod that uses it",
    VolumeMissing Claims "volume-missing" "a claim's volume does not exist, or is lost",
    NamespaceContent Namespaces "namespace-content" "objects are left in a namespace that is being deleted",
    NamespaceFinalizer Namespaces "namespace-finalizer" "finalizers of objects hold a namespace",
    DiscoveryFailed Namespaces "discovery-failed" "the namespace controller cannot find out which kinds there are",
    ApiServiceUnavailable Namespaces "api-service-unavailable" "an API server behind this one does not answer",
    ConditionFalse CustomResources "condition-false" "a condition says that the object is not as it should be",
    GenerationBehind CustomResources "generation-behind" "the status is that of an older generation",
    StatusMissing CustomResources "status-missing" "no operator has written a status",
    OperatorMissing CustomResources "operator-missing" "no program runs with the rights to reconcile the kind",
    OperatorNotReady CustomResources "operator-not-ready" "the operator's program is not ready",
    LeaseExpired CustomResources "lease-expired" "no replica of the operator renews its lease",
    RightsMissing CustomResources "rights-missing" "the operator was refused for want of rights",
    ReconcileFailing CustomResources "reconcile-failing" "the operator's reconciles of the object fail",
    ReconcileWaiting CustomResources "reconcile-waiting" "the object waits in the operator's work queue",
    DefinitionNotEstablished CustomResources "definition-not-established" "a CustomResourceDefinition is not served",
    NamesNotAccepted CustomResources "names-not-accepted" "another kind has the names of a CustomResourceDefinition",
    SchemaInvalid CustomResources "schema-invalid" "a CustomResourceDefinition's schema is not structural",
    ConversionUnreachable CustomResources "conversion-unreachable" "the conversion webhook of a definition has no endpoints",
    WebhookNoEndpoints WebhooksCertificates "webhook-no-endpoints" "a webhook that has to be asked has no endpoints",
    RequestPending WebhooksCertificates "request-pending" "a request for a certificate is not approved",
    RequestDenied WebhooksCertificates "request-denied" "a request for a certificate was denied, or failed",
    RequestNotIssued WebhooksCertificates "request-not-issued" "a request for a certificate is approved and not signed",
}
