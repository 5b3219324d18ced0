//! The sample. What installs the operator is [`operator`](crate::operator)'s to say; here it is held to what is promised.

/// The sample as a user applies it.
pub const SAMPLE: &str = include_str!("../config/samples/cnat_v1alpha1_at.yaml");

#[cfg(test)]
mod tests {
    use kubewright::command::Installation;

    use super::*;
    use crate::{At, operator};

    #[test]
    fn what_is_there_before_it_runs_has_a_kind_and_a_name() {
        let listed: Vec<String> = operator()
            .prerequisites(&Installation::default())
            .expect("manifests")
            .iter()
            .map(|object| {
                let types = object.types.as_ref().expect("apiVersion and kind");
                format!("{} {}", types.kind, object.metadata.name.as_deref().expect("a name"))
            })
            .collect();
        assert_eq!(
            listed,
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
                "Service at-metrics",
            ]
        );
    }

    /// AT-12: the status, never the spec. AT-13: what it needs of pods; besides what the write-up has, it lets them go
    /// (patch), stops a crash loop (delete) and reads the end of their log.
    #[test]
    fn at_12_at_13_the_operator_may_do_what_it_does_and_nothing_else() {
        let listed: Vec<String> =
            operator().rights().iter().map(|(resource, verbs)| format!("{resource} {verbs}")).collect();
        assert_eq!(
            listed,
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
        assert_eq!(sample.spec.0.command, "echo YAY");
    }

    /// `kubectl get cnat`.
    #[test]
    fn its_kinds_are_listed_by_their_category() {
        let operator = operator();
        assert!(!operator.definitions().is_empty());
        for definition in operator.definitions() {
            assert_eq!(definition.spec.names.categories, Some(vec!["cnat".to_owned()]));
        }
    }
}
