//! The sample. What installs the operator is [`operator`](crate::operator)'s to say; here it is held to what is promised.

/// The sample as a user applies it.
pub const SAMPLE: &str = include_str!("../config/samples/alpha_v1_crontab.yaml");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CronTab, operator};

    /// SC-05: what it needs, and no more: to list and watch CronTabs, to make Jobs and to delete those.
    #[test]
    fn sc_05_the_operator_may_do_what_it_does_and_nothing_else() {
        let listed: Vec<String> =
            operator().rights().iter().map(|(resource, verbs)| format!("{resource} {verbs}")).collect();
        assert_eq!(
            listed,
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

    /// `kubectl get cron`.
    #[test]
    fn its_kinds_are_listed_by_their_category() {
        let operator = operator();
        assert!(!operator.definitions().is_empty());
        for definition in operator.definitions() {
            assert_eq!(definition.spec.names.categories, Some(vec!["cron".to_owned()]));
        }
    }
}
