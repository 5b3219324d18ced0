//! The four RBAC kinds as this room reads them: what a decision needs, and nothing else of the objects.

use serde::{Deserialize, Deserializer};

use super::rule::Rule;

/// The API group of the RBAC kinds.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// A Role or ClusterRole.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Role {
    pub metadata: Metadata,
    #[serde(deserialize_with = "null_is_default")]
    pub rules: Vec<Rule>,
}

/// A RoleBinding or ClusterRoleBinding.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Binding {
    pub metadata: Metadata,
    pub(crate) role_ref: RoleRef,
    #[serde(deserialize_with = "null_is_default")]
    pub subjects: Vec<Subject>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Metadata {
    #[serde(deserialize_with = "null_is_default")]
    pub name: String,
    #[serde(deserialize_with = "null_is_default")]
    pub namespace: String,
}

/// The role that a binding names.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RoleRef {
    #[serde(deserialize_with = "null_is_default")]
    pub(crate) api_group: String,
    /// Role or ClusterRole.
    #[serde(deserialize_with = "null_is_default")]
    pub kind: String,
    /// Its name.
    #[serde(deserialize_with = "null_is_default")]
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Subject {
    #[serde(deserialize_with = "null_is_default")]
    pub kind: String,
    #[serde(deserialize_with = "null_is_default")]
    pub name: String,
    #[serde(deserialize_with = "null_is_default")]
    pub namespace: String,
}

/// `null` reads as nothing, as Go's decoder has it.
pub(crate) fn null_is_default<'de, D, T>(input: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(input)?.unwrap_or_default())
}
