//! The pods that a Job makes.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{
    Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod, PodTemplateSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright_runtime::{finalizer, owner};

use super::pods::{FAILURES, IGNORED_FAILURES, INDEX, TRACKING, failures, ignored_failures};
use super::policies::ruling;

/// The environment variable by which a container knows its index.
const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";
/// How long a generated name is before its random letters (`MaxGeneratedNameLength` in
/// `k8s.io/apiserver/pkg/storage/names`).
const LONGEST_PREFIX: usize = 58;

/// A pod of a Job without indexes. It has no name: the API server makes one from `generateName`.
pub(super) fn pod(job: &Job) -> Pod {
    let template = job.spec.as_ref().map(|spec| spec.template.clone()).unwrap_or_default();
    let PodTemplateSpec { metadata, spec } = template;
    let of_template = metadata.unwrap_or_default();
    let metadata = ObjectMeta {
        generate_name: Some(format!("{}-", name(job))),
        namespace: job.metadata.namespace.clone(),
        labels: of_template.labels,
        annotations: of_template.annotations,
        finalizers: of_template.finalizers,
        owner_references: Some(vec![owner::controller_reference(job)]),
        ..ObjectMeta::default()
    };
    let mut pod = Pod { metadata, spec, status: None };
    finalizer::add(&mut pod, TRACKING);
    pod
}

/// The pod of an index.
pub(super) fn indexed(job: &Job, index: u32) -> Pod {
    let mut pod = pod(job);
    let text = index.to_string();
    pod.metadata.generate_name = Some(prefix(name(job), &text));
    pod.metadata.annotations.get_or_insert_default().insert(INDEX.to_owned(), text.clone());
    pod.metadata.labels.get_or_insert_default().insert(INDEX.to_owned(), text);
    if let Some(spec) = &mut pod.spec {
        spec.hostname = Some(format!("{}-{index}", name(job)));
        spec.init_containers
            .iter_mut()
            .flatten()
            .chain(&mut spec.containers)
            .for_each(add_completion_index_env);
    }
    pod
}

/// The pod of an index with a limit of its own: it carries how many failed before, `replaced` last among them.
pub(super) fn replacement(job: &Job, index: u32, replaced: Option<&Pod>) -> Pod {
    let mut pod = indexed(job, index);
    let (mut failed, mut ignored) = replaced.map_or((0, 0), |last| (failures(last), ignored_failures(last)));
    match replaced.map(|last| ruling(job, last).counts()) {
        Some(true) => failed = failed.saturating_add(1),
        Some(false) => ignored = ignored.saturating_add(1),
        None => {}
    }
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(FAILURES.to_owned(), failed.to_string());
    if ignored > 0 {
        annotations.insert(IGNORED_FAILURES.to_owned(), ignored.to_string());
    }
    pod
}

fn name(job: &Job) -> &str {
    job.metadata.name.as_deref().unwrap_or_default()
}

/// The Job's name, cut where it must be, with the index.
fn prefix(name: &str, index: &str) -> String {
    let kept = LONGEST_PREFIX.saturating_sub(index.len() + 2).min(name.len());
    // Names of objects are ASCII.
    format!("{}-{index}-", name.get(..kept).unwrap_or(name))
}

fn add_completion_index_env(container: &mut Container) {
    let variables = container.env.get_or_insert_default();
    if variables.iter().any(|variable| variable.name == INDEX_VARIABLE) {
        return;
    }
    let label = ObjectFieldSelector {
        field_path: format!("metadata.labels['{INDEX}']"),
        ..ObjectFieldSelector::default()
    };
    variables.push(EnvVar {
        name: INDEX_VARIABLE.to_owned(),
        value_from: Some(EnvVarSource { field_ref: Some(label), ..EnvVarSource::default() }),
        ..EnvVar::default()
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{indexed_pod, job};
    use super::*;

    fn annotation<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
        pod.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }

    #[test]
    fn a_new_pod_is_tracked_and_belongs_to_the_job() {
        let pod = pod(&job(json!({})));
        assert_eq!(pod.metadata.generate_name.as_deref(), Some("work-"));
        assert_eq!(pod.metadata.finalizers, Some(vec![TRACKING.to_owned()]));
        let owners = pod.metadata.owner_references.expect("an owner");
        assert_eq!(
            (owners[0].kind.as_str(), owners[0].name.as_str(), owners[0].controller),
            ("Job", "work", Some(true))
        );
    }

    #[test]
    fn a_pod_of_an_index_knows_it() {
        let pod = indexed(&job(json!({})), 7);
        assert_eq!(pod.metadata.generate_name.as_deref(), Some("work-7-"));
        assert_eq!(annotation(&pod, INDEX), Some("7"));
        assert_eq!(
            pod.metadata.labels.as_ref().and_then(|labels| labels.get(INDEX)).map(String::as_str),
            Some("7")
        );
        let spec = pod.spec.expect("a spec");
        assert_eq!(spec.hostname.as_deref(), Some("work-7"));
        let variable = &spec.containers[0].env.as_ref().expect("variables")[0];
        let path = variable
            .value_from
            .as_ref()
            .and_then(|from| from.field_ref.as_ref())
            .map(|field| &field.field_path);
        assert_eq!(
            path.map(String::as_str),
            Some("metadata.labels['batch.kubernetes.io/job-completion-index']")
        );
    }

    #[test]
    fn a_long_name_leaves_room_for_the_index() {
        let long = "a".repeat(63);
        assert_eq!(prefix(&long, "12").len(), LONGEST_PREFIX);
        assert!(prefix(&long, "12").ends_with("a-12-"));
    }

    #[test]
    fn a_replacement_counts_the_failures_of_its_index() {
        let job = job(json!({"backoffLimitPerIndex": 3}));
        assert_eq!(annotation(&replacement(&job, 1, None), FAILURES), Some("0"));
        let mut failed = indexed_pod("p", 1, "Failed");
        failed.metadata.annotations.get_or_insert_default().insert(FAILURES.into(), "2".into());
        let next = replacement(&job, 1, Some(&failed));
        assert_eq!((annotation(&next, FAILURES), annotation(&next, IGNORED_FAILURES)), (Some("3"), None));
    }
}
