//! What tests are written with.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Fetched, Node, PodPlace};

pub(crate) const NOW: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// An object of Kubernetes.
pub(crate) fn object<T: DeserializeOwned>(value: Value) -> T {
    kubewright_objects::from_value(value).unwrap()
}

/// The pod `ns/web` with this `spec`.
#[expect(clippy::needless_pass_by_value, reason = "so that tests say `pod(json!(..))`")]
pub(crate) fn pod(spec: Value) -> Pod {
    object(json!({"metadata": {"name": "web", "namespace": "ns", "uid": "u1"}, "spec": spec}))
}

/// The pod `ns/web` with one container `app` that has these fields.
pub(crate) fn pod_of(mut container: Value) -> Pod {
    container["name"] = json!("app");
    pod(json!({"containers": [container]}))
}

/// The first container of a pod.
pub(crate) fn first(pod: &Pod) -> &Container {
    &pod.spec.as_ref().unwrap().containers[0]
}

/// A node that keeps its files in `folder`.
pub(crate) fn node(folder: &Path) -> Node {
    Node {
        folder: folder.to_owned(),
        api_server: "127.0.0.1:6443".parse().unwrap(),
        addresses: vec!["10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap()],
        allocatable: [("cpu", "4"), ("memory", "8Gi"), ("ephemeral-storage", "100Gi")]
            .map(|(name, quantity)| (name.to_owned(), Quantity(quantity.to_owned())))
            .into(),
        cluster_domain: "cluster.local".to_owned(),
        cluster_dns: Vec::new(),
        host_access: false,
    }
}

/// Where pods of this node are.
pub(crate) fn place(node: &Node) -> PodPlace<'_> {
    const ADDRESSES: [IpAddr; 1] = [IpAddr::V4(std::net::Ipv4Addr::new(10, 1, 0, 7))];
    PodPlace { node, pod_ips: &ADDRESSES }
}

impl Fetched {
    /// With a config map of these texts.
    #[expect(clippy::needless_pass_by_value, reason = "so that tests say `config_map(_, json!(..))`")]
    pub(crate) fn config_map(mut self, name: &str, data: Value) -> Self {
        let map = object(json!({"metadata": {"name": name}, "data": data}));
        self.config_maps.insert(name.to_owned(), Ok(Arc::new(map)));
        self
    }

    /// With a secret of these texts.
    pub(crate) fn secret(mut self, name: &str, data: &[(&str, &str)]) -> Self {
        let data = data
            .iter()
            .map(|(key, value)| ((*key).to_owned(), k8s_openapi::ByteString(value.as_bytes().to_vec())));
        let secret = k8s_openapi::api::core::v1::Secret { data: Some(data.collect()), ..Default::default() };
        self.secrets.insert(name.to_owned(), Ok(Arc::new(secret)));
        self
    }
}

/// A folder of one test, gone with it.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("kubewright-inputs-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }
}

impl std::ops::Deref for Scratch {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
