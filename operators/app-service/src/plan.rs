//! From what is observed to what should be: a pure function.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kubewright::{
    Error,
    conditions::{self, NewCondition, Status},
    probes::Report,
};

use crate::{AppService, AppServiceStatus, Check, RestartPolicy, check::Question, desired};

/// How many pods a status names.
const NAMED: usize = 100;

/// What is observed of an AppService.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Itself.
    pub app: Arc<AppService>,
    /// The pods that it controls.
    pub pods: Vec<Arc<Pod>>,
    /// Those names of its pods that others have.
    pub taken: Vec<String>,
    /// What its pods said when they were asked.
    pub report: Option<Report>,
    /// When.
    pub now: Timestamp,
}

/// What to do about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What happens to pods.
    pub steps: Vec<Step>,
    /// The status that it should have, by what was observed before.
    pub status: AppServiceStatus,
    /// What its pods are to be asked.
    pub ask: Option<Question>,
}

/// What happens to a pod.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// It is made.
    Create(Box<Pod>),
    /// It is deleted, for this reason.
    Delete {
        /// Which.
        pod: Arc<Pod>,
        /// Why, for people.
        why: &'static str,
    },
}

/// What to do about an AppService that is observed so.
///
/// Pods that are too many go, pods that have ended are made anew as `restartPolicy` says, and pods that were made from another
/// spec are replaced one after the other: the next when all others are ready.
///
/// # Errors
/// When a pod cannot be written down, which no AppService can bring about.
pub fn plan(observed: &Observed) -> Result<Plan, Error> {
    let app = &*observed.app;
    let wanted = desired::names(app);
    let mut steps = Vec::new();
    for name in &wanted {
        let is_there = observed.pods.iter().any(|pod| pod.name_any() == *name);
        if !is_there && !observed.taken.contains(name) {
            steps.push(Step::Create(Box::new(desired::pod(app, name)?)));
        }
    }
    let living: Vec<&Arc<Pod>> = observed.pods.iter().filter(|pod| lives(pod)).collect();
    for pod in &living {
        let why = match ending(pod, app.spec.restart_policy) {
            _ if !wanted.contains(&pod.name_any()) => "it is one too many",
            Some(why) => why,
            None => continue,
        };
        steps.push(Step::Delete { pod: Arc::clone(pod), why });
    }
    if steps.is_empty() {
        steps.extend(replacement(app, &living, wanted.len()));
    }
    let status = status(observed, &living, wanted.len());
    Ok(Plan { steps, status, ask: app.spec.check.as_ref().and_then(|check| question(check, &living)) })
}

/// Whether it is not on its way out.
fn lives(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none()
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|one| one.type_ == "Ready" && one.status == "True")
}

/// Why a pod that has ended is to be made anew, if it is.
fn ending(pod: &Pod, policy: RestartPolicy) -> Option<&'static str> {
    match (phase(pod), policy) {
        ("Succeeded", RestartPolicy::Always) => Some("it has ended"),
        ("Failed", RestartPolicy::Always | RestartPolicy::OnFailure) => Some("it has failed"),
        _ => None,
    }
}

/// The next pod that was made from another spec, if it may go: one that is not ready, or one of pods that all are.
fn replacement(app: &AppService, living: &[&Arc<Pod>], size: usize) -> Option<Step> {
    let template = desired::template(app);
    let old = |pod: &&&Arc<Pod>| pod.annotations().get(desired::SPEC) != Some(&template);
    let all_ready = living.len() == size && living.iter().all(|pod| is_ready(pod));
    let next = living.iter().filter(old).find(|pod| !is_ready(pod));
    let next = next.or_else(|| living.iter().find(old).filter(|_| all_ready))?;
    Some(Step::Delete { pod: Arc::clone(next), why: "it was made from another spec" })
}

