//! The group `batch`: jobs and cron jobs (`pkg/apis/batch/validation`, `pkg/registry/batch`).

mod cron_jobs;
mod failure;
mod job_status;
mod jobs;

pub(crate) use cron_jobs::rules as cron_jobs;
pub(crate) use jobs::rules as jobs;
