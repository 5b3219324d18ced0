//! The kind `HorizontalPodAutoscaler` of `autoscaling/v1`.

use kubewright_spec::Version;
use kubewright_table as table;

use super::horizontal_pod_autoscaler::HORIZONTAL_POD_AUTOSCALER;
use crate::rules::convert::autoscalers;
use crate::rules::declared::{Declared, Mistake};
use crate::rules::{self, Generation};
use crate::{Behaviour, BuiltIn, StoredAs, Subresource};

/// What its types declare from v1.37 on.
const DECLARED: &[Declared] =
    &[("spec.minReplicas", Mistake::Other), ("spec.maxReplicas", Mistake::Required)];

/// All that is known of it.
pub static HORIZONTAL_POD_AUTOSCALER_V1: BuiltIn = BuiltIn {
    short_names: &["hpa"],
    categories: &["all"],
    subresources: &[Subresource::Status],
    columns: table::scaling::AUTOSCALERS,
    rules: rules::autoscaling::rules_v1(),
    behaviour: Behaviour { annotations_of_version: &autoscalers::ANNOTATIONS, ..Behaviour::BUILT_IN },
    stored_as: Some(StoredAs {
        kind: &HORIZONTAL_POD_AUTOSCALER,
        to_storage: autoscalers::to_v2,
        from_storage: autoscalers::from_v2,
    }),
    // The feature HPAGeneration.
    since: &[(Version::V1_37, |kind| {
        kind.rules.generation = Generation::Content;
        kind.rules.declared = DECLARED;
    })],
    ..BuiltIn::namespaced(
        "io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler",
        "autoscaling/horizontalpodautoscalers",
    )
};
