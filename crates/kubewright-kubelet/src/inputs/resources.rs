//! What containers may use, for themselves (`resourceFieldRef`; `pkg/api/v1/resource/helpers.go`).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, ResourceFieldSelector};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubewright_meta::quantity::billionths;

use super::needs::containers;

type Quantities = BTreeMap<String, Quantity>;

/// What a container that sets no limit of its own is limited by (`MergeContainerResourceLimits`).
const LIMITED_BY_NODE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// What a `resourceFieldRef` of an environment variable of `container` says. Limits of the whole pod count before those of
/// the node (`defaultPodLimitsForDownwardAPI`), but not for an init container that another names.
pub(super) fn of_environment(
    selector: &ResourceFieldSelector,
    pod: &Pod,
    container: &Container,
    allocatable: &Quantities,
) -> Result<String, String> {
    let spec = pod.spec.as_ref();
    let pod_limits = spec.and_then(|spec| spec.resources.as_ref()?.limits.as_ref());
    let mut limits = allocatable.clone();
    for name in ["cpu", "memory"] {
        let of_pod = pod_limits.and_then(|limits| limits.get(name)).filter(|limit| !is_zero(limit));
        if let (Some(of_node), Some(of_pod)) = (limits.get_mut(name), of_pod) {
            of_node.clone_from(of_pod);
        }
    }
    match selector.container_name.as_deref().filter(|name| !name.is_empty()) {
        None => value(selector, container, Some(&limits)),
        Some(name) => {
            let named = find(pod, name)?;
            let is_init =
                spec.is_some_and(|spec| spec.containers.iter().all(|other| other.name != named.name));
            value(selector, named, (!is_init).then_some(&limits))
        }
    }
}

/// What a `resourceFieldRef` of a volume says (`ExtractResourceValueByContainerNameAndNodeAllocatable`).
pub(super) fn of_volume(
    selector: &ResourceFieldSelector,
    pod: &Pod,
    allocatable: &Quantities,
) -> Result<String, String> {
    let container = find(pod, selector.container_name.as_deref().unwrap_or_default())?;
    value(selector, container, Some(allocatable))
}

fn find<'a>(pod: &'a Pod, name: &str) -> Result<&'a Container, String> {
    let mut all = pod.spec.iter().flat_map(containers);
    all.find(|container| container.name == name).ok_or_else(|| format!("container {name} not found"))
}

/// The selected quantity in units of the divisor, rounded up (`ExtractContainerResourceValue`).
fn value(
    selector: &ResourceFieldSelector,
    container: &Container,
    default_limits: Option<&Quantities>,
) -> Result<String, String> {
    let unsupported = || format!("unsupported container resource : {}", selector.resource);
    let (side, name) = selector.resource.split_once('.').ok_or_else(unsupported)?;
    if !LIMITED_BY_NODE.contains(&name) && !name.starts_with("hugepages-") {
        return Err(unsupported());
    }
    let resources = container.resources.as_ref();
    let quantity = match side {
        "requests" => resources.and_then(|resources| resources.requests.as_ref()?.get(name)),
        "limits" => {
            let own = resources.and_then(|resources| resources.limits.as_ref()?.get(name));
            let default = default_limits.filter(|_| LIMITED_BY_NODE.contains(&name));
            let default = || default.and_then(|limits| limits.get(name));
            own.filter(|limit| !is_zero(limit)).or_else(default)
        }
        _ => return Err(unsupported()),
    };
    let unit = if name == "cpu" { 1_000_000 } else { 1_000_000_000 };
    let in_units = |quantity: &Quantity| rounded_up(billionths(&quantity.0).unwrap_or_default(), unit);
    let one = rounded_up(1_000_000_000, unit);
    let divisor = selector.divisor.as_ref().filter(|divisor| !is_zero(divisor)).map_or(one, in_units);
    Ok(rounded_up(quantity.map(in_units).unwrap_or_default(), divisor).to_string())
}

