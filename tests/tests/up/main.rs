//! Clients from outside on a running `kubewright up`, as their users have them.
//!
//! Each needs something that cargo does not bring along, and the built command: `cargo xtask test` finds or installs it and
//! runs them.

mod access;
mod apart;
mod clock;
mod crash;
mod envtest;
mod golden;
mod images;
mod kube_rs;
mod kubectl;
mod memcached;
mod pictures;
mod probes;
mod process;
mod project;
mod python;
mod recordings;
mod registry;
mod render;
mod replay;
mod ship;
mod shop;
mod telemetry;
mod tree;
mod trial;
mod tutorials;
mod view;
