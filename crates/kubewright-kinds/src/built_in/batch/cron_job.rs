//! The kind `CronJob` of `batch/v1`.

use kubewright_spec::Version;
use kubewright_table as table;

use crate::rules::declared::{Declared, Mistake};
use crate::rules::{self, Rules, warnings};
use crate::{BuiltIn, Plugin, Subresource};

/// What its types declare from v1.37 on.
const DECLARED: &[Declared] = &[("spec.schedule", Mistake::Required)];

/// All that is known of it.
pub static CRON_JOB: BuiltIn = BuiltIn {
    short_names: &["cj"],
    categories: &["all"],
    subresources: &[Subresource::Status],
    columns: table::batch::CRON_JOBS,
    rules: Rules { warn: warnings::of_cron_job, ..rules::batch::cron_jobs() },
    plugins: &[Plugin::PodSecurity],
    since: &[(Version::V1_37, |kind| kind.rules.declared = DECLARED)],
    ..BuiltIn::namespaced("io.k8s.api.batch.v1.CronJob", "batch/cronjobs")
};
