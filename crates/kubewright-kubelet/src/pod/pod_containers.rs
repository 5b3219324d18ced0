//! What a pod's spec says about its containers, in the order in which the kubelet thinks of them.

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};

use crate::newer::{self, RestartRule};

/// What a container is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// Runs to its end before the next one starts.
    Init,
    /// Starts among the init containers, and runs as long as the pod (`restartPolicy: Always`).
    Sidecar,
    /// What the pod is for.
    Main,
    /// Added to a running pod (`kubectl debug`).
    Ephemeral,
}

impl Role {
    /// The list of the spec that the container is in, as events name it.
    pub(crate) fn list(self) -> &'static str {
        match self {
            Self::Init | Self::Sidecar => "initContainers",
            Self::Main => "containers",
            Self::Ephemeral => "ephemeralContainers",
        }
    }
}

/// A container of a pod.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PodContainer {
    pub(crate) role: Role,
    pub(crate) container: Container,
}

impl PodContainer {
    pub(crate) fn name(&self) -> &str {
        &self.container.name
    }
}

/// All containers of a pod: init containers and sidecars in their order, then the main ones, then the ephemeral ones.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) struct PodContainers {
    pub(crate) members: Vec<PodContainer>,
    pod_policy: Policy,
    deleted: bool,
}

/// When a container that has ended starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Policy {
    #[default]
    Always,
    OnFailure,
    Never,
}

impl Policy {
    fn of(text: Option<&str>) -> Option<Self> {
        match text? {
            "Always" => Some(Self::Always),
            "OnFailure" => Some(Self::OnFailure),
            "Never" => Some(Self::Never),
            _ => None,
        }
    }

    fn restarts(self, code: i32) -> bool {
        match self {
            Self::Always => true,
            Self::OnFailure => code != 0,
            Self::Never => false,
        }
    }
}

impl PodContainers {
    pub(crate) fn of(pod: &Pod) -> Self {
        let empty = PodSpec::default();
        let spec = pod.spec.as_ref().unwrap_or(&empty);
        let init = spec.init_containers.iter().flatten().map(|container| {
            let sidecar = container.restart_policy.as_deref() == Some("Always");
            PodContainer {
                role: if sidecar { Role::Sidecar } else { Role::Init },
                container: container.clone(),
            }
        });
        let main = spec
            .containers
            .iter()
            .map(|container| PodContainer { role: Role::Main, container: container.clone() });
        let ephemeral = spec.ephemeral_containers.iter().flatten().filter_map(|container| {
            // The two types have the same fields, but for the container that the ephemeral one looks at.
            let container = kubewright_objects::convert(container).ok()?;
            Some(PodContainer { role: Role::Ephemeral, container })
        });
        Self {
            members: init.chain(main).chain(ephemeral).collect(),
            pod_policy: Policy::of(spec.restart_policy.as_deref()).unwrap_or_default(),
            deleted: pod.metadata.deletion_timestamp.is_some(),
        }
    }

    pub(crate) fn member(&self, name: &str) -> Option<&PodContainer> {
        self.members.iter().find(|member| member.name() == name)
    }

    pub(crate) fn of_role(&self, roles: &[Role]) -> impl DoubleEndedIterator<Item = &PodContainer> {
        self.members.iter().filter(move |member| roles.contains(&member.role))
    }

    /// Init containers and sidecars, in their order.
    pub(crate) fn initial(&self) -> impl DoubleEndedIterator<Item = &PodContainer> {
        self.of_role(&[Role::Init, Role::Sidecar])
    }

    pub(crate) fn main(&self) -> impl DoubleEndedIterator<Item = &PodContainer> {
        self.of_role(&[Role::Main])
    }

    pub(crate) fn has_initial(&self) -> bool {
        self.initial().next().is_some()
    }

    /// Whether the container starts again after it ended with this code, by its own policy and rules where it has some
    /// (`ContainerShouldRestart` in `pkg/api/v1/pod`).
    pub(crate) fn restarts_after(&self, member: &PodContainer, code: i32) -> bool {
        let container = &member.container;
        let Some(own) = Policy::of(container.restart_policy.as_deref()) else {
            return self.pod_policy.restarts(code);
        };
        match rule_for(container, code) {
            Some(rule) if matches!(rule.action, "Restart" | "RestartAllContainers") => true,
            _ => own.restarts(code),
        }
    }

    /// The same for a container that has ended, in a pod that may be on its way out (`ShouldContainerBeRestarted`).
    pub(crate) fn starts_again(&self, member: &PodContainer, code: i32) -> bool {
        !self.deleted && self.restarts_after(member, code)
    }

    /// Whether a container that a probe ended starts again: rules about exit codes are not asked.
    pub(crate) fn restarts_after_probe(&self, member: &PodContainer) -> bool {
        let own = Policy::of(member.container.restart_policy.as_deref());
        !self.deleted && own.unwrap_or(self.pod_policy) != Policy::Never
    }

    /// Whether this exit has all containers of the pod start anew.
    pub(crate) fn restarts_all(&self, member: &PodContainer, code: i32) -> bool {
        rule_for(&member.container, code).is_some_and(|rule| rule.action == "RestartAllContainers")
    }
}

/// The first rule that is about this exit code (`FindMatchingContainerRestartRule`).
fn rule_for(container: &Container, code: i32) -> Option<RestartRule<'_>> {
    newer::restart_rules(container).find(|rule| {
        rule.exit_codes.is_some_and(|(operator, values)| {
            let listed = values.contains(&code);
            match operator {
                "In" => listed,
                "NotIn" => !listed,
                _ => false,
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod_containers(spec: &serde_json::Value) -> PodContainers {
        PodContainers::of(
            &kubewright_objects::from_value(json!({"metadata": {}, "spec": spec})).expect("a pod"),
        )
    }

    #[test]
    fn a_containers_own_policy_and_rules_come_before_the_pods() {
        let rules = json!([{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]);
        let pod = pod_containers(&json!({"restartPolicy": "Never", "containers": [
            {"name": "plain"}, {"name": "own", "restartPolicy": "OnFailure"},
            {"name": "ruled", "restartPolicy": "Never", "restartPolicyRules": rules},
        ]}));
        let after = |name: &str, code| pod.restarts_after(pod.member(name).expect("a member"), code);
        assert!(!after("plain", 1));
        assert!(after("own", 1) && !after("own", 0));
        assert!(after("ruled", 42) && !after("ruled", 41));
    }

    #[test]
    fn sidecars_are_init_containers_that_always_restart() {
        let pod = pod_containers(&json!({
            "initContainers": [{"name": "a"}, {"name": "b", "restartPolicy": "Always"}],
            "containers": [{"name": "c"}],
            "ephemeralContainers": [{"name": "d", "targetContainerName": "c"}],
        }));
        let roles: Vec<_> = pod.members.iter().map(|member| (member.name(), member.role)).collect();
        assert_eq!(
            roles,
            [("a", Role::Init), ("b", Role::Sidecar), ("c", Role::Main), ("d", Role::Ephemeral)]
        );
    }
}
