//! The built-in controllers in a whole control plane, under virtual time.

mod budgets;
mod deployments;
mod garbage;
mod namespaces;
mod scheduling;
mod services;
mod support;
mod volumes;
