//! The SDK and the control plane together in one process, in virtual time.

mod apply;
mod architecture;
mod fake_runtime;
mod kubernetes_version;
mod probes;
mod process_node;
mod program;
mod rights;
mod virtual_time;
mod webhooks;
