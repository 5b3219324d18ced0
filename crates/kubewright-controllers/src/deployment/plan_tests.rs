use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubewright_world::SIMULATION_START;
use proptest::prelude::*;
use serde_json::json;

use super::super::tests::{deployment, image, observed};
use super::*;

/// The ReplicaSets of a Deployment, as an API server without a ReplicaSet controller would keep them.
struct Server {
    deployment: Deployment,
    sets: BTreeMap<String, ReplicaSet>,
    versions: i64,
}

impl Server {
    fn new(deployment: Deployment) -> Self {
        Self { deployment, sets: BTreeMap::new(), versions: 0 }
    }

    fn sets(&self) -> Sets {
        Sets::of(&self.deployment, self.sets.values().cloned().map(Arc::new).collect())
    }

    fn apply(&mut self, action: Action) {
        self.versions += 1;
        let version = self.versions;
        match action {
            Action::Create(mut set) => {
                let age = std::time::Duration::from_secs(version.unsigned_abs());
                set.metadata.creation_timestamp = Some(Time(SIMULATION_START + age));
                set.metadata.generation = Some(1);
                set.metadata.resource_version = Some(version.to_string());
                let previous = self.sets.insert(sets::name(&set).to_owned(), *set);
                assert_eq!(previous, None, "a ReplicaSet was created twice");
            }
            Action::Patch { name, patch, .. } => {
                let set = self.sets.get_mut(&name).expect("a ReplicaSet that exists");
                assert_eq!(patch["metadata"]["resourceVersion"], json!(set.metadata.resource_version));
                for (name, value) in patch["metadata"]["annotations"].as_object().into_iter().flatten() {
                    let annotations = set.metadata.annotations.get_or_insert_default();
                    annotations.insert(name.clone(), value.as_str().expect("text").to_owned());
                }
                let spec = set.spec.as_mut().expect("a spec");
                if let Some(size) = patch["spec"]["replicas"].as_i64() {
                    spec.replicas = Some(i32::try_from(size).expect("a size"));
                }
                if let Some(seconds) = patch["spec"]["minReadySeconds"].as_i64() {
                    spec.min_ready_seconds = Some(i32::try_from(seconds).expect("seconds"));
                }
                set.metadata.resource_version = Some(version.to_string());
            }
            Action::Delete { name } => {
                self.sets.remove(&name).expect("a ReplicaSet that exists");
            }
        }
    }

    /// Plans and acts until there is nothing more to do.
    fn settle(&mut self) -> Vec<String> {
        let mut events = Vec::new();
        for _ in 0..20 {
            let actions = plan(&self.deployment, &self.sets());
            if actions.is_empty() {
                return events;
            }
            for action in actions {
                if let Action::Patch { event: Some(event), .. } = &action {
                    events.push(event.clone());
                }
                self.apply(action);
            }
        }
        panic!("the plan does not settle: {:?}", self.sets);
    }

    /// What the ReplicaSet controller and the nodes do: every set gets its pods; those of `ready` sets are available.
    fn run_pods(&mut self, ready: impl Fn(&ReplicaSet) -> bool) {
        for set in self.sets.values_mut() {
            let size = sets::replicas(set);
            let available = if ready(set) { size } else { 0 };
            observed(set, size, available);
        }
        let (status, _) =
            status::status(&self.deployment, &self.sets(), &status::Happened::Nothing, SIMULATION_START);
        self.deployment.status = Some(status);
    }

    fn converge(&mut self) {
        for _ in 0..100 {
            let quiet = self.settle().is_empty();
            self.run_pods(|_| true);
            if quiet && plan(&self.deployment, &self.sets()).is_empty() {
                return;
            }
        }
        panic!("no convergence: {:?}", self.sets);
    }

    fn update(&mut self, to: &str) {
        image(&mut self.deployment, to);
        self.deployment.metadata.generation =
            self.deployment.metadata.generation.map(|generation| generation + 1);
    }

    fn scale(&mut self, to: i32) {
        self.deployment.spec.as_mut().expect("a spec").replicas = Some(to);
    }

