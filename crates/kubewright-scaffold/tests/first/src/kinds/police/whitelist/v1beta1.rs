// Copyright 2026 TakanariKo.
// SPDX-License-Identifier: Apache-2.0

//! The kind WhiteList in v1beta1: what users write, and what the operator tells them.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// What a user wants.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "police.foo.bar",
    version = "v1beta1",
    kind = "WhiteList",
    plural = "whitelists",
    namespaced,
    status = "WhiteListStatus",
    // The name of its Deployment is a label too, of at most 63 letters.
    validation = Rule::new("size(self.metadata.name) <= 52")
        .message("must have at most 52 letters"),
    printcolumn(name = "Ready", type_ = "boolean", json_path = ".status.ready"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct WhiteListSpec {
    /// An example of a field: put yours here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foo: Option<String>,
}

/// What the operator has seen.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WhiteListStatus {
    /// Whether it is as it should be.
    #[serde(default)]
    pub ready: bool,
}
