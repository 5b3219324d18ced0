//! The Jobs that a CronTab makes.

use std::collections::BTreeMap;

use jiff::{Timestamp, tz::TimeZone};
use k8s_openapi::{
    api::{
        batch::v1::{Job, JobSpec, JobTemplateSpec},
        core::v1::{PodSpec, PodTemplateSpec},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::ResourceExt;
use kubewright::{owner, strict};
use serde_json::Value;

use crate::CronTab;

/// The annotation of a Job: when it was to begin.
pub(crate) const SCHEDULED: &str = "alpha.ianlewis.org/scheduled-at";
/// The annotation of a Job that somebody asked for, as `kubectl create job --from` writes it.
const INSTANTIATED: (&str, &str) = ("cronjob.kubernetes.io/instantiate", "manual");

/// Which run a Job is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Run {
    /// That of a time of the schedule.
    At(Timestamp),
    /// One that was asked for, by this text.
    Asked(String),
}

/// The name of the Job of a run: the same whoever makes it, and whenever. A schedule in seconds (`@every 30s`) has more
/// than one in a minute.
pub(crate) fn name(crontab: &CronTab, run: &Run) -> String {
    let crontab_name = crontab.name_any();
    match run {
        Run::At(at) if crontab.spec.schedule.contains("@every") => {
            format!("{crontab_name}-{}", at.as_second())
        }
        Run::At(at) => format!("{crontab_name}-{}", at.as_second() / 60),
        Run::Asked(text) => {
            let hash = text
                .bytes()
                .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
            format!("{crontab_name}-r{hash:08x}")
        }
    }
}

/// The Job of a run; when it was to begin is written down as the clocks of `zone` show it.
///
/// # Errors
/// Why `spec.jobTemplate` is none, for people.
pub(crate) fn job(crontab: &CronTab, run: &Run, zone: &TimeZone) -> Result<Job, String> {
    let JobTemplateSpec { metadata, spec } = template(&crontab.spec.job_template)?;
    let of_template = metadata.unwrap_or_default();
    let name = name(crontab, run);
    let mut annotations: BTreeMap<String, String> = of_template.annotations.unwrap_or_default();
    match run {
        Run::At(at) => annotations.insert(SCHEDULED.to_owned(), shown(*at, zone)),
        Run::Asked(_) => annotations.insert(INSTANTIATED.0.to_owned(), INSTANTIATED.1.to_owned()),
    };
    let mut spec = spec.unwrap_or_default();
    // What somebody who looks for the pods of a run selects by.
    let of_pods = spec.template.metadata.get_or_insert_default();
    of_pods.labels.get_or_insert_default().insert("name".to_owned(), name.clone());
    Ok(Job {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: crontab.namespace(),
            labels: of_template.labels,
            annotations: Some(annotations),
            owner_references: Some(vec![owner::controller_reference(crontab)]),
            ..ObjectMeta::default()
        },
        spec: Some(spec),
        status: None,
    })
}

/// Either shape as a template of Jobs.
fn template(given: &Value) -> Result<JobTemplateSpec, String> {
    let wrong = |error: strict::Undecodable| format!("spec.jobTemplate: {error}");
    if given.get("containers").is_some() {
        let pod: PodSpec = strict::decode(given).map_err(wrong)?;
        let template = PodTemplateSpec { metadata: None, spec: Some(pod) };
        return Ok(JobTemplateSpec {
            metadata: None,
            spec: Some(JobSpec { template, ..JobSpec::default() }),
        });
    }
    let jobs: JobTemplateSpec = strict::decode(given).map_err(wrong)?;
    let of_jobs = jobs.spec.as_ref();
    if of_jobs.is_some_and(|spec| spec.selector.is_some() && spec.manual_selector != Some(true)) {
        return Err("spec.jobTemplate: spec.selector is the API server's to make: leave it out".to_owned());
    }
    Ok(jobs)
}

/// RFC 3339, as the clocks of `zone` show it.
fn shown(at: Timestamp, zone: &TimeZone) -> String {
    let offset = zone.to_offset(at);
    if offset.is_zero() { at.to_string() } else { at.display_with_offset(offset).to_string() }
}

/// How a Job ended, once it has: `Complete` or `Failed`.
pub(crate) fn ended(job: &Job) -> Option<&str> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let ended = conditions.iter().find(|condition| {
        matches!(condition.type_.as_str(), "Complete" | "Failed") && condition.status == "True"
    })?;
    Some(&ended.type_)
}

