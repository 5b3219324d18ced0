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
//!
//! What does not act is [`kubewright_control_plane`]'s, whose names are here, too.

mod builder;
mod cluster;
mod kubelets;
mod simulated;

pub use builder::Builder;
pub use cluster::Cluster;
pub use kubelets::ProcessSettings;
pub use kubewright_control_plane::{
    Bundle, ControlPlane, DataDirectory, DataError, Endpoint, FrontProxy, KubernetesVersion, NodePorts,
    PublicKey, Remote, RuntimeConfig, Secret, ServeError, ServiceAccounts, ServiceCidrs, Serving,
    ServingCertificate, StartError, TokenKey, TokenWebhook, User, admin, admission, advertised, authz,
    journal, recording, token_file, version_of_data,
};
