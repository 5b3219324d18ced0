use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::*;
use crate::container::{Exit, Identity};
use crate::pod::state::{ByProbe, Instance, Probed};

const START: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// A pod in which time passes and containers end as told.
struct Pod {
    pod_containers: PodContainers,
    state: PodState,
    now: Timestamp,
}

impl Pod {
    fn new(spec: &Value) -> Self {
        let pod =
            kubewright_objects::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).expect("a pod");
        Self { pod_containers: PodContainers::of(&pod), state: PodState::default(), now: START }
    }

    fn decide(&self) -> Decision {
        decide(&self.pod_containers, &self.state, self.now)
    }

    /// The names of what is started now.
    fn started(&self) -> Vec<String> {
        let start = |action: &Action| match action {
            Action::Start { name, .. } => Some(name.clone()),
            _ => None,
        };
        self.decide().actions.iter().filter_map(start).collect()
    }

    /// Carries the decision out: what starts runs at once.
    fn run(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        loop {
            let decision = self.decide();
            let mut ran = false;
            for action in decision.actions {
                match action {
                    Action::Start { name, after } => {
                        let now = self.now;
                        let container = self.state.container_mut(&name);
                        if let Some(after) = after {
                            container.backoff.next(after, now);
                        }
                        self.starts(&name);
                        all.push(name);
                        ran = true;
                    }
                    Action::BackOff { name, until, .. } => {
                        self.state.container_mut(&name).waits = Some(crate::pod::state::Waits {
                            reason: "CrashLoopBackOff".to_owned(),
                            message: String::new(),
                            until,
                        });
                    }
                    _ => {}
                }
            }
            if !ran {
                return all;
            }
        }
    }

    fn starts(&mut self, name: &str) {
        let instance = Instance {
            id: name.to_owned(),
            image: "i".to_owned(),
            image_id: String::new(),
            started_at: self.now,
            identity: Identity::default(),
        };
        let container = self.state.container_mut(name);
        container.last = container.ended().cloned();
        container.runs += 1;
        container.waits = None;
        container.stage = Stage::Running { instance, hooked: true, probed: Probed::default(), ending: None };
    }

    fn ends(&mut self, name: &str, code: i32) {
        let exit = Exit { code, signal: None, out_of_memory: false, at: self.now.into() };
        self.state.exited(name, &exit, None, self.now);
    }

    fn passes(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    fn probed(&mut self, name: &str, says: impl FnOnce(&mut Probed)) {
        if let Stage::Running { probed, .. } = &mut self.state.container_mut(name).stage {
            says(probed);
        }
    }
}

#[test]
fn init_containers_run_one_after_the_other_before_the_others() {
    let mut pod = Pod::new(&json!({
        "initContainers": [{"name": "a"}, {"name": "b"}], "containers": [{"name": "c"}, {"name": "d"}],
    }));
    assert_eq!(pod.run(), ["a"]);
    pod.ends("a", 0);
    assert_eq!(pod.run(), ["b"]);
    pod.ends("b", 0);
    assert_eq!(pod.run(), ["c", "d"]);
    assert_eq!(pod.decide(), Decision::default());
}

#[test]
fn an_init_container_that_fails_for_good_ends_the_pod() {
    let mut pod = Pod::new(&json!({
        "restartPolicy": "Never", "initContainers": [{"name": "a"}], "containers": [{"name": "c"}],
    }));
    pod.run();
    pod.ends("a", 1);
    assert_eq!(pod.decide().actions, [Action::Stop]);
}

#[test]
fn a_failed_init_container_is_tried_again_with_ever_longer_waits() {
    let mut pod = Pod::new(&json!({"initContainers": [{"name": "a"}], "containers": [{"name": "c"}]}));
    pod.run();
    pod.ends("a", 1);
    assert_eq!(pod.run(), ["a"], "the first time at once");
    pod.ends("a", 1);
    assert_eq!(pod.run(), [""; 0]);
    assert_eq!(pod.decide().wake, Some(pod.now + SignedDuration::from_secs(10)));
    pod.passes(10);
    assert_eq!(pod.run(), ["a"]);
}

#[test]
fn a_sidecar_starts_in_its_place_and_the_next_waits_until_it_has_started() {
    let probe = json!({"exec": {"command": ["true"]}});
    let mut pod = Pod::new(&json!({
        "initContainers": [{"name": "s", "restartPolicy": "Always", "startupProbe": probe}, {"name": "i"}],
        "containers": [{"name": "c"}],
    }));
    assert_eq!(pod.run(), ["s"]);
    assert_eq!(pod.run(), [""; 0], "its probe has not succeeded");
    pod.probed("s", |probed| probed.startup = Some(true));
    assert_eq!(pod.run(), ["i"]);
    pod.ends("i", 0);
    assert_eq!(pod.run(), ["c"]);
    pod.ends("s", 0);
    assert_eq!(pod.run(), ["s"], "a sidecar always restarts");
}

#[test]
fn a_sidecar_does_not_keep_a_pod_whose_work_is_done() {
    let mut pod = Pod::new(&json!({
        "restartPolicy": "OnFailure",
        "initContainers": [{"name": "s", "restartPolicy": "Always"}], "containers": [{"name": "c"}],
    }));
    assert_eq!(pod.run(), ["s", "c"]);
    pod.ends("c", 0);
    assert_eq!(pod.decide().actions, [Action::Stop]);
}

