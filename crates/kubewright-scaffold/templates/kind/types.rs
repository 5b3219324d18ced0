//! The kind @Kind@ in @version@: what users write, and what the operator tells them.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// What a user wants.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "@api_group@",
    version = "@version@",
    kind = "@Kind@",
    plural = "@plural@",
@scope@    status = "@Kind@Status",
@rule@    printcolumn(name = "Ready", type_ = "boolean", json_path = ".status.ready"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct @Kind@Spec {
@fields@}

/// What the operator has seen.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct @Kind@Status {
    /// Whether it is as it should be.
    #[serde(default)]
    pub ready: bool,
}
@functions@