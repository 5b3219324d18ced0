//! After a commit of a service: an address that it has is an IPAddress of that name
//! (`k8s.io/kubernetes/pkg/registry/core/service/ipallocator`, `ipallocator.go`).

use std::collections::BTreeSet;
use std::net::IpAddr;

use kubewright_codec::body::Decoded;
use kubewright_kinds::built_in::networking::ip_address::IP_ADDRESS;
use kubewright_kinds::{Role, encode};
use kubewright_meta::cidr::Family;
use kubewright_meta::{ApiError, object};
use serde_json::json;

use crate::engine::allocate::{addresses_of, is_held};
use crate::engine::{Engine, MANAGER, SERVER};
use crate::request::{Call, DeleteOptions, WriteOptions};
use crate::verbs::{create, delete};

/// Makes the IPAddresses that a service has come to need, and removes those of addresses that it has given up.
pub(in crate::verbs) async fn changed(
    engine: &Engine,
    namespace: &str,
    name: &str,
    before: &BTreeSet<IpAddr>,
    now: &BTreeSet<IpAddr>,
) {
    for address in before.difference(now) {
        // Somebody was faster: it is gone all the same.
        let _ = release_address(engine, *address).await;
    }
    for address in now.difference(before) {
        // It is there already: it has taken the address as well.
        let _ = hold_address(engine, *address, namespace, name).await;
    }
}

/// Makes the IPAddresses of the services that lack theirs (`ipallocator/controller/repairip.go`).
pub(crate) async fn repair(engine: &Engine) {
    let services = engine.kinds().iter().find(|kind| kind.behaviour.role == Role::Service).cloned();
    let Some(services) = services else { return };
    for entry in engine.snapshot().range(&services.collection, "", None) {
        let service = encode::value(&services, entry);
        let lacking = addresses_of(&services, &service)
            .into_iter()
            .filter(|one| !is_held(&engine.kinds(), &engine.snapshot(), *one));
        let lacking: BTreeSet<IpAddr> = lacking.collect();
        let (namespace, name) = (object::namespace(&service), object::name(&service));
        changed(engine, namespace, name, &BTreeSet::new(), &lacking).await;
    }
}

async fn hold_address(engine: &Engine, address: IpAddr, namespace: &str, name: &str) -> Result<(), ApiError> {
    let Some(kind) = engine.kinds().find(&IP_ADDRESS).cloned() else { return Ok(()) };
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
    let call = Call { kind: &kind, namespace: "", name: "", user: &SERVER };
    let options = WriteOptions { manager: MANAGER.to_owned(), ..WriteOptions::default() };
    Box::pin(create::create(engine, call, Decoded::of(value), options)).await.map(drop)
}

async fn release_address(engine: &Engine, address: IpAddr) -> Result<(), ApiError> {
    let Some(kind) = engine.kinds().find(&IP_ADDRESS).cloned() else { return Ok(()) };
    let name = address.to_string();
    let call = Call { kind: &kind, namespace: "", name: &name, user: &SERVER };
    Box::pin(delete::delete(engine, call, &DeleteOptions::default())).await.map(drop)
}
