//! What containers of simulated pods show of themselves: their logs, and what commands in them print, where their programs
//! are known. Pure: a function of the pod and the time.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerStateRunning, ContainerStateTerminated, ContainerStatus, Pod,
};
use serde_json::Value;

use super::containers::{ephemeral_containers, role_of_init};
use super::script::{Role, Script};
use crate::program::{Program, lines};

/// The log of a container, as far as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// What was written when: whole lines, several, or parts of one.
    pub entries: Vec<(Timestamp, String)>,
    /// Whether the container has ended, so that no more will be written.
    pub is_over: bool,
    /// When more will be written, where that is known.
    pub next: Option<Timestamp>,
}

/// Why there is no log, in the kubelet's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoLog(pub String);

/// The log of a container of a Pod on a simulated node at `now`, or of its run before this one; `None` where its program, or
/// what that prints, is not known.
///
/// # Errors
/// The container has not started, or there was no run before.
#[must_use]
pub fn container_log(pod: &Value, name: &str, previous: bool, now: Timestamp) -> Option<Result<Log, NoLog>> {
    let pod: Pod = kubewright_objects::from_value(pod).ok()?;
    let program = program(&pod, name)?;
    lines(&program, Duration::ZERO)?;
    let pod_name = pod.metadata.name.as_deref().unwrap_or_default();
    let status = status(&pod, name);
    let state =
        status.and_then(|status| if previous { status.last_state.as_ref() } else { status.state.as_ref() });
    let run = state.and_then(|state| match (&state.running, &state.terminated) {
        (Some(ContainerStateRunning { started_at }), _) => Some((started_at.as_ref()?.0, None)),
        (_, Some(ContainerStateTerminated { started_at, finished_at, .. })) => {
            Some((started_at.as_ref()?.0, Some(finished_at.as_ref()?.0)))
        }
        _ => None,
    });
    let Some((started, finished)) = run else {
        let message = if previous {
            format!("previous terminated container {name:?} in pod {pod_name:?} not found")
        } else {
            let waiting = state.and_then(|state| state.waiting.as_ref()?.reason.as_deref());
            let reason = waiting.unwrap_or("ContainerCreating");
            format!("container {name:?} in pod {pod_name:?} is waiting to start: {reason}")
        };
        return Some(Err(NoLog(message)));
    };
    let until = finished.unwrap_or(now);
    let ran = Duration::try_from(until.duration_since(started)).unwrap_or_default();
    let (written, next) = lines(&program, ran)?;
    let at = |after: Duration| started.checked_add(after).unwrap_or(Timestamp::MAX);
    let entries = written.into_iter().map(|line| (at(line.after), line.text)).collect();
    Some(Ok(Log { entries, is_over: finished.is_some(), next: next.filter(|_| finished.is_none()).map(at) }))
}

/// What a command prints that somebody runs in a container of a simulated pod, and its exit code; `None` where that is not
/// known, or takes time.
#[must_use]
pub fn command_output(command: &[String]) -> Option<(String, i32)> {
    let container = Container { command: Some(command.to_vec()), ..Container::default() };
    let program = Program::of(&container)?;
    let (after, code) = program.end.filter(|(after, _)| after.is_zero())?;
    let (written, _) = lines(&program, after)?;
    Some((written.into_iter().map(|line| line.text).collect(), code))
}

fn program(pod: &Pod, name: &str) -> Option<Program> {
    let (spec, script) = (pod.spec.as_ref()?, Script::of(pod));
    let inits = spec.init_containers.iter().flatten();
    if let Some(container) = inits.clone().find(|container| container.name == name) {
        return script.program(container, role_of_init(container));
    }
    if let Some(container) = spec.containers.iter().find(|container| container.name == name) {
        return script.program(container, Role::Main);
    }
    let later = ephemeral_containers(pod);
    script.program(later.iter().find(|container| container.name == name)?, Role::Ephemeral)
}

fn status<'a>(pod: &'a Pod, name: &str) -> Option<&'a ContainerStatus> {
    let status = pod.status.as_ref()?;
    let lists =
        [&status.init_container_statuses, &status.container_statuses, &status.ephemeral_container_statuses];
    lists.into_iter().flatten().flatten().find(|status| status.name == name)
}

#[cfg(test)]
mod tests {
    use kubewright_world::SIMULATION_START as NOW;
    use serde_json::json;

    use super::*;

    fn pod(command: &[&str], status: &Value) -> Value {
        json!({
            "metadata": {"name": "p", "namespace": "shop", "uid": "u"},
            "spec": {"containers": [{"name": "c", "image": "busybox", "command": command}]},
            "status": {"containerStatuses": [status]},
        })
    }

    fn status(state: &Value) -> Value {
        json!({"name": "c", "image": "", "imageID": "", "ready": true, "restartCount": 0, "state": state})
    }

    #[test]
    fn the_log_of_a_known_program_is_what_it_has_printed_by_now() {
        let running = status(&json!({"running": {"startedAt": NOW}}));
        let pod = pod(&["sh", "-c", "echo a; sleep 5; echo b; sleep 5"], &running);
        let log = |seconds: u64| {
            let now = NOW + Duration::from_secs(seconds);
            container_log(&pod, "c", false, now).expect("it is known").expect("it runs")
        };
        assert_eq!(log(1).entries, [(NOW, "a\n".to_owned())]);
        assert_eq!(log(1).next, Some(NOW + Duration::from_secs(5)));
        assert_eq!(log(5).entries.len(), 2);
        let early = container_log(&pod, "c", true, NOW).expect("it is known").expect_err("it was not");
        assert_eq!(early.0, "previous terminated container \"c\" in pod \"p\" not found");
    }

    #[test]
    fn a_container_that_waits_has_no_log_and_one_that_is_not_known_is_not_guessed() {
        let waiting = status(&json!({"waiting": {"reason": "PodInitializing"}}));
        let log = container_log(&pod(&["sleep", "5"], &waiting), "c", false, NOW).expect("it is known");
        assert_eq!(
            log,
            Err(NoLog("container \"c\" in pod \"p\" is waiting to start: PodInitializing".to_owned()))
        );
        assert_eq!(container_log(&pod(&["server"], &waiting), "c", false, NOW), None);
    }

    #[test]
    fn a_command_that_is_known_and_takes_no_time_prints_what_it_would() {
        let of =
            |words: &[&str]| command_output(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["/bin/echo", "marco"]), Some(("marco\n".to_owned(), 0)));
        assert_eq!(of(&["sh", "-c", "echo a; exit 3"]), Some(("a\n".to_owned(), 3)));
        assert_eq!(of(&["sleep", "5"]), None);
        assert_eq!(of(&["ls"]), None);
    }
}
