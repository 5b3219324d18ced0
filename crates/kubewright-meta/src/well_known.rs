//! Names that Kubewright gives, and that more than one of its parts has to know.

/// The annotation by which kwok knows its nodes.
pub const NODE_ANNOTATION: &str = "kwok.x-k8s.io/node";

/// The annotation of a node whose pods really run: it is not simulated, and pods are placed on it.
pub const PROCESS_NODE: (&str, &str) = (NODE_ANNOTATION, "process");

/// The provisioner of classes whose volumes are simulated: there is no storage behind them. It is their CSI driver, too.
pub const PROVISIONER: &str = "simulated.kubewright.dev";

/// The annotation of a node with which its kubelet does nothing: it neither renews its Lease nor reports anything of its pods.
pub const KUBELET_STOPPED: (&str, &str) = ("kubewright.dev/kubelet", "stopped");

/// The annotation of a simulated node with which its pods are ready as soon as they run, whatever their probes wait for.
pub const PROBE_DELAYS_IGNORED: (&str, &str) = ("kubewright.dev/probe-delays", "ignored");

/// The annotation of a simulated node that says how long its pods have to end at most when they are deleted, whatever their grace
/// periods: a duration, such as `2s`.
pub const MAX_GRACE_PERIOD: &str = "kubewright.dev/max-grace-period";
