//! What may change in a pod that is resized (`pkg/registry/core/pod/strategy.go`, `podResizeStrategy`, and
//! `ValidatePodResize`).

use kubewright_meta::FieldError;
use kubewright_spec::Version;
use serde_json::Value;

use super::super::at::{At, same};
use super::super::errors::Errors;
use super::super::{fill, version};
use super::{FIX_DEFAULTING, check_pod, qos_class, whole};

const LISTS: [&str; 2] = ["containers", "initContainers"];
const MUTABLE: &str = "only cpu and memory resources are mutable";

/// Makes `pod` what it is, with the resources that `written` has for it and its containers. Where there are more or fewer containers, all of
/// the spec is taken as it is written, and where they are called otherwise, their list: the checks tell that.
pub fn resize(pod: &mut Value, written: &Value) {
    let old = pod["spec"]["resources"].clone();
    take(pod, written);
    if version::has_feature(FIX_DEFAULTING) {
        if pod["spec"]["resources"].is_null() && !old.is_null() {
            fill::set(&mut pod["spec"], "resources", old);
        }
        whole::default_all(pod);
    }
}

fn take(pod: &mut Value, written: &Value) {
    let is_refused = has_others(written, pod);
    let Some(spec) = pod.get_mut("spec") else { return };
    let wanted = &written["spec"];
    if is_refused {
        *spec = wanted.clone();
        return;
    }
    fill::keep(spec, wanted, "resources");
    for list in LISTS {
        if !names(&spec[list]).eq(names(&wanted[list])) {
            fill::keep(spec, wanted, list);
            continue;
        }
        let mut others = wanted[list].as_array().into_iter().flatten();
        fill::each(spec, list, |container| {
            if let Some(other) = others.next() {
                fill::keep(container, other, "resources");
                fill::keep(container, other, "resizePolicy");
            }
        });
    }
}

/// Whether a pod as it was written has more or fewer containers than it has: then all that was written is looked at, and refused
/// (`pkg/registry/core/pod/strategy.go`, `dropNonResizeUpdates`).
#[must_use]
pub fn has_others(written: &Value, pod: &Value) -> bool {
    let count = |pod: &Value, list: &str| pod["spec"][list].as_array().map_or(0, Vec::len);
    LISTS.into_iter().any(|list| count(written, list) != count(pod, list))
}

fn names(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten().map(|container| &container["name"])
}

/// What is wrong with a resized pod.
#[must_use]
pub fn validate_resize(new: &Value, old: &Value) -> Vec<FieldError> {
    // The path of nothing, as Go prints it.
    let forbidden_whole = |why: &str| vec![FieldError::forbidden("[]", why)];
    if !old["metadata"]["annotations"]["kubernetes.io/config.mirror"].is_null() {
        return forbidden_whole("static pods cannot be resized");
    }
    if old["spec"]["os"]["name"] == "windows" {
        return forbidden_whole("windows pods cannot be resized");
    }
    Errors::of(|errors| {
        check_pod(&At::root(new), errors);
        let (spec, before) = (At::root(new).get("spec"), At::root(old).get("spec"));
        let class = old["status"]["qosClass"].as_str().unwrap_or_else(|| qos_class(old));
        if class != qos_class(new) {
            errors.invalid_as(&spec, class, "Pod QOS Class may not change as a result of resizing");
        }
        if !is_supported(old) {
            errors.forbidden(&spec, "Pod running on node without support for resize");
        }
        if is_whole_set(&spec) || is_whole_set(&before) {
            if !version::has_feature("InPlacePodLevelResourcesVerticalScaling") {
                errors.extend(forbidden_whole("resize of pods with pod-level resources is forbidden when InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled"));
                return;
            }
            check_whole(&spec, &before, errors);
        }
        let is_whole_same = is_whole_set(&spec)
            || is_whole_set(&before)
            || spec.get("resources").same(&before.get("resources"));
        let count = errors.count();
        for list in LISTS {
            check_order(&spec.get(list), &before.get(list), list, errors);
        }
        if errors.count() > count {
            return;
        }
        for list in ["initContainers", "containers"] {
            for (container, before) in spec.get(list).items().zip(before.get(list).items()) {
                if list == "initContainers" && !can_resize_init(&before) {
                    continue;
                }
                check_removal(
                    &container.get("resources"),
                    &before.get("resources"),
                    ["resource requests", "resource limits"],
                    errors,
                );
            }
        }
        for (container, before) in spec.get("containers").items().zip(before.get("containers").items()) {
            if !is_same_otherwise(container.value, before.value) {
                errors.forbidden(&spec, MUTABLE);
            }
        }
        for (container, before) in
            spec.get("initContainers").items().zip(before.get("initContainers").items())
        {
            if can_resize_init(&container) {
                check_init(&container, &before, errors);
            } else if !container.same(&before) {
                errors.forbidden(&spec, "resources for non-sidecar init containers are immutable");
            }
        }
        if errors.count() == 0 && !is_whole_same {
            errors.forbidden(&spec, MUTABLE);
        }
    })
}

/// A node that runs containers and tells nothing of their resources cannot change them.
fn is_supported(pod: &Value) -> bool {
    let statuses = pod["status"]["containerStatuses"].as_array().into_iter().flatten();
    let running = statuses.into_iter().find(|status| status["state"]["running"].is_object());
    running.is_none_or(|status| status["resources"].is_object())
}

/// Whether anything is asked for by the pod as a whole.
fn is_whole_set(spec: &At<'_>) -> bool {
    ["requests", "limits"].iter().any(|list| !spec.dig(&["resources", list]).is_empty())
}

