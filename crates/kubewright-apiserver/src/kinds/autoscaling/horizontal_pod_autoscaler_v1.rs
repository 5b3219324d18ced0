//! The kind `HorizontalPodAutoscaler` of `autoscaling/v1`.

use k8s_openapi::api::autoscaling::v1::HorizontalPodAutoscaler;

use crate::kinds::rules;
use crate::kinds::{BuiltIn, Subresource};
use crate::table;

/// All that is known of it.
pub static HORIZONTAL_POD_AUTOSCALER_V1: BuiltIn = BuiltIn {
    short_names: &["hpa"],
    categories: &["all"],
    subresources: &[Subresource::Status],
    columns: table::scaling::AUTOSCALERS,
    rules: rules::autoscaling::rules_v1(),
    ..BuiltIn::of::<HorizontalPodAutoscaler>()
};
