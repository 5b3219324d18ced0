//! What a cluster decides once, before its first object: which admission plugins are asked, which addresses and ports are
//! given out, which versions are served.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use kubewright_kinds::RuntimeConfig;
use kubewright_meta::cidr::ServiceCidrs;
use kubewright_spec::Version;

use super::NodePorts;
use crate::admission::Plugins;

/// The settings of a [`super::Engine`]. The default is kube-apiserver's.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The version of Kubernetes whose kinds, types and roles are served.
    pub kubernetes: Version,
    /// Which admission plugins are asked.
    pub admission: Plugins,
    /// The networks of service addresses; by default 10.0.0.0/24.
    pub service_cidrs: ServiceCidrs,
    /// The node ports of services.
    pub node_ports: NodePorts,
    /// Which versions are served.
    pub runtime_config: RuntimeConfig,
    /// Where the Endpoints of the service `default/kubernetes` say that the server is; without, there are none.
    pub advertise: Option<SocketAddr>,
    /// What `kube-system/extension-apiserver-authentication` says of whom to believe ([`kubewright_identity::authn::published`]);
    /// where it is empty, there is no such ConfigMap.
    pub authentication: BTreeMap<String, String>,
    /// The port behind the service `default/kubernetes` (`targetPort`), where it is not the advertised one. Default 6443.
    pub secure_port: Option<u16>,
    /// How long a pod that goes at once stays marked before it is removed. Each is a write of its own in Kubernetes, and so as long as
    /// etcd takes for one. By default no time.
    pub marked_for: Duration,
}

impl Settings {
    /// The port at which the server is reached.
    pub(crate) fn api_port(&self) -> u16 {
        self.secure_port.or(self.advertise.map(|address| address.port())).unwrap_or(6443)
    }
}
