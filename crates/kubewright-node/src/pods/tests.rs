//! What happens next to a pod, by what its status says.

use kubewright_world::SIMULATION_START as NOW;

use super::*;

const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const OWN: Ipv4Addr = Ipv4Addr::new(10, 128, 0, 1);
const SECOND: Duration = Duration::from_secs(1);

/// What the kubelet of a node waits for of which nothing is said.
const PATIENT: Waits = Waits { for_probes: true, for_ends: Duration::MAX };

/// The step of a pod on such a node.
fn step(pod: &Pod, now: Timestamp) -> Step {
    super::step(pod, PATIENT, now)
}

fn pod(phase: &str) -> Pod {
    kubewright_objects::from_value(json!({
        "metadata": {"name": "p", "namespace": "shop", "uid": "u"},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "web:1"}]},
        "status": {"phase": phase},
    }))
    .expect("a pod")
}

fn with_status(mut pod: Pod, status: Value) -> Pod {
    pod.status = kubewright_objects::from_value(status).expect("a status");
    pod
}

fn of_a_job(mut pod: Pod) -> Pod {
    let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": true});
    pod.metadata.owner_references = kubewright_objects::from_value(json!([owner])).ok();
    pod.spec.as_mut().expect("a spec").restart_policy = Some("Never".into());
    pod
}

/// The status that a step writes.
fn written(pod: &Pod, now: Timestamp) -> Value {
    match step(pod, now) {
        Step::Report(containers) => status(pod, &containers, Some((Some(HOST), OWN)), &Time(now)),
        other => panic!("nothing is reported: {other:?}"),
    }
}

fn started(pod: &Pod) -> Pod {
    with_status(pod.clone(), written(pod, NOW))
}

fn said(pod: &Pod, kind: &str) -> String {
    let condition = conditions(pod).iter().find(|condition| condition.type_ == kind).expect("the condition");
    let reason = condition.reason.as_deref().map(|reason| format!(" {reason}")).unwrap_or_default();
    condition.status.clone() + &reason
}

#[test]
fn a_bound_pod_runs_and_is_ready_at_once() {
    let status = written(&pod("Pending"), NOW);
    assert_eq!(status["phase"], "Running");
    assert_eq!((&status["podIP"], &status["hostIP"]), (&json!("10.128.0.1"), &json!("10.0.0.1")));
    let container = &status["containerStatuses"][0];
    assert_eq!((&container["ready"], &container["restartCount"]), (&json!(true), &json!(0)));
    assert!(container["state"]["running"]["startedAt"].is_string());
    let running = with_status(pod("Pending"), status);
    for kind in ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"] {
        assert_eq!(said(&running, kind), "True", "{kind}");
    }
    assert_eq!(step(&running, NOW), Step::Rest(None));
}

#[test]
fn a_condition_that_was_there_keeps_its_time() {
    let before = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2025-01-01T00:00:00Z"}]});
    let status = written(&with_status(pod("Pending"), before), NOW);
    let scheduled = status["conditions"].as_array().expect("conditions").last().cloned();
    assert_eq!(
        scheduled,
        Some(json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null,
        "lastTransitionTime": "2025-01-01T00:00:00Z"}))
    );
}

#[test]
fn the_status_says_which_generation_of_the_pod_it_is_of() {
    let mut pod = pod("Pending");
    pod.metadata.generation = Some(1);
    let mut running = started(&pod);
    assert_eq!(step(&running, NOW), Step::Rest(None));
    running.metadata.generation = Some(2);
    let status = written(&running, NOW);
    assert_eq!(status["observedGeneration"], 2);
    for condition in status["conditions"].as_array().expect("conditions") {
        let observed = if condition["type"] == "PodScheduled" { json!(null) } else { json!(2) };
        assert_eq!(condition["observedGeneration"], observed, "{condition}");
    }
    assert_eq!(step(&with_status(running, status), NOW), Step::Rest(None));
}

#[test]
fn an_ephemeral_container_runs_beside_the_others_and_does_not_start_again() {
    let mut running = started(&pod("Pending"));
    let debug = json!([{"name": "debug", "image": "busybox", "command": ["sleep", "3"]}]);
    running.spec.as_mut().expect("a spec").ephemeral_containers = kubewright_objects::from_value(debug).ok();
    let status = written(&running, NOW);
    assert!(status["ephemeralContainerStatuses"][0]["state"]["running"].is_object());
    let ended = written(&with_status(running.clone(), status), NOW + SECOND * 3);
    assert_eq!(ended["phase"], "Running");
    assert_eq!(ended["ephemeralContainerStatuses"][0]["state"]["terminated"]["exitCode"], 0);
    assert_eq!(step(&with_status(running, ended), NOW + SECOND * 4), Step::Rest(None));
}

