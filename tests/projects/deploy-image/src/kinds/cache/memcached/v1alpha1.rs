// SPDX-License-Identifier: MIT

//! The kind Memcached in v1alpha1: what users write, and what the operator tells them.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// What a user wants.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "cache.example.com",
    version = "v1alpha1",
    kind = "Memcached",
    plural = "memcacheds",
    namespaced,
    status = "MemcachedStatus",
    // The name of its Deployment is a label too, of at most 63 letters.
    validation = Rule::new("size(self.metadata.name) <= 52")
        .message("must have at most 52 letters"),
    printcolumn(name = "Ready", type_ = "boolean", json_path = ".status.ready"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct MemcachedSpec {
    /// How many pods there are.
    #[serde(default = "one")]
    #[schemars(range(min = 0))]
    pub size: i32,
    /// What they run.
    #[serde(default = "image")]
    pub image: String,
}

/// What the operator has seen.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemcachedStatus {
    /// Whether it is as it should be.
    #[serde(default)]
    pub ready: bool,
}

fn one() -> i32 {
    1
}

fn image() -> String {
    "memcached:1.6".to_owned()
}
