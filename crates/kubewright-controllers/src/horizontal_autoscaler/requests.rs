//! What pods ask for of a resource (`calculateRequests` in `pkg/controller/podautoscaler/replica_calculator.go`,
//! `PodRequests` in `component-helpers/resource`).

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::quantity::milli_of;

type Amounts = BTreeMap<String, Quantity>;

/// The request of each pod in thousandths, by its name: of one container, of the pod where it asks as a whole, or of all
/// its containers together.
///
/// # Errors
/// What does not ask for the resource, or is not there.
pub(super) fn of_pods(
    pods: &[Arc<Pod>],
    container: Option<&str>,
    resource: &str,
) -> Result<BTreeMap<String, i64>, String> {
    let request = |pod: &Arc<Pod>| Ok((name(pod).to_owned(), of_pod(pod, container, resource)?));
    pods.iter().map(request).collect()
}

/// `metadata.name`.
pub(super) fn name(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}

/// The containers that run for as long as the pod does: those of its spec, and the init containers that go on.
pub(super) fn running_containers(pod: &Pod) -> impl Iterator<Item = &Container> {
    let spec = pod.spec.iter();
    spec.flat_map(|spec| {
        let inits = spec.init_containers.iter().flatten();
        let sidecars = inits.filter(|init| init.restart_policy.as_deref() == Some("Always"));
        spec.containers.iter().chain(sidecars)
    })
}

fn of_pod(pod: &Pod, container: Option<&str>, resource: &str) -> Result<i64, String> {
    match container {
        Some(wanted) => {
            let found = running_containers(pod).find(|one| one.name == wanted);
            let found = found.ok_or_else(|| format!("container {wanted} not found in Pod {}", name(pod)))?;
            of_container(pod, found, resource)
        }
        None => match pod_level(pod) {
            Some(whole) => of_whole(pod, whole, resource),
            None => running_containers(pod).map(|one| of_container(pod, one, resource)).sum(),
        },
    }
}

fn of_container(pod: &Pod, container: &Container, resource: &str) -> Result<i64, String> {
    let asked = requested(container, resource);
    asked.ok_or_else(|| {
        format!("missing request for {resource} in container {} of Pod {}", container.name, name(pod))
    })
}

fn requested(container: &Container, resource: &str) -> Option<i64> {
    container.resources.as_ref()?.requests.as_ref()?.get(resource).map(milli_of)
}

/// `spec.resources.requests`, where it has an entry that a pod can ask for as a whole (`IsPodLevelRequestsSet`).
fn pod_level(pod: &Pod) -> Option<&Amounts> {
    let requests = pod.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?;
    requests.keys().any(|name| is_pod_level(name)).then_some(requests)
}

fn is_pod_level(resource: &str) -> bool {
    matches!(resource, "cpu" | "memory") || resource.starts_with("hugepages-")
}

/// What a pod that asks as a whole asks for: what it says itself, or else what its containers need together.
fn of_whole(pod: &Pod, whole: &Amounts, resource: &str) -> Result<i64, String> {
    let said = whole.get(resource).filter(|_| is_pod_level(resource)).map(milli_of);
    let overhead = pod.spec.as_ref().and_then(|spec| spec.overhead.as_ref());
    let overhead = overhead.and_then(|overhead| overhead.get(resource)).map(milli_of);
    match (said.or_else(|| needed(pod, resource)), overhead) {
        (None, None) => Err(format!("missing pod-level request for {resource} in Pod {}", name(pod))),
        (asked, overhead) => Ok(asked.unwrap_or_default().saturating_add(overhead.unwrap_or_default())),
    }
}

/// What the containers need at the same time at most: all that run on together, or one init container beside the
/// sidecars that were started before it.
fn needed(pod: &Pod, resource: &str) -> Option<i64> {
    let spec = pod.spec.as_ref()?;
    let running: Vec<i64> = running_containers(pod).filter_map(|one| requested(one, resource)).collect();
    let mut most =
        (!running.is_empty()).then(|| running.iter().fold(0_i64, |sum, one| sum.saturating_add(*one)));
    let mut before = 0_i64;
    for init in spec.init_containers.iter().flatten() {
        let Some(asked) = requested(init, resource) else { continue };
        let peak = before.saturating_add(asked);
        if init.restart_policy.as_deref() == Some("Always") {
            before = peak;
        }
        most = Some(most.unwrap_or_default().max(peak));
    }
    most
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(spec: &Value) -> Arc<Pod> {
        let pod = json!({"metadata": {"name": "p"}, "spec": spec});
        Arc::new(kubewright_objects::from_value(pod).expect("a pod"))
    }

    fn asking(name: &str, cpu: &str) -> Value {
        json!({"name": name, "resources": {"requests": {"cpu": cpu}}})
    }

    fn cpu(spec: &Value, container: Option<&str>) -> Result<i64, String> {
        of_pods(&[pod(spec)], container, "cpu").map(|requests| requests["p"])
    }

    #[test]
    fn containers_and_sidecars_add_up() {
        let mut sidecar = asking("s", "50m");
        sidecar["restartPolicy"] = "Always".into();
        let spec = json!({"containers": [asking("c", "100m"), asking("d", "1")],
            "initContainers": [sidecar, asking("i", "3")]});
        assert_eq!(cpu(&spec, None), Ok(1150));
        assert_eq!(cpu(&spec, Some("d")), Ok(1000));
        assert_eq!(cpu(&spec, Some("s")), Ok(50));
    }

    #[test]
    fn a_container_that_asks_for_nothing_is_named() {
        let spec = json!({"containers": [asking("c", "100m"), {"name": "d"}]});
        assert_eq!(cpu(&spec, None), Err("missing request for cpu in container d of Pod p".into()));
        assert_eq!(cpu(&spec, Some("c")), Ok(100));
        assert_eq!(cpu(&spec, Some("x")), Err("container x not found in Pod p".into()));
    }

    #[test]
    fn a_pod_that_asks_as_a_whole_counts_as_a_whole() {
        let mut spec = json!({"containers": [asking("c", "100m"), {"name": "d"}],
            "resources": {"requests": {"cpu": "2"}}, "overhead": {"cpu": "10m"}});
        assert_eq!(cpu(&spec, None), Ok(2010));
        assert_eq!(cpu(&spec, Some("c")), Ok(100));
        spec["resources"]["requests"] = json!({"memory": "1Gi"});
        assert_eq!(cpu(&spec, None), Ok(110));
        spec["containers"] = json!([{"name": "c"}]);
        assert_eq!(cpu(&spec, None), Ok(10));
        spec["overhead"] = Value::Null;
        assert_eq!(cpu(&spec, None), Err("missing pod-level request for cpu in Pod p".into()));
    }
}
