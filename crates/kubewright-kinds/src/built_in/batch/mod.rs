//! The group `batch`.

pub mod cron_job;
pub mod job;

use super::BuiltIn;

/// Its kinds, in the order of discovery.
pub static KINDS: &[&BuiltIn] = &[&cron_job::CRON_JOB, &job::JOB];
