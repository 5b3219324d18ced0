//! Build, test and run Kubernetes operators in Rust.
//!
//! This is what an operator's author imports.

pub use kubewright_runtime::*;

/// The client and the types that this SDK is built on: a program that takes them from here has one version of each.
///
/// ```
/// use kubewright::{k8s_openapi::api::core::v1::ConfigMap, kube::{Api, Client}};
///
/// fn settings(client: Client) -> Api<ConfigMap> {
///     Api::namespaced(client, "default")
/// }
/// ```
pub use {k8s_openapi, kube, schemars};

/// A test with a cluster of its own, in virtual time.
#[cfg(feature = "testing")]
pub use kubewright_derive::test;
/// A Kubernetes in the process of the test, and what tests of operators need.
#[cfg(feature = "testing")]
pub use kubewright_testing as testing;

/// The README's examples compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
