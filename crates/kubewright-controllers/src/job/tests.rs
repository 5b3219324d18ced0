//! Samples, and whole Jobs played through: what is planned is done at once, and what is counted is checked.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubewright_runtime::finalizer;
use kubewright_world::SIMULATION_START as NOW;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::accounts::{accounts, settle};
use super::backoff::Failures;
use super::end::completed;
use super::plan::{Plan, Step, plan};
use super::pods::{INDEX, TRACKING, index};
use super::status::{announce, count_pods, finish};
use super::view::{View, status, uid};
use crate::pod as pods;

/// A Job `work` of one container `c` with these members of `spec`.
pub(super) fn job(spec: Value) -> Job {
    let mut job = json!({
        "metadata": {"name": "work", "namespace": "default", "uid": "uid-work", "resourceVersion": "1"},
        "spec": {
            "selector": {"matchLabels": {"job": "work"}}, "backoffLimit": 6, "parallelism": 1,
            "template": {"metadata": {"labels": {"job": "work"}}, "spec": {"restartPolicy": "Never",
                "containers": [{"name": "c", "image": "work:1"}]}},
        },
        "status": {"startTime": NOW.to_string()},
    });
    let Value::Object(members) = spec else { panic!("members of a specification") };
    job["spec"].as_object_mut().expect("a specification").extend(members);
    kubewright_objects::from_value(job).expect("a Job")
}

/// A tracked pod of the Job with this status.
pub(super) fn pod(name: &str, status: Value) -> Pod {
    let mut pod = json!({
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"), "resourceVersion": "1",
            "labels": {"job": "work"}, "finalizers": [TRACKING], "creationTimestamp": NOW.to_string(),
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "work", "uid": "uid-work", "controller": true}]},
        "spec": {"containers": [], "nodeName": "node-0"},
    });
    pod["status"] = status;
    kubewright_objects::from_value(pod).expect("a pod")
}

/// A tracked pod of an index in this phase.
pub(super) fn indexed_pod(name: &str, index: u32, phase: &str) -> Pod {
    let mut pod = pod(name, json!({"phase": phase}));
    pod.metadata.annotations.get_or_insert_default().insert(INDEX.into(), index.to_string());
    pod
}

fn in_phase(name: &str, phase: &str) -> Pod {
    pod(name, json!({"phase": phase}))
}

fn planned(job: &Job, pods: &[Pod], failures: Failures) -> Plan {
    let pods = pods.iter().cloned().map(Arc::new).collect();
    plan(&View::new(job, pods, NOW).expect("a spec"), failures)
}

/// How many pods the plan creates, deletes, and why the Job ends.
fn summary(plan: &Plan) -> (usize, usize, &str) {
    let reason = plan.end.as_ref().map_or("", |end| end.reason.as_str());
    match &plan.step {
        Step::Rest => (0, 0, reason),
        Step::Create(pods) => (pods.len(), 0, reason),
        Step::Stop(pods) | Step::Drop(pods) => (0, pods.len(), reason),
    }
}

fn step(job: &Job, pods: &[Pod]) -> (usize, usize, String) {
    let plan = planned(job, pods, Failures::default());
    let (create, delete, reason) = summary(&plan);
    (create, delete, reason.to_owned())
}

#[test]
fn there_are_as_many_pods_as_the_job_wants_and_may_still_need() {
    let three_of_five = job(json!({"completions": 5, "parallelism": 3}));
    assert_eq!(step(&three_of_five, &[]), (3, 0, String::new()));
    let done = ["a", "b", "c"].map(|name| in_phase(name, "Succeeded"));
    assert_eq!(step(&three_of_five, &done), (2, 0, String::new()));
    let running = ["a", "b", "c", "d"].map(|name| in_phase(name, "Running"));
    assert_eq!(step(&three_of_five, &running), (0, 1, String::new()));
    let mut going = three_of_five.clone();
    going.metadata.deletion_timestamp = Some(Time(NOW));
    assert_eq!(step(&going, &[]), (0, 0, String::new()), "a Job that is being deleted starts nothing");
}

#[test]
fn without_completions_the_first_success_is_the_last_start() {
    let queue = job(json!({"parallelism": 3}));
    assert_eq!(step(&queue, &[in_phase("a", "Running")]), (2, 0, String::new()));
    let some = [in_phase("a", "Running"), in_phase("b", "Succeeded")];
    assert_eq!(step(&queue, &some), (0, 0, String::new()));
    let all = [in_phase("b", "Succeeded")].map(Arc::new).to_vec();
    let view = View::new(&queue, all, NOW).expect("a spec");
    assert!(completed(&view, 0).is_some() && completed(&view, 1).is_none());
}

