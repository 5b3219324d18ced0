//! A node whose pods run as processes of this machine.
//!
//! [`container`] runs one container; the kubelet above it does what Kubernetes' kubelet does for a pod.

pub mod container;
