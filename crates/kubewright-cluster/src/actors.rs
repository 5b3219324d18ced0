//! What acts in a cluster: the built-in controllers, the nodes.
//!
//! A cluster knows its actors by the function that gathers them. So a program that makes API servers alone
//! ([`Builder::api_server`](crate::Builder::api_server)) never names the others, and the linker leaves them out.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use kubewright_apiserver::kubelet::Kubelets;
use kubewright_controllers::{Builtin, Setup};
use kubewright_identity::authn::ServiceAccounts;
use kubewright_serve::authority::Authority;

use crate::{Cluster, ProcessSettings, StartError};

/// Which actors a cluster is to have.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// As kube-controller-manager's `--controllers` says it.
    pub(crate) controllers: String,
    /// How many simulated nodes there are.
    pub(crate) nodes: usize,
    /// The node of this machine.
    pub(crate) process: Option<ProcessSettings>,
}

impl Wanted {
    /// No actors at all.
    pub(crate) fn nobody() -> Self {
        Self { controllers: String::new(), nodes: 0, process: None }
    }
}

/// How a cluster gets its actors: [`nobody`] or [`everybody`].
pub(crate) type Gather = fn(Wanted) -> Result<Box<dyn Actors>, StartError>;

/// What actors have to know of the cluster that they are in.
pub(crate) struct ClusterContext {
    /// The certificates by which clients know the server; empty where there is no socket.
    pub(crate) ca: String,
    pub(crate) accounts: Arc<ServiceAccounts>,
    pub(crate) authority: Option<Arc<Authority>>,
    /// Where the server listens.
    pub(crate) address: Option<SocketAddr>,
}

/// The actors of a cluster that is about to start.
pub(crate) trait Actors: Send + Sync {
    /// What the API server knows of nodes: those that never have a kubelet.
    fn kubelets(&self) -> Kubelets;

    /// Whether there is a node whose kubelet is authorized as such.
    fn have_kubelet(&self) -> bool;

    /// Lets them act.
    fn start<'a>(
        self: Box<Self>,
        cluster: &'a mut Cluster,
        context: ClusterContext,
    ) -> BoxFuture<'a, Result<(), StartError>>;
}

/// No actors, whatever is wanted.
pub(crate) fn nobody(_: Wanted) -> Result<Box<dyn Actors>, StartError> {
    Ok(Box::new(Nobody))
}

/// The actors that are wanted.
///
/// # Errors
/// When there is no controller of a name.
pub(crate) fn everybody(wanted: Wanted) -> Result<Box<dyn Actors>, StartError> {
    let Wanted { controllers, nodes, process } = wanted;
    let controllers = kubewright_controllers::select(&controllers)?;
    Ok(Box::new(Everybody { controllers, nodes, process }))
}

struct Nobody;

impl Actors for Nobody {
    fn kubelets(&self) -> Kubelets {
        Kubelets::default()
    }

    fn have_kubelet(&self) -> bool {
        false
    }

    fn start<'a>(
        self: Box<Self>,
        _: &'a mut Cluster,
        _: ClusterContext,
    ) -> BoxFuture<'a, Result<(), StartError>> {
        std::future::ready(Ok(())).boxed()
    }
}

struct Everybody {
    controllers: Vec<&'static Builtin>,
    nodes: usize,
    process: Option<ProcessSettings>,
}

impl Actors for Everybody {
    fn kubelets(&self) -> Kubelets {
        if !self.controllers.iter().any(|controller| controller.name == "simulated-nodes") {
            return Kubelets::default();
        }
        let nodes = self.nodes;
        Kubelets::beside(move |node| kubewright_controllers::is_simulated(nodes, node))
    }

    fn have_kubelet(&self) -> bool {
        self.process.is_some()
    }

    fn start<'a>(
        self: Box<Self>,
        cluster: &'a mut Cluster,
        context: ClusterContext,
    ) -> BoxFuture<'a, Result<(), StartError>> {
        let ClusterContext { ca, accounts, authority, address } = context;
        cluster.run(&self.controllers, &Setup { ca, nodes: self.nodes, accounts, authority });
        async move {
            if let Some(process) = self.process {
                let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
                cluster.run_node(process, address.unwrap_or(nowhere)).await?;
            }
            Ok(())
        }
        .boxed()
    }
}
