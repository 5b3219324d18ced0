//! The pod that runs an At's command.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Container, Pod, PodSpec, PodTemplateSpec},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::ResourceExt;
use kubewright::{Key, owner};
use serde_json::Value;

use crate::{
    AtKind, AtSpec,
    due::{NoTime, due},
    words::words,
};

/// Holds the operator's pods, so that the operator can watch those alone.
pub(crate) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "kubewright-at");
/// Keeps a pod until what became of its command is written down: a pod that is not there was never made.
pub(crate) const FINALIZER: &str = "kubewright.dev/at";
/// The container and the image that an At has when it names none.
const BUSYBOX: &str = "busybox";

/// What of a spec the schema takes and that makes no sense nevertheless.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Senseless {
    /// A word for programs.
    pub reason: &'static str,
    /// The same for people.
    pub message: String,
}

impl Senseless {
    fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// The key of the pod of the At with this key.
#[must_use]
pub fn pod_key(at: &Key) -> Key {
    at.sibling(format!("{}-pod", at.name))
}

/// When an At is due, and the pod that it then gets.
///
/// # Errors
/// [`Senseless`].
pub(crate) fn order<K: AtKind>(at: &K) -> Result<(Timestamp, Pod), Senseless> {
    let spec = at.asked();
    let time = due(&spec.schedule, spec.time_zone.as_deref()).map_err(|error| {
        let reason = match error {
            NoTime::Unreadable(_) => "InvalidSchedule",
            NoTime::UnknownZone(_) => "UnknownTimeZone",
        };
        Senseless::new(reason, format!("spec.schedule: {error}"))
    })?;
    Ok((time, pod(at)?))
}

/// The pod of an At, controlled by it.
fn pod<K: AtKind>(at: &K) -> Result<Pod, Senseless> {
    let template = template(at.asked())?;
    let of_template = template.metadata.unwrap_or_default();
    let name = at.name_any();
    if name.len() > 63 {
        let message = "metadata.name: the pod carries it as a label, which takes at most 63 characters";
        return Err(Senseless::new("NameTooLong", message));
    }
    let mut labels: BTreeMap<String, String> = of_template.labels.unwrap_or_default();
    labels.insert("app".to_owned(), name);
    labels.insert(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned());
    let key = pod_key(&Key::of(at));
    let mut finalizers = of_template.finalizers.unwrap_or_default();
    finalizers.push(FINALIZER.to_owned());
    Ok(Pod {
        metadata: ObjectMeta {
            name: Some(key.name),
            namespace: key.namespace,
            labels: Some(labels),
            annotations: of_template.annotations,
            finalizers: Some(finalizers),
            owner_references: Some(vec![owner::controller_reference(at)]),
            ..ObjectMeta::default()
        },
        spec: Some(pod_spec(at.asked(), template.spec.unwrap_or_default())?),
        status: None,
    })
}

/// `spec.template` as what it is.
fn template(spec: &AtSpec) -> Result<PodTemplateSpec, Senseless> {
    let Some(given) = &spec.template else { return Ok(PodTemplateSpec::default()) };
    let wrong = |why: String| Senseless::new("InvalidTemplate", format!("spec.template: {why}"));
    // A pod needs containers; an At's template does not.
    let mut given = given.clone();
    if let Some(spec) = given.get_mut("spec").and_then(Value::as_object_mut) {
        spec.entry("containers").or_insert_with(|| Value::Array(Vec::new()));
    }
    kubewright::strict::decode(&given).map_err(|error| wrong(error.to_string()))
}

fn pod_spec(spec: &AtSpec, mut pod: PodSpec) -> Result<PodSpec, Senseless> {
    let restart = if spec.backoff_limit.unwrap_or_default() > 0 { "OnFailure" } else { "Never" };
    pod.restart_policy = Some(restart.to_owned());
    if let Some(seconds) = spec.active_deadline_seconds {
        pod.active_deadline_seconds = Some(seconds);
    }
    if let Some(account) = &spec.service_account_name {
        pod.service_account_name = Some(account.clone());
    }
    if pod.containers.is_empty() {
        pod.containers.push(Container { name: BUSYBOX.to_owned(), ..Container::default() });
    }
    let container = &mut pod.containers[0];
    if let Some(image) = &spec.image {
        container.image = Some(image.clone());
    }
    container.image.get_or_insert_with(|| BUSYBOX.to_owned());
    if let Some(resources) = &spec.resources {
        container.resources = Some(resources.clone());
    }
    let command = command(spec)?;
    if command.is_empty() {
        if !spec.args.is_empty() {
            container.args = Some(spec.args.clone());
        }
    } else {
        container.command = Some(command);
        container.args = (!spec.args.is_empty()).then(|| spec.args.clone());
    }
    let runs = |container: &Container| container.command.is_some() || container.args.is_some();
    if !runs(container) && container.image.as_deref() == Some(BUSYBOX) {
        return Err(Senseless::new(
            "InvalidCommand",
            "spec.command: it is empty, and busybox alone does nothing",
        ));
    }
    Ok(pod)
}

/// The words of the command; none where the image's own is to run.
fn command(spec: &AtSpec) -> Result<Vec<String>, Senseless> {
    if spec.shell && !spec.command.trim().is_empty() {
        // What follows the script is its $0, then its arguments.
        return Ok(["sh", "-c", &spec.command, "sh"].map(str::to_owned).into());
    }
    words(&spec.command).map_err(|why| Senseless::new("InvalidCommand", format!("spec.command: {why}")))
}

/// The name of the container that the command runs in.
pub(crate) fn container_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.containers.first().map(|container| container.name.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{At, BookAt, BookAtSpec};

    fn at(more: Value) -> At {
        let mut spec = json!({"schedule": "2026-01-01T00:00:00Z", "command": "echo YAY"});
        let Value::Object(more) = more else { panic!("members of a spec") };
        spec.as_object_mut().expect("members").extend(more);
        let mut at = At::new("example-at", kubewright::object::from_value(spec).expect("a spec"));
        at.metadata.namespace = Some("default".to_owned());
        at.metadata.uid = Some("uid-1".to_owned());
        at
    }

    fn of(more: Value) -> Value {
        json!(order(&at(more)).expect("it makes sense").1)
    }

    fn refused(more: Value) -> (&'static str, String) {
        let error = order(&at(more)).expect_err("it makes none");
        (error.reason, error.message)
    }

    /// AT-06: the child as the write-up has it, but for the restarts that never end (AT-21).
    #[test]
    fn at_06_the_pod_is_called_like_the_at_and_controlled_by_it() {
        let pod = of(json!({}));
        assert_eq!(pod["metadata"]["name"], "example-at-pod");
        assert_eq!(pod["metadata"]["labels"]["app"], "example-at");
        assert_eq!(pod["metadata"]["ownerReferences"][0]["uid"], "uid-1");
        assert_eq!(
            pod["spec"],
            json!({"restartPolicy": "Never",
                "containers": [{"name": "busybox", "image": "busybox", "command": ["echo", "YAY"]}]})
        );
    }

    /// AT-21.
    #[test]
    fn at_21_a_command_is_started_again_only_where_that_is_asked_for() {
        assert_eq!(of(json!({"backoffLimit": 0}))["spec"]["restartPolicy"], "Never");
        assert_eq!(of(json!({"backoffLimit": 3}))["spec"]["restartPolicy"], "OnFailure");
        assert_eq!(of(json!({"activeDeadlineSeconds": 30}))["spec"]["activeDeadlineSeconds"], 30);
    }

    /// AT-20, Beyond 5.
    #[test]
    fn at_20_words_arguments_and_scripts() {
        let container = |more| of(more)["spec"]["containers"][0].clone();
        let quoted = container(json!({"command": "sh -c 'echo  A B'", "args": ["C  D"]}));
        assert_eq!(
            (&quoted["command"], &quoted["args"]),
            (&json!(["sh", "-c", "echo  A B"]), &json!(["C  D"]))
        );
        let script = container(json!({"command": "echo \"$1\" | wc -c", "shell": true, "args": ["x y"]}));
        assert_eq!(script["command"], json!(["sh", "-c", "echo \"$1\" | wc -c", "sh"]));
        let own = container(json!({"command": "", "image": "job:v1", "args": ["-v"]}));
        assert_eq!(own, json!({"name": "busybox", "image": "job:v1", "args": ["-v"]}));
    }

    /// Beyond 5.
    #[test]
    fn a_template_gives_what_there_is_besides() {
        let pod = of(json!({
            "serviceAccountName": "runner",
            "resources": {"limits": {"cpu": "1"}},
            "template": {
                "metadata": {"labels": {"team": "a", "app": "other"}, "annotations": {"note": "b"}},
                "spec": {"nodeSelector": {"disk": "ssd"}, "restartPolicy": "Always",
                    "containers": [{"name": "main", "image": "tools"}, {"name": "side", "image": "side"}]}}}));
        assert_eq!(pod["metadata"]["labels"]["team"], "a");
        assert_eq!(pod["metadata"]["labels"]["app"], "example-at");
        assert_eq!(pod["metadata"]["annotations"], json!({"note": "b"}));
        assert_eq!(
            pod["spec"],
            json!({"nodeSelector": {"disk": "ssd"}, "restartPolicy": "Never", "serviceAccountName": "runner", "containers": [
                {"name": "main", "image": "tools", "command": ["echo", "YAY"], "resources": {"limits": {"cpu": "1"}}},
                {"name": "side", "image": "side"}]})
        );
        assert_eq!(of(json!({"template": {"spec": {"hostNetwork": true}}}))["spec"]["hostNetwork"], true);
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        let unclosed = refused(json!({"command": "echo 'a"}));
        assert_eq!(unclosed, ("InvalidCommand", "spec.command: a single quote is not closed".to_owned()));
        assert_eq!(refused(json!({"command": " "})).0, "InvalidCommand");
        assert_eq!(refused(json!({"schedule": "2023-19-39T29:59:59Z"})).0, "InvalidSchedule");
        let zone = json!({"schedule": "2026-01-01T00:00:00", "timeZone": "Mars/Base"});
        assert_eq!(refused(zone).0, "UnknownTimeZone");
        assert_eq!(
            refused(json!({"template": {"spec": {"nodeSelectr": {}}}})),
            ("InvalidTemplate", "spec.template: unknown field \"spec.nodeSelectr\"".to_owned())
        );
        let mut long = at(json!({}));
        long.metadata.name = Some("a".repeat(64));
        assert_eq!(order(&long).expect_err("too long").reason, "NameTooLong");
    }

    /// AT-24.
    #[test]
    fn at_24_the_books_at_gets_the_same_pod() {
        let one = at(json!({}));
        let mut other = BookAt::new("example-at", BookAtSpec(one.spec.0.clone()));
        other.metadata = one.metadata.clone();
        let (one, mut other) = (pod(&one).expect("a pod"), pod(&other).expect("a pod"));
        let group = |pod: &Pod| pod.owner_references()[0].api_version.clone();
        assert_eq!(group(&one), "cnat.study.jayground8/v1alpha1");
        assert_eq!(group(&other), "cnat.programming-kubernetes.info/v1alpha1");
        other.metadata.owner_references = one.metadata.owner_references.clone();
        assert_eq!(one, other);
    }
}
