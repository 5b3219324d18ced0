//! The Jobs that a CronJob makes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec, Job};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright_objects::optional;
use kubewright_runtime::owner;

/// The annotation of a Job: when it was to begin.
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// The name of the Job of the run `at`: there is one in a minute, so that none is made twice.
pub(super) fn job_name(cron: &CronJob, at: Timestamp) -> String {
    format!("{}-{}", cron.metadata.name.as_deref().unwrap_or_default(), at.as_second() / 60)
}

/// The Job of the run `at`, which is written down as the clocks of `zone` show it.
pub(super) fn job(cron: &CronJob, at: Timestamp, zone: &TimeZone) -> Job {
    let template =
        optional::<CronJobSpec>(&cron.spec).map(|spec| spec.job_template.clone()).unwrap_or_default();
    let of_template = template.metadata.unwrap_or_default();
    let mut annotations: BTreeMap<_, _> = of_template.annotations.unwrap_or_default();
    annotations.insert(SCHEDULED.to_owned(), rfc3339(at, zone));
    Job {
        metadata: ObjectMeta {
            name: Some(job_name(cron, at)),
            namespace: cron.metadata.namespace.clone(),
            labels: of_template.labels,
            annotations: Some(annotations),
            owner_references: Some(vec![owner::controller_reference(cron)]),
            ..ObjectMeta::default()
        },
        spec: template.spec,
        status: None,
    }
}

fn rfc3339(at: Timestamp, zone: &TimeZone) -> String {
    let offset = zone.to_offset(at);
    let text = at.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S").to_string();
    let minutes = offset.seconds() / 60;
    if minutes == 0 {
        return format!("{text}Z");
    }
    let sign = if minutes < 0 { '-' } else { '+' };
    format!("{text}{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
}

#[cfg(test)]
mod tests {
    use kubewright_schedule::zone;
    use kubewright_world::SIMULATION_START as START;
    use serde_json::json;

    use super::super::tests::cron_job;
    use super::*;

    #[test]
    fn a_job_carries_the_template_and_when_it_was_to_begin() {
        let cron = cron_job(json!({"jobTemplate": {
            "metadata": {"labels": {"made-by": "tick"}, "annotations": {"note": "kept"}},
            "spec": {"parallelism": 2, "template": {}}}}));
        let job = job(&cron, START, &TimeZone::UTC);
        assert_eq!(job.metadata.name.as_deref(), Some("tick-29453760"));
        assert_eq!(job.metadata.labels, Some(BTreeMap::from([("made-by".into(), "tick".into())])));
        let annotations = job.metadata.annotations.expect("annotations");
        assert_eq!(
            (annotations["note"].as_str(), annotations[SCHEDULED].as_str()),
            ("kept", "2026-01-01T00:00:00Z")
        );
        assert_eq!(job.spec.and_then(|spec| spec.parallelism), Some(2));
    }

    #[test]
    fn the_time_is_written_as_its_zone_has_it() {
        let text = |name| rfc3339(START, &zone(name).expect("a zone"));
        assert_eq!(text("Asia/Kolkata"), "2026-01-01T05:30:00+05:30");
        assert_eq!(text("America/New_York"), "2025-12-31T19:00:00-05:00");
        assert_eq!(text("Europe/London"), "2026-01-01T00:00:00Z");
    }
}
