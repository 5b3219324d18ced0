//! Decisions about given clusters, with kube-scheduler's words.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::cluster_state::ClusterState;
use super::decision::{Decider, Decision, Nomination, Refused};
use super::listers::tests::FakeListers;
use super::pod_info::PodInfo;

/// A node with 4 cores and 8 GiB for 10 pods.
fn node(name: &str, labels: impl Into<Value>, spec: impl Into<Value>) -> Arc<Node> {
    let (mut labels, spec) = (labels.into(), spec.into());
    labels["kubernetes.io/hostname"] = json!(name);
    let node = json!({"metadata": {"name": name, "labels": labels}, "spec": spec,
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}});
    Arc::new(kubewright_objects::from_value(node).expect("a node"))
}

fn pod(name: &str, labels: impl Into<Value>, spec: impl Into<Value>) -> Arc<PodInfo> {
    let (labels, mut spec) = (labels.into(), spec.into());
    let cpu = spec["cpu"].take();
    let spec_map = spec.as_object_mut().expect("a map");
    spec_map.remove("cpu");
    let requests = if cpu.is_null() { json!({}) } else { json!({"cpu": cpu}) };
    spec["containers"] = json!([{"name": "c", "resources": {"requests": requests}}]);
    let pod =
        json!({"metadata": {"name": name, "namespace": "shop", "uid": name, "labels": labels}, "spec": spec});
    let pod: Pod = kubewright_objects::from_value(pod).expect("a pod");
    Arc::new(PodInfo::of(Arc::new(pod)))
}

fn plain(name: &str, cpu: &str) -> Arc<PodInfo> {
    pod(name, json!({}), json!({"cpu": cpu}))
}

fn cluster(nodes: impl IntoIterator<Item = Arc<Node>>) -> ClusterState {
    let mut cluster = ClusterState::default();
    for node in nodes {
        cluster.set_node(&node);
    }
    cluster
}

fn two_nodes() -> ClusterState {
    cluster([node("a", json!({"zone": "one"}), json!({})), node("b", json!({"zone": "two"}), json!({}))])
}

fn decide(pod_info: &PodInfo, cluster: &ClusterState) -> Decision {
    Decider::default().decide(pod_info, cluster, &FakeListers::default())
}

fn placed(pod_info: &PodInfo, cluster: &ClusterState) -> String {
    match decide(pod_info, cluster) {
        Decision::Place { node, .. } => node.to_string(),
        Decision::Refuse(refused) => panic!("{}", refused.message),
        Decision::Hold(by) => panic!("waits for {by:?}"),
    }
}

fn refused(pod_info: &PodInfo, cluster: &ClusterState) -> Refused {
    match decide(pod_info, cluster) {
        Decision::Place { node, .. } => panic!("placed on {node}"),
        Decision::Refuse(refused) => refused,
        Decision::Hold(by) => panic!("waits for {by:?}"),
    }
}

#[test]
fn pods_spread_over_the_nodes() {
    let mut cluster = two_nodes();
    let mut order = Vec::new();
    for name in ["1", "2", "3", "4"] {
        let next = plain(name, "1");
        let place = placed(&next, &cluster);
        cluster.place(&place, next);
        order.push(place);
    }
    assert_eq!(order, ["a", "b", "a", "b"]);
}

#[test]
fn a_refusal_counts_reasons_in_order_and_says_what_preemption_makes_of_it() {
    let mut cluster = two_nodes();
    assert_eq!(
        refused(&plain("x", "5"), &cluster).message,
        "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: \
         2 Preemption is not helpful for scheduling."
    );
    for name in ["1", "2", "3"] {
        cluster.place("a", plain(name, "1"));
    }
    cluster.set_node(&node("b", json!({}), json!({"taints": [{"key": "k", "effect": "NoSchedule"}]})));
    assert_eq!(
        refused(&plain("x", "2"), &cluster).message,
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s). preemption: \
         0/2 nodes are available: 1 No preemption victims found for incoming pod, \
         1 Preemption is not helpful for scheduling."
    );
}

#[test]
fn cordons_and_full_nodes_have_their_own_reasons() {
    let mut cluster =
        cluster([node("a", json!({}), json!({"unschedulable": true})), node("b", json!({}), json!({}))]);
    for index in 0..10 {
        cluster.place("b", plain(&format!("p{index}"), "0"));
    }
    assert_eq!(
        refused(&plain("x", "0"), &cluster).message,
        "0/2 nodes are available: 1 Too many pods, 1 node(s) were unschedulable. preemption: 0/2 nodes are \
         available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."
    );
    assert_eq!(placed(&pod("t", json!({}), json!({"tolerations": [{"operator": "Exists"}]})), &cluster), "a");
}

