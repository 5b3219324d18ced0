//! Each cause is made to happen in a whole control plane, in virtual time, and found by what `kubewright why` does.
#![expect(clippy::needless_pass_by_value, reason = "objects are written where they are handed over")]

mod claims;
mod custom;
mod deletion;
mod edge;
mod lab;
mod page;
mod pods;
mod services;
mod workloads;
