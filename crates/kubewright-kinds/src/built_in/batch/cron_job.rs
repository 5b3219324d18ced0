//! The kind `CronJob` of `batch/v1`.

use kubewright_table as table;

use crate::rules::{self, Rules, warnings};
use crate::{BuiltIn, Plugin, Subresource};

/// All that is known of it.
pub static CRON_JOB: BuiltIn = BuiltIn {
    short_names: &["cj"],
    categories: &["all"],
    subresources: &[Subresource::Status],
    columns: table::batch::CRON_JOBS,
    rules: Rules { warn: warnings::of_cron_job, ..rules::batch::cron_jobs() },
    plugins: &[Plugin::PodSecurity],
    ..BuiltIn::namespaced("io.k8s.api.batch.v1.CronJob", "batch/cronjobs")
};
