// SPDX-License-Identifier: MIT

//! The kind Certificate in v1 of certs.example.com, imported from its definition.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is wanted.
///
/// It may have an example:
/// secretName: web
/// ```text
/// not rust
/// ```
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "certs.example.com",
    version = "v1",
    kind = "Certificate",
    plural = "certificates",
    namespaced,
    status = "CertificateStatus"
)]
pub struct CertificateSpec {
    /// A name of at most 64 letters.
    #[serde(
        rename = "commonName",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(extend("maxLength" = 64))]
    pub common_name: Option<String>,
    #[serde(rename = "dnsNames", default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxItems" = 100))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub dns_names: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "2160h"))]
    pub duration: Option<String>,
    /// Who signs it.
    #[serde(rename = "issuerRef")]
    pub issuer_ref: CertificateSpecIssuerRef,
    #[serde(
        rename = "privateKey",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(extend("default" = {"algorithm": "RSA", "size": 2048}))]
    pub private_key: Option<CertificateSpecPrivateKey>,
    #[serde(
        rename = "revisionHistoryLimit",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(extend("minimum" = 1))]
    pub revision_history_limit: Option<i32>,
    #[serde(rename = "secretName")]
    #[schemars(extend("pattern" = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub secret_name: String,
    #[serde(
        rename = "secretTemplate",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub secret_template: Option<CertificateSpecSecretTemplate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("items" = {"enum": ["signing", "digital signature", "server auth", "client auth"], "type": "string"}))]
    pub usages: Option<Vec<String>>,
}

/// Who signs it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CertificateSpecIssuerRef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "certs.example.com"))]
    pub group: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Issuer"))]
    #[schemars(extend("enum" = ["Issuer", "ClusterIssuer"]))]
    pub kind: Option<String>,
    #[schemars(extend("minLength" = 1))]
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [{"message": "size is not for \"Ed25519\"", "rule": "self.algorithm != 'Ed25519' || !has(self.size)"}]))]
pub struct CertificateSpecPrivateKey {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["RSA", "ECDSA", "Ed25519"]))]
    pub algorithm: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["PKCS1", "PKCS8"]))]
    pub encoding: Option<String>,
    #[serde(
        rename = "rotationPolicy",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(extend("enum" = ["Never", "Always"]))]
    pub rotation_policy: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maximum" = 8192))]
    #[schemars(extend("minimum" = 256))]
    pub size: Option<i32>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CertificateSpecSecretTemplate {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("additionalProperties" = {"maxLength": 63, "type": "string"}))]
    pub labels: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CertificateStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-map-keys" = ["type"]))]
    #[schemars(extend("x-kubernetes-list-type" = "map"))]
    pub conditions: Option<Vec<CertificateStatusConditionsItem>>,
    #[serde(rename = "notAfter", default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub not_after: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CertificateStatusConditionsItem {
    #[serde(
        rename = "lastTransitionTime",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(extend("format" = "date-time"))]
    pub last_transition_time: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(
        rename = "observedGeneration",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub observed_generation: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[schemars(extend("enum" = ["True", "False", "Unknown"]))]
    pub status: String,
    #[serde(rename = "type")]
    pub type_: String,
}
