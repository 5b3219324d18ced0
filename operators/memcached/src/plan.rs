//! From what is observed to what should be: a pure function.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Pod, Service},
    policy::v1::PodDisruptionBudget,
};
use kube::ResourceExt;
use kubewright::{
    Error, Object,
    conditions::{self, Status},
    owner,
    probes::Report,
};

use crate::{Memcached, MemcachedStatus, desired};

/// How many pods a status names.
const NAMED: usize = 100;

/// What is observed of a Memcached.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Itself.
    pub memcached: Arc<Memcached>,
    /// The Deployment of its name.
    pub deployment: Option<Arc<Deployment>>,
    /// The Service of its name.
    pub service: Option<Arc<Service>>,
    /// The PodDisruptionBudget of its name.
    pub budget: Option<Arc<PodDisruptionBudget>>,
    /// The pods with its labels, whosever they are.
    pub pods: Vec<Arc<Pod>>,
    /// What its pods said when they were asked.
    pub report: Option<Report>,
    /// When.
    pub now: Timestamp,
}

/// What to do about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The objects that it should have; none when one of their names is somebody else's.
    pub wanted: Option<Wanted>,
    /// The status that it should have, by what was observed before.
    pub status: MemcachedStatus,
    /// The addresses of its pods that are ready, by name: whom to ask, where that is wanted.
    pub ask: BTreeMap<String, String>,
    /// Which object is somebody else's, for people.
    pub conflict: Option<String>,
}

/// The objects that a Memcached should have.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// Its pods.
    pub deployment: Deployment,
    /// How they are reached.
    pub service: Service,
    /// How many may be away; none for one pod.
    pub budget: Option<PodDisruptionBudget>,
}

/// What to do about a Memcached that is observed so.
///
/// # Errors
/// When an object cannot be written down, which no Memcached can bring about.
pub fn plan(observed: &Observed) -> Result<Plan, Error> {
    let memcached = &*observed.memcached;
    let conflict = conflict(observed);
    let mut pods: Vec<&Pod> =
        observed.pods.iter().map(|pod| &**pod).filter(|pod| belongs(pod, observed)).collect();
    pods.sort_by_key(|pod| pod.name_any());
    let ready: Vec<&Pod> = pods.iter().copied().filter(|pod| is_ready(pod)).collect();
    let wanted = Wanted {
        deployment: desired::deployment(memcached)?,
        service: desired::service(memcached)?,
        budget: desired::budget(memcached)?,
    };
    let address = |pod: &&Pod| Some((pod.name_any(), pod.status.as_ref()?.pod_ip.clone()?));
    let ask = match memcached.spec.check_stats {
        true => ready.iter().filter_map(address).collect(),
        false => BTreeMap::new(),
    };
    let status = status(observed, &pods, &ready, conflict.as_deref());
    Ok(Plan { wanted: conflict.is_none().then_some(wanted), status, ask, conflict })
}

/// An object of the Memcached's name that it does not control.
fn conflict(observed: &Observed) -> Option<String> {
    fn foreign<K: Object>(found: Option<&Arc<K>>, memcached: &Memcached) -> Option<String> {
        let found = found?;
        let theirs = !owner::is_controlled_by(&**found, memcached);
        theirs.then(|| {
            format!("{} {} is not this Memcached's: it is left alone", K::kind(&()), found.name_any())
        })
    }
    let memcached = &observed.memcached;
    foreign(observed.deployment.as_ref(), memcached)
        .or_else(|| foreign(observed.service.as_ref(), memcached))
        .or_else(|| foreign(observed.budget.as_ref(), memcached))
}

/// Whether a pod with the labels was made for this Memcached: by a ReplicaSet of its Deployment, which is called after it.
fn belongs(pod: &Pod, observed: &Observed) -> bool {
    let prefix = format!("{}-", observed.memcached.name_any());
    let made = owner::controller_of(&pod.metadata)
        .is_some_and(|owner| owner.kind == "ReplicaSet" && owner.name.starts_with(&prefix));
    made && pod.metadata.deletion_timestamp.is_none()
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|one| one.type_ == "Ready" && one.status == "True")
}

