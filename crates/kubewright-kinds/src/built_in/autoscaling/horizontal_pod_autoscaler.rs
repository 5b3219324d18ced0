//! The kind `HorizontalPodAutoscaler` of `autoscaling/v2`.

use kubewright_table as table;

use crate::rules;
use crate::{BuiltIn, Subresource};

/// All that is known of it.
pub static HORIZONTAL_POD_AUTOSCALER: BuiltIn = BuiltIn {
    short_names: &["hpa"],
    categories: &["all"],
    subresources: &[Subresource::Status],
    columns: table::scaling::AUTOSCALERS,
    rules: rules::autoscaling::rules(),
    ..BuiltIn::namespaced(
        "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler",
        "autoscaling/horizontalpodautoscalers",
    )
};
