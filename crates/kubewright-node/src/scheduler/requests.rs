//! What a pod asks a node for (`PodRequests` in `component-helpers/resource`).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Node, Pod, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::quantity::billionths;

/// Amounts of resources, by name, in billionths. A resource that is missing counts as 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Resources(BTreeMap<String, i128>);

impl Resources {
    /// `status.allocatable` of a node, or its capacity where that is missing.
    pub(super) fn allocatable(node: &Node) -> Self {
        let status = node.status.as_ref();
        let amounts = status.and_then(|status| status.allocatable.as_ref().or(status.capacity.as_ref()));
        Self::of(amounts)
    }

    /// The requests of a pod: its containers run together with those init containers that go on (sidecars), the other
    /// init containers one after the other before them; the overhead comes on top. Requests of the pod as a whole
    /// stand in place of those of its containers.
    pub(super) fn requested(pod: &Pod) -> Self {
        let Some(spec) = &pod.spec else { return Self::default() };
        let mut running = Self::default();
        for container in &spec.containers {
            running.add(&of_container(container));
        }
        let mut at_most = Self::default();
        let mut sidecars = Self::default();
        for container in spec.init_containers.iter().flatten() {
            let mut needed = of_container(container);
            if container.restart_policy.as_deref() == Some("Always") {
                sidecars.add(&needed);
                needed = sidecars.clone();
            } else {
                needed.add(&sidecars);
            }
            at_most.raise_to(&needed);
        }
        running.add(&sidecars);
        running.raise_to(&at_most);
        running.replace(&of_pod(spec));
        running.add(&Self::of(spec.overhead.as_ref()));
        running
    }

    /// The amount of one resource.
    pub(super) fn get(&self, name: &str) -> i128 {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// Each resource of which there is any.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, i128)> {
        self.0.iter().map(|(name, amount)| (name.as_str(), *amount)).filter(|(_, amount)| *amount > 0)
    }

    /// Adds `other`.
    pub(super) fn add(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let sum = self.0.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*amount);
        }
    }

    fn raise_to(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let most = self.0.entry(name.clone()).or_default();
            *most = (*most).max(*amount);
        }
    }

    fn replace(&mut self, other: &Self) {
        self.0.extend(other.0.clone());
    }

    fn of(amounts: Option<&BTreeMap<String, Quantity>>) -> Self {
        let amounts = amounts.into_iter().flatten();
        Self(amounts.filter_map(|(name, quantity)| Some((name.clone(), billionths(&quantity.0)?))).collect())
    }
}

fn of_container(container: &Container) -> Resources {
    requests(container.resources.as_ref())
}

fn of_pod(spec: &PodSpec) -> Resources {
    requests(spec.resources.as_ref())
}

fn requests(resources: Option<&ResourceRequirements>) -> Resources {
    Resources::of(resources.and_then(|resources| resources.requests.as_ref()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn requested(spec: impl Into<Value>) -> Resources {
        let spec = spec.into();
        Resources::requested(&serde_json::from_value(json!({"spec": spec})).expect("a pod"))
    }

    fn container(cpu: &str) -> Value {
        json!({"name": "c", "resources": {"requests": {"cpu": cpu}}})
    }

    fn cpu(millis: i128) -> i128 {
        millis * 1_000_000
    }

    #[test]
    fn containers_add_up() {
        let spec = json!({"containers": [container("100m"), container("1")], "overhead": {"cpu": "10m"}});
        assert_eq!(requested(spec).get("cpu"), cpu(1110));
    }

    #[test]
    fn an_init_container_that_needs_more_than_all_others_decides() {
        let spec =
            json!({"containers": [container("1")], "initContainers": [container("3"), container("2")]});
        assert_eq!(requested(spec).get("cpu"), cpu(3000));
    }

    #[test]
    fn a_sidecar_runs_beside_what_comes_after_it() {
        let mut sidecar = container("1");
        sidecar["restartPolicy"] = json!("Always");
        let spec = json!({"containers": [container("1")], "initContainers": [sidecar, container("2")]});
        assert_eq!(requested(spec).get("cpu"), cpu(3000));
    }

    #[test]
    fn requests_of_the_whole_pod_stand_for_those_of_its_containers() {
        let spec = json!({"containers": [container("1")], "resources": {"requests": {"cpu": "4"}}});
        assert_eq!(requested(spec).get("cpu"), cpu(4000));
    }
}