fn status(observed: &Observed, pods: &[&Pod], ready: &[&Pod], conflict: Option<&str>) -> MemcachedStatus {
    let memcached = &observed.memcached;
    let before = memcached.status.as_ref();
    let mut conditions = before.map(|status| status.conditions.clone()).unwrap_or_default();
    let size = usize::try_from(memcached.spec.size).unwrap_or(0);
    let message = format!("{} of {size} pods are ready", ready.len());
    let finding = |type_: &str, holds: bool, reason: &str, message: &str| {
        conditions::NewCondition::new(type_, holds.into(), reason).message(message)
    };
    let all = ready.len() >= size;
    let mut wanted = match conflict {
        Some(conflict) => vec![
            finding("Available", false, "Conflict", conflict),
            finding("Progressing", false, "Conflict", conflict),
            finding("Degraded", true, "Conflict", conflict),
        ],
        None => vec![
            finding("Available", all, if all { "AllPodsReady" } else { "PodsNotReady" }, &message),
            progressing(observed, pods.len() == size && all, &message),
            finding("Degraded", !all, if all { "AllPodsReady" } else { "PodsNotReady" }, &message),
        ],
    };
    if memcached.spec.check_stats {
        let unknown = || conditions::NewCondition::new("Answering", Status::Unknown, "NotAskedYet");
        wanted.push(observed.report.as_ref().map_or_else(unknown, |report| report.condition("Answering")));
    } else {
        conditions::remove(&mut conditions, "Answering");
    }
    for one in wanted {
        conditions::set(&mut conditions, &one.of(&**memcached), observed.now);
    }
    let count = |pods: &[&Pod]| i32::try_from(pods.len()).unwrap_or(i32::MAX);
    MemcachedStatus {
        nodes: ready.iter().take(NAMED).map(|pod| pod.name_any()).collect(),
        replicas: count(pods),
        ready_replicas: count(ready),
        selector: desired::selector(&memcached.name_any()),
        observed_generation: memcached.metadata.generation,
        conditions,
    }
}

