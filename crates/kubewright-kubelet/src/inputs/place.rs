//! Where pods are: the node, and what is true of it for all of its pods.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// What is true of a node for all of its pods.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where the kubelet keeps the files of its pods (`--root-dir`); absolute.
    pub folder: PathBuf,
    /// Where the API server really listens: this is what pods are told in place of the address of the Service `kubernetes`, at
    /// which somebody answers only where this machine lets its port be listened at.
    pub api_server: SocketAddr,
    /// The addresses of the node, the preferred first (`status.hostIPs`).
    pub addresses: Vec<IpAddr>,
    /// What its pods may use (`status.allocatable`): the limit of a container that has none, for `resourceFieldRef`.
    pub allocatable: BTreeMap<String, Quantity>,
    /// The last part of the names of Services, such as `cluster.local`.
    pub cluster_domain: String,
    /// Where the names of Services are answered (`--cluster-dns`); nowhere, where none is given.
    pub cluster_dns: Vec<IpAddr>,
    /// Whether its user lets pods see the files of this machine (`hostPath` and `local` volumes).
    pub host_access: bool,
}

/// Where a pod is.
#[derive(Clone, Copy, Debug)]
pub struct PodPlace<'a> {
    /// Its node.
    pub node: &'a Node,
    /// Its own addresses, the preferred first (`status.podIPs`).
    pub pod_ips: &'a [IpAddr],
}

impl Node {
    /// The folder of a pod: its volumes and the files of its containers, gone with it (`getPodDir`).
    #[must_use]
    pub fn pod_folder(&self, pod: &Pod) -> PathBuf {
        self.folder.join("pods").join(uid(pod))
    }

    /// The folder of the logs of a pod, a folder for each container and a file for each run
    /// (`BuildPodLogsDirectory`).
    #[must_use]
    pub fn log_folder(&self, pod: &Pod) -> PathBuf {
        self.folder.join("logs").join(format!("{}_{}_{}", namespace(pod), name(pod), uid(pod)))
    }

    /// Where a run of a container writes its log (`buildContainerLogsPath`).
    #[must_use]
    pub fn log(&self, pod: &Pod, container: &str, run: u32) -> PathBuf {
        self.log_folder(pod).join(container).join(format!("{run}.log"))
    }

    /// The folder of a persistent volume: it outlives the pods that use it.
    pub(super) fn lasting(&self, volume: &str) -> PathBuf {
        self.folder.join("volumes").join(volume)
    }
}

pub(super) fn name(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}

pub(super) fn namespace(pod: &Pod) -> &str {
    pod.metadata.namespace.as_deref().unwrap_or_default()
}

pub(super) fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}