#[test]
fn without_nodes_there_is_nothing_to_say_about_them() {
    let message = refused(&plain("x", "1"), &ClusterState::default()).message;
    assert_eq!(message, "no nodes available to schedule pods");
}

#[test]
fn a_pod_bound_to_one_name_asks_no_other_node() {
    let of_node = |name: &str| {
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchFields": [
                {"key": "metadata.name", "operator": "In", "values": [name]}]}]}}}})
    };
    assert_eq!(placed(&pod("x", json!({}), of_node("b")), &two_nodes()), "b");
    assert_eq!(
        refused(&pod("x", json!({}), of_node("c")), &two_nodes()).message,
        "0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [NodeAffinity]. preemption: 0/2 nodes are \
         available: 2 Preemption is not helpful for scheduling."
    );
}

fn far_from(key: &str, app: &str) -> Value {
    json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}]}}})
}

#[test]
fn anti_affinity_holds_in_both_directions() {
    let mut cluster = two_nodes();
    cluster.place("a", pod("1", json!({"app": "db"}), json!({})));
    let shy = pod("2", json!({"app": "shy"}), far_from("zone", "db"));
    assert_eq!(placed(&shy, &cluster), "b");
    cluster.place("b", shy);
    assert_eq!(placed(&pod("3", json!({"app": "db"}), json!({})), &cluster), "a");
    cluster.place("b", pod("4", json!({"app": "db"}), json!({})));
    let message = refused(&pod("5", json!({"app": "shy"}), far_from("zone", "db")), &cluster).message;
    assert!(
        message.starts_with("0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules."),
        "{message}"
    );
    cluster.place("a", pod("6", json!({"app": "shy"}), far_from("zone", "db")));
    let message = refused(&pod("7", json!({"app": "db"}), json!({})), &cluster).message;
    assert!(
        message.starts_with(
            "0/2 nodes are available: 2 node(s) didn't satisfy existing pods anti-affinity rules."
        ),
        "{message}"
    );
}

#[test]
fn the_first_of_a_series_goes_anywhere_and_the_others_to_it() {
    let near = json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}]}}});
    let mut cluster = two_nodes();
    let stranger = pod("0", json!({"app": "other"}), near.clone());
    let message = refused(&stranger, &cluster).message;
    assert!(
        message.starts_with("0/2 nodes are available: 2 node(s) didn't match pod affinity rules."),
        "{message}"
    );
    for name in ["1", "2", "3"] {
        let next = pod(name, json!({"app": "web"}), near.clone());
        let place = placed(&next, &cluster);
        assert_eq!(place, "a");
        cluster.place(&place, next);
    }
}

