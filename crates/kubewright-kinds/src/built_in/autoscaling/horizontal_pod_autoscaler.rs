//! The kind `HorizontalPodAutoscaler` of `autoscaling/v2`.

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
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
    ..BuiltIn::of::<HorizontalPodAutoscaler>()
};
