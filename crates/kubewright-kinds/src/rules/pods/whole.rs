//! What the containers of a pod ask for together, and what a pod as a whole asks for where it says only a part of it
//! (`k8s.io/component-helpers/resource`, `defaultPodRequests` in `pkg/apis/core/v1`, from v1.37 on `DefaultPodLevelResources` in
//! `pkg/api/pod`).

use kubewright_meta::FieldError;
use kubewright_meta::resources::Resources;
use serde_json::Value;

use super::super::at::At;
use super::super::errors::Errors;
use super::super::resources::{is_huge_pages, may_overcommit};
use super::super::{fill, version};

/// What the containers of a pod ask for together. Ordinary containers and sidecars run together: their amounts add up. An init
/// container runs before them, beside the sidecars that stand before it, so the pod needs at least what each of these moments needs.
pub fn total(pod: &Value, amounts: impl Fn(&Value) -> Resources) -> Resources {
    total_of_spec(&pod["spec"], amounts)
}

fn total_of_spec(spec: &Value, amounts: impl Fn(&Value) -> Resources) -> Resources {
    let containers = |list: &str| spec[list].as_array().map_or(&[][..], Vec::as_slice);
    let mut total = containers("containers")
        .iter()
        .fold(Resources::default(), |total, container| total.plus(&amounts(container)));
    let mut sidecars = Resources::default();
    let mut start = Resources::default();
    for container in containers("initContainers") {
        let own = amounts(container);
        let moment = if is_sidecar(container) {
            total = total.plus(&own);
            sidecars = sidecars.plus(&own);
            sidecars.clone()
        } else {
            own.plus(&sidecars)
        };
        start = start.at_least(&moment);
    }
    total.at_least(&start)
}

