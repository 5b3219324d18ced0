//! How long the containers of a pod run and how they end, which the pod's annotations say, or else their programs where these
//! are known (docs/nodes.md).

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod};
use kubewright_meta::duration;
use kubewright_runtime::owner;

use crate::program::{self, Program};

/// What a container does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// It does not start, for this reason and with this explanation.
    Wait { reason: String, message: String },
    /// Its image cannot be pulled.
    Pull { image: String },
    /// It runs, for this long or for ever, and ends with this code and this termination message.
    Run { duration: Option<Duration>, exit_code: i32, message: Option<String> },
}

/// What a container is to its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It has to end well before the next starts.
    Init,
    /// It has to start before the next starts, and goes on (`restartPolicy: Always` of an init container).
    Sidecar,
    /// It is what the pod is for.
    Main,
    /// It was put into a pod that runs, and does not start again.
    Ephemeral,
}

/// The annotations of a pod that say what its containers do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Script<'a> {
    annotations: Option<&'a BTreeMap<String, String>>,
    is_of_a_job: bool,
}

impl<'a> Script<'a> {
    pub(super) fn of(pod: &'a Pod) -> Self {
        let owner = owner::controller_of(&pod.metadata);
        Self {
            annotations: pod.metadata.annotations.as_ref(),
            is_of_a_job: owner.is_some_and(|owner| owner.kind == "Job"),
        }
    }

    /// What this container does. What annotations say goes first, then what is known of its image and program; main
    /// containers of Jobs end at once, and well, unless one of these says something else.
    pub(super) fn act(&self, container: &Container, role: Role) -> Act {
        self.read(container, role)
            .unwrap_or_else(|message| Act::Wait { reason: "CreateContainerConfigError".into(), message })
    }

    fn read(&self, container: &Container, role: Role) -> Result<Act, String> {
        if let Some((_, reason)) = self.find(container, role, "waiting") {
            return Ok(Act::Wait { reason: reason.to_owned(), message: String::new() });
        }
        let duration = self.find(container, role, "run-for").map(|(name, text)| {
            duration::parse_positive(text)
                .ok_or_else(|| format!("annotation {name}: {text:?} is not a duration"))
        });
        let exit_code = self.find(container, role, "exit-code").map(|(name, text)| {
            let code = text.parse::<u8>().map(i32::from);
            code.map_err(|_| format!("annotation {name}: {text:?} is not an exit code"))
        });
        let (duration, exit_code) = (duration.transpose()?, exit_code.transpose()?);
        if duration.is_none() && exit_code.is_none() {
            let image = container.image.as_deref().unwrap_or_default();
            if program::is_unpullable(image) {
                return Ok(Act::Pull { image: image.to_owned() });
            }
            if let Some(program) = Program::of(container) {
                let (duration, exit_code) = program.end.unzip();
                let message = program.message(container);
                return Ok(Act::Run { duration, exit_code: exit_code.unwrap_or_default(), message });
            }
        }
        let ends = role == Role::Init || exit_code.is_some() || (role == Role::Main && self.is_of_a_job);
        Ok(Act::Run {
            duration: duration.or(ends.then_some(Duration::ZERO)),
            exit_code: exit_code.unwrap_or_default(),
            message: None,
        })
    }

    /// The program of a container, where it is known and no annotation says something else.
    pub(super) fn program(&self, container: &Container, role: Role) -> Option<Program> {
        let is_said =
            ["waiting", "run-for", "exit-code"].iter().any(|what| self.find(container, role, what).is_some());
        if is_said || program::is_unpullable(container.image.as_deref().unwrap_or_default()) {
            return None;
        }
        Program::of(container)
    }

    /// How long the pod takes to stop once it is deleted.
    pub(super) fn stop_for(&self) -> Option<Duration> {
        duration::parse_positive(self.annotations?.get("kubewright.dev/stop-for")?)
    }

    /// What is said of the container by its name, or of all main ones; and by which annotation.
    fn find(&self, container: &Container, role: Role, what: &str) -> Option<(String, &'a str)> {
        let annotations = self.annotations?;
        let own = format!("{}.containers.kubewright.dev/{what}", container.name);
        let all = format!("kubewright.dev/{what}");
        let names = [Some(own), (role == Role::Main).then_some(all)];
        names.into_iter().flatten().find_map(|name| {
            let value = annotations.get(&name)?;
            Some((name, value.as_str()))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn act(annotations: impl Into<Value>, role: Role) -> Act {
        let annotations = annotations.into();
        let pod: Pod =
            kubewright_objects::from_value(json!({"metadata": {"annotations": annotations}})).expect("a pod");
        Script::of(&pod).act(&Container { name: "c".into(), ..Container::default() }, role)
    }

    fn run(seconds: u64, exit_code: i32) -> Act {
        Act::Run { duration: Some(Duration::from_secs(seconds)), exit_code, message: None }
    }

    #[test]
    fn a_container_runs_for_ever_unless_something_else_is_said() {
        let for_ever = Act::Run { duration: None, exit_code: 0, message: None };
        assert_eq!(act(json!({}), Role::Main), for_ever);
        assert_eq!(act(json!({}), Role::Init), run(0, 0));
        assert_eq!(act(json!({}), Role::Sidecar), for_ever);
    }

    #[test]
    fn what_is_said_of_one_container_goes_before_what_is_said_of_all() {
        let said = json!({"kubewright.dev/run-for": "30s", "c.containers.kubewright.dev/exit-code": "3",
            "kubewright.dev/exit-code": "1"});
        assert_eq!(act(said.clone(), Role::Main), run(30, 3));
        assert_eq!(act(said, Role::Init), run(0, 3), "of init containers only what names them");
        assert_eq!(act(json!({"kubewright.dev/exit-code": "1"}), Role::Main), run(0, 1));
        let waits = Act::Wait { reason: "ImagePullBackOff".into(), message: String::new() };
        assert_eq!(act(json!({"kubewright.dev/waiting": "ImagePullBackOff"}), Role::Main), waits);
    }

    #[test]
    fn a_known_program_runs_as_long_as_it_would_unless_an_annotation_says_something_else() {
        let of = |annotations: Value| {
            let pod: Pod = kubewright_objects::from_value(json!({"metadata": {"annotations": annotations}}))
                .expect("a pod");
            let command = Some(vec!["sleep".to_owned(), "20".to_owned()]);
            let container = Container { name: "c".into(), command, ..Container::default() };
            let script = Script::of(&pod);
            (script.act(&container, Role::Main), script.program(&container, Role::Main).is_some())
        };
        assert_eq!(of(json!({})), (run(20, 0), true));
        assert_eq!(of(json!({"kubewright.dev/exit-code": "2"})), (run(0, 2), false));
        assert_eq!(of(json!({"kubewright.dev/run-for": "5s"})), (run(5, 0), false));
    }

    #[test]
    fn what_makes_no_sense_keeps_the_container_from_starting_and_says_why() {
        let Act::Wait { reason, message } = act(json!({"kubewright.dev/run-for": "soon"}), Role::Main) else {
            panic!("it runs")
        };
        assert_eq!(reason, "CreateContainerConfigError");
        assert_eq!(message, "annotation kubewright.dev/run-for: \"soon\" is not a duration");
        assert!(matches!(act(json!({"kubewright.dev/exit-code": "256"}), Role::Main), Act::Wait { .. }));
    }
}