#[test]
fn a_container_is_ready_after_the_first_delay_of_its_readiness_probe() {
    let mut pod = pod("Pending");
    let probe = json!({"initialDelaySeconds": 20, "httpGet": {"port": 80}});
    pod.spec.as_mut().expect("a spec").containers[0].readiness_probe =
        kubewright_objects::from_value(probe).ok();
    let running = started(&pod);
    assert_eq!((phase(&running), said(&running, "Ready").as_str()), ("Running", "False ContainersNotReady"));
    assert_eq!(step(&running, NOW + SECOND), Step::Rest(Some(SECOND * 19)));
    let status = written(&running, NOW + SECOND * 20);
    assert_eq!(said(&with_status(running.clone(), status), "Ready"), "True");
    assert!(
        matches!(super::step(&running, Waits { for_probes: false, ..PATIENT }, NOW), Step::Report(_)),
        "where nobody waits for probes"
    );
}

#[test]
fn the_pod_of_a_job_whose_program_is_known_runs_as_long_and_ends_as_it_would() {
    let mut pod = of_a_job(pod("Pending"));
    let script = ["sh", "-c", "sleep 30; echo gone > /dev/termination-log; exit 4"];
    pod.spec.as_mut().expect("a spec").containers[0].command = Some(script.map(str::to_owned).to_vec());
    let running = started(&pod);
    assert_eq!(step(&running, NOW), Step::Rest(Some(SECOND * 30)));
    let status = written(&running, NOW + SECOND * 30);
    let state = &status["containerStatuses"][0]["state"]["terminated"];
    assert_eq!((&status["phase"], &state["exitCode"]), (&json!("Failed"), &json!(4)));
    assert_eq!(state["message"], "gone\n");
}

#[test]
fn an_image_that_is_not_there_is_waited_for_until_the_pod_has_another() {
    let mut pod = pod("Pending");
    pod.spec.as_mut().expect("a spec").containers[0].image = Some("webserver:404".into());
    let reason = |pod: &Pod| {
        let status =
            json!(pod.status.as_ref().and_then(|status| status.container_statuses.clone()).expect("one")[0]);
        status["state"]["waiting"]["reason"].clone()
    };
    let first = started(&pod);
    assert_eq!((phase(&first), reason(&first)), ("Pending", json!("ErrImagePull")));
    let second = started(&first);
    assert_eq!(reason(&second), "ImagePullBackOff");
    assert_eq!(step(&second, NOW), Step::Rest(None));
    let mut third = second;
    third.spec.as_mut().expect("a spec").containers[0].image = Some("web:2".into());
    let status = written(&third, NOW + SECOND);
    assert_eq!(
        (&status["phase"], &status["containerStatuses"][0]["image"]),
        (&json!("Running"), &json!("web:2"))
    );
}

#[test]
fn a_deleted_pod_is_there_until_its_known_program_would_have_ended() {
    let deleted = |command: &[&str]| {
        let mut pod = pod("Pending");
        let words = command.iter().map(|word| (*word).to_owned()).collect();
        pod.spec.as_mut().expect("a spec").containers[0].command = Some(words);
        let mut going = started(&pod);
        going.metadata.deletion_timestamp = Some(Time(NOW + SECOND * 30));
        going.metadata.deletion_grace_period_seconds = Some(30);
        going
    };
    let code = |pod: &Pod, seconds: u32| {
        let status = written(pod, NOW + SECOND * seconds);
        status["containerStatuses"][0]["state"]["terminated"]["exitCode"].clone()
    };
    let asleep = deleted(&["sleep", "3600"]);
    assert_eq!(step(&asleep, NOW), Step::Rest(Some(SECOND * 30)));
    assert_eq!(code(&asleep, 30), 137);
    let paused = deleted(&["/agnhost", "pause"]);
    assert_eq!(step(&paused, NOW), Step::Rest(Some(SECOND * 2)));
    assert_eq!(code(&paused, 2), 2);
    let status = written(&paused, NOW + SECOND * 2);
    let stopped = Pod { metadata: paused.metadata.clone(), ..with_status(paused, status) };
    assert_eq!(step(&stopped, NOW + SECOND * 2), Step::Remove);
}

