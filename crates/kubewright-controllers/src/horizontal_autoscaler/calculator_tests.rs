use jiff::ToSpan;
use k8s_openapi::api::core::v1::Pod;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

fn ago(seconds: i64) -> String {
    (NOW - seconds.seconds()).to_string()
}

/// A pod in `phase` that asks for 100m, started so long ago; its condition `Ready` and since when.
fn pod(name: &str, phase: &str, started: i64, ready: (&str, i64)) -> Arc<Pod> {
    let status = json!({"phase": phase, "startTime": ago(started),
        "conditions": [{"type": "Ready", "status": ready.0, "lastTransitionTime": ago(ready.1)}]});
    of_status(name, &status)
}

fn of_status(name: &str, status: &Value) -> Arc<Pod> {
    let containers = json!([{"name": "c", "resources": {"requests": {"cpu": "100m"}}}]);
    let pod = json!({"metadata": {"name": name}, "spec": {"containers": containers}, "status": status});
    Arc::new(kubewright_objects::from_value(pod).expect("a pod"))
}

fn ready(name: &str) -> Arc<Pod> {
    pod(name, "Running", 3600, ("True", 3500))
}

fn samples(values: &[(&str, i64)]) -> Samples {
    let sample = |value| Sample { value, at: Some(NOW), window: SignedDuration::ZERO };
    values.iter().map(|(pod, value)| ((*pod).to_owned(), sample(*value))).collect()
}

fn scene(pods: &[Arc<Pod>]) -> Scene<'_> {
    let replicas = i32::try_from(pods.len()).expect("few pods");
    Scene {
        pods,
        spec_replicas: replicas,
        status_replicas: replicas,
        tolerances: Tolerances { down: 0.1, up: 0.1 },
        now: NOW,
        kubernetes: Version::DEFAULT,
    }
}

fn cpu(pods: &[Arc<Pod>], values: &[(&str, i64)], target: i32) -> Result<(i32, i32), String> {
    let usage = scene(pods).for_utilization(samples(values), ("cpu", None), target)?;
    Ok((usage.replicas, usage.percent))
}

#[test]
fn replicas_follow_the_ratio_of_usage_and_target() {
    let pods = [ready("a"), ready("b"), ready("c")];
    assert_eq!(cpu(&pods, &[("a", 200), ("b", 200), ("c", 200)], 50), Ok((12, 200)));
    assert_eq!(cpu(&pods, &[("a", 10), ("b", 20), ("c", 15)], 50), Ok((1, 15)));
}

#[test]
fn within_the_tolerance_nothing_happens() {
    let pods = [ready("a"), ready("b")];
    assert_eq!(cpu(&pods, &[("a", 55), ("b", 55)], 50), Ok((2, 55)));
    assert_eq!(cpu(&pods, &[("a", 45), ("b", 45)], 50), Ok((2, 45)));
    assert_eq!(cpu(&pods, &[("a", 56), ("b", 56)], 50), Ok((3, 56)));
    let wide = Scene { tolerances: Tolerances { down: 0.1, up: 0.5 }, ..scene(&pods) };
    let usage = wide.for_utilization(samples(&[("a", 70), ("b", 70)]), ("cpu", None), 50).expect("a usage");
    assert_eq!(usage.replicas, 2);
}

#[test]
fn a_pod_that_was_not_measured_counts_against_the_change() {
    let pods = [ready("a"), ready("b"), ready("c")];
    // Down: as if it used all that it asks for. 0.3 of the target would be one.
    assert_eq!(cpu(&pods, &[("a", 30), ("b", 30)], 100), Ok((2, 30)));
    assert_eq!(cpu(&pods, &[("a", 30)], 100), Ok((3, 30)));
    // Up: as if it used nothing.
    assert_eq!(cpu(&pods, &[("a", 300), ("b", 300)], 100), Ok((6, 300)));
    assert_eq!(cpu(&pods, &[("a", 150)], 100), Ok((3, 150)));
}

#[test]
fn pods_that_are_not_ready_yet_count_as_idle_when_it_goes_up() {
    let pods = [ready("a"), pod("b", "Pending", 0, ("False", 0)), pod("c", "Pending", 0, ("False", 0))];
    assert_eq!(cpu(&pods, &[("a", 300)], 100), Ok((3, 300)));
    assert_eq!(cpu(&pods, &[("a", 900)], 100), Ok((9, 900)));
    assert_eq!(cpu(&pods, &[("a", 20)], 100), Ok((1, 20)));
}

#[test]
fn what_a_starting_pod_uses_of_the_processor_does_not_count() {
    for (pod, counts) in [
        (pod("a", "Running", 100, ("True", 50)), true),
        (pod("a", "Running", 100, ("False", 50)), false),
        // Ready since after it was measured.
        (pod("a", "Running", 100, ("True", -1)), false),
        // Long after the start: it has been ready before, or never.
        (pod("a", "Running", 3600, ("False", 10)), true),
        (pod("a", "Running", 3600, ("False", 3590)), false),
        (of_status("a", &json!({"phase": "Running"})), false),
    ] {
        let usage = cpu(std::slice::from_ref(&pod), &[("a", 200)], 100);
        assert_eq!(usage.is_ok(), counts, "{pod:?}");
        let memory = scene(&[pod]).for_average(samples(&[("a", 200)]), false, 100);
        assert_eq!(memory.expect("a usage").replicas, 2);
    }
}

#[test]
fn pods_that_are_going_or_failed_do_not_count() {
    let pods = [ready("a"), pod("b", "Failed", 3600, ("True", 3500))];
    assert_eq!(cpu(&pods, &[("a", 100), ("b", 900)], 100), Ok((2, 100)));
    assert_eq!(cpu(&pods, &[("a", 200), ("b", 900)], 100), Ok((2, 200)));
}

