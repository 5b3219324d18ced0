use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubewright_runtime::owner;
use kubewright_world::SIMULATION_START as NOW;
use proptest::prelude::*;
use serde_json::json;

use super::super::tests::{member_pod, revision_of, stateful_set, with_claims};
use super::*;

/// `web-1` is what the pods were, `web-2` what they are to be.
fn revisions(current: &str, update: &str) -> Revisions {
    Revisions { current: revision_of(current, current), update: revision_of(update, update), collisions: 0 }
}

/// The plan in short words, a stage after the other.
fn planned(set: &StatefulSet, revisions: &Revisions, pods: &[Pod]) -> Vec<String> {
    with(set, revisions, pods, &[])
}

fn with(
    set: &StatefulSet,
    revisions: &Revisions,
    pods: &[Pod],
    claims: &[PersistentVolumeClaim],
) -> Vec<String> {
    let pods: Vec<_> = pods.iter().cloned().map(Arc::new).collect();
    let named = |claim: &PersistentVolumeClaim| {
        (claim.metadata.name.clone().unwrap_or_default(), Arc::new(claim.clone()))
    };
    let claims = claims.iter().map(named).collect();
    let stages = plan(&Observed { set, revisions, pods: &pods, claims: &claims, now: NOW });
    stages.iter().flatten().map(describe).collect()
}

fn describe(task: &Task) -> String {
    let name = |pod: &Pod| pod.metadata.name.clone().unwrap_or_default();
    match task {
        Task::Create(pod, _) => format!("create {} of {}", name(pod), member::revision(pod)),
        Task::Supply(pod, _) => format!("supply {}", name(pod)),
        Task::Repair(pod, _) => format!("repair {}", name(pod)),
        Task::Bequeath(pod, _) => format!("bequeath {}", name(pod)),
        Task::Delete(pod) => format!("delete {}", name(pod)),
    }
}

fn parallel(mut set: StatefulSet) -> StatefulSet {
    set.spec.as_mut().expect("a spec").pod_management_policy = Some("Parallel".into());
    set
}

fn strategy_of(mut set: StatefulSet, strategy: serde_json::Value) -> StatefulSet {
    set.spec.as_mut().expect("a spec").update_strategy =
        kubewright_objects::from_value(strategy).expect("a strategy");
    set
}

fn ready(ordinal: i32, revision: &str) -> Pod {
    member_pod(ordinal, revision, Some(NOW))
}

fn unready(ordinal: i32, revision: &str) -> Pod {
    member_pod(ordinal, revision, None)
}

fn going(mut pod: Pod) -> Pod {
    pod.metadata.deletion_timestamp = Some(Time(NOW));
    pod
}

fn ended(mut pod: Pod, phase: &str) -> Pod {
    pod.status.as_mut().expect("a status").phase = Some(phase.into());
    pod
}

fn claim(name: &str, owners: &serde_json::Value) -> PersistentVolumeClaim {
    let claim = json!({"metadata": {"name": name, "namespace": "default", "ownerReferences": owners}});
    kubewright_objects::from_value(claim).expect("a claim")
}

#[test]
fn ordered_pods_are_created_one_by_one_each_when_those_before_are_available() {
    let (set, one) = (stateful_set(3), revisions("web-1", "web-1"));
    assert_eq!(planned(&set, &one, &[]), ["create web-0 of web-1"]);
    assert!(planned(&set, &one, &[unready(0, "web-1")]).is_empty());
    assert_eq!(planned(&set, &one, &[ready(0, "web-1")]), ["create web-1 of web-1"]);
    assert_eq!(planned(&set, &one, &[ready(0, "web-1"), ready(2, "web-1")]), ["create web-1 of web-1"]);
    assert!(planned(&set, &one, &[ready(0, "web-1"), going(ready(1, "web-1"))]).is_empty());
}