#[cfg(test)]
mod tests {
    use kubewright_schedule::zone;
    use serde_json::json;

    use super::*;

    fn crontab(template: &Value) -> CronTab {
        let spec = json!({"schedule": "@daily", "jobTemplate": template});
        let mut crontab = CronTab::new("backup", kubewright::object::from_value(spec).expect("a spec"));
        crontab.metadata.namespace = Some("default".to_owned());
        crontab.metadata.uid = Some("uid-1".to_owned());
        crontab
    }

    fn midnight() -> Run {
        Run::At("2026-01-01T00:00:00Z".parse().expect("a time"))
    }

    fn bare() -> Value {
        json!({"containers": [{"image": "mybackupscript:v9", "name": "backup"}], "restartPolicy": "Never"})
    }

    fn made(template: &Value) -> Result<Value, String> {
        job(&crontab(template), &midnight(), &TimeZone::UTC).map(|job| json!(job))
    }

    /// CT-09, CT-14, CT-16: the seed's pod in a Job of today, with no selector of its own.
    #[test]
    fn ct_09_ct_14_a_bare_pod_becomes_a_job_without_a_selector() {
        let job = made(&bare()).expect("a Job");
        assert_eq!(job["metadata"]["name"], "backup-29453760");
        assert_eq!(job["metadata"]["ownerReferences"][0]["name"], "backup");
        assert_eq!(job["metadata"]["annotations"][SCHEDULED], "2026-01-01T00:00:00Z");
        let template = json!({"metadata": {"labels": {"name": "backup-29453760"}}, "spec": bare()});
        assert_eq!(job["spec"], json!({"template": template}));
    }

    /// CT-16: decision 3.
    #[test]
    fn ct_16_both_shapes_make_the_same_job() {
        let jobs = json!({"spec": {"template": {"spec": bare()}}});
        assert_eq!(made(&jobs), made(&bare()));
        let more = json!({"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
            "spec": {"backoffLimit": 2, "template": {"metadata": {"labels": {"e": "f"}}, "spec": bare()}}});
        let job = made(&more).expect("a Job");
        assert_eq!(
            (&job["metadata"]["labels"], &job["spec"]["backoffLimit"]),
            (&json!({"a": "b"}), &json!(2))
        );
        assert_eq!(job["metadata"]["annotations"]["c"], "d");
        assert_eq!(
            job["spec"]["template"]["metadata"]["labels"],
            json!({"e": "f", "name": "backup-29453760"})
        );
    }

    #[test]
    fn what_is_no_template_is_told() {
        let told = |template: Value| made(&template).expect_err("it is none");
        let misspelt = json!({"containers": [{"name": "a", "imege": "b"}]});
        assert_eq!(told(misspelt), "spec.jobTemplate: unknown field \"containers[0].imege\"");
        assert!(told(json!({"containers": "none"})).starts_with("spec.jobTemplate: invalid type"));
        let selector =
            json!({"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"spec": bare()}}});
        assert!(told(selector).contains("spec.selector is the API server's to make"));
    }

    /// Beyond 5.
    #[test]
    fn a_name_says_the_run_and_fits_a_label() {
        let mut long = crontab(&bare());
        long.metadata.name = Some("a".repeat(52));
        let asked = Run::Asked("now".to_owned());
        for schedule in ["@daily", "@every 30s"] {
            long.spec.schedule = schedule.to_owned();
            for run in [midnight(), asked.clone(), Run::At("2286-11-20T17:46:39Z".parse().expect("a time"))] {
                assert!(name(&long, &run).len() <= 63, "{}", name(&long, &run));
            }
        }
        assert!(name(&crontab(&bare()), &asked).starts_with("backup-r"));
        assert_ne!(name(&long, &asked), name(&long, &Run::Asked("again".to_owned())));
    }

    #[test]
    fn the_time_is_written_as_its_zone_has_it() {
        let of = |name| shown("2026-01-01T00:00:00Z".parse().expect("a time"), &zone(name).expect("a zone"));
        assert_eq!(of("Asia/Kolkata"), "2026-01-01T05:30:00+05:30");
        assert_eq!(of("America/New_York"), "2025-12-31T19:00:00-05:00");
        assert_eq!(of("Europe/London"), "2026-01-01T00:00:00Z");
    }
}
