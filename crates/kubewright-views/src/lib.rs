//! Views of the kinds that are served: what an API server tells of them.
//!
//! Clients learn from [`discovery`] which groups, versions and resources there are, and from [`openapi`] what objects look like.
//! Both are pure functions of [`kubewright_kinds::Kinds`].

pub mod discovery;
pub mod openapi;
