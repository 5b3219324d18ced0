//! Build, test and run Kubernetes operators in Rust.
//!
//! This is what an operator's author imports.

pub use kubewright_runtime::*;

/// A Kubernetes in the process of the test: the embedded control plane.
#[cfg(feature = "testing")]
pub use kubewright_cluster as testing;

/// The README's examples compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
