//! A control plane in your process as envtest means it: an API server with its store, and nothing that acts.
//!
//! ```no_run
//! # async fn example() -> Result<(), kubewright_control_plane::StartError> {
//! let control_plane = kubewright_control_plane::ControlPlane::builder().start().await?;
//! let client = control_plane.client(); // a kube::Client with no socket
//! # Ok(()) }
//! ```
//!
//! Under tokio's paused clock it is a simulation: an hour passes at once when nobody has work to do. The same seed gives the
//! same uids, names and order of events.
//!
//! [`admin`] lets time pass and makes requests fail, for tests in this process and outside.
//!
//! With a [`DataDirectory`] it outlives its process: what was acknowledged is there when it is started again.

pub mod admin;
mod advertised;
mod builder;
mod control_plane;
mod data;
mod front_proxy;
pub mod journal;
mod origin;
pub mod recording;
mod serve;
mod transport;

pub use advertised::advertised;
pub use builder::{Builder, StartError};
pub use control_plane::ControlPlane;
pub use data::{DataDirectory, DataError, version_of as version_of_data};
pub use kubewright_engine::NodePorts;
pub use kubewright_identity::authn::{
    FrontProxy, PublicKey, Secret, ServiceAccounts, TokenKey, TokenWebhook, User, token_file,
};
pub use kubewright_identity::trust::Bundle;
pub use kubewright_identity::webhook::Remote;
pub use kubewright_kinds::RuntimeConfig;
pub use kubewright_meta::cidr::ServiceCidrs;
pub use kubewright_serve::tls::ServingCertificate;
pub use kubewright_spec::Version as KubernetesVersion;
pub use serve::{Endpoint, ServeError, Serving};

/// Which admission plugins are asked.
pub mod admission {
    pub use kubewright_engine::admission::{Plugin, PluginError, Plugins};
}

/// Who may do what: the authorization modes, and what they are told.
pub mod authz {
    pub use kubewright_identity::authz::{
        BadConfiguration, Configuration, FailurePolicy, MatchCondition, MatchConditions, Mode, ModeError,
        OpenRemote, Policies, PolicyError, ReviewVersion, Reviewer,
    };
}