fn spread(key: &str, more: impl Into<Value>) -> Value {
    let mut constraint = json!({"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}}});
    if let (Some(constraint), Value::Object(more)) = (constraint.as_object_mut(), more.into()) {
        constraint.extend(more);
    }
    json!({"topologySpreadConstraints": [constraint]})
}

#[test]
fn domains_that_are_missing_count_as_empty() {
    let web = |name: &str, more: Value| pod(name, json!({"app": "web"}), spread("zone", more));
    let mut cluster = two_nodes();
    cluster.place("a", web("1", json!({})));
    assert_eq!(placed(&web("2", json!({})), &cluster), "b");
    cluster.place("b", web("2", json!({})));
    assert!(matches!(decide(&web("3", json!({})), &cluster), Decision::Place { .. }));
    let message = refused(&web("3", json!({"minDomains": 3})), &cluster).message;
    assert!(
        message
            .starts_with("0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints."),
        "{message}"
    );
    cluster.set_node(&node("c", json!({}), json!({})));
    let message = refused(&web("3", json!({"minDomains": 3})), &cluster).message;
    assert!(
        message.contains("1 node(s) didn't match pod topology spread constraints (missing required label)"),
        "{message}"
    );
}

#[test]
fn tainted_nodes_count_unless_taints_are_honored() {
    let web = |name: &str, policy: &str| {
        pod(
            name,
            json!({"app": "web"}),
            spread("kubernetes.io/hostname", json!({"nodeTaintsPolicy": policy})),
        )
    };
    let taint = json!({"taints": [{"key": "k", "effect": "NoSchedule"}]});
    let mut cluster = cluster([node("a", json!({}), json!({})), node("b", json!({}), taint)]);
    cluster.place("a", web("1", "Ignore"));
    assert!(matches!(decide(&web("2", "Ignore"), &cluster), Decision::Refuse(_)));
    assert_eq!(placed(&web("2", "Honor"), &cluster), "a");
}

#[test]
fn the_least_important_go_for_a_more_important_one() {
    let mut cluster = two_nodes();
    let with = |name: &str, cpu: &str, priority: i32| {
        pod(name, json!({}), json!({"cpu": cpu, "priority": priority}))
    };
    cluster.place("a", with("low", "3", 1));
    cluster.place("a", with("lower", "1", 0));
    cluster.place("b", with("high", "4", 9));
    let outcome = refused(&with("new", "1", 5), &cluster);
    assert_eq!(outcome.message, "0/2 nodes are available: 2 Insufficient cpu.");
    assert_eq!(outcome.nomination, Nomination::Node("a".into()));
    assert_eq!(outcome.victims.iter().map(|victim| &*victim.uid).collect::<Vec<_>>(), ["lower"]);

    let mut shy = (*with("new", "1", 5).pod).clone();
    shy.spec.as_mut().expect("a spec").preemption_policy = Some("Never".into());
    let outcome = refused(&PodInfo::of(Arc::new(shy)), &cluster);
    assert_eq!(
        outcome.message,
        "0/2 nodes are available: 2 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never."
    );
    assert!(outcome.victims.is_empty());
}

#[test]
fn a_budget_decides_between_victims() {
    let with = |name: &str, app: &str, priority: i32| {
        pod(name, json!({"app": app}), json!({"cpu": "4", "priority": priority}))
    };
    let mut cluster = two_nodes();
    cluster.place("a", with("guarded", "db", 0));
    cluster.place("b", with("free", "web", 3));
    let budget = json!({"metadata": {"name": "b", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "db"}}},
        "status": {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}});
    let budget = Arc::new(kubewright_objects::from_value(budget).expect("a budget"));
    let given = FakeListers { budgets: vec![budget], ..FakeListers::default() };
    let Decision::Refuse(outcome) = Decider::default().decide(&with("new", "x", 5), &cluster, &given) else {
        panic!("placed")
    };
    assert_eq!(outcome.nomination, Nomination::Node("b".into()), "although its pod is more important");
    let Decision::Refuse(outcome) =
        Decider::default().decide(&with("new", "x", 5), &cluster, &FakeListers::default())
    else {
        panic!("placed")
    };
    assert_eq!(outcome.nomination, Nomination::Node("a".into()));
}

#[test]
fn others_keep_off_a_place_that_was_promised() {
    let with = |name: &str, priority: i32| pod(name, json!({}), json!({"cpu": "4", "priority": priority}));
    let mut cluster = cluster([node("a", json!({}), json!({}))]);
    cluster.nominate("a", with("promised", 5));
    assert!(matches!(decide(&with("other", 1), &cluster), Decision::Refuse(_)));
    assert_eq!(placed(&with("more important", 9), &cluster), "a");
}

#[test]
fn claims_that_nobody_binds_hold_a_pod_up_everywhere() {
    let volume = json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]});
    let wants = pod("x", json!({}), volume);
    assert_eq!(
        refused(&wants, &two_nodes()).message,
        "0/2 nodes are available: persistentvolumeclaim \"data\" not found. preemption: 0/2 nodes are available: \
         2 Preemption is not helpful for scheduling."
    );
    let claim = json!({"metadata": {"name": "data", "namespace": "shop"}, "spec": {}});
    let claim = Arc::new(kubewright_objects::from_value(claim).expect("a claim"));
    let given = FakeListers { claims: vec![claim], ..FakeListers::default() };
    let Decision::Refuse(refused) = Decider::default().decide(&wants, &two_nodes(), &given) else {
        panic!("placed")
    };
    assert!(refused.message.starts_with(
        "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: "
    ));
}