#[test]
fn parallel_pods_are_created_and_deleted_together() {
    let one = revisions("web-1", "web-1");
    let up = planned(&parallel(stateful_set(3)), &one, &[unready(1, "web-1")]);
    assert_eq!(up, ["create web-0 of web-1", "create web-2 of web-1"]);
    let pods = [unready(0, "web-1"), ready(1, "web-1"), unready(2, "web-1")];
    assert_eq!(planned(&parallel(stateful_set(1)), &one, &pods), ["delete web-2", "delete web-1"]);
}

#[test]
fn a_set_that_starts_at_five_has_no_pod_zero() {
    let mut set = parallel(stateful_set(2));
    set.spec.as_mut().expect("a spec").ordinals = kubewright_objects::from_value(json!({"start": 5})).ok();
    let plan = planned(&set, &revisions("web-1", "web-1"), &[ready(0, "web-1"), ready(5, "web-1")]);
    assert_eq!(plan, ["create web-6 of web-1", "delete web-0"]);
}

#[test]
fn surplus_pods_go_from_the_last_one_at_a_time() {
    let (set, one) = (stateful_set(1), revisions("web-1", "web-1"));
    let pods = |third: Pod| [ready(0, "web-1"), ready(1, "web-1"), third];
    assert_eq!(planned(&set, &one, &pods(ready(2, "web-1"))), ["delete web-2"]);
    assert!(planned(&set, &one, &pods(going(ready(2, "web-1")))).is_empty());
    // The first that is not available may go, though it is not healthy.
    assert_eq!(planned(&set, &one, &pods(unready(2, "web-1"))), ["delete web-2"]);
    let two_sick = [ready(0, "web-1"), unready(1, "web-1"), unready(2, "web-1")];
    assert!(planned(&set, &one, &two_sick).is_empty());
}

#[test]
fn pods_that_ended_are_replaced_whatever_their_end_was() {
    let (set, one) = (stateful_set(2), revisions("web-1", "web-1"));
    for phase in ["Failed", "Succeeded"] {
        let pods = [ended(ready(0, "web-1"), phase), ready(1, "web-1")];
        assert_eq!(planned(&set, &one, &pods), ["delete web-0"]);
    }
    assert!(planned(&set, &one, &[going(ended(ready(0, "web-1"), "Failed")), ready(1, "web-1")]).is_empty());
}

#[test]
fn an_update_goes_from_the_last_pod_to_the_first() {
    let (set, two) = (stateful_set(3), revisions("web-1", "web-2"));
    let pods = |states: [Pod; 3]| planned(&set, &two, &states);
    assert_eq!(pods([ready(0, "web-1"), ready(1, "web-1"), ready(2, "web-1")]), ["delete web-2"]);
    assert_eq!(pods([ready(0, "web-1"), ready(1, "web-1"), ready(2, "web-2")]), ["delete web-1"]);
    assert!(pods([ready(0, "web-1"), ready(1, "web-1"), unready(2, "web-2")]).is_empty());
    assert!(pods([ready(0, "web-2"), ready(1, "web-2"), ready(2, "web-2")]).is_empty());
    let missing = [ready(0, "web-1"), ready(1, "web-1")];
    assert_eq!(planned(&set, &two, &missing), ["create web-2 of web-2"]);
}

#[test]
fn pods_below_the_partition_stay_and_come_back_as_they_were() {
    let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}});
    let (set, two) = (strategy_of(stateful_set(3), rolling), revisions("web-1", "web-2"));
    assert!(planned(&set, &two, &[ready(0, "web-1"), ready(1, "web-1"), ready(2, "web-2")]).is_empty());
    assert_eq!(
        planned(&set, &two, &[ready(0, "web-1"), ready(1, "web-1"), ready(2, "web-1")]),
        ["delete web-2"]
    );
    assert_eq!(planned(&set, &two, &[ready(0, "web-1"), ready(2, "web-2")]), ["create web-1 of web-1"]);
}

