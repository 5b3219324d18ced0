//! The kind `Job` of `batch/v1`.

use kubewright_table as table;

use crate::rules::{self, Rules, warnings};
use crate::selector::{Field, Fields, Refusal};
use crate::{Behaviour, BuiltIn, Plugin, Subresource};

/// All that is known of it.
pub static JOB: BuiltIn = BuiltIn {
    categories: &["all"],
    subresources: &[Subresource::Status],
    columns: table::batch::JOBS,
    rules: Rules { warn: warnings::of_job, silent_deletion: Some(SILENT_DELETION), ..rules::batch::jobs() },
    behaviour: Behaviour { orphans_by_default: true, ..Behaviour::BUILT_IN },
    fields: Fields {
        own: &[Field { paths: Some(&["status.succeeded"]), default: "0", ..Field::of("status.successful") }],
        refusal: Refusal::UnsupportedFor("Job"),
    },
    plugins: &[Plugin::PodSecurity],
    ..BuiltIn::namespaced("io.k8s.api.batch.v1.Job", "batch/jobs")
};

/// What a deletion is warned of that does not say what becomes of the dependents
/// (`pkg/registry/batch/job/storage/storage.go`).
const SILENT_DELETION: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";
