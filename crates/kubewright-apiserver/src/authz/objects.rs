//! The four RBAC kinds as this room reads them: what a decision needs, and nothing else of the objects.

use serde::{Deserialize, Deserializer};

use super::rule::Rule;

/// The API group of the RBAC kinds.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// A Role or ClusterRole.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Role {
    pub(crate) metadata: Metadata,
    #[serde(deserialize_with = "null_is_default")]
    pub(crate) rules: Vec<Rule>,
}

/// A RoleBinding or ClusterRoleBinding.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Binding {
    pub(crate) metadata: Metadata,
    pub(crate) role_ref: RoleRef,
    #[serde(deserialize_with = "null_is_default")]
    pub(crate) subjects: Vec<Subject>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Metadata {
    #[serde(deserialize_with = "null_is_default")]
    pub(crate) name: String,
    #[serde(deserialize_with = "null_is_default")]
    pub(crate) namespace: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct RoleRef {
    #[serde(deserialize_with = "null_is_default")]
    pub(crate) api_group: String,
    #[serde(deserialize_with = "null_is_default")]
    pub(crate) kind: String,
    #[serde(deserialize_with = "null_is_default")]
    pub(crate) name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Subject {
    #[serde(deserialize_with = "null_is_default")]
    pub(crate) kind: String,
    #[serde(deserialize_with = "null_is_default")]
    pub(crate) name: String,
    #[serde(deserialize_with = "null_is_default")]
    pub(crate) namespace: String,
}

/// `null` reads as nothing, as Go's decoder has it.
pub(crate) fn null_is_default<'de, D, T>(input: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(input)?.unwrap_or_default())
}
