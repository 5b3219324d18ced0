//! Build, test and run Kubernetes operators in Rust.
//!
//! This is what an operator's author imports.

pub use kubewright_runtime::*;

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
