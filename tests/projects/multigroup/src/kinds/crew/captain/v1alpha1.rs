// Copyright 2026 Example.
// SPDX-License-Identifier: MIT

//! The kind Captain in v1alpha1: what users write, and what the operator tells them.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// What a user wants.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "crew.example.com",
    version = "v1alpha1",
    kind = "Captain",
    plural = "captains",
    namespaced,
    status = "CaptainStatus",
    printcolumn(name = "Ready", type_ = "boolean", json_path = ".status.ready"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct CaptainSpec {
    /// An example of a field: put yours here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foo: Option<String>,
}

/// What the operator has seen.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CaptainStatus {
    /// Whether it is as it should be.
    #[serde(default)]
    pub ready: bool,
}
