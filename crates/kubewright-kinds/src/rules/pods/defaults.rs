//! Defaults of pods and of everything that holds a pod (`pkg/apis/core/v1/defaults.go`, and what
//! `pkg/apis/core/v1/conversion.go` evens out).

use serde_json::{Map, Value, json};

use super::super::at::At;
use super::super::{drop_annotation, fill, version};
use super::{FIX_DEFAULTING, whole};

pub(super) const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// The defaults of a pod: those of its spec, and those that only real pods have.
pub fn pod(object: &mut Value) {
    drop_old_annotations(object);
    if let Some(status) = fill::object(object, "status") {
        one_address(status);
    }
    let Some(spec) = fill::object(object, "spec") else { return };
    pod_spec(spec);
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        fill::set(spec, "terminationGracePeriodSeconds", 1);
    }
    for key in ["containers", "initContainers"] {
        fill::each(spec, key, |container| {
            if let Some(resources) = fill::present(container, "resources") {
                requests_from_limits(resources);
            }
        });
    }
    whole_where_read(object);
    let Some(spec) = fill::present(object, "spec") else { return };
    fill::absent(spec, "enableServiceLinks", true);
    if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
        for key in ["containers", "initContainers"] {
            fill::each(spec, key, |container| fill::each(container, "ports", host_port));
        }
    }
}

/// What a pod as a whole asks for is filled in as often as it is read, up to v1.36.
pub(super) fn whole_where_read(pod: &mut Value) {
    if !version::has_feature(FIX_DEFAULTING) {
        whole::default(pod);
    }
}

/// Annotations in which old versions told init containers are never kept (`dropInitContainerAnnotations`).
fn drop_old_annotations(object: &mut Value) {
    for stage in ["alpha", "beta"] {
        for what in ["init-containers", "init-container-statuses"] {
            drop_annotation(object, &format!("pod.{stage}.kubernetes.io/{what}"));
        }
    }
}

/// `podIP` is the first of `podIPs`; where they differ the old field has the say, as it comes from an older kubelet
/// (`Convert_v1_PodStatus_To_core_PodStatus` and back).
fn one_address(status: &mut Value) {
    let address = At::root(status).get("podIP").text().to_owned();
    let first = At::root(status).get("podIPs").items().next().map(|item| item.get("ip").text().to_owned());
    match first {
        None if address.is_empty() => {}
        Some(first) if first.is_empty() && address.is_empty() => fill::remove(status, "podIP"),
        Some(first) if address.is_empty() => fill::set(status, "podIP", first),
        Some(first) if first == address => {}
        _ => fill::set(status, "podIPs", json!([{"ip": address}])),
    }
}

/// The defaults of a `PodTemplateSpec` at `key`, which is made when it is not there.
pub fn template(parent: &mut Value, key: &str) {
    if let Some(template) = fill::object(parent, key) {
        fill::object(template, "metadata");
        drop_old_annotations(template);
        if let Some(spec) = fill::object(template, "spec") {
            pod_spec(spec);
        }
    }
}

/// The defaults of a `PodSpec`.
pub(crate) fn pod_spec(spec: &mut Value) {
    fill::blank(spec, "dnsPolicy", "ClusterFirst");
    fill::blank(spec, "restartPolicy", "Always");
    fill::object(spec, "securityContext");
    fill::absent(spec, "terminationGracePeriodSeconds", 30);
    fill::blank(spec, "schedulerName", "default-scheduler");
    service_account(spec);
    fill::canonical_map(spec, "overhead");
    if let Some(whole) = fill::present(spec, "resources") {
        quantities(whole);
    }
    for key in CONTAINERS {
        fill::each(spec, key, container);
    }
    fill::each(spec, "volumes", super::volumes::default);
}

/// `serviceAccount` is the old name of `serviceAccountName`: both are told.
fn service_account(spec: &mut Value) {
    let named = |spec: &Value, key: &str| {
        spec.get(key).and_then(Value::as_str).filter(|name| !name.is_empty()).map(ToOwned::to_owned)
    };
    if let Some(name) = named(spec, "serviceAccountName").or_else(|| named(spec, "serviceAccount")) {
        fill::set(spec, "serviceAccountName", name.as_str());
        fill::set(spec, "serviceAccount", name);
    } else {
        fill::remove(spec, "serviceAccount");
    }
}

fn container(container: &mut Value) {
    if !container.is_object() {
        return;
    }
    if let Some(resources) = fill::object(container, "resources") {
        quantities(resources);
    }
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let policy = pull_policy(image);
    fill::blank(container, "imagePullPolicy", policy);
    fill::blank(container, "terminationMessagePath", "/dev/termination-log");
    fill::blank(container, "terminationMessagePolicy", "File");
    fill::each(container, "ports", |port| fill::blank(port, "protocol", "TCP"));
    fill::each(container, "env", |variable| {
        if let Some(field) = fill::reach(variable, &["valueFrom", "fieldRef"]) {
            fill::blank(field, "apiVersion", "v1");
        }
        if let Some(resource) = fill::reach(variable, &["valueFrom", "resourceFieldRef"]) {
            divisor(resource);
        }
        if let Some(file) = fill::reach(variable, &["valueFrom", "fileKeyRef"]) {
            fill::absent(file, "optional", false);
        }
    });
    for key in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = fill::present(container, key) {
            self::probe(probe);
        }
    }
    for key in ["postStart", "preStop"] {
        if let Some(http) = fill::reach(container, &["lifecycle", key, "httpGet"]) {
            http_get(http);
        }
    }
}

