//! How a running container is ended: its `preStop` hook, its turn, a signal, and after its grace period the last one
//! (`killContainer` in `pkg/kubelet/kuberuntime/kuberuntime_container.go`).

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::decision::FailedProbe;
use super::hook;
use super::pod_containers::{PodContainer, PodContainers, Role};
use crate::container::Signal;
use crate::probe::ProbeTarget;

/// After a signal there is always so much time (`minimumGracePeriodInSeconds`).
const LEAST: Duration = Duration::from_secs(2);

/// A container that is to be ended.
pub(crate) struct Ending {
    pub(crate) target: ProbeTarget,
    pub(crate) signal: Signal,
    /// How long it has, from now on; may become shorter.
    pub(crate) grace: watch::Receiver<Duration>,
    /// Those that have to end before.
    pub(crate) before: Vec<CancellationToken>,
}

impl Ending {
    /// Ends the container. `failed` is called when its `preStop` hook failed.
    pub(crate) async fn run(mut self, failed: impl FnOnce() + Send) {
        let start = Instant::now();
        let target = self.target.clone();
        let mut exited = target.container.exited();
        let lifecycle = target.spec.lifecycle.as_ref();
        let hook = lifecycle.and_then(|lifecycle| lifecycle.pre_stop.as_ref());
        if let Some(hook) = hook.filter(|_| !self.grace.borrow().is_zero()) {
            tokio::select! {
                biased;
                ran = hook::run(hook, &target) => if ran.is_err() { failed() },
                () = over(start, &mut self.grace) => {}
            }
        }
        for other in std::mem::take(&mut self.before) {
            tokio::select! {
                biased;
                () = other.cancelled() => {}
                () = over(start, &mut self.grace) => break,
            }
        }
        target.container.signal(self.signal);
        let least = Instant::now() + LEAST;
        tokio::select! {
            biased;
            _ = &mut exited => return,
            () = async {
                over(start, &mut self.grace).await;
                tokio::time::sleep_until(least).await;
            } => {}
        }
        target.container.signal(Signal::KILL);
        exited.await;
    }
}

/// Waits until the grace period is over, however it changes.
async fn over(start: Instant, grace: &mut watch::Receiver<Duration>) {
    loop {
        let end = start + *grace.borrow_and_update();
        tokio::select! {
            biased;
            changed = grace.changed() => if changed.is_err() {
                return tokio::time::sleep_until(end).await;
            },
            () = tokio::time::sleep_until(end) => return,
        }
    }
}

/// How long a container has when its pod goes (`calculateEffectiveGracePeriod` in `pkg/kubelet/pod_workers.go`).
pub(crate) fn grace_of_pod(pod: &Pod) -> Duration {
    let spec = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
    let seconds = pod.metadata.deletion_grace_period_seconds.or(spec).unwrap_or_default();
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default().max(1))
}

/// How long a container has that a probe has ended.
pub(crate) fn grace_after_probe(pod: &Pod, member: &PodContainer, probe: FailedProbe) -> Duration {
    let container = &member.container;
    let own = match probe {
        FailedProbe::Startup => container.startup_probe.as_ref(),
        FailedProbe::Liveness => container.liveness_probe.as_ref(),
    };
    let seconds = own.and_then(|probe| probe.termination_grace_period_seconds);
    if pod.metadata.deletion_grace_period_seconds.is_none()
        && let Some(seconds) = seconds
    {
        return Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    }
    grace_of_pod(pod)
}

/// Which containers have to end before this one when the pod goes: a sidecar comes after all main containers, and after the
/// sidecars that were started after it (`kuberuntime_termination_order.go`).
pub(crate) fn before<'a>(pod_containers: &'a PodContainers, member: &PodContainer) -> Vec<&'a str> {
    if member.role != Role::Sidecar {
        return Vec::new();
    }
    let later = pod_containers
        .of_role(&[Role::Sidecar])
        .skip_while(|sidecar| sidecar.name() != member.name())
        .skip(1);
    pod_containers.main().chain(later).map(PodContainer::name).collect()
}

/// The signal of this name or number (`STOPSIGNAL` of an image); `None` for what is none.
pub(crate) fn signal(text: &str) -> Option<Signal> {
    const NAMES: [(&str, i32); 20] = [
        ("HUP", 1),
        ("INT", 2),
        ("QUIT", 3),
        ("ILL", 4),
        ("TRAP", 5),
        ("ABRT", 6),
        ("BUS", 7),
        ("FPE", 8),
        ("KILL", 9),
        ("USR1", 10),
        ("SEGV", 11),
        ("USR2", 12),
        ("PIPE", 13),
        ("ALRM", 14),
        ("TERM", 15),
        ("CHLD", 17),
        ("CONT", 18),
        ("STOP", 19),
        ("TSTP", 20),
        ("WINCH", 28),
    ];
    if let Ok(number) = text.parse() {
        return (1..=64).contains(&number).then_some(Signal(number));
    }
    let upper = text.to_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    if let Some(offset) = name.strip_prefix("RTMIN") {
        let offset: i32 = if offset.is_empty() { 0 } else { offset.strip_prefix('+')?.parse().ok()? };
        return (0..=30).contains(&offset).then_some(Signal(34 + offset));
    }
    NAMES.iter().find(|(known, _)| *known == name).map(|(_, number)| Signal(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sidecars_end_last_and_in_the_reverse_of_their_order() {
        let pod = kubewright_objects::from_value(serde_json::json!({"metadata": {}, "spec": {
            "initContainers": [
                {"name": "a", "restartPolicy": "Always"}, {"name": "i"}, {"name": "b", "restartPolicy": "Always"},
            ],
            "containers": [{"name": "c"}],
        }}))
        .expect("a pod");
        let pod_containers = PodContainers::of(&pod);
        let of = |name: &str| before(&pod_containers, pod_containers.member(name).expect("a member"));
        assert_eq!(of("a"), ["c", "b"]);
        assert_eq!(of("b"), ["c"]);
        assert_eq!(of("c"), [""; 0]);
    }

    #[test]
    fn signals_have_names_and_numbers() {
        assert_eq!(signal("SIGQUIT"), Some(Signal(3)));
        assert_eq!(signal("usr1"), Some(Signal(10)));
        assert_eq!(signal("15"), Some(Signal(15)));
        assert_eq!(signal("SIGRTMIN+3"), Some(Signal(37)));
        assert_eq!(signal("SIGNOT"), None);
        assert_eq!(signal("0"), None);
    }
}
