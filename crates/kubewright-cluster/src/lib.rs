//! The assembled control plane: an API server, the built-in controllers and simulated nodes, in your process.
//!
//! ```no_run
//! # async fn example() -> Result<(), kubewright_cluster::StartError> {
//! let cluster = kubewright_cluster::Cluster::start().await?;
//! let client = cluster.client(); // a kube::Client with no socket
//! # Ok(()) }
//! ```
//!
//! Under tokio's paused clock the cluster is a simulation: an hour passes at once when nobody has work to do. The same
//! seed gives the same uids, names and order of events.
//!
//! [`admin`] lets time pass and makes requests fail, for tests in this process and outside.
//!
//! With a [`DataDirectory`] a cluster outlives its process: what was acknowledged is there when it is started again.

mod actors;
pub mod admin;
mod builder;
mod cluster;
mod data;
pub mod journal;
mod kubelets;
mod origin;
pub mod recording;
mod serve;
mod transport;

pub use builder::{Builder, StartError};
pub use cluster::Cluster;
pub use data::{DataDirectory, DataError};
pub use kubelets::ProcessSettings;
pub use kubewright_engine::NodePorts;
pub use kubewright_identity::authn::{
    FrontProxy, PublicKey, Secret, ServiceAccounts, TokenKey, TokenWebhook, User, token_file,
};
pub use kubewright_identity::authz;
pub use kubewright_identity::trust::Bundle;
pub use kubewright_identity::webhook::Remote;
pub use kubewright_kinds::RuntimeConfig;
pub use kubewright_meta::cidr::ServiceCidrs;
pub use kubewright_serve::tls::ServingCertificate;
pub use serve::{Endpoint, ServeError, Serving};

/// Which admission plugins are asked.
pub mod admission {
    pub use kubewright_engine::admission::{Plugin, PluginError, Plugins};
}