#[test]
fn a_bound_volume_says_where_its_pod_goes() {
    let volume = json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]});
    let wants = pod("x", json!({}), volume);
    let claim = json!({"metadata": {"name": "data", "namespace": "shop",
        "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": "disk"}});
    let disk = json!({"metadata": {"name": "disk"}, "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["two"]}]}]}}}});
    let given = FakeListers {
        claims: vec![Arc::new(kubewright_objects::from_value(claim).expect("a claim"))],
        volumes: vec![Arc::new(kubewright_objects::from_value(disk).expect("a volume"))],
        ..FakeListers::default()
    };
    let decision = Decider::default().decide(&wants, &two_nodes(), &given);
    assert!(matches!(decision, Decision::Place { node, .. } if &*node == "b"));
}

#[test]
fn a_claim_that_waits_for_its_pod_gets_the_volume_that_is_reserved_for_it_and_no_other() {
    let volume = json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]});
    let wants = pod("x", json!({}), volume);
    let class = json!({"metadata": {"name": "slow"}, "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer"});
    let claim = json!({"metadata": {"name": "data", "namespace": "shop", "uid": "u"},
        "spec": {"storageClassName": "slow", "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}});
    let disk = |name: &str, zone: &str, of: Value| {
        let disk = json!({"metadata": {"name": name}, "status": {"phase": "Available"},
            "spec": {"storageClassName": "slow", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"},
                "claimRef": of, "nodeAffinity": {"required": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}]}}}});
        Arc::new(kubewright_objects::from_value(disk).expect("a volume"))
    };
    let mine = || json!({"namespace": "shop", "name": "data"});
    let decide = |volumes| {
        let given = FakeListers {
            classes: vec![Arc::new(kubewright_objects::from_value(&class).expect("a class"))],
            claims: vec![Arc::new(kubewright_objects::from_value(&claim).expect("a claim"))],
            volumes,
            ..FakeListers::default()
        };
        Decider::default().decide(&wants, &two_nodes(), &given)
    };
    let reserved = decide(vec![disk("free", "one", Value::Null), disk("mine", "two", mine())]);
    assert!(matches!(reserved, Decision::Place { node, .. } if &*node == "b"));
    let unreachable = decide(vec![disk("free", "one", Value::Null), disk("mine", "three", mine())]);
    assert!(matches!(unreachable, Decision::Refuse(_)));
    let of_another = json!({"namespace": "shop", "name": "other"});
    let taken = decide(vec![disk("free", "one", Value::Null), disk("theirs", "two", of_another)]);
    assert!(matches!(taken, Decision::Place { node, .. } if &*node == "a"));
}

#[test]
fn preferred_taints_and_labels_decide_among_nodes_that_will_do() {
    let soft = json!({"taints": [{"key": "k", "effect": "PreferNoSchedule"}]});
    let cluster = cluster([node("a", json!({}), soft), node("b", json!({}), json!({}))]);
    assert_eq!(placed(&plain("x", "1"), &cluster), "b");
    let likes_a = json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "preference": {"matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": ["b"]}]}}]}}});
    assert_eq!(placed(&pod("x", json!({}), likes_a), &two_nodes()), "b");
}

#[derive(Clone, Debug)]
struct Shape {
    app: u8,
    cpu: u8,
    kind: u8,
    leaves: bool,
}

fn shape() -> impl Strategy<Value = Shape> {
    (0..3_u8, 0..4_u8, 0..4_u8, any::<bool>()).prop_map(|(app, cpu, kind, leaves)| Shape {
        app,
        cpu,
        kind,
        leaves,
    })
}

fn shaped(index: usize, shape: &Shape) -> Arc<PodInfo> {
    let app = shape.app.to_string();
    let mut spec = match shape.kind {
        0 => far_from("kubernetes.io/hostname", &app),
        1 => {
            let mut spec = spread("zone", json!({}));
            spec["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"]["app"] = json!(app);
            spec
        }
        _ => json!({}),
    };
    spec["cpu"] = json!(shape.cpu.to_string());
    pod(&format!("p{index}"), json!({"app": app}), spec)
}

