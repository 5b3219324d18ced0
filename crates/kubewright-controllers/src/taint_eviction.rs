//! The taint eviction controller: pods that do not tolerate a `NoExecute` taint of their node have to go, at once or
//! when their patience is over (`pkg/controller/tainteviction/taint_eviction.go`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, Taint, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::DeleteParams;
use kubewright_node::facts::taints;
use kubewright_node::selection::tolerates;
use kubewright_runtime::{Context, Controller, Error, Event, EventType, Key, Outcome, Predicate, Reconciler};
use parking_lot::Mutex;
use serde_json::json;

use crate::pod::{self, tolerations};

/// The controller, which runs under the name of its events' source.
pub(crate) fn controller() -> Controller {
    Controller::new("taint-eviction-controller", Evictor::default())
        .for_kind::<Node>()
        .predicate(Predicate::of(|event: &Event<'_, Node>| match event {
            Event::Create(node) => evicting(node).next().is_some(),
            Event::Update { old, new } => !evicting(old).eq(evicting(new)),
            Event::Delete(_) | Event::Generic(_) => true,
        }))
        .watches(|pod: &Pod| vec![Key::cluster_scoped(pod::node_name(pod))])
        .predicate(Predicate::of(|event: &Event<'_, Pod>| match event {
            Event::Create(pod) | Event::Delete(pod) | Event::Generic(pod) => !pod::node_name(pod).is_empty(),
            Event::Update { old, new } => {
                !pod::node_name(new).is_empty()
                    && (pod::node_name(old) != pod::node_name(new) || tolerations(old) != tolerations(new))
            }
        }))
}

/// Who has to go when, by uid.
#[derive(Default)]
struct Evictor {
    pending: Mutex<BTreeMap<String, Pending>>,
}

/// A pod whose patience is running out.
#[derive(Clone, Debug, PartialEq)]
struct Pending {
    pod: Key,
    node: String,
    since: Timestamp,
    due: Timestamp,
}

impl Reconciler for Evictor {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let now = ctx.world().clock.now();
        let node = ctx.get::<Node>(key);
        let taints: Vec<&Taint> = node.iter().flat_map(|node| evicting(node)).collect();
        let before = self.forget(&key.name);
        if taints.is_empty() {
            for pending in before.values() {
                if let Some(pod) = ctx.get::<Pod>(&pending.pod) {
                    cancel(ctx, &pod);
                }
            }
            return Ok(Outcome::Done);
        }
        let mut next: Option<Duration> = None;
        let mut going = Vec::new();
        for pod in ctx.list::<Pod>(None) {
            if pod::node_name(&pod) != key.name || pod.metadata.deletion_timestamp.is_some() {
                continue;
            }
            let uid = pod.metadata.uid.clone().unwrap_or_default();
            let before = before.get(&uid);
            match patience(&taints, tolerations(&pod)) {
                Patience::Endless => {
                    if before.is_some() {
                        cancel(ctx, &pod);
                    }
                }
                Patience::For(time) => {
                    let pending = wait(before, &pod, now, time);
                    let left = Duration::try_from(pending.due.duration_since(now)).unwrap_or_default();
                    if left.is_zero() {
                        going.push(pod);
                    } else {
                        next = Some(next.map_or(left, |next| next.min(left)));
                        self.pending.lock().insert(uid, pending);
                    }
                }
            }
        }
        for pod in going {
            evict(ctx, &pod, &Time(now)).await?;
        }
        Ok(next.map_or(Outcome::Done, Outcome::RequeueAfter))
    }
}

impl Evictor {
    /// Takes out those of one node.
    fn forget(&self, node: &str) -> BTreeMap<String, Pending> {
        let mut pending = self.pending.lock();
        let (of_node, others) =
            std::mem::take(&mut *pending).into_iter().partition(|(_, pending)| pending.node == node);
        *pending = others;
        of_node
    }
}

