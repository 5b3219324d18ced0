//! The sample. What installs the operator is [`operator`](crate::operator)'s to say; here it is held to what is promised.

/// The sample as a user applies it.
pub const SAMPLE: &str = include_str!("../config/samples/app_v1alpha1_appservice.yaml");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AppService, operator};

    #[test]
    fn the_operator_may_do_what_it_does_and_nothing_else() {
        let listed: Vec<String> =
            operator().rights().iter().map(|(resource, verbs)| format!("{resource} {verbs}")).collect();
        assert_eq!(
            listed,
            [
                "pods create,delete,get,list,watch",
                "pods/exec create,get",
                "app.example.com/appservices get,list,watch",
                "app.example.com/appservices/finalizers update",
                "app.example.com/appservices/status patch",
                "events.k8s.io/events create,patch",
            ]
        );
    }

    /// AS-08: the scaffold's sample has a size, so the schema has one.
    #[test]
    fn as_08_the_sample_asks_for_three() {
        let sample: AppService = serde_saphyr::from_str(SAMPLE).expect("the sample is an AppService");
        assert_eq!((sample.metadata.name.as_deref(), sample.spec.size), (Some("example-appservice"), 3));
    }

    /// `kubectl get app`.
    #[test]
    fn its_kinds_are_listed_by_their_category() {
        let operator = operator();
        assert!(!operator.definitions().is_empty());
        for definition in operator.definitions() {
            assert_eq!(definition.spec.names.categories, Some(vec!["app".to_owned()]));
        }
    }
}
