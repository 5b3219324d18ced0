//! What a cluster needs before the operator runs, and the sample.

use kube::api::DynamicObject;
use kubewright::{Error, command::Installation};

use crate::operator;

/// The namespace that the operator lives in.
pub const NAMESPACE: &str = "app-service-system";
/// The service account that the operator runs as.
pub const SERVICE_ACCOUNT: &str = "app-service";
/// The sample as a user applies it.
pub const SAMPLE: &str = include_str!("../config/samples/app_v1alpha1_appservice.yaml");

/// What is there before it runs, in the order in which it is to be applied.
///
/// # Errors
/// When one of them is no JSON object, which no input can bring about.
pub fn manifests() -> Result<Vec<DynamicObject>, Error> {
    operator().prerequisites(&Installation::default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AppService;

    #[test]
    fn the_operator_may_do_what_it_does_and_nothing_else() {
        let told: Vec<String> =
            operator().rights().iter().map(|(resource, verbs)| format!("{resource} {verbs}")).collect();
        assert_eq!(
            told,
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
}
