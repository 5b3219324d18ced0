use std::sync::Arc;

use kubewright_world::SIMULATION_START as NOW;
use serde_json::{Value, json};

use super::super::template;
use super::super::tests::{deployment, observed};
use super::*;

/// The Deployment's set for its current template, `actual` pods of it there, `available` of them available.
fn set(deployment: &Deployment, size: i32, actual: i32, available: i32) -> Sets {
    let mut set = template::new_replica_set(deployment, size);
    set.metadata.generation = Some(1);
    observed(&mut set, actual, available);
    Sets { new: Some(Arc::new(set)), old: Vec::new() }
}

fn condition(status: &DeploymentStatus, kind: &str) -> Value {
    let found = status.conditions.iter().flatten().find(|condition| condition.type_ == kind);
    found.map_or(Value::Null, |condition| json!([condition.status, condition.reason, condition.message]))
}

fn name(sets: &Sets) -> String {
    sets::name(sets.new.as_ref().expect("a set")).to_owned()
}

fn after(mut deployment: Deployment, sets: &Sets, happened: &Happened, now: Timestamp) -> Deployment {
    deployment.status = Some(status(&deployment, sets, happened, now).0);
    deployment
}

#[test]
fn a_created_set_is_told_then_progress_then_success() {
    let wanted = deployment(2);
    let empty = set(&wanted, 2, 0, 0);
    let created = after(wanted, &empty, &Happened::Created(name(&empty)), NOW);
    let message = format!("Created new replica set {:?}", name(&empty));
    assert_eq!(
        condition(created.status.as_ref().unwrap(), "Progressing"),
        json!(["True", "NewReplicaSetCreated", message])
    );
    assert_eq!(
        condition(created.status.as_ref().unwrap(), "Available"),
        json!(["False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."])
    );

    let half = set(&created, 2, 2, 1);
    let progressing = after(created, &half, &Happened::Nothing, NOW);
    let message = format!("ReplicaSet {:?} is progressing.", name(&half));
    assert_eq!(
        condition(progressing.status.as_ref().unwrap(), "Progressing"),
        json!(["True", "ReplicaSetUpdated", message])
    );

    let whole = set(&progressing, 2, 2, 2);
    let (done, again) = status(&progressing, &whole, &Happened::Nothing, NOW);
    let message = format!("ReplicaSet {:?} has successfully progressed.", name(&whole));
    assert_eq!(condition(&done, "Progressing"), json!(["True", "NewReplicaSetAvailable", message]));
    assert_eq!(
        condition(&done, "Available"),
        json!(["True", "MinimumReplicasAvailable", "Deployment has minimum availability."])
    );
    assert_eq!(again, None);
    assert_eq!(
        (done.replicas, done.unavailable_replicas, done.terminating_replicas),
        (Some(2), None, Some(0))
    );
}

#[test]
fn counts_of_zero_are_left_out() {
    let mut none = deployment(0);
    none.spec.as_mut().unwrap().progress_deadline_seconds = None;
    let (status, _) = status(&none, &set(&none, 0, 0, 0), &Happened::Nothing, NOW);
    let mut value = kubewright_objects::to_value(&status).unwrap();
    value["conditions"] = Value::Null;
    assert_eq!(value, json!({"observedGeneration": 1, "terminatingReplicas": 0, "conditions": null}));
}

