//! The kind `LimitRange` of `v1`.

use k8s_openapi::api::core::v1::LimitRange;

use crate::kinds::BuiltIn;
use crate::kinds::rules;

/// All that is known of it.
pub static LIMIT_RANGE: BuiltIn =
    BuiltIn { short_names: &["limits"], rules: rules::limits::limit_ranges(), ..BuiltIn::of::<LimitRange>() };
