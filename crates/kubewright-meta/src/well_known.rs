//! Names that Kubewright gives, and that more than one of its parts has to know.

/// The annotation by which kwok knows its nodes.
pub const NODE_ANNOTATION: &str = "kwok.x-k8s.io/node";

/// The annotation of a node whose pods really run: it is not simulated, and pods are placed on it.
pub const PROCESS_NODE: (&str, &str) = (NODE_ANNOTATION, "process");

/// The provisioner of classes whose volumes are simulated: there is no storage behind them. It is their CSI driver, too.
pub const PROVISIONER: &str = "simulated.kubewright.dev";
