//! The SDK and the control plane together in one process, in virtual time.

mod apply;
mod virtual_time;