#[test]
fn pods_that_could_not_be_made_are_unavailable_and_the_failure_is_passed_on() {
    let wanted = deployment(2);
    let mut sets = set(&wanted, 2, 1, 1);
    let failed =
        json!({"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "no room"});
    let new = Arc::make_mut(sets.new.as_mut().unwrap());
    new.status.as_mut().unwrap().conditions = Some(vec![kubewright_objects::from_value(failed).unwrap()]);
    let (failing, _) = status(&wanted, &sets, &Happened::Nothing, NOW);
    assert_eq!(failing.unavailable_replicas, Some(1));
    assert_eq!(condition(&failing, "ReplicaFailure"), json!(["True", "FailedCreate", "no room"]));

    let recovered = Deployment { status: Some(failing), ..wanted.clone() };
    let (fine, _) = status(&recovered, &set(&wanted, 2, 2, 2), &Happened::Nothing, NOW);
    assert_eq!(condition(&fine, "ReplicaFailure"), Value::Null);
}

#[test]
fn a_rollout_without_progress_times_out_at_its_deadline_and_is_looked_at_then() {
    let wanted = deployment(2);
    let stuck = set(&wanted, 2, 2, 0);
    let started = after(wanted, &stuck, &Happened::Created(name(&stuck)), NOW);
    let started = after(started, &stuck, &Happened::Nothing, NOW);
    let (_, again) = status(&started, &stuck, &Happened::Nothing, NOW + Duration::from_secs(100));
    assert_eq!(again, Some(Duration::from_secs(501)));
    let (late, again) = status(&started, &stuck, &Happened::Nothing, NOW + Duration::from_secs(601));
    let message = format!("ReplicaSet {:?} has timed out progressing.", name(&stuck));
    assert_eq!(condition(&late, "Progressing"), json!(["False", "ProgressDeadlineExceeded", message]));
    assert_eq!(again, None);
}

#[test]
fn a_pause_is_noted_and_so_is_its_end() {
    let mut paused = deployment(2);
    let sets = set(&paused, 2, 1, 1);
    paused.spec.as_mut().unwrap().paused = Some(true);
    let mut resumed = after(paused, &sets, &Happened::Nothing, NOW);
    assert_eq!(
        condition(resumed.status.as_ref().unwrap(), "Progressing"),
        json!(["Unknown", "DeploymentPaused", "Deployment is paused"])
    );
    resumed.spec.as_mut().unwrap().paused = Some(false);
    let (resumed, _) = status(&resumed, &sets, &Happened::Nothing, NOW);
    assert_eq!(
        condition(&resumed, "Progressing"),
        json!(["Unknown", "DeploymentResumed", "Deployment is resumed"])
    );
}

#[test]
fn scaling_a_complete_deployment_is_no_new_rollout() {
    let wanted = deployment(1);
    let mut complete = after(wanted, &set(&deployment(1), 1, 1, 1), &Happened::Nothing, NOW);
    complete.spec.as_mut().unwrap().replicas = Some(4);
    let (status, again) = status(&complete, &set(&complete, 4, 2, 1), &Happened::Nothing, NOW);
    assert_eq!(condition(&status, "Progressing")[1], "NewReplicaSetAvailable");
    assert_eq!(again, None);
}

#[test]
fn without_a_deadline_there_is_no_progressing_condition() {
    let mut patient = deployment(1);
    patient.spec.as_mut().unwrap().progress_deadline_seconds = Some(i32::MAX);
    let (status, _) = status(&patient, &set(&patient, 1, 1, 1), &Happened::Nothing, NOW);
    assert_eq!(condition(&status, "Progressing"), Value::Null);
}

#[test]
fn a_collision_and_a_refusal_are_written_down() {
    let wanted = deployment(1);
    let (collided, _) = status(&wanted, &Sets::default(), &Happened::Collided, NOW);
    assert_eq!(collided.collision_count, Some(1));
    let refused = Happened::NotCreated("Failed to create new replica set \"web-x\": no".into());
    let (refused, _) = status(&wanted, &Sets::default(), &refused, NOW);
    assert_eq!(condition(&refused, "Progressing")[1], "ReplicaSetCreateError");
}

#[test]
fn the_same_state_gives_the_same_status_later() {
    let wanted = deployment(2);
    let sets = set(&wanted, 2, 2, 2);
    let done = after(wanted, &sets, &Happened::Nothing, NOW);
    let (later, _) = status(&done, &sets, &Happened::Nothing, NOW + Duration::from_secs(3600));
    assert_eq!(done.status, Some(later));
}