/// A `resourceFieldRef` always shows its divisor.
pub(super) fn divisor(resource: &mut Value) {
    fill::absent(resource, "divisor", "0");
    fill::canonical(resource, "divisor");
}

fn probe(probe: &mut Value) {
    fill::zero(probe, "timeoutSeconds", 1);
    fill::zero(probe, "periodSeconds", 10);
    fill::zero(probe, "successThreshold", 1);
    fill::zero(probe, "failureThreshold", 3);
    if let Some(http) = fill::present(probe, "httpGet") {
        http_get(http);
    }
    if let Some(grpc) = fill::present(probe, "grpc") {
        fill::absent(grpc, "service", "");
    }
}

fn http_get(http: &mut Value) {
    fill::blank(http, "path", "/");
    fill::blank(http, "scheme", "HTTP");
}

fn host_port(port: &mut Value) {
    if let Some(number) = port.get("containerPort").and_then(Value::as_i64) {
        fill::zero(port, "hostPort", number);
    }
}

fn quantities(resources: &mut Value) {
    fill::canonical_map(resources, "limits");
    fill::canonical_map(resources, "requests");
}

/// What is limited and not asked for is asked for up to the limit.
fn requests_from_limits(resources: &mut Value) {
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { return };
    if let Some(requests) = fill::map(resources, "requests") {
        merge(requests, limits);
    }
}

/// Adds the entries that are missing.
pub fn merge(into: &mut Map<String, Value>, from: Map<String, Value>) {
    for (key, value) in from {
        into.entry(key).or_insert(value);
    }
}

/// Images without a tag or digest, and those tagged `latest`, are pulled every time; not so what is no name of an image
/// (`parsers.ParseImageName`).
pub(super) fn pull_policy(image: &str) -> &'static str {
    let (name, digest) = image.split_once('@').map_or((image, false), |(name, _)| (name, true));
    let last = name.rsplit('/').next().unwrap_or_default();
    let (repository, tag) = match last.split_once(':') {
        Some((_, tag)) => (&name[..name.len() - tag.len() - 1], tag),
        None => (name, if digest { "" } else { "latest" }),
    };
    // What could be the identifier of an image names none.
    let is_identifier =
        image.len() == 64 && image.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if tag == "latest" && !is_identifier && is_repository(repository) { "Always" } else { "IfNotPresent" }
}

/// Whether it names a repository: a host, when there is one, and parts of lower-case letters and digits with single
/// separators between them, of 255 characters at most (`distribution/reference`).
fn is_repository(name: &str) -> bool {
    let host = name.split_once('/').filter(|(host, _)| {
        host.contains(['.', ':'])
            || *host == "localhost"
            || host.bytes().any(|byte| byte.is_ascii_uppercase())
    });
    let (path, length) = match host {
        Some((_, path)) => (path, name.len()),
        None if name.contains('/') => (name, "docker.io/".len() + name.len()),
        None => (name, "docker.io/library/".len() + name.len()),
    };
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_part = |part: &str| {
        let separated = part.split(|one: char| is_word(u8::try_from(one).unwrap_or_default()));
        let good = |between: &str| {
            matches!(between, "" | "." | "_" | "__") || between.bytes().all(|byte| byte == b'-')
        };
        matches!((part.bytes().next(), part.bytes().last()), (Some(first), Some(last)) if is_word(first) && is_word(last))
            && separated.into_iter().all(good)
    };
    let is_host = |host: &str| {
        let host = host.split_once(':').map_or(host, |(host, _)| host);
        host.split('.').all(|label| {
            let bytes = label.as_bytes();
            matches!((bytes.first(), bytes.last()), (Some(first), Some(last)) if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric())
                && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        })
    };
    length <= 255 && path.split('/').all(is_part) && host.is_none_or(|(host, _)| is_host(host))
}

/// The quality of service class of a pod (`pkg/apis/core/v1/helper/qos.ComputePodQOS`): Guaranteed when cpu and memory
/// of every container are limited to what it asks for, BestEffort when nothing is asked for or limited.
pub fn qos_class(pod: &Value) -> &'static str {
    let spec = &pod["spec"];
    let lists: Vec<&Value> = if whole::decides_class(pod) {
        vec![&spec["resources"]]
    } else {
        ["containers", "initContainers"]
            .iter()
            .filter_map(|key| spec[*key].as_array())
            .flatten()
            .map(|container| &container["resources"])
            .collect()
    };
    let amount = |resources: &Value, list: &str, name: &str| {
        super::super::quantity::Quantity::of(&resources[list][name]).filter(|amount| amount.sign().is_gt())
    };
    let mut guaranteed = !lists.is_empty();
    let mut best_effort = true;
    for resources in lists {
        for name in ["cpu", "memory"] {
            let (limit, request) = (amount(resources, "limits", name), amount(resources, "requests", name));
            best_effort &= limit.is_none() && request.is_none();
            guaranteed &= limit.is_some() && request.is_none_or(|request| Some(request) == limit);
        }
    }
    match (best_effort, guaranteed) {
        (true, _) => "BestEffort",
        (_, true) => "Guaranteed",
        _ => "Burstable",
    }
}

/// The status of a new pod.
pub(super) fn status(pod: &Value) -> Value {
    // A class that was sent stays (`GetPodQOS`).
    let sent = pod["status"]["qosClass"].as_str().filter(|class| !class.is_empty());
    let mut status = json!({"phase": "Pending", "qosClass": sent.unwrap_or_else(|| qos_class(pod))});
    if pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
        status["conditions"] = json!([{
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": null,
            "lastTransitionTime": pod["metadata"]["creationTimestamp"],
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates"
        }]);
    }
    status
}
