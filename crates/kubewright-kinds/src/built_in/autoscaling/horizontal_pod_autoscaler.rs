//! The kind `HorizontalPodAutoscaler` of `autoscaling/v2`.

use kubewright_spec::Version;
use kubewright_table as table;

use crate::rules::declared::{Declared, Mistake};
use crate::rules::{self, Generation};
use crate::{BuiltIn, Subresource};

/// What its types declare from v1.37 on.
const DECLARED: &[Declared] =
    &[("spec.minReplicas", Mistake::Other), ("spec.maxReplicas", Mistake::Required)];

/// All that is known of it.
pub static HORIZONTAL_POD_AUTOSCALER: BuiltIn = BuiltIn {
    short_names: &["hpa"],
    categories: &["all"],
    subresources: &[Subresource::Status],
    columns: table::scaling::AUTOSCALERS,
    rules: rules::autoscaling::rules(),
    // The feature HPAGeneration.
    since: &[(Version::V1_37, |kind| {
        kind.rules.generation = Generation::Content;
        kind.rules.declared = DECLARED;
    })],
    ..BuiltIn::namespaced(
        "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler",
        "autoscaling/horizontalpodautoscalers",
    )
};