    /// Image and size of each set, by revision.
    fn sizes(&self) -> Vec<(String, i32)> {
        let mut all: Vec<_> = self.sets.values().collect();
        all.sort_by_key(|set| revision::revision(set));
        all.into_iter()
            .map(|set| {
                let template = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
                let spec = template.and_then(|template| template.spec.as_ref()).expect("a pod spec");
                (spec.containers[0].image.clone().unwrap_or_default(), sets::replicas(set))
            })
            .collect()
    }

    /// The one set with pods has the wanted size, and was sized for another.
    fn is_held_up(&self) -> bool {
        let goal = Goal::of(&self.deployment);
        let sets = self.sets();
        match sets.active().as_slice() {
            [only] => sets::replicas(only) == goal.replicas && was_scaled(&goal, &sets),
            _ => false,
        }
    }

    fn annotation(&self, image: &str, name: &str) -> String {
        let set = self.sets.values().find(|set| {
            let json = serde_json::to_string(&set.spec).expect("JSON");
            json.contains(&format!("{image:?}"))
        });
        revision::annotation(&set.expect("a set").metadata, name).unwrap_or_default().to_owned()
    }
}

fn sized(pairs: &[(&str, i32)]) -> Vec<(String, i32)> {
    pairs.iter().map(|(image, size)| ((*image).to_owned(), *size)).collect()
}

#[test]
fn a_new_deployment_makes_one_replica_set_of_full_size() {
    let mut server = Server::new(deployment(3));
    server.converge();
    assert_eq!(server.sizes(), sized(&[("web:1", 3)]));
    assert_eq!(server.annotation("web:1", REVISION), "1");
    assert_eq!(server.annotation("web:1", DESIRED_REPLICAS), "3");
    assert_eq!(server.annotation("web:1", MAX_REPLICAS), "4");
}

#[test]
fn an_update_rolls_step_by_step_and_keeps_the_old_set_empty() {
    let mut server = Server::new(deployment(2));
    server.converge();
    server.update("web:2");
    let mut events = Vec::new();
    for _ in 0..10 {
        events.extend(server.settle());
        server.run_pods(|_| true);
    }
    let message: Vec<_> =
        events.iter().map(|event| event.split(" replica set ").collect::<Vec<_>>()[0]).collect();
    assert_eq!(message, ["Scaled down", "Scaled up", "Scaled down"]);
    assert_eq!(server.sizes(), sized(&[("web:1", 0), ("web:2", 2)]));
    assert_eq!(server.annotation("web:2", REVISION), "2");
}

#[test]
fn a_rollout_that_never_gets_ready_stops_at_its_bounds_and_scales_in_proportion() {
    let mut server = Server::new(deployment(10));
    server.converge();
    server.update("web:2");
    for _ in 0..10 {
        server.settle();
        server.run_pods(|set| revision::revision(set) == 1);
    }
    assert_eq!(server.sizes(), sized(&[("web:1", 8), ("web:2", 5)]));
    server.scale(15);
    for _ in 0..10 {
        server.settle();
        server.run_pods(|set| revision::revision(set) == 1);
    }
    assert_eq!(server.sizes(), sized(&[("web:1", 12), ("web:2", 7)]));
}

#[test]
fn going_back_to_an_old_template_takes_its_set_with_a_new_revision() {
    let mut server = Server::new(deployment(2));
    server.converge();
    server.update("web:2");
    server.converge();
    server.update("web:1");
    server.converge();
    assert_eq!(server.sizes(), sized(&[("web:2", 0), ("web:1", 2)]));
    assert_eq!(server.annotation("web:1", REVISION), "3");
    assert_eq!(server.annotation("web:1", "deployment.kubernetes.io/revision-history"), "1");
}

#[test]
fn a_paused_deployment_scales_but_does_not_roll() {
    let mut server = Server::new(deployment(2));
    server.converge();
    server.deployment.spec.as_mut().unwrap().paused = Some(true);
    server.update("web:2");
    server.scale(3);
    server.converge();
    assert_eq!(server.sizes(), sized(&[("web:1", 3)]));
    server.deployment.spec.as_mut().unwrap().paused = None;
    server.converge();
    assert_eq!(server.sizes(), sized(&[("web:1", 0), ("web:2", 3)]));
}

