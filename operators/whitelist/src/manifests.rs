//! The sample. What installs the operator is [`operator`](crate::operator)'s to say; here it is held to what is promised.

/// The sample as a user applies it.
pub const SAMPLE: &str = include_str!("../config/samples/sample_v1beta1_whitelist.yaml");

#[cfg(test)]
mod tests {
    use kubewright::command::Installation;

    use super::*;
    use crate::{WhiteList, operator};

    #[test]
    fn what_is_there_before_it_runs_has_a_kind_and_a_name() {
        let listed: Vec<String> = operator()
            .prerequisites(&Installation::default())
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
            listed,
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
                "v1 Service whitelist-metrics",
            ]
        );
    }

    /// It reads through watches (and gets what it wrote, when a watch cannot tell whether it is there), and never deletes.
    #[test]
    fn the_operator_may_do_what_it_does_and_nothing_else() {
        let listed: Vec<String> =
            operator().rights().iter().map(|(resource, verbs)| format!("{resource} {verbs}")).collect();
        assert_eq!(
            listed,
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

    /// `kubectl get sample`.
    #[test]
    fn its_kinds_are_listed_by_their_category() {
        let operator = operator();
        assert!(!operator.definitions().is_empty());
        for definition in operator.definitions() {
            assert_eq!(definition.spec.names.categories, Some(vec!["sample".to_owned()]));
        }
    }
}