#[test]
fn a_failed_pod_is_replaced_when_its_wait_is_over() {
    let work = job(json!({"completions": 1}));
    let failed = pod("a", json!({"phase": "Failed"}));
    let row = Failures::default().after([], [&failed]);
    let plan = planned(&work, &[failed], row);
    assert_eq!((summary(&plan), plan.again), ((0, 0, ""), Some(Duration::from_secs(10))));
}

#[test]
fn a_terminating_pod_is_replaced_at_once_or_when_it_has_ended() {
    let mut going = in_phase("a", "Running");
    going.metadata.deletion_timestamp = Some(Time(NOW - Duration::from_secs(100)));
    let of = |policy: &str| job(json!({"completions": 1, "podReplacementPolicy": policy}));
    assert_eq!(step(&of("TerminatingOrFailed"), std::slice::from_ref(&going)).0, 1);
    assert_eq!(step(&of("Failed"), &[going]).0, 0);
}

#[test]
fn the_reasons_to_fail_come_in_order() {
    let failed = |name| pod(name, json!({"phase": "Failed"}));
    let limited =
        job(json!({"completions": 3, "parallelism": 3, "backoffLimit": 0, "activeDeadlineSeconds": 0}));
    assert_eq!(
        step(&limited, &[failed("a"), in_phase("b", "Running")]),
        (0, 1, "BackoffLimitExceeded".into())
    );
    assert_eq!(step(&limited, &[in_phase("b", "Running")]), (0, 1, "DeadlineExceeded".into()));
    let mut announced = limited.clone();
    let condition =
        json!([{"type": "FailureTarget", "status": "True", "reason": "PodFailurePolicy", "message": "m"}]);
    announced.status.get_or_insert_default().conditions = kubewright_objects::from_value(condition).ok();
    assert_eq!(step(&announced, &[]), (0, 0, "PodFailurePolicy".into()), "what was announced stays");
}

#[test]
fn restarts_in_the_pod_count_towards_the_limit() {
    let mut work = job(json!({"completions": 1, "backoffLimit": 2}));
    if let Some(spec) = work.spec.as_mut().and_then(|spec| spec.template.spec.as_mut()) {
        spec.restart_policy = Some("OnFailure".into());
    }
    let restarted = |count| {
        pod(
            "a",
            json!({"phase": "Running", "containerStatuses": [
            {"name": "c", "image": "i", "imageID": "", "ready": true, "restartCount": count}]}),
        )
    };
    assert_eq!(step(&work, &[restarted(1)]).2, "");
    assert_eq!(step(&work, &[restarted(2)]).2, "BackoffLimitExceeded");
}

#[test]
fn each_index_has_one_pod_the_most_advanced() {
    let work = job(json!({"completionMode": "Indexed", "completions": 3, "parallelism": 3}));
    let pods = [
        indexed_pod("pending", 1, "Pending"),
        indexed_pod("running", 1, "Running"),
        indexed_pod("beyond", 3, "Running"),
        in_phase("none", "Running"),
    ];
    let plan = planned(&work, &pods, Failures::default());
    let Step::Drop(going) = plan.step else { panic!("something has to go") };
    let names: BTreeSet<_> = going.iter().filter_map(|pod| pod.metadata.name.as_deref()).collect();
    assert_eq!(names, BTreeSet::from(["beyond", "none", "pending"]));
    let plan = planned(
        &work,
        &[indexed_pod("one", 1, "Running"), indexed_pod("done", 0, "Succeeded")],
        Failures::default(),
    );
    let Step::Create(new) = plan.step else { panic!("a pod is missing") };
    assert_eq!(new.iter().filter_map(index).collect::<Vec<_>>(), [2]);
}

#[test]
fn the_failed_pod_of_an_index_is_held_until_another_goes_on_from_it() {
    let work = job(
        json!({"completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimitPerIndex": 2}),
    );
    let released = |pods: Vec<Pod>| {
        let view = View::new(&work, pods.into_iter().map(Arc::new).collect(), NOW).expect("a spec");
        let release = accounts(&view, None, status(&work)).release;
        release.iter().filter_map(|pod| pod.metadata.name.clone()).collect::<Vec<_>>()
    };
    let failed = indexed_pod("failed", 0, "Failed");
    assert_eq!(released(vec![failed.clone()]), Vec::<String>::new());
    assert_eq!(released(vec![failed, indexed_pod("next", 0, "Running")]), ["failed"]);
}

