//! The built-in controllers in a whole control plane, under virtual time.

mod budgets;
mod credentials;
mod cronjobs;
mod daemonsets;
mod deployments;
mod devices;
mod failures;
mod faults;
mod garbage;
mod garbage_faults;
mod horizontal_autoscaler;
mod job_faults;
mod jobs;
mod migrations;
mod namespaces;
mod quotas;
mod resets;
mod rollouts;
mod scheduling;
mod service_cidrs;
mod services;
mod stages;
mod statefulsets;
mod support;
mod tokens;
mod volumes;