/// Whether an init container goes on to run beside the others.
#[must_use]
pub fn is_sidecar(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

/// Whether a pod as a whole can ask for it (`IsSupportedPodLevelResource`).
#[must_use]
pub fn is_of_pods(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || is_huge_pages(name)
}

/// Whether the pod as a whole asks for something or is limited (`IsPodLevelResourcesSet`).
#[must_use]
pub fn is_set(pod: &Value) -> bool {
    let resources = &pod["spec"]["resources"];
    let mut names =
        ["requests", "limits"].into_iter().filter_map(|list| resources[list].as_object()).flatten();
    names.any(|(name, _)| is_of_pods(name))
}

/// Whether the class of a pod follows from what it asks for as a whole, not from its containers.
pub(super) fn decides_class(pod: &Value) -> bool {
    pod["spec"]["resources"].is_object()
        && (!version::has_feature("PodLevelResourcesFixKubeletQOSClass") || is_set(pod))
}

/// Checks that what a pod asks for as a whole is enough for its containers, and that no container may use more than the pod
/// (`validatePodResourceConsistency`).
pub(super) fn check(spec: &At<'_>, errors: &mut Errors) {
    let (whole, of_pod) = (spec.get("resources"), |list: &str| Resources::of(&spec.value["resources"][list]));
    for (list, every) in [("requests", true), ("limits", false)] {
        let (amounts, at) = (of_pod(list), whole.get(list));
        let needed = total_of_spec(spec.value, |container| Resources::of(&container["resources"][list]));
        for (name, needed) in needed.iter().filter(|(name, _)| every || is_huge_pages(name)) {
            if let Some(given) = amounts.get(name).filter(|given| *given < needed) {
                let detail =
                    format!("must be greater than or equal to aggregate container {list} of {needed}");
                errors.invalid_as(&at.entry(name), given.to_string(), detail);
            }
        }
    }
    let limits = of_pod("limits");
    for (index, container) in spec.get("containers").items().enumerate() {
        for (name, own) in Resources::of(&container.value["resources"]["limits"]).iter() {
            if let Some(limit) = limits.get(name).filter(|limit| *limit < own) {
                let path = format!("{}.containers[{index}][{name}].limits", whole.path);
                let detail = format!("must be less than or equal to pod limits of {limit}");
                errors.push(FieldError::invalid(path, own.to_string(), detail));
            }
        }
    }
}

/// Fills in what a pod as a whole asks for, where it says a part of it; up to v1.36, as often as the pod is read.
pub(super) fn default(pod: &mut Value) {
    if has(pod, "limits") || has(pod, "requests") {
        huge_pages(pod);
    }
    if has(pod, "limits") {
        requests(pod);
    }
}

/// The same from v1.37 on, when a pod is made or resized: limits, too.
pub(super) fn default_all(pod: &mut Value) {
    if has(pod, "limits") || has(pod, "requests") {
        huge_pages(pod);
        requests(pod);
        limits(pod);
    }
}

fn has(pod: &Value, list: &str) -> bool {
    pod["spec"]["resources"][list].as_object().is_some_and(|amounts| !amounts.is_empty())
}

/// Huge pages that containers are limited to, and the pod neither is nor asks for (`defaultHugePagePodLimits`).
fn huge_pages(pod: &mut Value) {
    let asked = of_pod(pod, "requests");
    let limits = of_containers(pod, "limits");
    add(pod, "limits", &limits.filter(|name, _| is_huge_pages(name) && asked.get(name).is_none()));
}

/// What containers ask for, then what the pod is limited to.
fn requests(pod: &mut Value) {
    let asked = of_containers(pod, "requests");
    add(pod, "requests", &asked.filter(|name, _| is_of_pods(name) && may_overcommit(name)));
    let limits = of_pod(pod, "limits");
    add(pod, "requests", &limits.filter(|name, _| is_of_pods(name)));
}

/// What the pod asks for and each container is limited to: the greater of both.
fn limits(pod: &mut Value) {
    let asked = of_pod(pod, "requests").filter(|name, _| is_of_pods(name));
    let is_limited = |name: &str| {
        let lists = ["containers", "initContainers", "ephemeralContainers"].map(|list| &pod["spec"][list]);
        let mut all = lists.into_iter().filter_map(Value::as_array).flatten();
        all.all(|container| !container["resources"]["limits"][name].is_null())
    };
    let asked = asked.filter(|name, _| is_limited(name));
    let limits = of_containers(pod, "limits").only(&asked).at_least(&asked);
    add(pod, "limits", &limits);
}

fn of_pod(pod: &Value, list: &str) -> Resources {
    Resources::of(&pod["spec"]["resources"][list])
}

fn of_containers(pod: &Value, list: &str) -> Resources {
    total(pod, |container| Resources::of(&container["resources"][list]))
}

/// Adds the amounts that are not there.
fn add(pod: &mut Value, list: &str, amounts: &Resources) {
    if amounts.is_empty() {
        return;
    }
    let Some(resources) = fill::reach(pod, &["spec", "resources"]) else { return };
    let Some(amounts_of_pod) = fill::object(resources, list) else { return };
    for (name, amount) in amounts.iter() {
        fill::absent(amounts_of_pod, name, amount.to_string());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(fill: fn(&mut Value), whole: &Value, containers: &Value) -> Value {
        let mut pod = json!({"spec": {"resources": whole, "containers": containers}});
        fill(&mut pod);
        pod["spec"]["resources"].take()
    }

    fn container(requests: &Value, limits: &Value) -> Value {
        json!({"resources": {"requests": requests, "limits": limits}})
    }

    fn said(spec: &Value) -> Vec<String> {
        let errors = Errors::of(|errors| check(&At::named("spec", spec), errors));
        errors.iter().map(|error| format!("{}: {}", error.field, error.body())).collect()
    }

    #[test]
    fn a_pod_asks_for_enough_for_its_containers() {
        let containers =
            [container(&json!({"cpu": "1"}), &json!({})), container(&json!({"cpu": "1500m"}), &json!({}))];
        let spec = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}, "containers": containers});
        assert_eq!(
            said(&spec("2")),
            [
                r#"spec.resources.requests[cpu]: Invalid value: "2": must be greater than or equal to aggregate container requests of 2500m"#
            ]
        );
        assert_eq!(said(&spec("2500m")), [""; 0]);
    }

    #[test]
    fn no_container_may_use_more_than_its_pod() {
        let limits = json!({"memory": "2Gi", "hugepages-2Mi": "4Mi", "example.com/a": "1"});
        let spec = json!({
            "resources": {"limits": {"memory": "1Gi", "hugepages-2Mi": "2Mi"}},
            "containers": [container(&json!({}), &limits)],
        });
        assert_eq!(
            said(&spec),
            [
                r#"spec.resources.limits[hugepages-2Mi]: Invalid value: "2Mi": must be greater than or equal to aggregate container limits of 4Mi"#,
                r#"spec.resources.containers[0][hugepages-2Mi].limits: Invalid value: "4Mi": must be less than or equal to pod limits of 2Mi"#,
                r#"spec.resources.containers[0][memory].limits: Invalid value: "2Gi": must be less than or equal to pod limits of 1Gi"#,
            ]
        );
    }

    #[test]
    fn a_pod_asks_for_what_its_containers_ask_for_or_for_its_limit() {
        let two = || {
            json!([
                container(&json!({"cpu": "100m", "x.io/y": "1"}), &json!({})),
                container(&json!({"cpu": "0.2"}), &json!({}))
            ])
        };
        let limited = json!({"limits": {"cpu": "1", "memory": "1Gi"}});
        let wanted =
            json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "300m", "memory": "1Gi"}});
        for fill in [default, default_all] {
            assert_eq!(filled(fill, &limited, &two()), wanted);
            assert_eq!(filled(fill, &json!({}), &two()), json!({}), "a pod that says nothing is left alone");
        }
        let asks = json!({"requests": {"memory": "1Gi"}});
        assert_eq!(filled(default, &asks, &two()), asks);
        assert_eq!(filled(default_all, &asks, &two()), json!({"requests": {"memory": "1Gi", "cpu": "300m"}}));
    }

    #[test]
    fn huge_pages_are_limited_as_those_of_the_containers_are() {
        let pages = json!({"hugepages-2Mi": "4Mi"});
        let one = || json!([container(&pages, &pages)]);
        let wanted = json!({"limits": {"cpu": "1", "hugepages-2Mi": "4Mi"}, "requests": {"cpu": "1", "hugepages-2Mi": "4Mi"}});
        assert_eq!(filled(default, &json!({"limits": {"cpu": "1"}}), &one()), wanted);
        assert_eq!(filled(default_all, &json!({"limits": {"cpu": "1"}}), &one()), wanted);
    }

    #[test]
    fn from_v1_37_on_a_pod_is_limited_where_all_of_its_containers_are() {
        let limited = |cpu: &str| container(&json!({"cpu": cpu}), &json!({"cpu": cpu}));
        let asks = |cpu: &str| json!({"requests": {"cpu": cpu}});
        let of = |cpu: &str, limit: &str| json!({"requests": {"cpu": cpu}, "limits": {"cpu": limit}});
        let both = || json!([limited("1"), limited("2")]);
        assert_eq!(filled(default_all, &asks("1"), &both()), of("1", "3"));
        assert_eq!(filled(default_all, &asks("5"), &both()), of("5", "5"), "not less than is asked for");
        let one = json!([limited("1"), container(&json!({}), &json!({}))]);
        assert_eq!(filled(default_all, &asks("1"), &one), asks("1"));
    }
}
