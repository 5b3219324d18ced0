//! What a cluster needs before the operator runs, and the sample.

use kube::api::DynamicObject;
use kubewright::{Error, command::Installation};

use crate::operator;

/// The namespace that the operator lives in.
pub const NAMESPACE: &str = "crontab-system";
/// The service account that the operator runs as.
pub const SERVICE_ACCOUNT: &str = "crontab";
/// The sample as a user applies it.
pub const SAMPLE: &str = include_str!("../config/samples/alpha_v1_crontab.yaml");

/// The CRD, the namespace, the service account and its rights, in the order in which they are to be applied. (`crontab
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
    use crate::CronTab;

    #[test]
    fn the_first_manifest_is_the_crd() {
        let all = manifests().expect("manifests");
        assert_eq!(all[0].metadata.name.as_deref(), Some("crontabs.alpha.ianlewis.org"));
        assert_eq!(all.len(), 10);
    }

    /// SC-05: what it needs, and no more: to list and watch CronTabs, to make Jobs and to delete those.
    #[test]
    fn sc_05_the_operator_may_do_what_it_does_and_nothing_else() {
        let told: Vec<String> =
            operator().rights().iter().map(|(resource, verbs)| format!("{resource} {verbs}")).collect();
        assert_eq!(
            told,
            [
                "alpha.ianlewis.org/crontabs get,list,watch",
                "alpha.ianlewis.org/crontabs/finalizers update",
                "alpha.ianlewis.org/crontabs/status patch",
                "batch/jobs create,delete,get,list,watch",
                "events.k8s.io/events create,patch",
            ]
        );
    }

    /// CT-01: the seed's own manifest.
    #[test]
    fn ct_01_the_sample_is_a_crontab() {
        let sample: CronTab = serde_saphyr::from_str(SAMPLE).expect("the sample is a CronTab");
        assert_eq!(
            (sample.metadata.name.as_deref(), sample.spec.schedule.as_str()),
            (Some("backup"), "@daily")
        );
        assert_eq!(sample.spec.job_template["restartPolicy"], "Never");
    }
}
