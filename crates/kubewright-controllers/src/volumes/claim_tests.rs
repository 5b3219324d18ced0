use kubewright_world::SIMULATION_START as NOW;
use serde_json::{Value, json};

use super::*;

fn claim(annotations: &Value, spec: &Value) -> PersistentVolumeClaim {
    let mut claim = json!({"metadata": {"name": "data", "namespace": "ns", "uid": "u", "annotations": annotations},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    for (key, value) in spec.as_object().into_iter().flatten() {
        claim["spec"][key] = value.clone();
    }
    kubewright_objects::from_value(claim).expect("a claim")
}

fn volume(name: &str, reference: &Value) -> Arc<PersistentVolume> {
    Arc::new(
        kubewright_objects::from_value(json!({"metadata": {"name": name}, "status": {"phase": "Available"},
            "spec": {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"], "claimRef": reference}}))
        .expect("a volume"),
    )
}

fn class(name: &str, provisioner: &str, mode: &str, annotations: &Value) -> Arc<StorageClass> {
    Arc::new(
        kubewright_objects::from_value(json!({"metadata": {"name": name, "annotations": annotations,
            "creationTimestamp": NOW.to_string()}, "provisioner": provisioner, "volumeBindingMode": mode}))
        .expect("a class"),
    )
}

fn planned(
    claim: &PersistentVolumeClaim,
    volumes: &[Arc<PersistentVolume>],
    classes: &[Arc<StorageClass>],
) -> Step {
    plan(claim, &Observed { volumes, classes, pods: &[] })
}

fn decided_event(step: Step) -> (&'static str, String) {
    match step {
        Step::Pend(Some(event)) | Step::Lose(event) => (event.reason, event.note),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_claim_without_class_waits_and_says_so() {
    let claim = claim(&json!({}), &json!({}));
    assert_eq!(
        decided_event(planned(&claim, &[], &[])),
        (
            "FailedBinding",
            "no persistent volumes available for this claim and no storage class is set".into()
        )
    );
}

#[test]
fn a_claim_gets_the_default_class_unless_it_asks_for_none() {
    let default = json!({"storageclass.kubernetes.io/is-default-class": "true"});
    let classes = [
        class("slow", "x.example.com", "Immediate", &json!({})),
        class("fast", "x.example.com", "Immediate", &default),
    ];
    assert_eq!(planned(&claim(&json!({}), &json!({})), &[], &classes), Step::Classify("fast".into()));
    let none = claim(&json!({}), &json!({"storageClassName": ""}));
    assert_eq!(decided_event(planned(&none, &[], &classes)).0, "FailedBinding");
}

#[test]
fn a_class_that_is_not_there_is_told() {
    let claim = claim(&json!({}), &json!({"storageClassName": "none"}));
    assert_eq!(
        decided_event(planned(&claim, &[], &[])),
        ("ProvisioningFailed", "storageclass.storage.k8s.io \"none\" not found".into())
    );
}

#[test]
fn a_delayed_claim_waits_for_its_pod_and_takes_only_what_was_reserved() {
    let classes = [class("late", "x.example.com", "WaitForFirstConsumer", &json!({}))];
    let spec = json!({"storageClassName": "late"});
    let waiting = claim(&json!({}), &spec);
    let free = volume("free", &json!(null));
    assert_eq!(decided_event(planned(&waiting, &[free], &classes)).0, "WaitForFirstConsumer");
    let reserved = volume("reserved", &json!({"namespace": "ns", "name": "data", "uid": "u"}));
    assert_eq!(planned(&waiting, std::slice::from_ref(&reserved), &classes), Step::Bind(reserved));
    let placed = claim(&json!({SELECTED_NODE: "node-0"}), &spec);
    assert_eq!(planned(&placed, &[], &classes), Step::Provision(Arc::clone(&classes[0])));
    let pod: Pod =
        kubewright_objects::from_value(json!({"metadata": {"name": "user", "namespace": "ns"}, "spec": {
        "containers": [], "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}}))
        .expect("a pod");
    let observed = Observed { volumes: &[], classes: &classes, pods: &[Arc::new(pod)] };
    assert_eq!(decided_event(plan(&waiting, &observed)).1, "waiting for pod user to be scheduled");
}

#[test]
fn a_volume_asked_for_by_name_is_taken_if_it_is_free_and_suits() {
    let claim = claim(&json!({}), &json!({"volumeName": "disk"}));
    let free = volume("disk", &json!(null));
    assert_eq!(planned(&claim, std::slice::from_ref(&free), &[]), Step::Bind(free));
    assert_eq!(planned(&claim, &[], &[]), Step::Pend(None));
    let taken = volume("disk", &json!({"namespace": "ns", "name": "other", "uid": "o"}));
    assert_eq!(
        decided_event(planned(&claim, &[taken], &[])).1,
        "volume \"disk\" already bound to a different claim."
    );
    let mut large = claim;
    large.spec.as_mut().expect("a specification").storage_class_name = Some("fast".into());
    let note = "Cannot bind to requested volume \"disk\": storageClassName does not match";
    assert_eq!(decided_event(planned(&large, &[volume("disk", &json!(null))], &[])).1, note);
}

#[test]
fn a_claim_that_was_bound_and_is_not_any_more_is_lost() {
    let completed = json!({BIND_COMPLETED: "yes"});
    let bound = claim(&completed, &json!({"volumeName": "disk"}));
    assert_eq!(decided_event(planned(&bound, &[], &[])).0, "ClaimLost");
    assert_eq!(decided_event(planned(&claim(&completed, &json!({})), &[], &[])).0, "ClaimLost");
    let taken = volume("disk", &json!({"namespace": "ns", "name": "data", "uid": "another"}));
    assert_eq!(decided_event(planned(&bound, &[taken], &[])).0, "ClaimMisbound");
    let mine = volume("disk", &json!({"namespace": "ns", "name": "data", "uid": "u"}));
    assert_eq!(planned(&bound, std::slice::from_ref(&mine), &[]), Step::Bind(mine));
}

#[test]
fn both_halves_of_a_bond_say_who_chose() {
    let wanting = claim(&json!({}), &json!({}));
    let free = volume("disk", &json!(null));
    let reserved = reserved(&free, &wanting).expect("a change");
    assert_eq!(json!(reserved.metadata.annotations), json!({BOUND_BY_CONTROLLER: "yes"}));
    let claimed = bound(&wanting, &reserved).expect("a change");
    assert_eq!(
        json!(claimed.metadata.annotations),
        json!({BOUND_BY_CONTROLLER: "yes", BIND_COMPLETED: "yes"})
    );
    assert_eq!(super::reserved(&reserved, &claimed), None);
    assert_eq!(bound(&claimed, &reserved), None);
    let asking = claim(&json!({}), &json!({"volumeName": "disk"}));
    assert_eq!(
        json!(bound(&asking, &free).expect("a change").metadata.annotations),
        json!({BIND_COMPLETED: "yes"})
    );
}

#[test]
fn the_capacity_is_that_of_the_moment_of_the_bond() {
    let wanting = claim(&json!({}), &json!({}));
    let first = status(&wanting, "Bound", Some(&volume("disk", &json!(null))));
    assert_eq!(json!(first.capacity), json!({"storage": "5Gi"}));
    let mut later = wanting;
    later.status = Some(first.clone());
    later.status.as_mut().expect("a status").capacity = None;
    assert_eq!(status(&later, "Bound", Some(&volume("disk", &json!(null)))).capacity, None);
    assert_eq!(status(&later, "Lost", None).access_modes, None);
}
