//! Tests of operators: a whole Kubernetes in the process of the test, with its clock in the author's hand.
//!
//! It is used as `kubewright::testing`, with the attribute `kubewright::test` (feature `testing`):
//!
//! ```
//! use std::time::Duration;
//!
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::{ResourceExt, core::ObjectMeta};
//! use kubewright::testing::Cluster;
//!
//! # mod hidden { use super::*;
//! #[kubewright::test]
//! async fn what_is_created_is_there(cluster: Cluster) {
//!     let metadata = ObjectMeta { name: Some("a".to_owned()), ..ObjectMeta::default() };
//!     cluster.create(&ConfigMap { metadata, ..ConfigMap::default() }).await;
//!     cluster.advance(Duration::from_secs(3600)).await; // takes no time
//!     assert_eq!(cluster.get::<ConfigMap>("a").await.namespace().as_deref(), Some("default"));
//! }
//! # }
//! ```
//!
//! [`Cluster`] is that of `kubewright-cluster` (to which it derefs, and whose other names are here too) with what tests
//! need: [time](Cluster::advance), [objects](Cluster::get), [operators](Cluster::run).

mod because;
mod checks;
mod cluster;
mod conditions;
pub mod faults;
pub mod harness;
mod history;
mod ledger;
mod line;
mod log;
mod objects;
mod operator;
mod panics;
mod real;
mod record;
mod seed_run;
mod seeds;
mod settle;
mod snapshot;
mod time;

pub use kubewright_cluster::{
    Builder, Bundle, ControlPlane, DataDirectory, DataError, Endpoint, FrontProxy, KubernetesVersion,
    NodePorts, ProcessSettings, PublicKey, Remote, RuntimeConfig, Secret, ServeError, ServiceAccounts,
    ServiceCidrs, Serving, ServingCertificate, StartError, TokenKey, TokenWebhook, User, admin, admission,
    authz, journal, recording, token_file, version_of_data,
};

pub use cluster::Cluster;
pub use conditions::Condition;
pub use history::{History, Write};
pub use ledger::Ledger;
pub use log::Log;
pub(crate) use operator::INSTALLER;
pub use operator::{Deploy, Deployed, Program, Start};
pub use settle::Failing;
pub use snapshot::Snapshot;
pub use time::ConditionResult;