/// A pod that waits already keeps the time that it began to, unless it is to go later than was thought.
fn wait(before: Option<&Pending>, pod: &Arc<Pod>, now: Timestamp, time: Duration) -> Pending {
    let since = before.map_or(now, |before| before.since);
    let due = match before {
        Some(before) if since + time < now + time => before.due.min(since + time),
        _ => since + time,
    };
    Pending { pod: Key::of(&**pod), node: pod::node_name(pod).to_owned(), since, due }
}

fn evicting(node: &Node) -> impl Iterator<Item = &Taint> {
    taints(node).iter().filter(|taint| taint.effect == "NoExecute")
}

/// How long a pod stands its node's taints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    Endless,
    For(Duration),
}

/// The shortest time of those tolerations that stand one of the taints; none when a taint is not tolerated
/// (`processPodOnNode`, `getMinTolerationTime`).
fn patience(taints: &[&Taint], tolerations: &[Toleration]) -> Patience {
    let mut shortest: Option<Duration> = None;
    for taint in taints {
        let Some(toleration) = tolerations.iter().find(|toleration| tolerates(toleration, taint)) else {
            return Patience::For(Duration::ZERO);
        };
        if let Some(seconds) = toleration.toleration_seconds {
            let time = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
            shortest = Some(shortest.map_or(time, |shortest| shortest.min(time)));
        }
    }
    shortest.map_or(Patience::Endless, Patience::For)
}

fn cancel(ctx: &Context, pod: &Pod) {
    let note = format!("Cancelling deletion of Pod {}", Key::of(pod));
    ctx.event(pod, EventType::Normal, "TaintManagerEviction", &note);
}

async fn evict(ctx: &Context, pod: &Pod, now: &Time) -> Result<(), Error> {
    let key = Key::of(pod);
    let note = format!("Marking for deletion Pod {key}");
    ctx.event(pod, EventType::Normal, "TaintManagerEviction", &note);
    let reason = "DeletionByTaintManager";
    let message = "Taint manager: deleting due to NoExecute taint";
    let patch = json!({
        "metadata": {"uid": pod.metadata.uid},
        "status": {"conditions": pod::with_disruption(pod, reason, message, now)},
    });
    match ctx.patch_status::<Pod>(&key, patch).await {
        Err(error) if error.is_not_found() || error.is_conflict() => return Ok(()),
        written => written?,
    };
    ctx.delete::<Pod>(&key, DeleteParams::default()).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use kubewright_world::SIMULATION_START as NOW;
    use serde_json::Value;

    use super::*;

    fn patience_of(tolerations: &Value) -> Patience {
        let taint: Taint =
            kubewright_objects::from_value(json!({"key": "out", "value": "v", "effect": "NoExecute"}))
                .expect("a taint");
        let tolerations: Vec<Toleration> = kubewright_objects::from_value(tolerations).expect("tolerations");
        patience(&[&taint], &tolerations)
    }

    #[test]
    fn a_pod_stands_a_taint_as_long_as_it_says() {
        assert_eq!(patience_of(&json!([])), Patience::For(Duration::ZERO));
        assert_eq!(patience_of(&json!([{"key": "out", "operator": "Exists"}])), Patience::Endless);
        let six = json!([{"key": "out", "value": "v", "tolerationSeconds": 6}]);
        assert_eq!(patience_of(&six), Patience::For(Duration::from_secs(6)));
        let never = json!([{"key": "out", "operator": "Exists", "tolerationSeconds": -1}]);
        assert_eq!(patience_of(&never), Patience::For(Duration::ZERO));
        assert_eq!(patience_of(&json!([{"key": "out", "value": "w"}])), Patience::For(Duration::ZERO));
    }

    #[test]
    fn a_pod_that_waits_keeps_its_time() {
        let pod = Arc::new(crate::pod::tests::pod("p", "Running", None));
        let minute = Duration::from_secs(60);
        let first = wait(None, &pod, NOW, minute);
        assert_eq!(first.due, NOW + minute);
        let later = wait(Some(&first), &pod, NOW + minute / 2, minute);
        assert_eq!((later.since, later.due), (NOW, NOW + minute));
        let shorter = wait(Some(&first), &pod, NOW + minute / 2, minute / 4);
        assert_eq!(shorter.due, NOW + minute / 4);
    }
}
