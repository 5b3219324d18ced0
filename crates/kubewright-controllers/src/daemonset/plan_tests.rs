use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubewright_world::SIMULATION_START as NOW;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::tests::{daemon_set, node, pod_on, tainted};
use super::*;

fn rolling(surge: &Value, unavailable: &Value) -> DaemonSet {
    let mut set = daemon_set();
    let strategy =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}});
    set.spec.as_mut().expect("a spec").update_strategy = kubewright_objects::from_value(strategy).ok();
    set
}

fn step(set: &DaemonSet, nodes: &[Node], pods: &[Pod], failures: &Backoff) -> PodChanges {
    let nodes: Vec<_> = nodes.iter().cloned().map(Arc::new).collect();
    let pods: Vec<_> = pods.iter().cloned().map(Arc::new).collect();
    plan(&Observed { set, nodes: &nodes, pods: &daemon::by_node(&pods), hash: "new", failures, now: NOW })
}

/// The step in short words.
fn planned(set: &DaemonSet, nodes: &[Node], pods: &[Pod]) -> Vec<String> {
    let step = step(set, nodes, pods, &Backoff::default());
    let deleted = step.delete.iter().filter_map(|pod| pod.metadata.name.as_ref());
    let created = step.create.iter().map(|node| format!("create on {node}"));
    created.chain(deleted.map(|name| format!("delete {name}"))).collect()
}

fn ready(node: &str, hash: &str) -> Pod {
    pod_on(node, hash, Some(NOW))
}

fn going(mut pod: Pod) -> Pod {
    pod.metadata.deletion_timestamp = Some(Time(NOW));
    pod
}

fn ended(mut pod: Pod, phase: &str) -> Pod {
    pod.status.as_mut().expect("a status").phase = Some(phase.into());
    pod
}

#[test]
fn each_node_that_fits_gets_a_pod() {
    let nodes = [node("a"), node("b"), tainted("c", "NoSchedule")];
    assert_eq!(planned(&daemon_set(), &nodes, &[]), ["create on a", "create on b"]);
    assert_eq!(planned(&daemon_set(), &nodes, &[pod_on("a", "new", None)]), ["create on b"]);
}

#[test]
fn no_pod_comes_before_the_last_one_is_gone() {
    assert!(planned(&daemon_set(), &[node("a")], &[going(ready("a", "new"))]).is_empty());
    assert_eq!(
        planned(&daemon_set(), &[node("a")], &[going(ended(ready("a", "new"), "Failed"))]),
        ["create on a"]
    );
}

#[test]
fn pods_leave_nodes_that_drive_them_out_and_stay_where_new_ones_would_not_come() {
    let pod = [ready("a", "new")];
    assert_eq!(planned(&daemon_set(), &[tainted("a", "NoExecute")], &pod), ["delete web-a-new"]);
    assert!(planned(&daemon_set(), &[tainted("a", "NoSchedule")], &pod).is_empty());
}

#[test]
fn of_several_pods_on_a_node_the_oldest_stays() {
    let mut young = ready("a", "new");
    young.metadata.name = Some("young".into());
    young.metadata.creation_timestamp = Some(Time(NOW));
    assert_eq!(planned(&daemon_set(), &[node("a")], &[young, ready("a", "new")]), ["delete young"]);
}

#[test]
fn a_pod_that_waits_for_a_node_that_is_gone_goes_too() {
    let mut waiting = ready("x", "new");
    waiting.spec = daemon::for_node(daemon::template(&daemon_set(), "new"), "gone").spec;
    assert_eq!(planned(&daemon_set(), &[node("a")], &[ready("a", "new"), waiting]), ["delete web-x-new"]);
}

#[test]
fn a_failed_pod_is_replaced_with_a_warning_and_then_let_be_for_a_while() {
    let pods = [ended(ready("a", "new"), "Failed")];
    let mut failures = Backoff::default();
    let first = step(&daemon_set(), &[node("a")], &pods, &failures);
    assert_eq!(first.delete.len(), 1);
    assert_eq!(
        first.notes,
        [Note {
            kind: EventType::Warning,
            reason: "FailedDaemonPod",
            text: "Found failed daemon pod default/web-a-new on node a, will try to kill it".into(),
        }]
    );
    first.retried.into_iter().for_each(|place| failures.tried(place, NOW));
    let second = step(&daemon_set(), &[node("a")], &pods, &failures);
    assert_eq!((second.delete.len(), second.again), (0, Some(Duration::from_secs(1))));
}

#[test]
fn a_pod_that_succeeded_is_replaced_too() {
    let step =
        step(&daemon_set(), &[node("a")], &[ended(ready("a", "new"), "Succeeded")], &Backoff::default());
    assert_eq!(
        step.notes[0].text,
        "Found succeeded daemon pod default/web-a-new on node a, will try to delete it"
    );
    assert_eq!((step.notes[0].reason, step.delete.len()), ("SucceededDaemonPod", 1));
}

#[test]
fn an_update_takes_as_many_pods_away_as_may_be_unavailable() {
    let nodes = ["a", "b", "c", "d"].map(node);
    let old = ["a", "b", "c", "d"].map(|node| ready(node, "old"));
    assert_eq!(planned(&rolling(&json!(0), &json!(1)), &nodes, &old), ["delete web-a-old"]);
    assert_eq!(
        planned(&rolling(&json!(0), &json!("50%")), &nodes, &old),
        ["delete web-a-old", "delete web-b-old"]
    );
    let waiting = [pod_on("a", "new", None), ready("b", "old"), ready("c", "old"), ready("d", "old")];
    assert!(planned(&rolling(&json!(0), &json!(1)), &nodes, &waiting).is_empty());
}