#[test]
fn a_pod_on_the_hosts_network_has_its_address() {
    let mut pod = pod("Pending");
    pod.spec.as_mut().expect("a spec").host_network = Some(true);
    assert_eq!(written(&pod, NOW)["podIP"], "10.0.0.1");
}

#[test]
fn the_pod_of_a_job_is_seen_running_and_ends_well() {
    let running = started(&of_a_job(pod("Pending")));
    assert_eq!(phase(&running), "Running");
    let status = written(&running, NOW);
    assert_eq!(status["phase"], "Succeeded");
    let state = &status["containerStatuses"][0]["state"]["terminated"];
    assert_eq!((&state["exitCode"], &state["reason"]), (&json!(0), &json!("Completed")));
    let done = with_status(running, status);
    assert_eq!(said(&done, "Ready"), "False PodCompleted");
    assert_eq!(step(&done, NOW), Step::Rest(None));
}

#[test]
fn annotations_say_how_long_a_pod_runs_and_how_it_ends() {
    let mut failing = of_a_job(pod("Pending"));
    failing.metadata.annotations = kubewright_objects::from_value(
        json!({"kubewright.dev/run-for": "30s", "kubewright.dev/exit-code": "3"}),
    )
    .ok();
    let running = started(&failing);
    assert_eq!(step(&running, NOW + SECOND * 10), Step::Rest(Some(SECOND * 20)));
    let status = written(&running, NOW + SECOND * 30);
    assert_eq!(status["phase"], "Failed");
    let state = &status["containerStatuses"][0]["state"]["terminated"];
    assert_eq!((&state["exitCode"], &state["reason"]), (&json!(3), &json!("Error")));
    assert_eq!(said(&with_status(running, status), "Ready"), "False PodFailed");
}

#[test]
fn a_pod_in_a_crash_loop_goes_on_and_is_not_ready() {
    let mut crashing = pod("Pending");
    crashing.metadata.annotations =
        kubewright_objects::from_value(json!({"kubewright.dev/exit-code": "1"})).ok();
    let mut now = started(&crashing);
    for _ in 0..4 {
        let status = written(&now, NOW);
        now = with_status(now, status);
    }
    assert_eq!(phase(&now), "Running");
    let status =
        json!(now.status.as_ref().and_then(|status| status.container_statuses.clone()).expect("statuses")[0]);
    assert_eq!(status["state"]["waiting"]["reason"], "CrashLoopBackOff");
    assert_eq!(
        status["state"]["waiting"]["message"],
        "back-off 10s restarting failed container=c pod=p_shop(u)"
    );
    assert_eq!(status["lastState"]["terminated"]["exitCode"], 1);
    assert_eq!(said(&now, "Ready"), "False ContainersNotReady");
    assert_eq!(step(&now, NOW), Step::Rest(Some(SECOND * 10)));
}

#[test]
fn a_pod_that_is_active_for_too_long_fails() {
    let mut limited = pod("Pending");
    limited.spec.as_mut().expect("a spec").active_deadline_seconds = Some(60);
    let running = started(&limited);
    assert_eq!(step(&running, NOW + SECOND * 59), Step::Rest(Some(SECOND)));
    assert!(matches!(step(&running, NOW + SECOND * 60), Step::Kill(_, "DeadlineExceeded", _)));
}

#[test]
fn a_status_set_by_hand_is_left_alone() {
    assert_eq!(step(&of_a_job(pod("Failed")), NOW), Step::Rest(None));
    let unready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]});
    assert_eq!(step(&with_status(pod("Running"), unready), NOW), Step::Rest(None));
    assert_eq!(step(&of_a_job(pod("Running")), NOW), Step::Rest(None), "no container was started here");
    let mut running = started(&pod("Pending"));
    for condition in
        running.status.as_mut().and_then(|status| status.conditions.as_mut()).expect("conditions")
    {
        condition.status = "False".into();
    }
    assert_eq!(step(&running, NOW), Step::Rest(None));
}

