//! What a pod asks a node for and what a node has (`PodRequests` in `component-helpers/resource/helpers.go`,
//! `Resource` in `pkg/scheduler/framework/types.go`).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Node, Pod, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use kubewright_meta::quantity::billionths;

/// What scoring takes a container for that asks for no processor time: a tenth of a core, in thousandths
/// (`DefaultMilliCPURequest` in `pkg/scheduler/util/pod_resources.go`).
const USUAL_CPU: i64 = 100;
/// And for one that asks for no memory: 200 MiB (`DefaultMemoryRequest`).
const USUAL_MEMORY: i64 = 200 << 20;

/// Amounts of resources: processor time in thousandths of a core, all else in units. What is missing counts as 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Resources {
    pub(super) cpu: i64,
    pub(super) memory: i64,
    pub(super) ephemeral_storage: i64,
    others: BTreeMap<String, i64>,
}

/// Processor time and memory as scoring sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Scored {
    pub(super) cpu: i64,
    pub(super) memory: i64,
}

impl Scored {
    /// Adds `other`, or with -1 takes it away.
    pub(super) fn add(&mut self, other: Self, sign: i64) {
        self.cpu = self.cpu.saturating_add(sign * other.cpu);
        self.memory = self.memory.saturating_add(sign * other.memory);
    }
}

impl Resources {
    /// `status.allocatable` of a node without its number of pods, and that number.
    pub(super) fn allocatable(node: &Node) -> (Self, i64) {
        let amounts = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
        let mut all = Self::of(amounts);
        let pods = all.others.remove("pods").unwrap_or_default();
        (all, pods)
    }

    /// The requests of a pod: its containers run together with those init containers that go on (sidecars), the other
    /// init containers one after the other before them; requests of the pod as a whole stand in place of those of its
    /// containers; the overhead comes on top.
    pub(super) fn requested(pod: &Pod) -> Self {
        Self::total(pod, &|container| Self::of(requests(container.resources.as_ref())))
    }

    /// The same as scoring sees it: a container that asks for nothing is taken for a usual one, unless the pod as a
    /// whole says what it needs.
    pub(super) fn scored(pod: &Pod) -> Scored {
        let of_pod = pod.spec.as_ref().and_then(|spec| requests(spec.resources.as_ref()));
        let usual = |name: &str, amount: i64| match of_pod.is_some_and(|of_pod| of_pod.contains_key(name)) {
            true => 0,
            false => amount,
        };
        let (cpu, memory) = (usual("cpu", USUAL_CPU), usual("memory", USUAL_MEMORY));
        let total = Self::total(pod, &|container| {
            let asked = requests(container.resources.as_ref());
            let mut needed = Self::of(asked);
            if asked.is_none_or(|asked| !asked.contains_key("cpu")) {
                needed.cpu = cpu;
            }
            if asked.is_none_or(|asked| !asked.contains_key("memory")) {
                needed.memory = memory;
            }
            needed
        });
        Scored { cpu: total.cpu, memory: total.memory }
    }

    fn total(pod: &Pod, of_container: &dyn Fn(&Container) -> Self) -> Self {
        let Some(spec) = &pod.spec else { return Self::default() };
        let mut running = Self::default();
        for container in &spec.containers {
            running.add(&of_container(container), 1);
        }
        let mut at_most = Self::default();
        let mut sidecars = Self::default();
        for container in spec.init_containers.iter().flatten() {
            let mut needed = of_container(container);
            if container.restart_policy.as_deref() == Some("Always") {
                sidecars.add(&needed, 1);
                needed = sidecars.clone();
            } else {
                needed.add(&sidecars, 1);
            }
            at_most.raise_to(&needed);
        }
        running.add(&sidecars, 1);
        running.raise_to(&at_most);
        running.replace(requests(spec.resources.as_ref()));
        running.add(&Self::of(spec.overhead.as_ref()), 1);
        running
    }

    /// Resources other than processor time, memory and ephemeral storage of which there is any.
    pub(super) fn others(&self) -> impl Iterator<Item = (&str, i64)> {
        self.others.iter().map(|(name, amount)| (name.as_str(), *amount)).filter(|(_, amount)| *amount != 0)
    }

    /// The amount of one of the others.
    pub(super) fn other(&self, name: &str) -> i64 {
        self.others.get(name).copied().unwrap_or_default()
    }

    /// Whether nothing at all is asked for.
    pub(super) fn is_nothing(&self) -> bool {
        self.cpu == 0 && self.memory == 0 && self.ephemeral_storage == 0 && self.others().next().is_none()
    }