#[test]
fn a_pass_counts_at_most_five_hundred_pods() {
    let work = job(json!({"completions": 900, "parallelism": 900}));
    let pods: Vec<_> = (0..900).map(|at| Arc::new(in_phase(&format!("p{at}"), "Succeeded"))).collect();
    let counted = accounts(&View::new(&work, pods, NOW).expect("a spec"), None, status(&work));
    assert_eq!((counted.release.len(), counted.more), (500, true));
}

/// A Job and its pods; every write takes effect at once.
struct Play {
    job: Job,
    pods: Vec<Pod>,
    made: usize,
}

impl Play {
    /// One pass; it is broken off before its `stop`-th write.
    fn pass(&mut self, stop: usize) {
        let pods: Vec<_> = self.pods.iter().cloned().map(Arc::new).collect();
        let job = self.job.clone();
        let view = View::new(&job, pods, NOW).expect("a spec");
        let Plan { end, step, .. } = plan(&view, Failures::default());
        let mut writes = (0..stop).map(|_| ());
        if self.act(step, &mut writes).is_none() {
            return;
        }
        let mut status = status(&job);
        count_pods(&mut status, self.pods.iter());
        let active = status.active.unwrap_or_default();
        let end = if end.is_some() { end.filter(|_| active == 0) } else { completed(&view, active) };
        let counted = accounts(&view, end.as_ref(), status);
        let (mut status, mut tracked) = (counted.status, counted.tracked);
        if let Some(end) = &end {
            announce(&mut status, end, NOW);
        }
        let Some(()) = writes.next() else { return };
        self.job.status = Some(status.clone());
        for pod in counted.release {
            let Some(()) = writes.next() else { return };
            self.pods.iter_mut().filter(|other| uid(other) == uid(&pod)).for_each(|pod| {
                finalizer::remove(pod, TRACKING);
            });
            tracked.remove(uid(&pod));
        }
        settle(&mut status, &tracked);
        if let Some(end) = end.filter(|_| !counted.more) {
            finish(&mut status, &end, NOW);
        }
        if let Some(()) = writes.next() {
            self.job.status = Some(status);
        }
    }

    fn act(&mut self, step: Step, writes: &mut impl Iterator<Item = ()>) -> Option<()> {
        match step {
            Step::Rest => {}
            Step::Create(new) => {
                for mut pod in new {
                    writes.next()?;
                    self.made += 1;
                    pod.metadata.name = Some(format!("p{}", self.made));
                    pod.metadata.uid = pod.metadata.name.clone();
                    pod.status = kubewright_objects::from_value(json!({"phase": "Running"})).ok();
                    self.pods.push(pod);
                }
            }
            Step::Stop(going) | Step::Drop(going) => {
                for pod in going {
                    writes.next()?;
                    self.pods.retain(|other| uid(other) != uid(&pod));
                }
            }
        }
        Some(())
    }

    fn status(&self) -> JobStatus {
        status(&self.job)
    }

    fn is_over(&self) -> bool {
        super::finished(&self.job).is_some()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn pods_are_counted_once_wherever_a_pass_is_broken_off(
        (completions, parallelism, indexed) in (1..8_i32, 1..5_i32, any::<bool>()),
        stops in prop::collection::vec(0..12_usize, 0..60),
        fates in prop::collection::vec(0..4_u8, 200),
    ) {
        let mode = if indexed { "Indexed" } else { "NonIndexed" };
        let spec = json!({"completions": completions, "parallelism": parallelism, "completionMode": mode, "backoffLimit": 1000});
        let mut play = Play { job: job(spec), pods: Vec::new(), made: 0 };
        let mut fates = fates.into_iter().cycle();
        for stop in stops.into_iter().chain(std::iter::repeat_n(1000, 100)) {
            play.pass(stop);
            let active = play.pods.iter().filter(|pod| pods::is_active(pod)).count();
            prop_assert!(active <= usize::try_from(parallelism).unwrap_or_default());
            for pod in play.pods.iter_mut().filter(|pod| pods::is_active(pod)) {
                let phase = match fates.next() {
                    Some(0) => "Failed",
                    Some(1) => continue,
                    _ => "Succeeded",
                };
                pod.status.get_or_insert_default().phase = Some(phase.to_owned());
            }
        }
        prop_assert!(play.is_over(), "{:?}", play.job.status);
        let ended = |phase: &str| play.pods.iter().filter(|pod| pods::phase(pod) == phase).count();
        let counted = |count: Option<i32>| usize::try_from(count.unwrap_or_default()).unwrap_or_default();
        let status = play.status();
        prop_assert_eq!(counted(status.succeeded), ended("Succeeded"));
        prop_assert_eq!(counted(status.failed), ended("Failed"));
        prop_assert_eq!(status.succeeded, Some(completions));
        prop_assert!(play.pods.iter().all(|pod| !super::pods::is_tracked(pod)));
    }
}
