//! The networks that addresses of services come from, and the objects that stand for addresses
//! (`k8s.io/kubernetes/pkg/registry/core/service/ipallocator`, `cidrallocator.go` and `ipallocator.go`).
//!
//! A service that has an address has an IPAddress of that name; one that somebody else made takes the address as well.

use std::collections::BTreeSet;
use std::net::IpAddr;

use kubewright_kinds::built_in::networking::ip_address::IP_ADDRESS;
use kubewright_kinds::built_in::networking::service_cidr::SERVICE_CIDR;
use kubewright_kinds::{Kind, Kinds, Role, Summary, encode};
use kubewright_meta::cidr::Cidr;
use kubewright_meta::object;
use kubewright_store::Snapshot;
use serde_json::Value;

use super::{Ranges, texts};

/// The ServiceCIDR that the server was started with: its addresses go first.
const DEFAULT: &str = "kubernetes";

/// The addresses that a service has; none of other kinds.
pub(crate) fn addresses_of(kind: &Kind, object: &Value) -> BTreeSet<IpAddr> {
    if kind.behaviour.role != Role::Service {
        return BTreeSet::new();
    }
    texts(&object["spec"]["clusterIPs"]).filter_map(|address| address.parse().ok()).collect()
}

/// Whether there is an IPAddress of it.
pub(crate) fn is_held(kinds: &Kinds, snapshot: &Snapshot<Summary>, address: IpAddr) -> bool {
    let kind = kinds.find(&IP_ADDRESS);
    kind.is_some_and(|kind| snapshot.get(&kind.collection, &address.to_string()).is_some())
}

impl Ranges<'_> {
    /// The networks of the ServiceCIDRs that are ready, or, where these are not served, those of the settings.
    pub(super) fn ready_networks(&self) -> Vec<Cidr> {
        let Some(kind) = self.kinds.find(&SERVICE_CIDR) else {
            return self.settings.service_cidrs.iter().collect();
        };
        let objects = self.snapshot.range(&kind.collection, "", None).map(|entry| encode::value(kind, entry));
        let mut ready: Vec<Value> = objects.filter(is_ready).collect();
        ready.sort_by_key(|object| object::name(object) != DEFAULT);
        ready.iter().flat_map(|object| texts(&object["spec"]["cidrs"])).filter_map(Cidr::parse).collect()
    }
}

fn is_ready(object: &Value) -> bool {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    ready && !object::is_deleting(object)
}