    /// Adds `other`, or with -1 takes it away.
    pub(super) fn add(&mut self, other: &Self, sign: i64) {
        self.cpu = self.cpu.saturating_add(sign * other.cpu);
        self.memory = self.memory.saturating_add(sign * other.memory);
        self.ephemeral_storage = self.ephemeral_storage.saturating_add(sign * other.ephemeral_storage);
        for (name, amount) in &other.others {
            let sum = self.others.entry(name.clone()).or_default();
            *sum = sum.saturating_add(sign * amount);
        }
    }

    fn raise_to(&mut self, other: &Self) {
        self.cpu = self.cpu.max(other.cpu);
        self.memory = self.memory.max(other.memory);
        self.ephemeral_storage = self.ephemeral_storage.max(other.ephemeral_storage);
        for (name, amount) in &other.others {
            let most = self.others.entry(name.clone()).or_default();
            *most = (*most).max(*amount);
        }
    }

    fn replace(&mut self, amounts: Option<&BTreeMap<String, Quantity>>) {
        for (name, quantity) in amounts.into_iter().flatten() {
            self.set(name, quantity);
        }
    }

    fn of(amounts: Option<&BTreeMap<String, Quantity>>) -> Self {
        let mut all = Self::default();
        all.replace(amounts);
        all
    }

    /// An amount that is none counts as none; one that no machine has, as the largest there is.
    fn set(&mut self, name: &str, quantity: &Quantity) {
        let Some(amount) = billionths(&quantity.0) else { return };
        const MOST: i64 = i64::MAX / 4;
        let up = |unit: i128| i64::try_from((amount + unit - 1).div_euclid(unit)).unwrap_or(MOST).min(MOST);
        match name {
            "cpu" => self.cpu = up(1_000_000),
            "memory" => self.memory = up(1_000_000_000),
            "ephemeral-storage" => self.ephemeral_storage = up(1_000_000_000),
            _ => {
                self.others.insert(name.to_owned(), up(1_000_000_000));
            }
        }
    }
}

fn requests(resources: Option<&ResourceRequirements>) -> Option<&BTreeMap<String, Quantity>> {
    resources.and_then(|resources| resources.requests.as_ref())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(spec: impl Into<Value>) -> Pod {
        let spec = spec.into();
        kubewright_objects::from_value(json!({"spec": spec})).expect("a pod")
    }

    fn requested(spec: impl Into<Value>) -> Resources {
        Resources::requested(&pod(spec))
    }

    fn container(cpu: &str) -> Value {
        json!({"name": "c", "resources": {"requests": {"cpu": cpu}}})
    }

    #[test]
    fn containers_add_up() {
        let spec = json!({"containers": [container("100m"), container("1")], "overhead": {"cpu": "10m"}});
        assert_eq!(requested(spec).cpu, 1110);
    }

    #[test]
    fn an_init_container_that_needs_more_than_all_others_decides() {
        let spec =
            json!({"containers": [container("1")], "initContainers": [container("3"), container("2")]});
        assert_eq!(requested(spec).cpu, 3000);
    }

    #[test]
    fn a_sidecar_runs_beside_what_comes_after_it() {
        let mut sidecar = container("1");
        sidecar["restartPolicy"] = json!("Always");
        let spec = json!({"containers": [container("1")], "initContainers": [sidecar, container("2")]});
        assert_eq!(requested(spec).cpu, 3000);
    }

    #[test]
    fn requests_of_the_whole_pod_stand_for_those_of_its_containers() {
        let spec = json!({"containers": [container("1")], "resources": {"requests": {"cpu": "4"}}});
        assert_eq!(requested(spec).cpu, 4000);
    }

    #[test]
    fn fractions_are_rounded_up() {
        let spec = json!({"containers": [{"name": "c", "resources": {"requests":
            {"cpu": "0.0001", "memory": "1.5", "example.com/gpu": "2"}}}]});
        let requested = requested(spec);
        assert_eq!((requested.cpu, requested.memory, requested.other("example.com/gpu")), (1, 2, 2));
    }

    #[test]
    fn scoring_takes_a_container_that_asks_for_nothing_for_a_usual_one() {
        let silent = pod(json!({"containers": [{"name": "c"}, {"name": "d"}]}));
        assert!(Resources::requested(&silent).is_nothing());
        assert_eq!(Resources::scored(&silent), Scored { cpu: 200, memory: 400 << 20 });
        let whole = pod(json!({"containers": [{"name": "c"}], "resources": {"requests": {"cpu": "4"}}}));
        assert_eq!(Resources::scored(&whole), Scored { cpu: 4000, memory: 200 << 20 });
    }

    #[test]
    fn the_number_of_pods_is_no_resource_of_theirs() {
        let node = json!({"status": {"allocatable": {"cpu": "4", "pods": "110"}}});
        let (room, pods) = Resources::allocatable(&kubewright_objects::from_value(node).expect("a node"));
        assert_eq!((room.cpu, pods, room.others().count()), (4000, 110, 0));
    }
}