proptest! {
    /// Whatever comes and goes: no node has more than it holds, and nobody is near whom they are to be far from.
    #[test]
    fn no_decision_breaks_a_promise(wishes in proptest::collection::vec(shape(), 0..40)) {
        let mut decider = Decider::default();
        let mut cluster = cluster((0..4).map(|index| {
            node(&format!("n{index}"), json!({"zone": (index % 2).to_string()}), json!({}))
        }));
        for (index, shape) in wishes.iter().enumerate() {
            let pod_info = shaped(index, shape);
            if let Decision::Place { node, .. } = decider.decide(&pod_info, &cluster, &FakeListers::default()) {
                cluster.place(&node, Arc::clone(&pod_info));
                for state in cluster.nodes().values() {
                    prop_assert!(state.requested.cpu <= 4000 && state.pods.len() <= 10);
                    let shy = state.pods.values().filter(|pod| pod.terms.is_some());
                    for one in shy {
                        let alike = state.pods.values().filter(|pod| pod.class == one.class).count();
                        prop_assert_eq!(alike, 1);
                    }
                }
            }
            if shape.leaves {
                cluster.unplace(&format!("p{}", index / 2));
            }
        }
    }

    /// A pod that a decision refuses fits nowhere, and one that is placed fitted: the same question has one answer.
    #[test]
    fn the_same_cluster_gives_the_same_answer(wishes in proptest::collection::vec(shape(), 1..20)) {
        let mut cluster = two_nodes();
        for (index, shape) in wishes.iter().enumerate() {
            let pod_info = shaped(index, shape);
            let (one, other) = (decide(&pod_info, &cluster), decide(&pod_info, &cluster));
            prop_assert_eq!(format!("{:?}", discriminant(&one)), format!("{:?}", discriminant(&other)));
            if let Decision::Place { node, .. } = one {
                cluster.place(&node, pod_info);
            }
        }
    }
}

fn discriminant(decision: &Decision) -> String {
    match decision {
        Decision::Place { node, .. } => node.to_string(),
        Decision::Hold(by) => format!("waits for {by:?}"),
        Decision::Refuse(refused) => refused.message.clone(),
    }
}

/// A pod that uses the claim `data`.
fn user_of_data(name: &str, priority: i32) -> Arc<PodInfo> {
    let volumes = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
    pod(name, json!({}), json!({"volumes": volumes, "priority": priority}))
}

fn bound_data(mode: &str) -> FakeListers {
    let claim = json!({"metadata": {"name": "data", "namespace": "shop", "uid": "u",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": "disk", "accessModes": [mode]}});
    let volume = json!({"metadata": {"name": "disk"},
        "spec": {"csi": {"driver": "d.example.com", "volumeHandle": "h"}}});
    FakeListers {
        claims: vec![Arc::new(kubewright_objects::from_value(claim).expect("a claim"))],
        volumes: vec![Arc::new(kubewright_objects::from_value(volume).expect("a volume"))],
        ..FakeListers::default()
    }
}

#[test]
fn a_claim_of_one_pod_keeps_others_off_every_node_unless_they_are_more_important() {
    let mut cluster = two_nodes();
    cluster.place("a", user_of_data("first", 0));
    let shared = bound_data("ReadWriteOnce");
    let second = user_of_data("second", 0);
    assert!(matches!(Decider::default().decide(&second, &cluster, &shared), Decision::Place { .. }));
    let exclusive = bound_data("ReadWriteOncePod");
    let Decision::Refuse(refused) = Decider::default().decide(&second, &cluster, &exclusive) else {
        panic!("placed")
    };
    let why = "0/2 nodes are available: 2 node has pod using PersistentVolumeClaim with the same name and \
               ReadWriteOncePod access mode.";
    assert!(refused.message.starts_with(why), "{}", refused.message);
    let Decision::Refuse(preempts) =
        Decider::default().decide(&user_of_data("boss", 9), &cluster, &exclusive)
    else {
        panic!("placed")
    };
    assert_eq!(preempts.victims.len(), 1);
}

#[test]
fn a_node_takes_as_many_volumes_of_a_driver_as_it_says() {
    let mut cluster = cluster([node("a", json!({}), json!({}))]);
    let mut given = bound_data("ReadWriteMany");
    let limit = |count: i32| {
        let driver = json!({"name": "d.example.com", "nodeID": "a", "allocatable": {"count": count}});
        let node = json!({"metadata": {"name": "a"}, "spec": {"drivers": [driver]}});
        vec![Arc::new(kubewright_objects::from_value(node).expect("a CSINode"))]
    };
    given.csi_nodes = limit(0);
    let wants = user_of_data("x", 0);
    let Decision::Refuse(refused) = Decider::default().decide(&wants, &cluster, &given) else {
        panic!("placed")
    };
    assert!(refused.message.starts_with("0/1 nodes are available: 1 node(s) exceed max volume count."));
    given.csi_nodes = limit(1);
    assert!(matches!(Decider::default().decide(&wants, &cluster, &given), Decision::Place { .. }));
    // The volume is there already.
    cluster.place("a", user_of_data("other", 0));
    assert!(matches!(Decider::default().decide(&wants, &cluster, &given), Decision::Place { .. }));
}
