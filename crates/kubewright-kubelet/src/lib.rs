//! A node whose pods run as processes of this machine.
//!
//! [`container`] runs one container; [`inputs`] says what it is given; the kubelet above them does what Kubernetes' kubelet
//! does for a pod.

pub mod container;
pub mod inputs;
