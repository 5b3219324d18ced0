//! The built-in controllers in a whole control plane, under virtual time.

mod budgets;
mod cronjobs;
mod deployments;
mod faults;
mod garbage;
mod job_faults;
mod jobs;
mod namespaces;
mod scheduling;
mod services;
mod stages;
mod support;
mod volumes;
