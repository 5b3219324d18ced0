//! How long the containers of a pod run and how they end, which the pod's annotations say (docs/nodes.md).

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod};
use kubewright_meta::duration;
use kubewright_runtime::owner;

/// What a container does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// It does not start, for this reason and with this explanation.
    Wait { reason: String, message: String },
    /// It runs, for this long or for ever, and ends with this code.
    Run { duration: Option<Duration>, exit_code: i32 },
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

    /// What this container does. Main containers of Jobs end at once, and well, unless something else is said.
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
        let ends = role == Role::Init || exit_code.is_some() || (role == Role::Main && self.is_of_a_job);
        Ok(Act::Run {
            duration: duration.or(ends.then_some(Duration::ZERO)),
            exit_code: exit_code.unwrap_or_default(),
        })
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
        Act::Run { duration: Some(Duration::from_secs(seconds)), exit_code }
    }

    #[test]
    fn a_container_runs_for_ever_unless_something_else_is_said() {
        assert_eq!(act(json!({}), Role::Main), Act::Run { duration: None, exit_code: 0 });
        assert_eq!(act(json!({}), Role::Init), run(0, 0));
        assert_eq!(act(json!({}), Role::Sidecar), Act::Run { duration: None, exit_code: 0 });
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
    fn what_makes_no_sense_keeps_the_container_from_starting_and_says_why() {
        let Act::Wait { reason, message } = act(json!({"kubewright.dev/run-for": "soon"}), Role::Main) else {
            panic!("it runs")
        };
        assert_eq!(reason, "CreateContainerConfigError");
        assert_eq!(message, "annotation kubewright.dev/run-for: \"soon\" is not a duration");
        assert!(matches!(act(json!({"kubewright.dev/exit-code": "256"}), Role::Main), Act::Wait { .. }));
    }
}