/// The resources of the pod as a whole.
fn check_whole(spec: &At<'_>, before: &At<'_>, errors: &mut Errors) {
    let (now, then) = (spec.get("resources"), before.get("resources"));
    if then.is_set() && !now.is_set() {
        errors.forbidden(&now, "pod-level resources cannot be removed");
        return;
    }
    check_removal(&now, &then, ["pod-level resource requests", "pod-level resource limits"], errors);
    let mut rest = without_cpu_and_memory(now.value, then.value);
    if !then.is_set() && rest.as_object().is_some_and(serde_json::Map::is_empty) {
        rest = Value::Null;
    }
    if !same(&rest, then.value) {
        errors.forbidden(spec, "only cpu and memory resources are mutable at pod-level");
    }
}

fn check_order(list: &At<'_>, before: &At<'_>, name: &str, errors: &mut Errors) {
    if list.len() != before.len() {
        errors.forbidden(list, format!("{name} may not be added or removed on resize"));
        return;
    }
    for (container, before) in list.items().zip(before.items()) {
        if container.get("name").text() != before.get("name").text() {
            errors.forbidden(
                &container.get("name"),
                format!("{name} may not be renamed or reordered on resize"),
            );
        }
    }
}

fn check_removal(now: &At<'_>, then: &At<'_>, words: [&str; 2], errors: &mut Errors) {
    for (list, words) in ["requests", "limits"].into_iter().zip(words) {
        let left = now.get(list);
        if then.get(list).entries().any(|(name, _)| !left.entry(name).is_set()) {
            errors.forbidden(&left, format!("{words} cannot be removed"));
        }
    }
}

/// Whether an init container can be resized: up to v1.35 only one that keeps running.
fn can_resize_init(container: &At<'_>) -> bool {
    version::has_feature("InPlacePodVerticalScalingInitContainers")
        || container.get("restartPolicy").text() == "Always"
}

fn check_init(container: &At<'_>, before: &At<'_>, errors: &mut Errors) {
    if !is_same_otherwise(container.value, before.value) {
        // Up to v1.35 it was told of the pod, in other words.
        if version::since(Version::V1_36) {
            let why = "only cpu and memory resources for init or sidecar containers are mutable";
            errors.forbidden(container, why);
        } else {
            let spec = At::named("spec", &Value::Null);
            errors.forbidden(&spec, "only cpu and memory resources for sidecar containers are mutable");
        }
    }
    let restarts = container
        .get("resizePolicy")
        .items()
        .any(|policy| policy.get("restartPolicy").text() == "RestartContainer");
    if !container.same(before) && container.get("restartPolicy").text() != "Always" && restarts {
        let why = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
        errors.forbidden(container, why);
    }
}

/// Whether two containers differ in cpu and memory alone.
fn is_same_otherwise(now: &Value, then: &Value) -> bool {
    let mut now = now.clone();
    let mut resources = without_cpu_and_memory(&now["resources"], &then["resources"]);
    // Claims are not compared (`dropCPUMemoryResourcesFromContainer`): those that the container has had are missed.
    fill::remove(&mut resources, "claims");
    fill::set(&mut now, "resources", resources);
    same(&now, then)
}

/// The resources with the cpu and memory of others.
fn without_cpu_and_memory(now: &Value, then: &Value) -> Value {
    let mut now = now.clone();
    for list in ["requests", "limits"] {
        for name in ["cpu", "memory"] {
            match then[list].get(name) {
                Some(amount) => {
                    if let Some(amounts) = fill::object(&mut now, list) {
                        fill::set(amounts, name, amount.clone());
                    }
                }
                None => {
                    if let Some(amounts) = fill::present(&mut now, list) {
                        fill::remove(amounts, name);
                    }
                }
            }
        }
        let is_empty = now[list].as_object().is_some_and(serde_json::Map::is_empty);
        if is_empty && then.get(list).is_none() {
            fill::remove(&mut now, list);
        }
    }
    now
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A pod whose one container, and which itself, ask for this.
    fn pod(container: &Value, whole: &Value) -> Value {
        let container = json!({"name": "c", "image": "i", "imagePullPolicy": "Always", "resources": container,
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"});
        let mut pod = json!({"metadata": {"name": "a", "namespace": "default", "uid": "u"}, "spec": {
            "containers": [container], "restartPolicy": "Always", "dnsPolicy": "ClusterFirst",
            "terminationGracePeriodSeconds": 30, "securityContext": {}, "schedulerName": "s"}});
        if !whole.is_null() {
            pod["spec"]["resources"] = whole.clone();
        }
        pod
    }

    fn complaints(new: &Value, old: &Value) -> Vec<String> {
        validate_resize(new, old).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn claims_that_a_container_gets_are_not_compared_and_those_that_it_had_are_missed() {
        let limits = json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}});
        let mut with_claims = limits.clone();
        with_claims["claims"] = json!([{"name": "gpu"}]);
        let (with, without) = (pod(&with_claims, &Value::Null), pod(&limits, &Value::Null));
        let is_told = |told: Vec<String>| told.iter().any(|one| one.contains(MUTABLE));
        assert!(!is_told(complaints(&with, &without)));
        assert!(is_told(complaints(&with, &with)));
        assert!(complaints(&without, &without).is_empty());
    }

    #[test]
    fn a_pod_may_begin_to_ask_for_cpu_as_a_whole_and_not_for_nothing() {
        let own = json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}});
        let whole = json!({"limits": {"cpu": "2"}, "requests": {"cpu": "2"}});
        let old = pod(&own, &Value::Null);
        assert_eq!(complaints(&pod(&own, &whole), &old), Vec::<String>::new());
        let told = complaints(&pod(&own, &json!({})), &old);
        assert_eq!(told, [format!("spec: Forbidden: {MUTABLE}")]);
    }
}
