//! What a cluster needs before the operator runs, and the sample.

use kube::api::DynamicObject;
use kubewright::{Error, command::Installation};

use crate::operator;

/// The namespace that the operator lives in.
pub const NAMESPACE: &str = "whitelist-system";
/// The service account that the operator runs as.
pub const SERVICE_ACCOUNT: &str = "whitelist";
/// The sample as a user applies it.
pub const SAMPLE: &str = include_str!("../config/samples/sample_v1beta1_whitelist.yaml");

/// The CRD, the namespace, the service account and its rights, in the order in which they are to be applied. (`whitelist
/// manifests` prints these and the Deployment.)
///
/// # Errors
/// When one of them is no JSON object, which no input can bring about.
pub fn manifests() -> Result<Vec<DynamicObject>, Error> {
    let mut objects = operator().manifests(&Installation { crds_only: true, ..Installation::default() })?;
    objects.extend(operator().manifests(&Installation { rights_only: true, ..Installation::default() })?);
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WhiteList;

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
                "rbac.authorization.k8s.io/v1 Role whitelist-leader",
                "rbac.authorization.k8s.io/v1 RoleBinding whitelist-leader",
                "rbac.authorization.k8s.io/v1 ClusterRole whitelist-metrics-auth",
                "rbac.authorization.k8s.io/v1 ClusterRoleBinding whitelist-metrics-auth",
                "rbac.authorization.k8s.io/v1 ClusterRole whitelist-metrics-reader",
            ]
        );
    }

    /// It reads through watches (and gets what it wrote, when a watch cannot tell whether it is there), and never deletes.
    #[test]
    fn the_operator_may_do_what_it_does_and_nothing_else() {
        let told: Vec<String> =
            operator().rights().iter().map(|(resource, verbs)| format!("{resource} {verbs}")).collect();
        assert_eq!(
            told,
            [
                "apps/deployments create,get,list,patch,update,watch",
                "events.k8s.io/events create,patch",
                "sample.foo.bar/whitelists get,list,watch",
                "sample.foo.bar/whitelists/finalizers update",
                "sample.foo.bar/whitelists/status patch",
            ]
        );
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
