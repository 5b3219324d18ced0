//! Containers of a pod: what they wait for, and how they ended.

use serde_json::Value;

use crate::cause::Cause;
use crate::object::Object;
use crate::picture::Picture;
use crate::report::Finding;
use crate::text::{event_line, in_namespace, one_line};

/// What is found at a pod's containers; of init containers the first that holds the others.
pub(super) fn find(picture: &Picture, pod: &Object) -> Vec<Finding> {
    let init = pod.list("/status/initContainerStatuses").find(|one| !has_passed(pod, one));
    if let Some(one) = init {
        let inner = of_container(picture, pod, one);
        let finding = Finding::new(
            Cause::InitContainer,
            format!("init container {} has not ended: the others wait for it", name(one)),
            logs(pod, one, ""),
        );
        return std::iter::once(finding).chain(inner.filter(|one| one.cause != Cause::ProbeFails)).collect();
    }
    pod.list("/status/containerStatuses").filter_map(|one| of_container(picture, pod, one)).collect()
}

/// Whether the containers after an init container may start: it ended well, or is a sidecar that has started.
fn has_passed(pod: &Object, status: &Value) -> bool {
    let is_sidecar = pod
        .list("/spec/initContainers")
        .any(|one| one["name"] == status["name"] && one["restartPolicy"] == "Always");
    let runs = status["started"] == true && status["state"]["running"].is_object();
    status["state"]["terminated"]["exitCode"] == 0 || is_sidecar && runs
}

/// How each container that ended with a failure did.
pub(super) fn ends(pod: &Object) -> Vec<String> {
    let all = pod.list("/status/initContainerStatuses").chain(pod.list("/status/containerStatuses"));
    let end = |status: &Value| {
        let ended = &status["state"]["terminated"];
        let is_failure = ended.is_object() && ended["exitCode"] != 0;
        is_failure.then(|| format!("container {} {}", name(status), end(ended)))
    };
    all.filter_map(end).collect()
}

/// What containers say that they wait for.
pub(super) fn waits(pod: &Object) -> Vec<String> {
    let all = pod.list("/status/initContainerStatuses").chain(pod.list("/status/containerStatuses"));
    let wait = |status: &Value| {
        let reason = status["state"]["waiting"]["reason"].as_str()?;
        let message = one_line(status["state"]["waiting"]["message"].as_str().unwrap_or_default());
        Some(format!("container {} waits: {reason} {message}", name(status)).trim_end().to_owned())
    };
    all.filter_map(wait).collect()
}

fn name(status: &Value) -> &str {
    status["name"].as_str().unwrap_or_default()
}

/// `exited with 1 (Error): no such file`.
fn end(ended: &Value) -> String {
    let reason = ended["reason"].as_str().unwrap_or("Error");
    let message = one_line(ended["message"].as_str().unwrap_or_default());
    let message = if message.is_empty() { message } else { format!(": {message}") };
    format!("exited with {} ({reason}){message}", ended["exitCode"])
}

fn logs(pod: &Object, status: &Value, more: &str) -> String {
    format!("kubectl logs {} -c {}{}{more}", pod.name(), name(status), in_namespace(pod.namespace()))
}

fn of_container(picture: &Picture, pod: &Object, status: &Value) -> Option<Finding> {
    let container = name(status);
    let waiting = &status["state"]["waiting"];
    let (reason, message) =
        (waiting["reason"].as_str().unwrap_or_default(), waiting["message"].as_str().unwrap_or_default());
    let ended = [&status["state"]["terminated"], &status["lastState"]["terminated"]]
        .into_iter()
        .find(|one| one.is_object());
    let finding = match reason {
        "ImagePullBackOff"
        | "ErrImagePull"
        | "InvalidImageName"
        | "ErrImageNeverPull"
        | "ErrImageInspect"
        | "RegistryUnavailable"
        | "ImageInspectError" => image(picture, pod, status, reason),
        "CreateContainerConfigError"
        | "CreateContainerError"
        | "RunContainerError"
        | "PreCreateHookError" => Finding::new(
            Cause::ContainerConfig,
            format!("container {container} cannot be made: {reason}: {}", one_line(message)),
            "correct what the message names in the pod's template",
        ),
        "" | "CrashLoopBackOff" | "PodInitializing" | "ContainerCreating" => {
            return running_or_ended(pod, status, reason, ended);
        }
        other => Finding::new(
            Cause::Starting,
            format!("container {container} waits: {other} {}", one_line(message)),
            format!("kubectl describe pod {}{}", pod.name(), in_namespace(pod.namespace())),
        ),
    };
    Some(finding)
}

