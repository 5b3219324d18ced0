//! Services and slices for tests.

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::{Value, json};

use crate::services::Services;

pub(crate) enum Object {
    Service(Box<Service>),
    Slice(Box<EndpointSlice>),
}

/// A Service of the namespace `shop`.
#[expect(clippy::needless_pass_by_value, reason = "so that tests say `service(_, json!(..))`")]
pub(crate) fn service(name: &str, spec: Value) -> Object {
    let object = json!({"metadata": {"namespace": "shop", "name": name}, "spec": spec});
    Object::Service(Box::new(kubewright_objects::from_value(object).expect("a Service")))
}

/// A slice of a Service of the namespace `shop`.
#[expect(clippy::needless_pass_by_value, reason = "so that tests say `slice(_, json!(..), json!(..))`")]
pub(crate) fn slice(service: &str, endpoints: Value, ports: Value) -> Object {
    let object = json!({
        "metadata": {"namespace": "shop", "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": ports
    });
    Object::Slice(Box::new(kubewright_objects::from_value(object).expect("a slice")))
}

pub(crate) fn endpoint(address: &str, ready: bool) -> Value {
    json!({"addresses": [address], "conditions": {"ready": ready}})
}

/// All of these; slices are numbered.
pub(crate) fn services<const N: usize>(objects: [Object; N]) -> Services {
    let mut all = Services::default();
    for (number, object) in objects.into_iter().enumerate() {
        match object {
            Object::Service(service) => all.apply(*service),
            Object::Slice(mut slice) => {
                slice.metadata.name = Some(format!("slice-{number}"));
                all.apply(*slice);
            }
        }
    }
    all
}