fn is_zero(quantity: &Quantity) -> bool {
    billionths(&quantity.0).is_none_or(|value| value == 0)
}

fn rounded_up(value: i128, divisor: i128) -> i128 {
    let whole = value.div_euclid(divisor.max(1));
    whole + i128::from(value.rem_euclid(divisor.max(1)) != 0)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::inputs::fixture::{first, node, pod};

    fn quantity(resource: &str, divisor: &str, container: &str, pod: &Pod) -> Result<String, String> {
        let selector = ResourceFieldSelector {
            container_name: Some(container.to_owned()),
            divisor: Some(Quantity(divisor.to_owned())),
            resource: resource.to_owned(),
        };
        of_environment(&selector, pod, first(pod), &node(Path::new("/")).allocatable)
    }

    fn two_containers() -> Pod {
        pod(json!({
            "initContainers": [{"name": "init"}],
            "containers": [
                {"name": "app", "resources": {"limits": {"cpu": "1500m", "hugepages-2Mi": "4Mi"}, "requests": {"memory": "100Mi"}}},
                {"name": "other", "resources": {"requests": {"cpu": "1m"}}}]}))
    }

    #[test]
    fn quantities_are_told_in_units_of_the_divisor_rounded_up() {
        let pod = two_containers();
        for (resource, divisor, value) in [
            ("limits.cpu", "0", "2"),
            ("limits.cpu", "1m", "1500"),
            ("limits.cpu", "1", "2"),
            ("requests.memory", "1Mi", "100"),
            ("requests.memory", "1M", "105"),
            ("requests.memory", "0", "104857600"),
            ("requests.cpu", "1", "0"),
            ("limits.hugepages-2Mi", "1Mi", "4"),
            ("limits.ephemeral-storage", "1Gi", "100"),
        ] {
            assert_eq!(quantity(resource, divisor, "", &pod).as_deref(), Ok(value), "{resource} / {divisor}");
        }
        assert_eq!(quantity("requests.cpu", "1", "other", &pod).as_deref(), Ok("1"));
    }

    #[test]
    fn who_has_no_limit_is_limited_by_the_pod_and_then_by_the_node() {
        let mut pod = two_containers();
        assert_eq!(quantity("limits.memory", "1Gi", "other", &pod).as_deref(), Ok("8"));
        assert_eq!(
            quantity("limits.memory", "1Gi", "init", &pod).as_deref(),
            Ok("0"),
            "as the kubelet has it"
        );
        let limits = json!({"limits": {"memory": "2Gi", "cpu": "0"}});
        pod.spec.as_mut().unwrap().resources = kubewright_objects::from_value(limits).unwrap();
        assert_eq!(quantity("limits.memory", "1Gi", "other", &pod).as_deref(), Ok("2"));
        assert_eq!(quantity("limits.cpu", "1", "other", &pod).as_deref(), Ok("4"));
        assert_eq!(quantity("limits.cpu", "1", "app", &pod).as_deref(), Ok("2"), "its own");
        let selector = ResourceFieldSelector {
            container_name: Some("other".to_owned()),
            resource: "limits.memory".to_owned(),
            divisor: None,
        };
        let allocatable = node(Path::new("/")).allocatable;
        assert_eq!(
            of_volume(&selector, &pod, &allocatable).as_deref(),
            Ok("8589934592"),
            "volumes: the node's"
        );
    }

    #[test]
    fn what_does_not_exist_is_told_in_the_kubelets_words() {
        let pod = two_containers();
        assert_eq!(quantity("limits.cpu", "1", "no", &pod), Err("container no not found".to_owned()));
        for resource in ["limits.gpu", "cpu", "uses.cpu"] {
            assert_eq!(
                quantity(resource, "1", "", &pod),
                Err(format!("unsupported container resource : {resource}"))
            );
        }
    }
}