#[test]
fn old_pods_that_are_not_available_go_first_whatever_the_bound_is() {
    let nodes = ["a", "b", "c"].map(node);
    let pods = [ready("a", "old"), pod_on("b", "old", None), pod_on("c", "old", None)];
    assert_eq!(
        planned(&rolling(&json!(0), &json!(1)), &nodes, &pods),
        ["delete web-b-old", "delete web-c-old"]
    );
}

#[test]
fn on_delete_leaves_old_pods_alone() {
    let mut set = daemon_set();
    set.spec.as_mut().expect("a spec").update_strategy =
        kubewright_objects::from_value(json!({"type": "OnDelete"})).ok();
    assert!(planned(&set, &[node("a")], &[ready("a", "old")]).is_empty());
}

#[test]
fn with_surge_the_new_pod_comes_before_the_old_one_goes() {
    let set = rolling(&json!(1), &json!(0));
    let nodes = ["a", "b"].map(node);
    let old = ["a", "b"].map(|node| ready(node, "old"));
    assert_eq!(planned(&set, &nodes, &old), ["create on a"]);
    let surging = [ready("a", "old"), ready("b", "old"), pod_on("a", "new", None)];
    assert!(planned(&set, &nodes, &surging).is_empty());
    let arrived = [ready("a", "old"), ready("b", "old"), ready("a", "new")];
    assert_eq!(planned(&set, &nodes, &arrived), ["delete web-a-old"]);
    let sick = [pod_on("a", "old", None), ready("b", "old"), pod_on("a", "new", None)];
    assert_eq!(
        planned(&set, &nodes, &sick),
        ["delete web-a-old"],
        "of two that are not ready the new one stays"
    );
    let unavailable = [pod_on("a", "old", None), pod_on("b", "old", None)];
    assert_eq!(planned(&set, &nodes, &unavailable), ["create on a", "create on b"]);
}

#[test]
fn with_surge_a_pod_of_a_node_that_fits_no_more_stays_until_it_can_be_spared() {
    let set = rolling(&json!(1), &json!(0));
    let nodes = [tainted("a", "NoSchedule"), node("b")];
    let pods = |b: Pod| [ready("a", "old"), b];
    assert!(planned(&set, &nodes, &pods(pod_on("b", "new", None))).is_empty());
    assert_eq!(planned(&set, &nodes, &pods(ready("b", "new"))), ["delete web-a-old"]);
}

/// A cluster as far as a set sees it: a step is carried out at once, and pods become ready or sick.
struct Cluster {
    pods: Vec<Pod>,
    made: usize,
}

impl Cluster {
    fn carry_out(&mut self, step: &PodChanges) {
        self.pods.retain(|pod| !step.delete.iter().any(|gone| gone.metadata.name == pod.metadata.name));
        for node in &step.create {
            let mut pod = pod_on(node, "new", None);
            pod.metadata.name = Some(format!("made-{}", self.made));
            self.made += 1;
            self.pods.push(pod);
        }
    }

    fn available(&self) -> usize {
        let nodes: BTreeSet<_> =
            self.pods.iter().filter(|pod| pod::is_ready(pod)).map(pod::node_name).collect();
        nodes.len()
    }

    fn shuffle(&mut self, dice: &[bool]) {
        for (pod, ready) in self.pods.iter_mut().zip(dice.iter().cycle()) {
            pod.status = pod_on("n", "h", ready.then_some(NOW)).status;
        }
    }
}

proptest! {
    #[test]
    fn an_update_stays_within_its_bounds_and_arrives(
        count in 1..8usize, surge in 0..4i32, unavailable in 1..4i32,
        moments in proptest::collection::vec(proptest::collection::vec(any::<bool>(), 1..9), 0..20),
    ) {
        let set = rolling(&json!(surge), &json!(if surge > 0 { 0 } else { unavailable }));
        let nodes: Vec<_> = (0..count).map(|n| node(&format!("n{n}"))).collect();
        let old = (0..count).map(|n| ready(&format!("n{n}"), "old")).collect();
        let mut cluster = Cluster { pods: old, made: 0 };
        for dice in moments.into_iter().chain(std::iter::repeat_n(vec![true], 60)) {
            cluster.shuffle(&dice);
            let before = cluster.available();
            let step = step(&set, &nodes, &cluster.pods, &Backoff::default());
            cluster.carry_out(&step);
            let least = if surge > 0 { count } else { count.saturating_sub(usize::try_from(unavailable).expect("small")) };
            prop_assert!(cluster.available() >= least.min(before), "{before} -> {}", cluster.available());
            for node in &nodes {
                let name = node.metadata.name.as_deref().unwrap_or_default();
                let on_node = cluster.pods.iter().filter(|pod| pod::node_name(pod) == name).count();
                prop_assert!(on_node <= 1 + usize::from(surge > 0), "doubled on {name}");
            }
        }
        prop_assert_eq!(cluster.pods.len(), count);
        prop_assert!(cluster.pods.iter().all(|pod| pod::label(pod, crate::history::POD_LABEL) == Some("new")));
    }
}
