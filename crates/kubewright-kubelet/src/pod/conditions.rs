//! The conditions of a pod that are the kubelet's to set (`pkg/kubelet/status/generate.go`).

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::pod_containers::{PodContainer, PodContainers, Role};
use crate::newer;

/// Those that the kubelet sets; others are left alone.
pub(crate) const OWN: [&str; 6] = [
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
    "AllContainersRestarting",
];

/// What a pod's conditions are made of.
pub(crate) struct Facts<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) pod_containers: &'a PodContainers,
    pub(crate) statuses: &'a [ContainerStatus],
    pub(crate) phase: &'a str,
    /// Its volumes and its address are there.
    pub(crate) has_sandbox: bool,
    pub(crate) restarting_all: bool,
}

/// What a condition says.
#[derive(Clone, Debug, PartialEq)]
struct Said {
    holds: bool,
    reason: Option<&'static str>,
    message: Option<String>,
}

impl Said {
    const YES: Self = Self { holds: true, reason: None, message: None };

    fn no(reason: &'static str, message: impl Into<Option<String>>) -> Self {
        Self { holds: false, reason: Some(reason), message: message.into() }
    }
}

/// The conditions as they are at `now`; what says the same as before keeps the time when it began to.
pub(crate) fn conditions(facts: &Facts<'_>, now: Timestamp) -> Vec<PodCondition> {
    let containers = containers_ready(facts);
    let ready = if containers.holds { gates(facts) } else { containers.clone() };
    let sandbox = Said { holds: facts.has_sandbox, reason: None, message: None };
    let mut said = vec![
        ("PodReadyToStartContainers", sandbox),
        ("Initialized", initialized(facts)),
        ("Ready", ready),
        ("ContainersReady", containers),
        ("PodScheduled", Said::YES),
    ];
    if facts.pod_containers.members.iter().any(|member| {
        newer::restart_rules(&member.container).any(|rule| rule.action == "RestartAllContainers")
    }) {
        said.push(("AllContainersRestarting", restarting(facts)));
    }
    said.into_iter().map(|(kind, said)| condition(facts.pod, kind, said, now)).collect()
}

fn condition(pod: &Pod, kind: &str, said: Said, now: Timestamp) -> PodCondition {
    let status = if said.holds { "True" } else { "False" };
    let before = existing(pod, kind).filter(|before| before.status == status);
    PodCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: said.reason.map(str::to_owned),
        message: said.message,
        last_probe_time: None,
        last_transition_time: before
            .and_then(|before| before.last_transition_time.clone())
            .or(Some(Time(seconds(now)))),
        observed_generation: pod.metadata.generation,
    }
}

/// Times in statuses are in whole seconds, as Kubernetes writes them.
pub(crate) fn seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

fn existing<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    pod.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == kind)
}

fn containers_ready(facts: &Facts<'_>) -> Said {
    let members = facts.pod_containers.of_role(&[Role::Sidecar, Role::Main]);
    let (unknown, unready) = sorted(facts, members, |status| status.ready);
    match facts.phase {
        "Succeeded" if unknown.is_empty() => return Said::no("PodCompleted", None),
        "Failed" => return Said::no("PodFailed", None),
        _ => {}
    }
    match explained(&unknown, "unready", &unready) {
        Some(message) => Said::no("ContainersNotReady", message),
        None => Said::YES,
    }
}

/// Readiness gates are conditions that others set.
fn gates(facts: &Facts<'_>) -> Said {
    let gates = facts.pod.spec.iter().flat_map(|spec| spec.readiness_gates.iter().flatten());
    let problems: Vec<_> = gates
        .filter_map(|gate| {
            let kind = &gate.condition_type;
            match existing(facts.pod, kind) {
                None => {
                    Some(format!("corresponding condition of pod readiness gate \"{kind}\" does not exist."))
                }
                Some(condition) if condition.status != "True" => Some(format!(
                    "the status of pod readiness gate \"{kind}\" is not \"True\", but {}",
                    condition.status
                )),
                Some(_) => None,
            }
        })
        .collect();
    if problems.is_empty() { Said::YES } else { Said::no("ReadinessGatesNotReady", problems.join(", ")) }
}

fn initialized(facts: &Facts<'_>) -> Said {
    let is_sidecar = |status: &ContainerStatus| {
        facts.pod_containers.member(&status.name).is_some_and(|member| member.role == Role::Sidecar)
    };
    let (unknown, incomplete) = sorted(facts, facts.pod_containers.initial(), |status| {
        if is_sidecar(status) { status.started == Some(true) } else { status.ready }
    });
    if facts.phase == "Succeeded" && unknown.is_empty() {
        return Said { reason: Some("PodCompleted"), ..Said::YES };
    }
    let has_begun = facts.statuses.iter().any(|status| {
        let state = status.state.as_ref();
        let began = state.is_some_and(|state| state.running.is_some() || state.terminated.is_some());
        began && facts.pod_containers.main().any(|member| member.name() == status.name)
    });
    if has_begun {
        return Said::YES;
    }
    match explained(&unknown, "incomplete", &incomplete) {
        Some(_) if existing(facts.pod, "Initialized").is_some_and(|before| before.status == "True") => {
            Said::YES
        }
        Some(message) => Said::no("ContainersNotInitialized", message),
        None => Said::YES,
    }
}

fn restarting(facts: &Facts<'_>) -> Said {
    match facts.phase {
        "Succeeded" => Said::no("PodCompleted", None),
        "Failed" => Said::no("PodFailed", None),
        _ if facts.restarting_all => Said {
            holds: true,
            reason: Some("RestartAllContainersStarted"),
            message: Some("container exited with restart policy rule".to_owned()),
        },
        _ => Said { holds: false, reason: None, message: None },
    }
}

/// The names of those of which nothing is known, and of those that are not as they should be.
fn sorted<'a>(
    facts: &Facts<'_>,
    members: impl Iterator<Item = &'a PodContainer>,
    is_good: impl Fn(&ContainerStatus) -> bool,
) -> (Vec<&'a str>, Vec<&'a str>) {
    let (mut unknown, mut bad) = (Vec::new(), Vec::new());
    for member in members {
        match facts.statuses.iter().find(|status| status.name == member.name()) {
            None => unknown.push(member.name()),
            Some(status) if !is_good(status) => bad.push(member.name()),
            Some(_) => {}
        }
    }
    (unknown, bad)
}

fn explained(unknown: &[&str], word: &str, bad: &[&str]) -> Option<String> {
    let list = |word: &str, names: &[&str]| {
        (!names.is_empty()).then(|| format!("containers with {word} status: [{}]", names.join(" ")))
    };
    let parts: Vec<_> = [list("unknown", unknown), list(word, bad)].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}