#[test]
fn so_many_pods_are_updated_at_once_as_may_be_away() {
    let rolling = |most: serde_json::Value| json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 1, "maxUnavailable": most}});
    let two = revisions("web-1", "web-2");
    let old = || [ready(0, "web-1"), ready(1, "web-1"), ready(2, "web-1"), ready(3, "web-1")];
    let by = |most| strategy_of(stateful_set(4), rolling(most));
    assert_eq!(planned(&by(json!(2)), &two, &old()), ["delete web-3", "delete web-2"]);
    assert_eq!(planned(&by(json!("50%")), &two, &old()), ["delete web-3", "delete web-2"]);
    assert_eq!(planned(&by(json!("10%")), &two, &old()), ["delete web-3"], "one may always be away");
    assert_eq!(planned(&by(json!(9)), &two, &old()), ["delete web-3", "delete web-2", "delete web-1"]);
}

#[test]
fn parallel_pods_that_are_away_anyway_are_updated_first() {
    let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}});
    let (set, two) = (parallel(strategy_of(stateful_set(4), rolling)), revisions("web-1", "web-2"));
    let pods = [unready(0, "web-1"), ready(1, "web-1"), ready(2, "web-1"), unready(3, "web-2")];
    assert_eq!(planned(&set, &two, &pods), ["delete web-0"], "two are away");
    let pods = [unready(0, "web-1"), ready(1, "web-1"), ready(2, "web-1"), ready(3, "web-2")];
    assert_eq!(planned(&set, &two, &pods), ["delete web-0", "delete web-2"]);
}

#[test]
fn on_delete_updates_what_somebody_else_deleted() {
    let (set, two) = (strategy_of(stateful_set(2), json!({"type": "OnDelete"})), revisions("web-1", "web-2"));
    assert!(planned(&set, &two, &[ready(0, "web-1"), ready(1, "web-1")]).is_empty());
    assert_eq!(planned(&set, &two, &[ready(0, "web-1")]), ["create web-1 of web-2"]);
}

#[test]
fn a_set_that_is_being_deleted_does_nothing() {
    let mut set = stateful_set(3);
    set.metadata.deletion_timestamp = Some(Time(NOW));
    assert!(planned(&set, &revisions("web-1", "web-2"), &[ready(0, "web-1")]).is_empty());
}

#[test]
fn a_pod_that_lost_its_identity_is_repaired() {
    let mut pod = ready(0, "web-1");
    pod.metadata.labels.as_mut().expect("labels").remove("statefulset.kubernetes.io/pod-name");
    assert_eq!(planned(&stateful_set(1), &revisions("web-1", "web-1"), &[pod]), ["repair web-0"]);
}

#[test]
fn a_pending_pod_gets_the_claims_that_it_lacks() {
    let (set, one) = (with_claims(stateful_set(1), &json!({})), revisions("web-1", "web-1"));
    let mut pod = member::new(&set, &one.update, 0);
    pod.status = ended(ready(0, "web-1"), "Pending").status;
    assert_eq!(with(&set, &one, std::slice::from_ref(&pod), &[]), ["supply web-0"]);
    assert!(with(&set, &one, std::slice::from_ref(&pod), &[claim("data-web-0", &json!([]))]).is_empty());
}

#[test]
fn a_pod_waits_until_the_claim_of_its_predecessor_is_gone() {
    let set = with_claims(stateful_set(1), &json!({"whenDeleted": "Retain", "whenScaled": "Delete"}));
    let one = revisions("web-1", "web-1");
    let owner = json!([owner::controller_reference(&ready(0, "web-1"))]);
    assert!(with(&set, &one, &[], &[claim("data-web-0", &owner)]).is_empty());
    assert_eq!(with(&set, &one, &[], &[claim("data-web-0", &json!([]))]), ["create web-0 of web-1"]);
}

#[test]
fn the_claims_of_a_surplus_pod_change_hands_before_it_goes() {
    let set = with_claims(stateful_set(1), &json!({"whenDeleted": "Delete", "whenScaled": "Delete"}));
    let one = revisions("web-1", "web-1");
    let mut pods = [ready(0, "web-1"), ready(1, "web-1")];
    for pod in &mut pods {
        member::mount(&set, pod);
    }
    let owned = json!([owner::controller_reference(&set)]);
    let claims = [claim("data-web-0", &owned), claim("data-web-1", &owned)];
    assert_eq!(with(&set, &one, &pods, &claims), ["bequeath web-1", "delete web-1"]);
}