fn image(picture: &Picture, pod: &Object, status: &Value, reason: &str) -> Finding {
    let image = status["image"].as_str().unwrap_or_default();
    let message = one_line(status["state"]["waiting"]["message"].as_str().unwrap_or_default());
    let event = picture.events(pod).into_iter().find(|event| event.text("/message").contains("pull image"));
    Finding::new(
        Cause::ImagePull,
        format!("image {image} of container {} cannot be pulled: {reason}", name(status)),
        "check the image's name and tag, the registry, and imagePullSecrets; pushed images are seen at the next try",
    )
    .evidence(message)
    .all(event.map(event_line))
}

fn running_or_ended(pod: &Object, status: &Value, reason: &str, ended: Option<&Value>) -> Option<Finding> {
    let container = name(status);
    let restarts = status["restartCount"].as_i64().unwrap_or_default();
    let is_running = status["state"]["running"].is_object();
    if let Some(ended) = ended.filter(|ended| ended["reason"] == "OOMKilled")
        && status["ready"] != true
    {
        let limit = limit(pod, container);
        return Some(
            Finding::new(
                Cause::OutOfMemory,
                format!("container {container} was killed for using more memory than its limit{limit}, {restarts} restarts"),
                "raise resources.limits.memory, or find what uses the memory",
            )
            .evidence(format!("container {container} {}", end(ended))),
        );
    }
    if let Some(ended) = ended.filter(|_| !is_running && (restarts > 0 || reason == "CrashLoopBackOff")) {
        let next = logs(pod, status, " --previous");
        let message =
            format!("container {container} ends again and again ({restarts} restarts): {}", end(ended));
        return Some(Finding::new(Cause::CrashLoop, message, next));
    }
    if let Some(ended) = ended.filter(|ended| !is_running && ended["exitCode"] != 0) {
        let message = format!("container {container} {}", end(ended));
        return Some(Finding::new(Cause::CrashLoop, message, logs(pod, status, "")));
    }
    (is_running && status["ready"] != true).then(|| probe(pod, status))
}

fn limit(pod: &Object, container: &str) -> String {
    let all = pod.list("/spec/initContainers").chain(pod.list("/spec/containers"));
    let found = all
        .filter(|one| one["name"] == container)
        .find_map(|one| one["resources"]["limits"]["memory"].as_str());
    found.map_or_else(String::new, |limit| format!(" of {limit}"))
}

fn probe(pod: &Object, status: &Value) -> Finding {
    let container = name(status);
    let of = pod
        .list("/spec/initContainers")
        .chain(pod.list("/spec/containers"))
        .find(|one| one["name"] == container);
    let probe = of.map_or(&Value::Null, |one| &one["readinessProbe"]);
    let what = ["httpGet", "tcpSocket", "exec", "grpc"].into_iter().find(|kind| probe[kind].is_object());
    let what = what.map_or_else(
        || "it has no readiness probe: its kubelet has not said yet that it is ready".to_owned(),
        |kind| format!("its readiness probe ({kind} {}) has not succeeded", probe[kind]),
    );
    Finding::new(
        Cause::ProbeFails,
        format!("container {container} runs and is not ready: {what}"),
        logs(pod, status, ""),
    )
}
