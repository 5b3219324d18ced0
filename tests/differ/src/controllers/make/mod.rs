//! A story out of a seed.

mod cluster;
mod devices;
mod jobs;
mod pods;
mod policies;
mod priorities;
mod services;
mod storage;
mod workloads;

use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::controllers::story::{MERGE, Pick, QUIET, STRATEGIC, Step, Story};

/// How many milliseconds the waits of a story may take.
const LONGEST: u64 = 90_000;

/// What holds an object until a step lets it go.
pub(crate) const HOLD: &str = "differ.example.com/hold";

/// What a part of a story is about: how it begins, and what happens next.
pub(crate) struct Plot {
    pub(crate) name: &'static str,
    /// How often it is chosen.
    weight: u32,
    begin: fn(&mut Making),
    next: fn(&mut Making),
}

const PLOTS: &[Plot] = &[
    Plot { name: "Deployment", weight: 5, begin: workloads::deployment, next: workloads::change_deployment },
    Plot {
        name: "ReplicaSet",
        weight: 3,
        begin: workloads::replica_set,
        next: workloads::change_replica_set,
    },
    Plot {
        name: "ReplicationController",
        weight: 1,
        begin: workloads::controller,
        next: workloads::change_controller,
    },
    Plot {
        name: "StatefulSet",
        weight: 4,
        begin: workloads::stateful_set,
        next: workloads::change_stateful_set,
    },
    Plot { name: "DaemonSet", weight: 3, begin: workloads::daemon_set, next: workloads::change_daemon_set },
    Plot { name: "Job", weight: 4, begin: jobs::job, next: jobs::change_job },
    Plot { name: "CronJob", weight: 2, begin: jobs::cron_job, next: jobs::change_cron_job },
    Plot { name: "Service", weight: 4, begin: services::service, next: services::change_service },
    Plot { name: "Endpoints", weight: 1, begin: services::endpoints, next: services::change_endpoints },
    Plot { name: "PodDisruptionBudget", weight: 3, begin: policies::budget, next: policies::change_budget },
    Plot {
        name: "HorizontalPodAutoscaler",
        weight: 1,
        begin: policies::autoscaler,
        next: policies::change_autoscaler,
    },
    Plot { name: "ResourceQuota", weight: 3, begin: policies::quota, next: policies::change_quota },
    Plot { name: "LimitRange", weight: 1, begin: policies::limits, next: policies::change_limits },
    Plot { name: "ServiceAccount", weight: 2, begin: cluster::account, next: cluster::change_account },
    Plot { name: "PersistentVolumeClaim", weight: 3, begin: storage::claim, next: storage::change_claim },
    Plot { name: "Owners", weight: 4, begin: cluster::owners, next: cluster::change_owners },
    Plot { name: "Namespace", weight: 2, begin: cluster::namespace, next: cluster::change_namespace },
    Plot { name: "ClusterRole", weight: 1, begin: cluster::role, next: cluster::change_role },
    Plot {
        name: "CertificateSigningRequest",
        weight: 1,
        begin: cluster::request,
        next: cluster::change_request,
    },
    Plot { name: "PriorityClass", weight: 2, begin: priorities::priority, next: priorities::change_priority },
    Plot { name: "ResourceClaim", weight: 2, begin: devices::devices, next: devices::change_devices },
    Plot { name: "Node", weight: 2, begin: cluster::node, next: cluster::change_node },
    Plot { name: "Pod", weight: 3, begin: pods::pod, next: pods::change_pod },
];

/// What is told with nodes of the story's own.
const ON_NODES: &[&str] = &["Node", "PriorityClass", "ResourceClaim"];

/// A story in the making.
pub(crate) struct Making {
    pub(crate) rng: ChaCha8Rng,
    pub(crate) steps: Vec<Step>,
    /// Whether the story has nodes of its own.
    pub(crate) nodes: bool,
    /// Whether nobody schedules the pods of workloads: the story is their kubelet.
    pub(crate) by_hand: bool,
    /// How many times a pod of a Job has failed.
    pub(crate) failures: u64,
    /// Waits in milliseconds that controllers of this story have by themselves.
    pub(crate) quiet: u64,
}

/// The story of a seed.
pub(crate) fn story(seed: u64, kinds: &[String]) -> Story {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let chosen: Vec<&Plot> =
        PLOTS.iter().filter(|plot| kinds.is_empty() || kinds.iter().any(|kind| kind == plot.name)).collect();
    let count = *[1, 1, 2, 2, 2, 3].choose(&mut rng).unwrap_or(&1);
    let mut plots: Vec<&Plot> = Vec::new();
    for _ in 0..count * 3 {
        if let Ok(plot) = chosen.choose_weighted(&mut rng, |plot| plot.weight)
            && plots.len() < count
            && !plots.iter().any(|other| other.name == plot.name)
        {
            plots.push(plot);
        }
    }
    let (nodes, by_hand) = (rng.random_bool(0.2), rng.random_bool(0.3));
    let nodes = nodes || plots.iter().any(|plot| ON_NODES.contains(&plot.name));
    let mut making = Making { rng, steps: Vec::new(), nodes, by_hand, failures: 0, quiet: 0 };
    if nodes {
        cluster::first_node(&mut making);
    }
    for plot in &plots {
        (plot.begin)(&mut making);
    }
    let length = making.rng.random_range(3..=12);
    while making.steps.len() < length {
        let at = making.rng.random_range(0..plots.len().max(1));
        let Some(plot) = plots.get(at) else { break };
        (plot.next)(&mut making);
        if making.rng.random_bool(0.08) {
            pods::any(&mut making);
        }
    }
    // Where controllers wait by themselves, a story is short.
    let quiet = making.quiet;
    let longest = usize::try_from(LONGEST / quiet.max(QUIET)).unwrap_or(15);
    making.steps.truncate(longest.clamp(4, 15));
    let steps = making.steps.into_iter().map(|step| step.quiet(quiet)).collect();
    Story { seed, kinds: plots.iter().map(|plot| plot.name.to_owned()).collect(), steps }
}

