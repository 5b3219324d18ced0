// SPDX-License-Identifier: MIT

//! The kind HTTPRoute in v1beta1 of gateway.example.com, imported from its definition.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "gateway.example.com",
    version = "v1beta1",
    kind = "HTTPRoute",
    plural = "httproutes",
    namespaced,
    status = "HTTPRouteStatus"
)]
#[schemars(extend("x-kubernetes-validations" = [{"message": "too many", "reason": "FieldValueInvalid", "rule": "!has(self.hostnames) || self.hostnames.size() <= 16"}]))]
pub struct HTTPRouteSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("items" = {"maxLength": 253, "minLength": 1, "pattern": "^(\\*\\.)?[a-z0-9.-]+$", "type": "string"}))]
    #[schemars(extend("maxItems" = 16))]
    pub hostnames: Option<Vec<String>>,
    #[serde(
        rename = "parentRefs",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub parent_refs: Option<Vec<HTTPRouteSpecParentRefsItem>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = [{"matches": [{"path": {"type": "PathPrefix", "value": "/"}}]}]))]
    #[schemars(extend("maxItems" = 8))]
    pub rules: Option<Vec<HTTPRouteSpecRulesItem>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<HTTPRouteSpecTimeouts>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HTTPRouteSpecParentRefsItem {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maximum" = 65535))]
    #[schemars(extend("minimum" = 1))]
    pub port: Option<i32>,
    #[serde(
        rename = "sectionName",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub section_name: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [{"rule": "!has(self.weight) || self.weight >= 0.0"}]))]
pub struct HTTPRouteSpecRulesItem {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("additionalProperties" = {"items": {"type": "string"}, "maxItems": 4, "type": "array"}))]
    pub headers: Option<BTreeMap<String, Vec<String>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxItems" = 8))]
    pub matches: Option<Vec<HTTPRouteSpecRulesItemMatchesItem>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("items" = {"items": {"items": {"format": "int32", "type": "integer"}, "maxItems": 3, "type": "array"}, "type": "array"}))]
    pub table: Option<Vec<Vec<Vec<i32>>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<BTreeMap<String, HTTPRouteSpecRulesItemTargetsValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0))]
    pub weight: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HTTPRouteSpecRulesItemMatchesItem {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = {"type": "PathPrefix", "value": "/"}))]
    pub path: Option<HTTPRouteSpecRulesItemMatchesItemPath>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HTTPRouteSpecRulesItemMatchesItemPath {
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "PathPrefix"))]
    #[schemars(extend("enum" = ["Exact", "PathPrefix"]))]
    pub type_: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "/"))]
    #[schemars(extend("maxLength" = 1024))]
    pub value: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HTTPRouteSpecRulesItemTargetsValue {
    pub port: IntOrString,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "float"))]
    pub share: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("oneOf" = [{"required": ["backend"]}, {"required": ["request"]}]))]
pub struct HTTPRouteSpecTimeouts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "duration"))]
    pub backend: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "duration"))]
    pub request: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HTTPRouteStatus {
    pub parents: Vec<HTTPRouteStatusParentsItem>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HTTPRouteStatusParentsItem {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub accepted: Option<bool>,
}