#[test]
fn a_pod_is_ready_again_with_its_node() {
    let mut running = started(&pod("Pending"));
    assert_eq!(returned(&running), None);
    for condition in
        running.status.as_mut().and_then(|status| status.conditions.as_mut()).expect("conditions")
    {
        if condition.type_ == "Ready" {
            condition.status = "False".into();
        }
    }
    assert!(matches!(returned(&running), Some(Step::Readiness(Said { is_true: true, .. }))));
}

#[test]
fn a_deleted_pod_goes_at_once_unless_a_finalizer_holds_it() {
    let mut going = pod("Running");
    going.metadata.deletion_timestamp = Some(Time(NOW));
    assert_eq!(step(&going, NOW), Step::Remove);
    going.metadata.finalizers = Some(vec!["example.com/hold".into()]);
    assert_eq!(step(&going, NOW), Step::Rest(None));
    going.metadata.deletion_grace_period_seconds = Some(30);
    assert_eq!(step(&going, NOW), Step::Remove, "its grace period becomes zero");
}

#[test]
fn a_pod_that_takes_its_time_to_stop_has_its_grace_period() {
    let stopping = |takes: &str| {
        let mut going = pod("Pending");
        going.metadata.annotations =
            kubewright_objects::from_value(json!({"kubewright.dev/stop-for": takes})).ok();
        let mut going = started(&going);
        going.metadata.deletion_timestamp = Some(Time(NOW + SECOND * 30));
        going.metadata.deletion_grace_period_seconds = Some(30);
        going
    };
    let code = |pod: &Pod, now: Timestamp| {
        written(pod, now)["containerStatuses"][0]["state"]["terminated"]["exitCode"].clone()
    };
    assert_eq!(step(&stopping("5s"), NOW), Step::Rest(Some(SECOND * 5)));
    assert_eq!(code(&stopping("5s"), NOW + SECOND * 5), 0);
    assert_eq!(step(&stopping("5m"), NOW), Step::Rest(Some(SECOND * 30)));
    let hurried = Waits { for_ends: SECOND * 2, ..PATIENT };
    assert_eq!(super::step(&stopping("5s"), hurried, NOW), Step::Rest(Some(SECOND * 2)));
    assert_eq!(code(&stopping("5m"), NOW + SECOND * 30), 137);
    let pod = stopping("5s");
    let stopped =
        Pod { metadata: pod.metadata.clone(), ..with_status(pod.clone(), written(&pod, NOW + SECOND * 5)) };
    assert_eq!(step(&stopped, NOW + SECOND * 5), Step::Remove);
}

#[test]
fn readiness_follows_the_gates() {
    let mut pending = pod("Pending");
    pending.spec.as_mut().expect("a spec").readiness_gates =
        kubewright_objects::from_value(json!([{"conditionType": "example.com/open"}])).ok();
    let shut = started(&pending);
    assert_eq!(said(&shut, "Ready"), "False ReadinessGatesNotReady");
    assert_eq!(step(&shut, NOW), Step::Rest(None));

    let mut open = shut.clone();
    let opened = json!({"type": "example.com/open", "status": "True"});
    let all = open.status.as_mut().and_then(|status| status.conditions.as_mut()).expect("conditions");
    all.push(kubewright_objects::from_value(opened).expect("a condition"));
    assert!(matches!(step(&open, NOW), Step::Readiness(Said { kind: "Ready", is_true: true, .. })));
}

#[test]
fn init_containers_have_ended_and_sidecars_run() {
    let mut pod = pod("Pending");
    let init =
        json!([{"name": "setup", "image": "i"}, {"name": "proxy", "image": "p", "restartPolicy": "Always"}]);
    pod.spec.as_mut().expect("a spec").init_containers = kubewright_objects::from_value(init).ok();
    let status = written(&pod, NOW);
    assert_eq!(status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"], 0);
    assert!(status["initContainerStatuses"][1]["state"]["running"].is_object());
    assert_eq!(status["phase"], "Running");
}

#[test]
fn an_init_container_that_fails_ends_a_pod_that_never_restarts() {
    let mut pod = of_a_job(pod("Pending"));
    pod.spec.as_mut().expect("a spec").init_containers =
        kubewright_objects::from_value(json!([{"name": "setup"}])).ok();
    pod.metadata.annotations =
        kubewright_objects::from_value(json!({"setup.containers.kubewright.dev/exit-code": "2"})).ok();
    let status = written(&pod, NOW);
    assert_eq!(status["phase"], "Failed");
    assert_eq!(status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"], 2);
}