impl Making {
    pub(crate) fn step(&mut self, step: Step) {
        self.steps.push(step);
    }

    pub(crate) fn chance(&mut self, chance: f64) -> bool {
        self.rng.random_bool(chance)
    }

    pub(crate) fn number(&mut self, from: u64, to: u64) -> u64 {
        self.rng.random_range(from..=to)
    }

    pub(crate) fn one<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        of.choose(&mut self.rng).cloned()
    }

    pub(crate) fn value(&mut self, of: &[Value]) -> Value {
        self.one(of).unwrap_or_default()
    }

    pub(crate) fn word(&mut self, of: &[&'static str]) -> &'static str {
        self.one(of).unwrap_or_default()
    }

    /// A number or a share.
    pub(crate) fn share(&mut self) -> Value {
        self.value(&[
            json!(0),
            json!(1),
            json!(1),
            json!(2),
            json!("25%"),
            json!("50%"),
            json!("100%"),
            json!("34%"),
        ])
    }

    pub(crate) fn app(&mut self) -> &'static str {
        self.word(&["a", "a", "a", "b"])
    }

    /// What any object may be done to: marked, held, let go, deleted, made again.
    pub(crate) fn common(&mut self, kind: &'static str, name: &str, again: fn(&mut Making)) {
        match self.number(0, 9) {
            0 => {
                let value = self.word(&["1", "2"]);
                self.step(Step::patch(
                    kind,
                    "annotate",
                    name,
                    json!({"metadata": {"annotations": {"note": value}}}),
                ));
            }
            1 => {
                let value = self.word(&["x", "y"]);
                self.step(Step::patch(
                    kind,
                    "label",
                    name,
                    json!({"metadata": {"labels": {"extra": value}}}),
                ));
            }
            2 | 3 => {
                self.step(Step::patch(kind, "hold", name, json!({"metadata": {"finalizers": [HOLD]}})));
                self.delete(kind, name);
                if self.chance(0.7) {
                    self.step(Step::patch(kind, "release", name, json!({"metadata": {"finalizers": null}})));
                }
            }
            _ => {
                self.delete(kind, name);
                if self.chance(0.6) {
                    again(self);
                }
            }
        }
    }

    pub(crate) fn delete(&mut self, kind: &'static str, name: &str) {
        let policy = self.one(&[None, Some("Background"), Some("Foreground"), Some("Orphan")]).flatten();
        self.step(Step::delete(kind, name, policy));
    }

    /// A step about an object of a generated name.
    pub(crate) fn picked(&mut self, kind: &'static str, app: Option<&str>) -> Pick {
        let nth = usize::try_from(self.number(0, 3)).unwrap_or_default();
        Pick { kind, label: app.map(|app| ("app".to_owned(), app.to_owned())), nth }
    }

    /// A pod's template.
    pub(crate) fn template(&mut self, app: &str) -> Value {
        let image = format!("registry.local/web:{}", self.number(1, 3));
        let mut container = json!({"name": "c", "image": image});
        if self.chance(0.3) {
            container["ports"] = json!([{"name": "http", "containerPort": self.number(80, 82)}]);
        }
        if self.chance(0.25) {
            container["resources"] =
                json!({"requests": {"cpu": "10m", "memory": "8Mi"}, "limits": {"cpu": "20m"}});
        }
        let mut spec = json!({"containers": [container]});
        if self.by_hand {
            spec["schedulerName"] = json!("nobody");
        }
        if self.nodes && self.chance(0.7) {
            spec["nodeSelector"] = json!({"differ": "@run@"});
            spec["tolerations"] =
                json!([{"key": "differ", "operator": "Equal", "value": "@run@", "effect": "NoSchedule"}]);
        }
        if self.chance(0.1) {
            spec["terminationGracePeriodSeconds"] = json!(self.number(0, 5));
        }
        let mut labels = json!({"app": app});
        if self.chance(0.2) {
            labels["tier"] = json!(self.word(&["front", "back"]));
        }
        let mut metadata = json!({"labels": labels});
        if self.chance(0.1) {
            metadata["annotations"] = json!({"made": "by-hand"});
        }
        json!({"metadata": metadata, "spec": spec})
    }

    /// A change of the template.
    pub(crate) fn other_template(&mut self, kind: &'static str, name: &str) {
        let patch = match self.number(0, 4) {
            0 => json!({"metadata": {"labels": {"tier": self.word(&["front", "back"])}}}),
            1 => json!({"metadata": {"annotations": {"restarted": self.word(&["one", "two"])}}}),
            _ => {
                let image = format!("registry.local/web:{}", self.number(1, 3));
                json!({"spec": {"containers": [{"name": "c", "image": image}]}})
            }
        };
        self.step(Step::patch(kind, "template", name, json!({"spec": {"template": patch}})).media(STRATEGIC));
    }

    #[expect(clippy::needless_pass_by_value, reason = "most callers make it on the way")]
    pub(crate) fn set(&mut self, kind: &'static str, what: &str, name: &str, spec: Value) {
        self.step(Step::patch(kind, what, name, json!({"spec": spec})).media(MERGE));
    }
}