#[test]
fn what_cannot_be_said_is_told_in_the_words_of_kubernetes() {
    assert_eq!(cpu(&[], &[], 50), Err("no pods returned by selector while calculating replica count".into()));
    let starting = [pod("a", "Pending", 0, ("False", 0))];
    let unready = "did not receive metrics for targeted pods (pods might be unready)";
    assert_eq!(cpu(&starting, &[("a", 1)], 50), Err(unready.into()));
    let nobody = Scene { spec_replicas: 3, ..scene(&[]) };
    let error =
        "unable to calculate ready pods: no pods returned by selector while calculating replica count";
    assert_eq!(nobody.for_value(1, 9), Err(error.into()));
    let idle = [of_status("a", &json!({"phase": "Running"}))];
    let mut pod = (*idle[0]).clone();
    pod.spec.as_mut().expect("a spec").containers[0].resources = None;
    let usage = scene(&[Arc::new(pod)]).for_utilization(samples(&[("a", 1)]), ("memory", None), 50);
    assert_eq!(usage, Err("missing request for memory in container c of Pod a".into()));
}

#[test]
fn one_value_is_shared_by_the_ready_pods_or_by_all() {
    let pods = [ready("a"), ready("b"), pod("c", "Running", 3600, ("False", 100))];
    assert_eq!(scene(&pods).for_value(30_000, 10_000), Ok(Usage { replicas: 6, usage: 30_000 }));
    assert_eq!(scene(&pods).for_value(10_500, 10_000), Ok(Usage { replicas: 3, usage: 10_500 }));
    assert_eq!(scene(&pods).for_value_per_pod(5500, 10_000), Usage { replicas: 1, usage: 1834 });
    assert_eq!(scene(&pods).for_value_per_pod(29_000, 10_000), Usage { replicas: 3, usage: 9667 });
    let most = scene(&pods).for_value_per_pod(i64::MAX, 1);
    assert_eq!((most.replicas, most.usage), (i32::MAX, i64::MAX));
}

/// How a pod of the model is.
#[derive(Clone, Copy, Debug)]
enum State {
    Measured(i64),
    Missing,
    Pending,
    Failed,
}

fn states() -> impl Strategy<Value = Vec<State>> {
    let state = prop_oneof![
        4 => (0..400_i64).prop_map(State::Measured),
        1 => Just(State::Missing),
        1 => Just(State::Pending),
        1 => Just(State::Failed),
    ];
    proptest::collection::vec(state, 1..12)
}

/// The rule as the documentation tells it: a first ratio of those that were measured; the others then are assumed to use
/// all or nothing, and must not turn the direction.
fn model(states: &[State], replicas: i32, target: i32) -> Option<i32> {
    let measured = |state: &State| if let State::Measured(value) = state { Some(*value) } else { None };
    let count = |wanted: fn(&State) -> bool| states.iter().filter(|state| wanted(state)).count();
    let ratio_of = |values: &[i64]| {
        let percent = values.iter().sum::<i64>() * 100 / (100 * values.len() as i64);
        percent as f64 / f64::from(target)
    };
    let mut values: Vec<i64> = states.iter().filter_map(measured).collect();
    if values.is_empty() {
        return None;
    }
    let first = ratio_of(&values);
    let missing = count(|state| matches!(state, State::Missing));
    let pending = count(|state| matches!(state, State::Pending));
    if first > 1.0 {
        values.extend(vec![0; missing + pending]);
    } else if first < 1.0 {
        values.extend(vec![i64::from(target.max(100)); missing]);
    }
    let ratio = ratio_of(&values);
    let steady = (0.9..=1.1).contains(&ratio) || (first < 1.0) != (ratio < 1.0);
    if steady {
        return Some(replicas);
    }
    let proposed = (ratio * values.len() as f64).ceil() as i32;
    let assumed = missing > 0 || (first > 1.0 && pending > 0);
    let against = if ratio > 1.0 { proposed < replicas } else { proposed > replicas };
    Some(if assumed && against { replicas } else { proposed })
}

proptest! {
    #[test]
    fn the_arithmetic_is_that_of_the_model(states in states(), replicas in 1..15, target in 1..200) {
        let name = |at: usize| format!("p{at}");
        let mut pods = Vec::new();
        let mut values = Vec::new();
        for (at, state) in states.iter().enumerate() {
            let phase = match state {
                State::Pending => "Pending",
                State::Failed => "Failed",
                State::Measured(_) | State::Missing => "Running",
            };
            pods.push(pod(&name(at), phase, 3600, ("True", 3500)));
            if let State::Measured(value) = state {
                values.push((name(at), *value));
            }
        }
        let values: Vec<_> = values.iter().map(|(pod, value)| (pod.as_str(), *value)).collect();
        let scene = Scene { spec_replicas: replicas, ..scene(&pods) };
        let usage = scene.for_utilization(samples(&values), ("cpu", None), target);
        prop_assert_eq!(usage.ok().map(|usage| usage.replicas), model(&states, replicas, target));
    }

    #[test]
    fn no_numbers_make_it_panic(usage in any::<i64>(), target in any::<i64>(), replicas in any::<i32>(), percent in any::<i32>()) {
        let pods = [ready("a"), ready("b")];
        let scene = Scene { spec_replicas: replicas, status_replicas: replicas, ..scene(&pods) };
        let _ = scene.for_value(usage, target);
        let _ = scene.for_value_per_pod(usage, target);
        let _ = scene.for_average(samples(&[("a", usage)]), true, target);
        let _ = scene.for_utilization(samples(&[("a", usage)]), ("cpu", None), percent);
    }
}