/// Whether pods come, go or are replaced.
fn progressing(observed: &Observed, settled: bool, message: &str) -> conditions::NewCondition {
    let rolled_out = observed.deployment.as_ref().is_some_and(|deployment| {
        let status = deployment.status.as_ref();
        let updated = status.and_then(|status| status.updated_replicas).unwrap_or(0);
        let seen = status.and_then(|status| status.observed_generation);
        seen >= deployment.metadata.generation && updated == observed.memcached.spec.size
    });
    let moves = !(settled && rolled_out);
    let reason = if moves { "PodsChanging" } else { "RolledOut" };
    conditions::NewCondition::new("Progressing", moves.into(), reason).message(message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::MemcachedSpec;

    fn memcached(size: i32) -> Memcached {
        let spec: MemcachedSpec = kubewright::object::from_value(json!({"size": size})).expect("a spec");
        let mut memcached = Memcached::new("cache", spec);
        memcached.metadata.namespace = Some("default".to_owned());
        memcached.metadata.uid = Some("uid-1".to_owned());
        memcached
    }

    fn pod(name: &str, ready: bool) -> Arc<Pod> {
        let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "cache-1", "uid": "u", "controller": true});
        let conditions = json!([{"type": "Ready", "status": if ready { "True" } else { "False" }}]);
        Arc::new(
            kubewright::object::from_value(json!({
                "metadata": {"name": name, "ownerReferences": [owner]},
                "status": {"podIP": "10.0.0.1", "conditions": conditions},
            }))
            .expect("a Pod"),
        )
    }

    fn observed(memcached: Memcached, pods: Vec<Arc<Pod>>) -> Observed {
        Observed {
            memcached: Arc::new(memcached),
            deployment: None,
            service: None,
            budget: None,
            pods,
            report: None,
            now: Timestamp::UNIX_EPOCH,
        }
    }

    fn condition(plan: &Plan, type_: &str) -> String {
        let found = conditions::find(&plan.status.conditions, type_).expect(type_);
        format!("{} {}", found.status, found.reason)
    }

    #[test]
    fn mc_01_the_deployment_is_called_like_it_with_its_size_and_labels() {
        let plan = plan(&observed(memcached(3), Vec::new())).expect("a plan");
        let wanted = plan.wanted.expect("objects");
        assert_eq!(wanted.deployment.name_any(), "cache");
        let spec = wanted.deployment.spec.expect("a spec");
        assert_eq!(spec.replicas, Some(3));
        assert_eq!(spec.selector.match_labels, Some(desired::labels("cache")));
        let container = &spec.template.spec.expect("a pod").containers[0];
        assert_eq!(container.name, "memcached");
        assert_eq!(
            container.command.clone().expect("a command"),
            ["memcached", "-m", "64", "-c", "1024", "-o", "modern"]
        );
        assert!(wanted.budget.is_some());
        assert_eq!(plan.status.selector, "app=memcached,memcached_cr=cache");
    }

    /// Beyond 4: sorted, ready ones only.
    #[test]
    fn mc_02_nodes_are_the_ready_pods_sorted() {
        let pods = vec![pod("cache-1-c", true), pod("cache-1-a", true), pod("cache-1-b", false)];
        let plan = plan(&observed(memcached(3), pods)).expect("a plan");
        assert_eq!(plan.status.nodes, ["cache-1-a", "cache-1-c"]);
        assert_eq!((plan.status.replicas, plan.status.ready_replicas), (3, 2));
        assert_eq!(condition(&plan, "Available"), "False PodsNotReady");
        assert_eq!(condition(&plan, "Degraded"), "True PodsNotReady");
    }

    #[test]
    fn mc_08_at_zero_the_list_is_empty_and_there() {
        let plan = plan(&observed(memcached(0), Vec::new())).expect("a plan");
        let status = json!(plan.status);
        assert_eq!(status["nodes"], json!([]));
        assert_eq!(condition(&plan, "Available"), "True AllPodsReady");
        assert_eq!(plan.wanted.expect("objects").budget, None);
    }

    /// Beyond 4: capped.
    #[test]
    fn mc_02_a_hundred_nodes_are_named() {
        let pods = (0..150).map(|number| pod(&format!("cache-1-{number:03}"), true)).collect();
        let plan = plan(&observed(memcached(150), pods)).expect("a plan");
        assert_eq!((plan.status.nodes.len(), plan.status.ready_replicas), (100, 150));
    }

    #[test]
    fn mc_04_what_is_somebody_elses_is_left_and_told() {
        let mut observed = observed(memcached(1), Vec::new());
        let mut theirs = Deployment::default();
        theirs.metadata.name = Some("cache".to_owned());
        observed.deployment = Some(Arc::new(theirs));
        let plan = plan(&observed).expect("a plan");
        assert_eq!(plan.wanted, None);
        assert_eq!(condition(&plan, "Degraded"), "True Conflict");
    }

    #[test]
    fn only_pods_that_are_ready_are_asked_and_only_where_it_is_wanted() {
        let mut asked = memcached(2);
        asked.spec.check_stats = true;
        let pods = vec![pod("cache-1-a", true), pod("cache-1-b", false)];
        let known = plan(&observed(asked, pods.clone())).expect("a plan");
        assert_eq!(known.ask, BTreeMap::from([("cache-1-a".to_owned(), "10.0.0.1".to_owned())]));
        assert_eq!(condition(&known, "Answering"), "Unknown NotAskedYet");
        assert!(plan(&observed(memcached(2), pods)).expect("a plan").ask.is_empty());
    }
}