/// A cluster as far as a set sees it: carries out a plan at once, and lets pods become ready or sick.
struct Cluster {
    pods: BTreeMap<String, Pod>,
}

impl Cluster {
    fn seen(&self) -> Vec<Arc<Pod>> {
        self.pods.values().cloned().map(Arc::new).collect()
    }

    fn carry_out(&mut self, stages: Vec<Stage>) {
        for task in stages.into_iter().flatten() {
            match task {
                Task::Create(mut pod, _) => {
                    pod.status = unready(0, "").status;
                    assert!(
                        self.pods.insert(describe(&Task::Delete(Arc::new((*pod).clone()))), *pod).is_none(),
                        "doubled"
                    );
                }
                Task::Delete(pod) => _ = self.pods.remove(&describe(&Task::Delete(pod))),
                Task::Supply(..) | Task::Repair(..) | Task::Bequeath(..) => panic!("nothing to repair"),
            }
        }
    }

    fn shuffle(&mut self, dice: &[bool]) {
        for (pod, ready) in self.pods.values_mut().zip(dice.iter().cycle()) {
            pod.status = member_pod(0, "", ready.then_some(NOW)).status;
        }
    }
}

proptest! {
    #[test]
    fn an_ordered_set_never_takes_away_more_than_one_pod_at_a_time_and_arrives(
        replicas in 0..6i32, before in 0..6i32, partition in 0..7i32,
        moments in proptest::collection::vec(proptest::collection::vec(any::<bool>(), 1..6), 0..30),
    ) {
        let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": partition}});
        let (set, two) = (strategy_of(stateful_set(replicas), rolling), revisions("web-1", "web-2"));
        let mut cluster = Cluster { pods: BTreeMap::new() };
        for ordinal in 0..before {
            cluster.pods.insert(format!("delete web-{ordinal}"), ready(ordinal, "web-1"));
        }
        let claims = BTreeMap::new();
        let moments = moments.into_iter().chain(std::iter::repeat_n(vec![true], 40));
        for dice in moments {
            cluster.shuffle(&dice);
            let pods = cluster.seen();
            let stages = plan(&Observed { set: &set, revisions: &two, pods: &pods, claims: &claims, now: NOW });
            prop_assert!(stages.iter().flatten().count() <= 1, "{stages:?}");
            cluster.carry_out(stages);
        }
        prop_assert_eq!(i32::try_from(cluster.pods.len()), Ok(replicas));
        for pod in cluster.pods.values() {
            let ordinal = ordinals::of(pod.metadata.name.as_deref()).expect("an ordinal");
            let expected = if ordinal < partition { "web-1" } else { "web-2" };
            prop_assert_eq!(member::revision(pod), expected);
        }
    }

    #[test]
    fn a_parallel_set_has_its_pods_after_one_pass(
        replicas in 0..8i32, start in 0..3i32, there in proptest::collection::btree_set(0..10i32, 0..10),
    ) {
        let mut set = parallel(stateful_set(replicas));
        set.spec.as_mut().expect("a spec").ordinals = kubewright_objects::from_value(json!({"start": start})).ok();
        let one = revisions("web-1", "web-1");
        let mut cluster = Cluster { pods: BTreeMap::new() };
        for ordinal in there {
            cluster.pods.insert(format!("delete web-{ordinal}"), unready(ordinal, "web-1"));
        }
        let pods = cluster.seen();
        let claims = BTreeMap::new();
        cluster.carry_out(plan(&Observed { set: &set, revisions: &one, pods: &pods, claims: &claims, now: NOW }));
        let wanted: BTreeSet<_> = (start..start + replicas).map(|ordinal| format!("delete web-{ordinal}")).collect();
        prop_assert_eq!(cluster.pods.into_keys().collect::<BTreeSet<_>>(), wanted);
    }
}
