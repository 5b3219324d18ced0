//! What a cluster needs before the operator runs, and the sample.

use k8s_openapi::{
    api::{
        core::v1::{Namespace, ServiceAccount},
        rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{CustomResourceExt, api::DynamicObject};
use serde::Serialize;

use crate::WhiteList;

/// The namespace that the operator lives in.
pub const NAMESPACE: &str = "whitelist-system";
/// The service account that the operator runs as.
pub const SERVICE_ACCOUNT: &str = "whitelist";
const ROLE: &str = "whitelist-operator";
/// The sample as a user applies it.
pub const SAMPLE: &str = include_str!("../config/samples/sample_v1beta1_whitelist.yaml");

/// The CRD, the namespace, the service account and its rights, in the order in which they are to be applied.
///
/// # Errors
/// When one of them is no JSON object, which no input can bring about.
pub fn manifests() -> Result<Vec<DynamicObject>, serde_json::Error> {
    Ok(vec![
        object(&WhiteList::crd())?,
        object(&Namespace { metadata: named(NAMESPACE), ..Namespace::default() })?,
        object(&service_account())?,
        object(&cluster_role())?,
        object(&cluster_role_binding())?,
    ])
}

fn object<T: Serialize>(typed: &T) -> Result<DynamicObject, serde_json::Error> {
    serde_json::from_value(serde_json::to_value(typed)?)
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

fn service_account() -> ServiceAccount {
    let metadata = ObjectMeta { namespace: Some(NAMESPACE.to_owned()), ..named(SERVICE_ACCOUNT) };
    ServiceAccount { metadata, ..ServiceAccount::default() }
}

/// The least that the operator works with: it reads through watches, and never deletes.
fn cluster_role() -> ClusterRole {
    let rule = |group: &str, resource: &str, verbs: &[&str]| PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(vec![resource.to_owned()]),
        verbs: verbs.iter().map(|&verb| verb.to_owned()).collect(),
        ..PolicyRule::default()
    };
    let rules = vec![
        rule("sample.foo.bar", "whitelists", &["list", "watch"]),
        rule("sample.foo.bar", "whitelists/status", &["patch"]),
        // An owner reference that blocks the owner's deletion needs this where the admission plugin
        // OwnerReferencesPermissionEnforcement is on.
        rule("sample.foo.bar", "whitelists/finalizers", &["update"]),
        rule("apps", "deployments", &["list", "watch", "create", "update"]),
        rule("events.k8s.io", "events", &["create", "patch"]),
    ];
    ClusterRole { metadata: named(ROLE), rules: Some(rules), ..ClusterRole::default() }
}

fn cluster_role_binding() -> ClusterRoleBinding {
    ClusterRoleBinding {
        metadata: named(ROLE),
        role_ref: RoleRef {
            api_group: Some("rbac.authorization.k8s.io".to_owned()),
            kind: "ClusterRole".to_owned(),
            name: ROLE.to_owned(),
        },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".to_owned(),
            name: SERVICE_ACCOUNT.to_owned(),
            namespace: Some(NAMESPACE.to_owned()),
            ..Subject::default()
        }]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_manifest_has_a_kind_and_a_name() {
        let told: Vec<String> = manifests()
            .expect("manifests")
            .iter()
            .map(|object| {
                let types = object.types.as_ref().expect("apiVersion and kind");
                format!(
                    "{} {} {}",
                    types.api_version,
                    types.kind,
                    object.metadata.name.as_deref().expect("a name")
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                "apiextensions.k8s.io/v1 CustomResourceDefinition whitelists.sample.foo.bar",
                "v1 Namespace whitelist-system",
                "v1 ServiceAccount whitelist",
                "rbac.authorization.k8s.io/v1 ClusterRole whitelist-operator",
                "rbac.authorization.k8s.io/v1 ClusterRoleBinding whitelist-operator",
            ]
        );
    }

    #[test]
    fn the_operator_may_not_delete_anything_nor_everything() {
        for rule in cluster_role().rules.expect("rules") {
            assert!(!rule.verbs.iter().any(|verb| verb == "delete" || verb == "*"), "{rule:?}");
            assert!(!rule.resources.expect("resources").iter().any(|resource| resource == "*"));
        }
    }

    /// WL-02, WL-15.
    #[test]
    fn wl_15_the_sample_is_a_whitelist_with_the_scaffolds_field() {
        let sample: WhiteList = serde_saphyr::from_str(SAMPLE).expect("the sample is a WhiteList");
        assert_eq!(sample.metadata.name.as_deref(), Some("whitelist-sample"));
        assert_eq!(sample.spec.foo.as_deref(), Some("bar"));
        assert!(!sample.spec.paused);
    }
}
