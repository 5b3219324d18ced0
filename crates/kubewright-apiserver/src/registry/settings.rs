//! What a cluster decides once, before its first object: which admission plugins are asked, which addresses and ports are
//! given out, which versions are served.

use std::net::SocketAddr;

use super::{NodePorts, ServiceCidrs};
use crate::admission::Plugins;
use crate::kinds::RuntimeConfig;

/// The settings of a [`super::Registry`]. The default is kube-apiserver's, but for the addresses of services.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Which admission plugins are asked.
    pub admission: Plugins,
    /// The networks of service addresses; by default 10.96.0.0/16, as kubeadm nearly has it.
    pub service_cidrs: ServiceCidrs,
    /// The node ports of services.
    pub node_ports: NodePorts,
    /// Which versions are served.
    pub runtime_config: RuntimeConfig,
    /// Where the Endpoints of the service `default/kubernetes` say that the server is; without, there are none.
    pub advertise: Option<SocketAddr>,
    /// The port behind the service `default/kubernetes` (`targetPort`), where it is not the advertised one. Default 6443.
    pub secure_port: Option<u16>,
}

impl Settings {
    /// The port at which the server is reached.
    pub(crate) fn api_port(&self) -> u16 {
        self.secure_port.or(self.advertise.map(|address| address.port())).unwrap_or(6443)
    }
}