#[test]
fn a_container_starts_again_by_the_policy_of_its_pod() {
    for (policy, code, again) in
        [("Always", 0, true), ("OnFailure", 0, false), ("OnFailure", 2, true), ("Never", 2, false)]
    {
        let mut pod = Pod::new(&json!({"restartPolicy": policy, "containers": [{"name": "c"}]}));
        pod.run();
        pod.ends("c", code);
        assert_eq!(pod.started().len() == 1, again, "{policy} {code}");
        assert_eq!(pod.decide().actions.contains(&Action::Stop), !again, "{policy} {code}");
    }
}

#[test]
fn a_crash_loop_waits_from_ten_seconds_to_five_minutes() {
    let mut pod = Pod::new(&json!({"containers": [{"name": "c"}]}));
    pod.run();
    let mut waits = Vec::new();
    for _ in 0..8 {
        pod.ends("c", 1);
        if let [Action::BackOff { wait, .. }] = pod.decide().actions[..] {
            waits.push(wait.as_secs());
            pod.passes(i64::try_from(wait.as_secs()).expect("it is small"));
        }
        assert_eq!(pod.run(), ["c"]);
    }
    assert_eq!(waits, [10, 20, 40, 80, 160, 300, 300]);
    pod.passes(601);
    pod.ends("c", 1);
    assert_eq!(pod.run(), ["c"], "ten good minutes are a new start");
}

#[test]
fn what_waits_for_its_image_does_not_keep_the_next_from_starting() {
    let mut pod = Pod::new(&json!({"containers": [{"name": "a"}, {"name": "b"}]}));
    pod.state.container_mut("a").waits = Some(crate::pod::state::Waits {
        reason: "ErrImagePull".to_owned(),
        message: String::new(),
        until: START + Duration::from_secs(10),
    });
    assert_eq!(pod.run(), ["b"]);
    assert_eq!(pod.decide().wake, Some(START + Duration::from_secs(10)));
}

#[test]
fn one_container_starts_at_a_time() {
    let mut pod = Pod::new(&json!({"containers": [{"name": "a"}, {"name": "b"}]}));
    assert_eq!(pod.started(), ["a"]);
    pod.state.container_mut("a").stage = Stage::Starting(None);
    assert_eq!(pod.started(), [""; 0]);
}

#[test]
fn a_container_that_fails_its_liveness_probe_is_ended_once_and_started_again_at_once() {
    let mut pod = Pod::new(&json!({"containers": [{"name": "c"}]}));
    pod.run();
    pod.passes(40);
    pod.probed("c", |probed| probed.liveness = Some(false));
    let message = "Container c failed liveness probe, will be restarted".to_owned();
    let end = Action::End { name: "c".to_owned(), probe: FailedProbe::Liveness, message };
    assert_eq!(pod.decide().actions, [end]);
    if let Stage::Running { ending, .. } = &mut pod.state.container_mut("c").stage {
        *ending = Some(ByProbe(true));
    }
    assert_eq!(pod.decide(), Decision::default());
    pod.ends("c", 137);
    assert_eq!(pod.run(), ["c"]);
}

#[test]
fn an_unhealthy_container_that_never_restarts_ends_the_pod() {
    let mut pod = Pod::new(&json!({"restartPolicy": "Never", "containers": [{"name": "c"}]}));
    pod.run();
    pod.probed("c", |probed| probed.startup = Some(false));
    let Action::End { message, .. } = &pod.decide().actions[0] else { panic!("it is ended") };
    assert_eq!(message, "Container c failed startup probe");
    pod.ends("c", 137);
    assert_eq!(pod.decide().actions, [Action::Stop]);
}

#[test]
fn a_deleted_pod_starts_nothing_again() {
    let mut pod = Pod::new(&json!({"containers": [{"name": "c"}]}));
    pod.run();
    pod.ends("c", 1);
    let deleted = json!({
        "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"containers": [{"name": "c"}]},
    });
    pod.pod_containers = PodContainers::of(&kubewright_objects::from_value(deleted).expect("a pod"));
    assert_eq!(pod.decide().actions, [Action::Stop]);
}

#[test]
fn an_ephemeral_container_starts_once_and_keeps_nothing() {
    let mut pod = Pod::new(&json!({
        "containers": [{"name": "c"}], "ephemeralContainers": [{"name": "e"}], "restartPolicy": "Never",
    }));
    assert_eq!(pod.run(), ["e", "c"]);
    pod.ends("e", 1);
    assert_eq!(pod.run(), [""; 0]);
    pod.ends("c", 0);
    assert_eq!(pod.decide().actions, [Action::Stop]);
}

#[test]
fn a_rule_can_have_all_containers_start_anew() {
    let rules = json!([{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [88]}}]);
    let mut pod = Pod::new(&json!({"restartPolicy": "Never",
    "initContainers": [{"name": "i"}],
    "containers": [
        {"name": "a", "restartPolicy": "Never", "restartPolicyRules": rules}, {"name": "b"},
    ]}));
    pod.run();
    pod.ends("i", 0);
    pod.run();
    pod.ends("a", 88);
    assert_eq!(pod.decide().actions, [Action::RestartAll]);
    pod.state.restarting_all = true;
    assert_eq!(pod.decide(), Decision::default());
    pod.ends("b", 137);
    pod.state.reset();
    assert_eq!(pod.run(), ["i"]);
}
