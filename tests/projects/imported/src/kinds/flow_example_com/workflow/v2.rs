// SPDX-License-Identifier: MIT

//! The kind Workflow in v2 of flow.example.com, imported from its definition.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "flow.example.com",
    version = "v2",
    kind = "Workflow",
    plural = "workflows"
)]
pub struct WorkflowSpec {
    #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
    pub _schema: Option<String>,
    #[serde(rename = "9lives", default, skip_serializing_if = "Option::is_none")]
    pub _9lives: Option<i32>,
    #[serde(rename = "a-b", default, skip_serializing_if = "Option::is_none")]
    pub a_b: Option<WorkflowSpecAB>,
    #[serde(rename = "aB", default, skip_serializing_if = "Option::is_none")]
    pub a_b_: Option<WorkflowSpecAB2>,
    #[serde(rename = "a_b", default, skip_serializing_if = "Option::is_none")]
    pub a_b__: Option<WorkflowSpecAB22>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub anything: Option<serde_json::Value>,
    #[serde(rename = "as", default, skip_serializing_if = "Option::is_none")]
    pub as_: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maximum" = 4294967295_i64))]
    #[schemars(extend("minimum" = -1))]
    pub budget: Option<i64>,
    #[serde(rename = "crate", default, skip_serializing_if = "Option::is_none")]
    pub crate_: Option<String>,
    #[schemars(required)]
    #[schemars(extend("nullable" = true))]
    pub deadline: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deep: Option<Vec<WorkflowSpecDeepItem>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "object"))]
    pub free: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<BTreeMap<String, IntOrString>>,
    #[serde(rename = "match", default, skip_serializing_if = "Option::is_none")]
    pub match_: Option<bool>,
    #[serde(
        rename = "maxUnavailable",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(extend("default" = "25%"))]
    #[schemars(extend("pattern" = "^[0-9]+%?$"))]
    pub max_unavailable: Option<IntOrString>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "object"))]
    #[schemars(extend("x-kubernetes-embedded-resource" = true))]
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub object: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "object"))]
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub parameters: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<WorkflowSpecPlugin>,
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub ref_: Option<String>,
    #[serde(rename = "self", default, skip_serializing_if = "Option::is_none")]
    pub self_: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("items" = {"nullable": true, "type": "string"}))]
    pub steps: Option<Vec<Option<String>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<WorkflowSpecTemplate>,
    #[serde(rename = "type")]
    pub type_: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowSpecAB {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowSpecAB2 {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowSpecAB22 {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<i32>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowSpecDeepItem {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deeper: Option<BTreeMap<String, Vec<WorkflowSpecDeepItemDeeperValueItem>>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowSpecDeepItemDeeperValueItem {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<BTreeMap<String, bool>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("not" = {"required": ["exec", "http"]}))]
pub struct WorkflowSpecPlugin {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<WorkflowSpecPluginExec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<WorkflowSpecPluginHttp>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowSpecPluginExec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowSpecPluginHttp {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowSpecTemplate {
    pub image: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_fields: Option<String>,
    /// Fields that the schema does not have.
    #[serde(flatten)]
    pub other_fields_: BTreeMap<String, serde_json::Value>,
}
