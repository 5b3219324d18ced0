//! The sample. What installs the operator is [`operator`](crate::operator)'s to say; here it is held to what is promised.

/// The sample as a user applies it.
pub const SAMPLE: &str = include_str!("../config/samples/police_v1beta1_whitelist.yaml");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{WhiteList, operator};

    /// What it judges it may delete, and scale where that is possible; of Secrets it sees its own alone.
    #[test]
    fn the_operator_may_do_what_it_does_and_nothing_else() {
        let listed: Vec<String> =
            operator().rights().iter().map(|(resource, verbs)| format!("{resource} {verbs}")).collect();
        assert_eq!(
            listed,
            [
                "namespaces list,watch",
                "pods delete,get,list,watch",
                "replicationcontrollers delete,get,list,patch,watch",
                "admissionregistration.k8s.io/validatingadmissionpolicies create,delete,get,list,patch,watch",
                "admissionregistration.k8s.io/validatingadmissionpolicybindings create,delete,get,list,patch,watch",
                "apps/daemonsets delete,get,list,watch",
                "apps/deployments delete,get,list,patch,watch",
                "apps/replicasets delete,get,list,patch,watch",
                "apps/statefulsets delete,get,list,patch,watch",
                "batch/cronjobs delete,get,list,patch,watch",
                "batch/jobs delete,get,list,patch,watch",
                "events.k8s.io/events create,patch",
                "police.foo.bar/clusterwhitelists get,list,watch",
                "police.foo.bar/clusterwhitelists/status patch",
                "police.foo.bar/whitelists get,list,watch",
                "police.foo.bar/whitelists/status patch",
            ]
        );
    }

    #[test]
    fn ip_03_the_sample_is_the_write_ups() {
        let sample: WhiteList = serde_saphyr::from_str(SAMPLE).expect("the sample is a WhiteList");
        let listed: Vec<_> =
            sample.spec.images.iter().map(|one| (one.name.as_str(), one.tags.join(","))).collect();
        assert_eq!(listed, [("nginx", "latest,1.14.2".to_owned()), ("gcr.io/busybox", "latest".to_owned())]);
    }

    /// `kubectl get police`.
    #[test]
    fn its_kinds_are_listed_by_their_category() {
        let operator = operator();
        assert!(!operator.definitions().is_empty());
        for definition in operator.definitions() {
            assert_eq!(definition.spec.names.categories, Some(vec!["police".to_owned()]));
        }
    }
}
