//! The networks that addresses of services come from, and the objects that stand for addresses
//! (`k8s.io/kubernetes/pkg/registry/core/service/ipallocator`, `cidrallocator.go` and `ipallocator.go`).
//!
//! A service that has an address has an IPAddress of that name; one that somebody else made takes the address as well.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use kubewright_codec::body::Decoded;
use kubewright_identity::authn::User;
use kubewright_kinds::built_in::networking::ip_address::IP_ADDRESS;
use kubewright_kinds::built_in::networking::service_cidr::SERVICE_CIDR;
use kubewright_kinds::{BuiltIn, Kind, Role, encode};
use kubewright_meta::cidr::{Cidr, Family};
use kubewright_meta::{ApiError, object};
use serde_json::{Value, json};

use super::texts;
use crate::registry::{Call, DeleteOptions, Registry, WriteOptions};

/// Who has written an IPAddress, as field ownership tells it.
const MANAGER: &str = "kube-apiserver";
/// The ServiceCIDR that the server was started with: its addresses go first.
const DEFAULT: &str = "kubernetes";

/// The addresses that a service has; none of other kinds.
pub(in crate::registry) fn addresses_of(kind: &Kind, object: &Value) -> BTreeSet<IpAddr> {
    if kind.behaviour.role != Role::Service {
        return BTreeSet::new();
    }
    texts(&object["spec"]["clusterIPs"]).filter_map(|address| address.parse().ok()).collect()
}

impl Registry {
    fn kind_served(&self, kind: &BuiltIn) -> Option<Arc<Kind>> {
        self.kinds().find(kind).cloned()
    }

    /// The networks of the ServiceCIDRs that are ready, or, where these are not served, those of the settings.
    pub(super) fn ready_networks(&self) -> Vec<Cidr> {
        let Some(kind) = self.kind_served(&SERVICE_CIDR) else {
            return self.settings.service_cidrs.iter().collect();
        };
        let snapshot = self.snapshot();
        let objects = snapshot.range(&kind.collection, "", None).map(|entry| encode::value(&kind, entry));
        let mut ready: Vec<Value> = objects.filter(is_ready).collect();
        ready.sort_by_key(|object| object::name(object) != DEFAULT);
        ready.iter().flat_map(|object| texts(&object["spec"]["cidrs"])).filter_map(Cidr::parse).collect()
    }

    /// Whether there is an IPAddress of it.
    pub(super) fn is_held(&self, address: IpAddr) -> bool {
        let kind = self.kind_served(&IP_ADDRESS);
        kind.is_some_and(|kind| self.snapshot().get(&kind.collection, &address.to_string()).is_some())
    }

    /// Makes the IPAddresses that a service has come to need, and removes those of addresses that it has given up.
    pub(in crate::registry) async fn addresses_changed(
        &self,
        namespace: &str,
        name: &str,
        before: &BTreeSet<IpAddr>,
        now: &BTreeSet<IpAddr>,
    ) {
        for address in before.difference(now) {
            // Somebody was faster: it is gone all the same.
            let _ = self.release_address(*address).await;
        }
        for address in now.difference(before) {
            // It is there already: it has taken the address as well.
            let _ = self.hold_address(*address, namespace, name).await;
        }
    }

    /// Makes the IPAddresses of the services that lack theirs (`ipallocator/controller/repairip.go`).
    pub(crate) async fn repair_addresses(&self) {
        let services = self.kinds().iter().find(|kind| kind.behaviour.role == Role::Service).cloned();
        let Some(services) = services else { return };
        for entry in self.snapshot().range(&services.collection, "", None) {
            let service = encode::value(&services, entry);
            let lacking = addresses_of(&services, &service).into_iter().filter(|one| !self.is_held(*one));
            let lacking: BTreeSet<IpAddr> = lacking.collect();
            let (namespace, name) = (object::namespace(&service), object::name(&service));
            self.addresses_changed(namespace, name, &BTreeSet::new(), &lacking).await;
        }
    }

    async fn hold_address(&self, address: IpAddr, namespace: &str, name: &str) -> Result<(), ApiError> {
        let Some(kind) = self.kind_served(&IP_ADDRESS) else { return Ok(()) };
        let value = json!({
            "apiVersion": kind.api_version(),
            "kind": kind.kind,
            "metadata": {
                "name": address.to_string(),
                "labels": {
                    "ipaddress.kubernetes.io/ip-family": Family::of(address).name(),
                    "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
                },
            },
            "spec": {"parentRef": {"resource": "services", "namespace": namespace, "name": name}},
        });
        let user = server();
        let call = Call { kind: &kind, namespace: "", name: "", user: &user };
        let options = WriteOptions { manager: MANAGER.to_owned(), ..WriteOptions::default() };
        Box::pin(self.create(call, Decoded::of(value), options)).await.map(drop)
    }

    async fn release_address(&self, address: IpAddr) -> Result<(), ApiError> {
        let Some(kind) = self.kind_served(&IP_ADDRESS) else { return Ok(()) };
        let (user, name) = (server(), address.to_string());
        let call = Call { kind: &kind, namespace: "", name: &name, user: &user };
        Box::pin(self.delete(call, &DeleteOptions::default())).await.map(drop)
    }
}

fn server() -> User {
    User::new("system:apiserver", ["system:masters"])
}

fn is_ready(object: &Value) -> bool {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    ready && !object::is_deleting(object)
}
