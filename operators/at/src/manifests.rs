//! What a cluster needs before the operator runs, and the sample.

use kube::api::DynamicObject;
use kubewright::{Error, command::Installation};

use crate::{operator, policy};

/// The namespace that the operator lives in.
pub const NAMESPACE: &str = "at-system";
/// The service account that the operator runs as.
pub const SERVICE_ACCOUNT: &str = "at";
/// The sample as a user applies it.
pub const SAMPLE: &str = include_str!("../config/samples/cnat_v1alpha1_at.yaml");

/// The CRDs, the namespace, the service account and its rights, and the policy, in the order in which they are to be
/// applied. (`at manifests` prints these and the Deployment.)
///
/// # Errors
/// When one of them is no JSON object, which no input can bring about.
pub fn manifests() -> Result<Vec<DynamicObject>, Error> {
    let mut objects = operator().manifests(&Installation { crds_only: true, ..Installation::default() })?;
    objects.extend(operator().manifests(&Installation { rights_only: true, ..Installation::default() })?);
    for object in policy::objects() {
        objects.push(serde_json::from_value(object)?);
    }
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::At;

    #[test]
    fn every_manifest_has_a_kind_and_a_name() {
        let told: Vec<String> = manifests()
            .expect("manifests")
            .iter()
            .map(|object| {
                let types = object.types.as_ref().expect("apiVersion and kind");
                format!("{} {}", types.kind, object.metadata.name.as_deref().expect("a name"))
            })
            .collect();
        assert_eq!(
            told,
            [
                "CustomResourceDefinition ats.cnat.study.jayground8",
                "CustomResourceDefinition ats.cnat.programming-kubernetes.info",
                "Namespace at-system",
                "ServiceAccount at",
                "ClusterRole at-operator",
                "ClusterRoleBinding at-operator",
                "Role at-leader",
                "RoleBinding at-leader",
                "ClusterRole at-metrics-auth",
                "ClusterRoleBinding at-metrics-auth",
                "ClusterRole at-metrics-reader",
                "ValidatingAdmissionPolicy ats.cnat",
                "ValidatingAdmissionPolicyBinding ats.cnat",
            ]
        );
    }

    /// AT-12: the status, never the spec. AT-13: what it needs of pods; besides what the write-up has, it lets them go
    /// (patch), stops a crash loop (delete) and reads the end of their log.
    #[test]
    fn at_12_at_13_the_operator_may_do_what_it_does_and_nothing_else() {
        let told: Vec<String> =
            operator().rights().iter().map(|(resource, verbs)| format!("{resource} {verbs}")).collect();
        assert_eq!(
            told,
            [
                "pods create,delete,get,list,patch,watch",
                "pods/log get",
                "cnat.programming-kubernetes.info/ats delete,get,list,watch",
                "cnat.programming-kubernetes.info/ats/finalizers update",
                "cnat.programming-kubernetes.info/ats/status patch",
                "cnat.study.jayground8/ats delete,get,list,watch",
                "cnat.study.jayground8/ats/finalizers update",
                "cnat.study.jayground8/ats/status patch",
                "events.k8s.io/events create,patch",
            ]
        );
    }

    #[test]
    fn the_sample_is_an_at() {
        let sample: At = serde_saphyr::from_str(SAMPLE).expect("the sample is an At");
        assert_eq!(sample.metadata.name.as_deref(), Some("example-at"));
        assert_eq!(sample.spec.command, "echo YAY");
    }
}
