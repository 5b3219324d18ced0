//! What expressions cost: while they run, and at least and at most by what is declared.

mod estimate;
mod functions;
mod runtime;
mod sizes;

pub(crate) use self::estimate::estimate;
pub(crate) use self::runtime::{CallCost, equality, matching};
pub use self::sizes::CostEstimate;

/// Whether a function of Kubernetes costs one, whatever it is called with: what only looks into a value that is made.
fn costs_one(function: &str, overload: &str) -> bool {
    match function {
        "ip" => overload == "cidr_ip",
        "serviceAccount"
        | "path"
        | "group"
        | "resource"
        | "subresource"
        | "namespace"
        | "name"
        | "allowed"
        | "reason"
        | "error"
        | "errored"
        | "masked"
        | "prefixLength"
        | "family"
        | "isUnspecified"
        | "isLoopback"
        | "isLinkLocalMulticast"
        | "isLinkLocalUnicast"
        | "isGlobalUnicast"
        | "format.named"
        | "sign"
        | "asInteger"
        | "isInteger"
        | "asApproximateFloat"
        | "isGreaterThan"
        | "isLessThan"
        | "compareTo"
        | "add"
        | "sub"
        | "major"
        | "minor"
        | "patch"
        | "getScheme"
        | "getHostname"
        | "getHost"
        | "getPort"
        | "getEscapedPath"
        | "getQuery" => true,
        _ => false,
    }
}
