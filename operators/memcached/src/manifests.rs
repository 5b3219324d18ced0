//! The sample. What installs the operator is [`operator`](crate::operator)'s to say; here it is held to what is promised.

/// The sample as a user applies it.
pub const SAMPLE: &str = include_str!("../config/samples/cache_v1alpha1_memcached.yaml");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Memcached, operator};

    #[test]
    fn the_operator_may_do_what_it_does_and_nothing_else() {
        let listed: Vec<String> =
            operator().rights().iter().map(|(resource, verbs)| format!("{resource} {verbs}")).collect();
        assert_eq!(
            listed,
            [
                "pods list,watch",
                "services create,delete,get,list,patch,watch",
                "apps/deployments create,delete,get,list,patch,watch",
                "cache.example.com/memcacheds get,list,watch",
                "cache.example.com/memcacheds/finalizers update",
                "cache.example.com/memcacheds/status patch",
                "events.k8s.io/events create,patch",
                "policy/poddisruptionbudgets create,delete,get,list,patch,watch",
            ]
        );
    }

    #[test]
    fn mc_01_the_sample_asks_for_three() {
        let sample: Memcached = serde_saphyr::from_str(SAMPLE).expect("the sample is a Memcached");
        assert_eq!((sample.metadata.name.as_deref(), sample.spec.size), (Some("example-memcached"), 3));
    }

    /// `kubectl get cache`.
    #[test]
    fn its_kinds_are_listed_by_their_category() {
        let operator = operator();
        assert!(!operator.definitions().is_empty());
        for definition in operator.definitions() {
            assert_eq!(definition.spec.names.categories, Some(vec!["cache".to_owned()]));
        }
    }
}
