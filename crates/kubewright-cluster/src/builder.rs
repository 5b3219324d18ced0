//! What a cluster is made of.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kubewright_apiserver::http::Components;
use kubewright_apiserver::kubelet::Kubelets;
use kubewright_control_plane::admission::Plugins;
use kubewright_control_plane::authz::Mode;
use kubewright_control_plane::recording::Recording;
use kubewright_control_plane::{
    Builder as ControlPlaneBuilder, DataDirectory, Endpoint, FrontProxy, KubernetesVersion, NodePorts,
    RuntimeConfig, Secret, ServiceAccounts, ServiceCidrs, StartError, TokenWebhook, User,
};
use kubewright_world::{Pacing, World};

use crate::simulated::SimulatedContainers;
use crate::{Cluster, ProcessSettings};

/// Settings of a [`Cluster`]; all have defaults.
#[derive(Debug)]
pub struct Builder {
    control_plane: ControlPlaneBuilder,
    /// As kube-controller-manager's `--controllers` says it.
    controllers: String,
    /// How many simulated nodes there are.
    nodes: usize,
    /// The node of this machine.
    process: Option<ProcessSettings>,
}

impl Default for Builder {
    fn default() -> Self {
        Self::api_server().controllers("*").nodes(1)
    }
}

impl From<ControlPlaneBuilder> for Builder {
    /// A cluster on this control plane, in which nothing acts until it is asked for.
    fn from(control_plane: ControlPlaneBuilder) -> Self {
        Self { control_plane, controllers: String::new(), nodes: 0, process: None }
    }
}

impl Builder {
    /// An API server and nothing that acts: no controllers and no nodes, until some are asked for. A program that never asks
    /// needs no more than the [control plane](kubewright_control_plane::ControlPlane).
    #[must_use]
    pub fn api_server() -> Self {
        ControlPlaneBuilder::default().into()
    }

    /// Which built-in controllers run, as kube-controller-manager's `--controllers` says it: `*` for all (the default),
    /// `*,-deployment` for all but one, `garbagecollector,namespace` for these alone, an empty text for none.
    #[must_use]
    pub fn controllers(mut self, selection: impl Into<String>) -> Self {
        self.controllers = selection.into();
        self
    }

    /// How many simulated nodes there are. Default 1. With 0 nothing places or runs pods but on nodes that somebody
    /// creates with the annotation `kwok.x-k8s.io/node: fake`.
    #[must_use]
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    /// A node whose pods run as processes of this machine, beside the simulated ones. Its kubelet acts as
    /// `system:node:<name>`, so that the authorizer for nodes is asked too. For real worlds: processes live by the
    /// machine's clock. Services get addresses of this machine's loopback network, at which it answers, unless
    /// [`Self::service_cidr`] is called after this. Default: none.
    #[must_use]
    pub fn process_node(mut self, node: ProcessSettings) -> Self {
        if let Some(services) = node.services() {
            self = self.service_cidr(services);
        }
        self.process = Some(node);
        self
    }

    /// Starts the cluster: when this returns the API answers, and the controllers are on their way.
    ///
    /// # Errors
    /// [`StartError`].
    ///
    /// # Panics
    /// Outside a tokio runtime; with a [pacing](Self::pacing), in one whose clock is not paused.
    pub async fn start(self) -> Result<Cluster, StartError> {
        let Self { mut control_plane, controllers, nodes, process } = self;
        let controllers = kubewright_controllers::select(&controllers)
            .map_err(|unknown| StartError::Controllers(unknown.into()))?;
        control_plane = control_plane.components(Components {
            controller_manager: controllers
                .iter()
                .any(|one| one.identity.program == "kube-controller-manager"),
            scheduler: controllers.iter().any(|one| one.identity.program == "kube-scheduler"),
        });
        if controllers.iter().any(|controller| controller.name == "simulated-nodes") {
            let is_simulated = move |node: &_| kubewright_controllers::is_simulated(nodes, node);
            let simulate = |pod, now| Arc::new(SimulatedContainers::new(pod, now)) as _;
            control_plane = control_plane.kubelets(Kubelets::beside(is_simulated, simulate));
        }
        let control_plane = control_plane.node_authorization(process.is_some()).start().await?;
        let mut cluster = Cluster::new(control_plane);
        if !controllers.is_empty() {
            cluster.run(&controllers, nodes);
        }
        if let Some(process) = process {
            cluster.run_node(process).await?;
        }
        Ok(cluster)
    }
}

/// Settings of the control plane, made on it.
macro_rules! settings_of_the_control_plane {
    ($($name:ident($($value:ident: $type:ty),+))*) => {
        impl Builder {
            $(
                #[doc = concat!("See [`", stringify!($name), "`](ControlPlaneBuilder::", stringify!($name), ").")]
                #[must_use]
                pub fn $name(mut self, $($value: $type),+) -> Self {
                    self.control_plane = self.control_plane.$name($($value),+);
                    self
                }
            )*
        }
    };
}

settings_of_the_control_plane! {
    world(world: World)
    seed(seed: u64)
    admin(wanted: bool)
    request_log(wanted: bool)
    recording(recording: Recording)
    journal(most: usize)
    pacing(pacing: Pacing)
    endpoint(endpoint: Endpoint)
    admin_token(token: Secret)
    token(token: Secret, user: User)
    service_accounts(accounts: ServiceAccounts)
    front_proxy(proxy: FrontProxy)
    anonymous(allowed: bool)
    bootstrap_tokens(known: bool)
    data(data: DataDirectory)
    admission(plugins: Plugins)
    service_cidr(cidrs: ServiceCidrs)
    node_ports(ports: NodePorts)
    advertise(address: SocketAddr)
    secure_port(port: u16)
    marked_for(time: Duration)
    kubernetes_version(version: KubernetesVersion)
    runtime_config(config: RuntimeConfig)
    aggregated_discovery(served: bool)
    max_requests_inflight(most: usize)
    max_mutating_requests_inflight(most: usize)
    request_timeout(longest: Duration)
    min_request_timeout(shortest: Duration)
    token_webhook(webhook: TokenWebhook)
    authorization(modes: Vec<Mode>)
}
