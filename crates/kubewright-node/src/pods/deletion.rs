//! What becomes of a pod that is deleted.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod};

use super::containers::{Containers, ephemeral_containers, is_running, role_of_init};
use super::script::{Role, Script};
use super::{Step, has_statuses, until};
use crate::program::KILLED;

/// How the containers of a deleted pod stop: how long it takes, and with which exit codes they end.
struct Stopping<'a> {
    takes: Duration,
    codes: Vec<(&'a str, i32)>,
    /// The code of the others.
    code: i32,
}

/// A deleted pod is there until its programs would have ended, where they are known, or as long as its annotation says;
/// otherwise it goes at once; and no longer than its grace period and `longest`. Finalizers keep what is left of it.
pub(super) fn step(pod: &Pod, longest: Duration, now: Timestamp) -> Step {
    let containers = Containers::of(pod);
    let runs = has_statuses(pod) && containers.statuses().into_iter().flatten().any(is_running);
    let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or_default();
    let grace = Duration::from_secs(u64::try_from(grace).unwrap_or_default());
    let over = pod.metadata.deletion_timestamp.as_ref().map_or(now, |deletion| deletion.0);
    let begun = over - grace;
    if runs && let Some(stopping) = stopping(pod, &containers, begun, grace.min(longest)) {
        let ends = begun + stopping.takes;
        if ends > now {
            return Step::Rest(Some(until(ends, now)));
        }
        let code = |name: &str| {
            let own = stopping.codes.iter().find(|(container, _)| *container == name);
            own.map_or(stopping.code, |(_, code)| *code)
        };
        return Step::Report(containers.stopped_with(code, now));
    }
    // What finalizers hold is deleted with a grace period of zero, too, which says that nothing of it runs any more.
    let held = pod.metadata.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty());
    if held && grace.is_zero() { Step::Rest(None) } else { Step::Remove }
}

fn stopping<'a>(
    pod: &Pod,
    containers: &'a Containers,
    begun: Timestamp,
    grace: Duration,
) -> Option<Stopping<'a>> {
    let script = Script::of(pod);
    if let Some(takes) = script.stop_for() {
        let code = if takes > grace { KILLED } else { 0 };
        return Some(Stopping { takes: takes.min(grace), codes: Vec::new(), code });
    }
    let spec = pod.spec.as_ref()?;
    let ephemeral = ephemeral_containers(pod);
    let inits = spec.init_containers.iter().flatten().map(|container| (container, role_of_init(container)));
    let mains = spec.containers.iter().map(|container| (container, Role::Main));
    let later = ephemeral.iter().map(|container| (container, Role::Ephemeral));
    let all = inits.chain(mains).chain(later).zip(containers.statuses().into_iter().flatten());
    let stops = |((container, role), status): ((&Container, Role), &'a ContainerStatus)| {
        let started = status.state.as_ref()?.running.as_ref()?.started_at.as_ref()?.0;
        let ran = Duration::try_from(begun.duration_since(started)).unwrap_or_default();
        Some((status.name.as_str(), script.program(container, role)?.stopped(ran, grace)))
    };
    let known: Vec<_> = all.filter_map(stops).collect();
    let takes = known.iter().map(|(_, (takes, _))| *takes).max()?;
    Some(Stopping { takes, codes: known.iter().map(|(name, (_, code))| (*name, *code)).collect(), code: 0 })
}
