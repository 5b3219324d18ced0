//! The Kubernetes API server as a tower service.
//!
//! This is the edge ([`http`]): it reads a request, asks `kubewright-identity` who makes it and whether they may,
//! `kubewright-engine` for what it is about, and writes the answer. What it asks kubelets for is said by [`kubelet`],
//! and who hands it a request finds that again in the work on it ([`origin`]). The
//! layers below stand in crates of their own: `kubewright-meta`, `-codec`, `-identity`, `-schema`, `-kinds`, `-engine`.

pub mod http;
pub mod kubelet;
pub mod origin;