#[test]
fn scaling_touches_the_active_set_only() {
    let mut server = Server::new(deployment(1));
    server.converge();
    server.scale(4);
    let events = server.settle();
    assert!(events.len() == 1 && events[0].ends_with("from 1 to 4"), "{events:?}");
    server.scale(0);
    server.converge();
    assert_eq!(server.sizes(), sized(&[("web:1", 0)]));
    assert_eq!(server.annotation("web:1", MAX_REPLICAS), "0");
}

#[test]
fn history_beyond_the_limit_goes_lowest_revision_first() {
    let mut server = Server::new(deployment(1));
    server.deployment.spec.as_mut().unwrap().revision_history_limit = Some(1);
    for image in ["web:1", "web:2", "web:3"] {
        server.update(image);
        server.converge();
    }
    assert_eq!(server.sizes(), sized(&[("web:2", 0), ("web:3", 1)]));
}

#[test]
fn recreate_waits_for_the_last_old_pod_before_the_first_new_one() {
    let mut server = Server::new(deployment(2));
    server.deployment.spec.as_mut().unwrap().strategy =
        kubewright_objects::from_value(json!({"type": "Recreate"})).ok();
    server.converge();
    server.update("web:2");
    server.settle();
    assert_eq!(server.sizes(), sized(&[("web:1", 0)]), "nothing has seen the old set at 0 yet");
    for set in server.sets.values_mut() {
        observed(set, 0, 0);
        set.status.as_mut().unwrap().terminating_replicas = Some(1);
    }
    server.settle();
    assert_eq!(server.sizes(), sized(&[("web:1", 0)]), "a pod is still terminating");
    server.run_pods(|_| true);
    server.settle();
    assert_eq!(server.sizes(), sized(&[("web:1", 0), ("web:2", 2)]));
}

#[test]
fn a_deployment_that_is_being_deleted_writes_nothing() {
    let mut deleted = deployment(2);
    deleted.metadata.deletion_timestamp = Some(Time(SIMULATION_START));
    assert_eq!(plan(&deleted, &Sets::default()), []);
}

#[test]
fn a_settled_deployment_plans_nothing() {
    let mut server = Server::new(deployment(3));
    server.converge();
    assert_eq!(plan(&server.deployment, &server.sets()), []);
}

/// Kubernetes' own: <https://github.com/kubernetes/kubernetes/pull/138840>.
#[test]
fn a_set_of_the_wanted_size_that_was_sized_for_another_holds_the_rollout_up_until_the_next_scaling() {
    let mut server = Server::new(deployment(3));
    server.converge();
    server.scale(4);
    server.settle();
    for set in server.sets.values_mut() {
        set.spec.as_mut().unwrap().replicas = Some(3);
    }
    server.scale(3);
    server.update("web:2");
    server.converge();
    assert_eq!(server.sizes(), sized(&[("web:1", 3)]));
    server.scale(2);
    server.converge();
    assert_eq!(server.sizes(), sized(&[("web:1", 0), ("web:2", 2)]));
}

proptest! {
    #[test]
    fn whatever_users_do_the_plan_settles_and_ends_with_the_last_wish(
        wishes in proptest::collection::vec((0..3usize, 0..8i32, any::<bool>(), any::<bool>()), 1..12),
        surge in 0..3i32, unavailable in 0..3i32,
    ) {
        let mut server = Server::new(deployment(3));
        let rolling = json!({"type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}});
        server.deployment.spec.as_mut().unwrap().strategy = kubewright_objects::from_value(rolling).ok();
        for (image, replicas, paused, ready) in &wishes {
            server.update(&format!("web:{image}"));
            server.scale(*replicas);
            server.deployment.spec.as_mut().unwrap().paused = Some(*paused);
            server.settle();
            server.run_pods(|_| *ready);
            server.settle();
        }
        server.deployment.spec.as_mut().unwrap().paused = None;
        server.converge();
        let (image, replicas, ..) = wishes[wishes.len() - 1];
        if server.is_held_up() {
            server.scale(replicas + 1);
            server.converge();
            server.scale(replicas);
            server.converge();
        }
        let active: Vec<_> = server.sizes().into_iter().filter(|(_, size)| *size > 0).collect();
        let wanted = if replicas > 0 { vec![(format!("web:{image}"), replicas)] } else { Vec::new() };
        prop_assert_eq!(active, wanted);
    }
}