/// What the pods that run are to be asked.
fn question(check: &Check, living: &[&Arc<Pod>]) -> Option<Question> {
    let running = living.iter().filter(|pod| phase(pod) == "Running");
    match (&check.exec, &check.http) {
        (Some(command), _) => {
            let pods: Vec<_> = running.map(|pod| kubewright::Key::of(&***pod)).collect();
            (!pods.is_empty()).then(|| Question::Exec { pods, command: command.clone() })
        }
        (None, Some(http)) => {
            let address = |pod: &Arc<Pod>| pod.status.as_ref()?.pod_ip.clone();
            let bracketed = |ip: String| if ip.contains(':') { format!("[{ip}]") } else { ip };
            let uris: Vec<String> = running
                .filter_map(|pod| address(pod))
                .map(|ip| format!("http://{}:{}{}", bracketed(ip), http.port, http.path))
                .collect();
            (!uris.is_empty()).then_some(Question::Http(uris))
        }
        (None, None) => None,
    }
}

fn status(observed: &Observed, living: &[&Arc<Pod>], size: usize) -> AppServiceStatus {
    let app = &*observed.app;
    let ready = living.iter().filter(|pod| is_ready(pod)).count();
    let ended = living.iter().filter(|pod| matches!(phase(pod), "Succeeded" | "Failed")).count();
    let mut conditions = app.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
    let message = format!("{ready} of {size} pods are ready");
    let (phase, reason, message) = if observed.taken.is_empty() {
        let (phase, reason) = match (ready, ended) {
            _ if ready == size && living.len() == size => ("Running", "AllPodsReady"),
            (_, ended) if ended == size && living.len() == size => ("Completed", "PodsEnded"),
            (0, _) => ("Pending", "PodsNotReady"),
            _ => ("Degraded", "PodsNotReady"),
        };
        (phase, reason, message)
    } else {
        let whose = observed.taken.join(", ");
        ("Conflict", "Conflict", format!("not this AppService's, and left alone: Pod {whose}"))
    };
    let ready_now = NewCondition::new("Ready", (phase == "Running").into(), reason).message(message);
    conditions::set(&mut conditions, &ready_now.of(app), observed.now);
    if app.spec.check.is_some() {
        let unknown = || NewCondition::new("Healthy", Status::Unknown, "NotAskedYet");
        let healthy = observed.report.as_ref().map_or_else(unknown, |report| report.condition("Healthy"));
        conditions::set(&mut conditions, &healthy.of(app), observed.now);
    } else {
        conditions::remove(&mut conditions, "Healthy");
    }
    let mut names: Vec<String> = living.iter().map(|pod| pod.name_any()).collect();
    names.sort();
    names.truncate(NAMED);
    let count = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    AppServiceStatus {
        phase: phase.to_owned(),
        pod_names: names,
        replicas: count(living.len()),
        ready_replicas: count(ready),
        selector: format!("{}={}", desired::APP, app.name_any()),
        observed_generation: app.metadata.generation,
        conditions,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn app(spec: Value) -> AppService {
        let mut app = AppService::new("example", kubewright::object::from_value(spec).expect("a spec"));
        app.metadata.namespace = Some("default".to_owned());
        app.metadata.uid = Some("uid-1".to_owned());
        app
    }

    fn made(app: &AppService, number: usize, phase: &str) -> Arc<Pod> {
        let mut pod = desired::pod(app, &desired::name(app, number)).expect("a Pod");
        let ready = if phase == "Running" { "True" } else { "False" };
        let status =
            json!({"phase": phase, "podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": ready}]});
        pod.status = Some(kubewright::object::from_value(status).expect("a status"));
        Arc::new(pod)
    }

    fn observed(app: AppService, pods: Vec<Arc<Pod>>) -> Observed {
        Observed { app: Arc::new(app), pods, taken: Vec::new(), report: None, now: Timestamp::UNIX_EPOCH }
    }

    fn described(plan: &Plan) -> Vec<String> {
        let describe = |step: &Step| match step {
            Step::Create(pod) => format!("create {}", pod.name_any()),
            Step::Delete { pod, why } => format!("delete {}: {why}", pod.name_any()),
        };
        plan.steps.iter().map(describe).collect()
    }

    /// AS-01, Beyond 1.
    #[test]
    fn as_01_so_many_pods_are_made_as_it_says() {
        let plan = plan(&observed(app(json!({"size": 3})), Vec::new())).expect("a plan");
        assert_eq!(described(&plan), ["create example-pod", "create example-pod-1", "create example-pod-2"]);
        let Step::Create(pod) = &plan.steps[0] else { panic!("it is made") };
        let container = &pod.spec.as_ref().expect("a spec").containers[0];
        assert_eq!((container.name.as_str(), container.image.as_deref()), ("busybox", Some("busybox")));
        assert_eq!(container.command.clone().expect("a command"), ["sleep", "3600"]);
        assert_eq!(pod.labels()["app"], "example");
        assert_eq!(plan.status.phase, "Pending");
    }

    #[test]
    fn as_02_where_all_pods_are_nothing_happens() {
        let app = app(json!({}));
        let pods = vec![made(&app, 0, "Running")];
        let plan = plan(&observed(app, pods)).expect("a plan");
        assert_eq!(described(&plan), [""; 0]);
        assert_eq!((plan.status.phase.as_str(), plan.status.pod_names.len()), ("Running", 1));
    }

    #[test]
    fn as_07_at_zero_it_runs_with_an_empty_list() {
        let all = app(json!({"size": 1}));
        let pods = vec![made(&all, 0, "Running")];
        let plan = plan(&observed(app(json!({"size": 0})), pods)).expect("a plan");
        assert_eq!(described(&plan), ["delete example-pod: it is one too many"]);
        let none = super::plan(&observed(app(json!({"size": 0})), Vec::new())).expect("a plan");
        assert_eq!(
            (none.status.phase.as_str(), json!(none.status)["podNames"].clone()),
            ("Running", json!([]))
        );
    }

    /// AS-06, Beyond 3.
    #[test]
    fn as_06_a_pod_that_has_ended_is_made_anew_as_the_policy_says() {
        for (policy, phase, anew) in [
            ("Always", "Succeeded", true),
            ("Always", "Failed", true),
            ("OnFailure", "Succeeded", false),
            ("OnFailure", "Failed", true),
            ("Never", "Failed", false),
            ("Never", "Succeeded", false),
        ] {
            let app = app(json!({"size": 1, "restartPolicy": policy}));
            let pods = vec![made(&app, 0, phase)];
            let plan = plan(&observed(app, pods)).expect("a plan");
            assert_eq!(!plan.steps.is_empty(), anew, "{policy} {phase}");
            assert_eq!(plan.status.phase, "Completed");
        }
    }

    /// AS-06, Beyond 3.
    #[test]
    fn as_06_another_spec_replaces_pods_one_after_the_other() {
        let old = app(json!({"size": 2}));
        let new = || app(json!({"size": 2, "image": "busybox:1.36"}));
        let (a, b) = (made(&old, 0, "Running"), made(&old, 1, "Running"));
        let plan = |pods| super::plan(&observed(new(), pods)).expect("a plan");
        let replaced = "delete example-pod: it was made from another spec";
        assert_eq!(described(&plan(vec![a.clone(), b.clone()])), [replaced]);
        let starting = made(&new(), 0, "Pending");
        assert_eq!(described(&plan(vec![starting, b.clone()])), [""; 0], "the new one is not ready");
        let ready = made(&new(), 0, "Running");
        assert_eq!(described(&plan(vec![ready, b])), ["delete example-pod-1: it was made from another spec"]);
    }

    /// Beyond 4.
    #[test]
    fn as_04_a_name_that_somebody_else_has_is_told_and_left() {
        let mut observed = observed(app(json!({"size": 2})), Vec::new());
        observed.taken = vec!["example-pod".to_owned()];
        let plan = plan(&observed).expect("a plan");
        assert_eq!(described(&plan), ["create example-pod-1"]);
        assert_eq!(plan.status.phase, "Conflict");
    }

    /// Beyond 5.
    #[test]
    fn pods_that_run_are_asked_by_command_or_by_http() {
        let asked = |check: Value, phase: &str| {
            let app = app(json!({"size": 1, "check": check}));
            let pods = vec![made(&app, 0, phase)];
            plan(&observed(app, pods)).expect("a plan").ask
        };
        let pods = vec![kubewright::Key::namespaced("default", "example-pod")];
        let exec = json!({"exec": ["true"]});
        assert_eq!(
            asked(exec.clone(), "Running"),
            Some(Question::Exec { pods, command: vec!["true".to_owned()] })
        );
        assert_eq!(asked(exec, "Pending"), None);
        let http = asked(json!({"http": {"port": 8080}}), "Running");
        assert_eq!(http, Some(Question::Http(vec!["http://10.0.0.1:8080/".to_owned()])));
    }
}
