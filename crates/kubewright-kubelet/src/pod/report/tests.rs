use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::*;
use crate::container::{Exit, Identity};
use crate::pod::state::Waits;

const START: Timestamp = Timestamp::constant(1_767_225_600, 0);

fn pod(spec: &Value) -> Pod {
    kubewright_objects::from_value(json!({"metadata": {"name": "p", "generation": 2}, "spec": spec}))
        .expect("a pod")
}

fn of(pod: &Pod, state: &PodState) -> PodStatus {
    status(pod, &PodContainers::of(pod), state, IpAddr::V4(Ipv4Addr::LOCALHOST), START)
}

fn runs(state: &mut PodState, name: &str) {
    let instance = Instance {
        id: format!("id-{name}"),
        image: "i".to_owned(),
        image_id: "i@sha256:1".to_owned(),
        started_at: START,
        identity: Identity { uid: 7, gid: 8, groups: vec![9] },
    };
    let container = state.container_mut(name);
    container.runs += 1;
    container.stage = Stage::Running { instance, hooked: true, probed: Probed::default(), ending: None };
}

fn ends(state: &mut PodState, name: &str, code: i32) {
    state.exited(name, &Exit { code, signal: None, out_of_memory: false, at: START.into() }, None, START);
}

#[test]
fn a_pod_that_has_not_begun_is_pending_and_says_what_it_waits_for() {
    let plain = of(&pod(&json!({"containers": [{"name": "c", "image": "i"}]})), &PodState::default());
    assert_eq!(plain.phase.as_deref(), Some("Pending"));
    let reason = |status: &PodStatus| {
        let container = status.container_statuses.as_ref().expect("statuses")[0].clone();
        container.state.and_then(|state| state.waiting).and_then(|waiting| waiting.reason)
    };
    assert_eq!(reason(&plain).as_deref(), Some("ContainerCreating"));
    let with_init = of(
        &pod(&json!({"initContainers": [{"name": "i"}], "containers": [{"name": "c"}]})),
        &PodState::default(),
    );
    assert_eq!(reason(&with_init).as_deref(), Some("PodInitializing"));
    let conditions = with_init.conditions.expect("conditions");
    let initialized =
        conditions.iter().find(|condition| condition.type_ == "Initialized").expect("it is told");
    assert_eq!(initialized.message.as_deref(), Some("containers with incomplete status: [i]"));
    assert_eq!(initialized.observed_generation, Some(2));
}

#[test]
fn a_running_container_tells_who_it_is() {
    let pod = pod(&json!({"containers": [{"name": "c", "image": "i"}]}));
    let mut state = PodState { worker_state: PodWorkerState::Running, ..PodState::default() };
    runs(&mut state, "c");
    let status = of(&pod, &state);
    assert_eq!(status.phase.as_deref(), Some("Running"));
    let container = &status.container_statuses.expect("statuses")[0];
    assert_eq!(container.container_id.as_deref(), Some("kubewright://id-c"));
    assert_eq!(container.image_id, "i@sha256:1");
    let user = container.user.clone().and_then(|user| user.linux).expect("a user");
    assert_eq!((user.uid, user.gid, user.supplemental_groups), (7, 8, Some(vec![8, 9])));
}

#[test]
fn a_container_that_waits_to_start_again_keeps_how_it_ended_as_its_last_state() {
    let pod = pod(&json!({"containers": [{"name": "c"}]}));
    let mut state = PodState { worker_state: PodWorkerState::Running, ..PodState::default() };
    runs(&mut state, "c");
    ends(&mut state, "c", 2);
    state.container_mut("c").waits =
        Some(Waits { reason: "CrashLoopBackOff".to_owned(), message: "m".to_owned(), until: START });
    let status = of(&pod, &state);
    assert_eq!(status.phase.as_deref(), Some("Running"), "it will run again");
    let container = &status.container_statuses.expect("statuses")[0];
    assert!(container.state.clone().is_some_and(|state| state.waiting.is_some()));
    let last = container.last_state.clone().and_then(|state| state.terminated).expect("a last state");
    assert_eq!((last.exit_code, last.reason.as_deref()), (2, Some("Error")));
}

#[test]
fn a_pod_is_not_over_while_something_of_it_still_ends() {
    let pod = pod(&json!({
        "restartPolicy": "Never",
        "initContainers": [{"name": "s", "restartPolicy": "Always"}], "containers": [{"name": "c"}],
    }));
    let mut state = PodState { worker_state: PodWorkerState::Terminating, ..PodState::default() };
    runs(&mut state, "s");
    runs(&mut state, "c");
    ends(&mut state, "c", 0);
    assert_ne!(of(&pod, &state).phase.as_deref(), Some("Succeeded"));
    ends(&mut state, "s", 143);
    state.worker_state = PodWorkerState::Terminated;
    assert_eq!(of(&pod, &state).phase.as_deref(), Some("Succeeded"), "how a sidecar ends does not count");
}

#[test]
fn a_status_that_says_the_same_does_not_differ() {
    let mut pod = pod(&json!({"containers": [{"name": "c", "image": "i"}]}));
    let mut state = PodState { worker_state: PodWorkerState::Running, ..PodState::default() };
    runs(&mut state, "c");
    let status = of(&pod, &state);
    assert!(differs(&pod, &status));
    let stored = kubewright_objects::to_value(&status).expect("it is JSON");
    pod.status = Some(kubewright_objects::from_value(stored).expect("it is a status"));
    assert!(!differs(&pod, &of(&pod, &state)));
    ends(&mut state, "c", 0);
    assert!(differs(&pod, &of(&pod, &state)));
}
