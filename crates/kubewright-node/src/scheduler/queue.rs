//! The pods that wait for a node (`pkg/scheduler/backend/queue`).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kubewright_runtime::Key;

use super::filter::Plugin;
use super::pod_info::PodInfo;

/// A pod that was refused is tried again after this time even when nothing seems to help
/// (`DefaultPodMaxInUnschedulablePodsDuration`).
const FLUSH_AFTER: Duration = Duration::from_secs(5 * 60);

/// The first and the longest time that a pod waits whose decision could not be written (`DefaultPodInitialBackoffDuration`,
/// `DefaultPodMaxBackoffDuration`).
const BACKOFF: (u64, u64) = (1, 10);

/// The highest priority first, then the oldest (`PrioritySort`).
type Turn = (Reverse<i32>, Option<Timestamp>, Key, Arc<str>);

/// Pods that wait, each either for its turn or, after a refusal, for something that helps.
#[derive(Debug, Default)]
pub(super) struct Queue {
    all: BTreeMap<Arc<str>, Arc<PodInfo>>,
    turns: BTreeSet<Turn>,
    /// What stood against those that were refused, and since when.
    refused: BTreeMap<Arc<str>, (BTreeSet<Plugin>, Timestamp)>,
    by_time: BTreeSet<(Timestamp, Arc<str>)>,
    /// Those whose decision could not be written, by when they are tried again.
    later: BTreeSet<(Timestamp, Arc<str>)>,
    /// How often that was so.
    failed: BTreeMap<Arc<str>, u32>,
}

impl Queue {
    /// A pod waits, or is now as `pod_info` says; it is its turn again.
    pub(super) fn add(&mut self, pod_info: Arc<PodInfo>) {
        self.remove(&pod_info.uid);
        self.turns.insert(turn(&pod_info));
        self.all.insert(Arc::clone(&pod_info.uid), pod_info);
    }

    /// Keeps what is known of a pod up to date where that makes no difference to its turn.
    pub(super) fn renew(&mut self, pod_info: Arc<PodInfo>) {
        let postponed = self.later.iter().any(|(_, uid)| *uid == pod_info.uid);
        if postponed || self.refused.contains_key(&pod_info.uid) {
            self.all.insert(Arc::clone(&pod_info.uid), pod_info);
        } else {
            self.add(pod_info);
        }
    }

    /// The pod does not wait any more.
    pub(super) fn remove(&mut self, uid: &str) {
        if let Some(pod_info) = self.all.remove(uid) {
            self.turns.remove(&turn(&pod_info));
            self.forgive(&pod_info.uid);
            self.later.retain(|(_, other)| **other != *uid);
        }
    }

    /// The pod does not wait any more, and has nothing behind it.
    pub(super) fn settle(&mut self, uid: &str) {
        self.remove(uid);
        self.failed.remove(uid);
    }

    /// What was decided about the pod could not be written: it waits for a time that doubles, while others have their turn.
    pub(super) fn postpone(&mut self, pod_info: Arc<PodInfo>, now: Timestamp) {
        let uid = Arc::clone(&pod_info.uid);
        self.remove(&uid);
        let failed = self.failed.entry(Arc::clone(&uid)).or_default();
        let (first, longest) = BACKOFF;
        let wait = first.checked_shl(*failed).unwrap_or(longest).min(longest);
        *failed = failed.saturating_add(1).min(longest.ilog2() + 1);
        self.later.insert((now + Duration::from_secs(wait), Arc::clone(&uid)));
        self.all.insert(uid, pod_info);
    }

    /// What is known of a pod that waits.
    pub(super) fn get(&self, uid: &str) -> Option<&Arc<PodInfo>> {
        self.all.get(uid)
    }

    /// The pod whose turn it is.
    pub(super) fn next(&self) -> Option<Arc<PodInfo>> {
        let (.., uid) = self.turns.first()?;
        self.all.get(uid).cloned()
    }

    /// The pod was refused, for these reasons.
    pub(super) fn refuse(&mut self, uid: &str, by: BTreeSet<Plugin>, now: Timestamp) {
        let Some(pod_info) = self.all.get(uid).cloned() else { return };
        self.turns.remove(&turn(&pod_info));
        self.forgive(uid);
        self.by_time.insert((now, Arc::clone(&pod_info.uid)));
        self.refused.insert(Arc::clone(&pod_info.uid), (by, now));
    }

    /// Gives every refused pod its turn that `is_helped` says so of, by what stood against it.
    pub(super) fn wake(&mut self, is_helped: impl Fn(&Arc<PodInfo>, &BTreeSet<Plugin>) -> bool) {
        let helped = |(uid, (by, _)): (&Arc<str>, &(BTreeSet<Plugin>, Timestamp))| {
            self.all.get(uid).filter(|pod_info| is_helped(pod_info, by)).cloned()
        };
        let helped: Vec<Arc<PodInfo>> = self.refused.iter().filter_map(helped).collect();
        for pod_info in helped {
            self.forgive(&pod_info.uid);
            self.turns.insert(turn(&pod_info));
        }
    }

    /// Gives those their turn that were refused long ago or postponed; says when the next will have waited long enough.
    pub(super) fn flush(&mut self, now: Timestamp) -> Option<Duration> {
        self.flush_postponed(now).into_iter().chain(self.flush_refused(now)).min()
    }

    fn flush_postponed(&mut self, now: Timestamp) -> Option<Duration> {
        loop {
            let (due, uid) = self.later.first().cloned()?;
            if due > now {
                return Duration::try_from(due.duration_since(now)).ok();
            }
            self.later.pop_first();
            if let Some(pod_info) = self.all.get(&uid) {
                self.turns.insert(turn(pod_info));
            }
        }
    }

    fn flush_refused(&mut self, now: Timestamp) -> Option<Duration> {
        loop {
            let (since, uid) = self.by_time.first().cloned()?;
            let waited = Duration::try_from(now.duration_since(since)).unwrap_or_default();
            if let Some(left) = FLUSH_AFTER.checked_sub(waited).filter(|left| !left.is_zero()) {
                return Some(left);
            }
            self.forgive(&uid);
            if let Some(pod_info) = self.all.get(&uid) {
                self.turns.insert(turn(pod_info));
            }
        }
    }

    fn forgive(&mut self, uid: &str) {
        if let Some((uid, (_, since))) = self.refused.remove_entry(uid) {
            self.by_time.remove(&(since, uid));
        }
    }
}

fn turn(pod_info: &PodInfo) -> Turn {
    let created = pod_info.pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    (Reverse(pod_info.priority), created, Key::of(&*pod_info.pod), Arc::clone(&pod_info.uid))
}

#[cfg(test)]
mod tests {
    use kubewright_world::SIMULATION_START as NOW;
    use serde_json::json;

    use super::*;

    fn pod_info(name: &str, priority: i32) -> Arc<PodInfo> {
        let pod = json!({"metadata": {"name": name, "namespace": "shop", "uid": name},
            "spec": {"priority": priority, "containers": []}});
        Arc::new(PodInfo::of(Arc::new(kubewright_objects::from_value(pod).expect("a pod"))))
    }

    fn order(queue: &mut Queue) -> Vec<String> {
        let mut names = Vec::new();
        while let Some(next) = queue.next() {
            queue.remove(&next.uid);
            names.push(next.uid.to_string());
        }
        names
    }

    #[test]
    fn higher_priorities_have_their_turn_first() {
        let mut queue = Queue::default();
        for (name, priority) in [("b", 0), ("c", 7), ("a", 0)] {
            queue.add(pod_info(name, priority));
        }
        assert_eq!(order(&mut queue), ["c", "a", "b"]);
    }

    #[test]
    fn a_pod_whose_decision_could_not_be_written_waits_longer_each_time_and_lets_others_pass() {
        let mut queue = Queue::default();
        queue.add(pod_info("a", 7));
        queue.add(pod_info("b", 0));
        let mut now = NOW;
        for wait in [1, 2, 4, 8, 10, 10] {
            queue.postpone(pod_info("a", 7), now);
            queue.renew(pod_info("a", 7));
            assert_eq!(queue.next().map(|next| next.uid.to_string()).as_deref(), Some("b"));
            assert_eq!(queue.flush(now), Some(Duration::from_secs(wait)));
            now += Duration::from_secs(wait);
            assert_eq!(queue.flush(now), None);
            assert_eq!(queue.next().map(|next| next.uid.to_string()).as_deref(), Some("a"));
        }
        queue.settle("a");
        queue.postpone(pod_info("a", 7), now);
        assert_eq!(queue.flush(now), Some(Duration::from_secs(1)));
    }

    #[test]
    fn a_refused_pod_waits_for_what_helps_or_five_minutes() {
        let mut queue = Queue::default();
        queue.add(pod_info("a", 0));
        queue.refuse("a", BTreeSet::from([Plugin::NodeResourcesFit]), NOW);
        assert!(queue.next().is_none());
        queue.wake(|_, by| by.contains(&Plugin::NodePorts));
        assert!(queue.next().is_none());
        assert_eq!(queue.flush(NOW + Duration::from_secs(60)), Some(Duration::from_secs(240)));
        assert!(queue.next().is_none());
        assert_eq!(queue.flush(NOW + Duration::from_secs(300)), None);
        assert!(queue.next().is_some());
        queue.refuse("a", BTreeSet::from([Plugin::NodeResourcesFit]), NOW);
        queue.wake(|_, by| by.contains(&Plugin::NodeResourcesFit));
        assert_eq!(order(&mut queue), ["a"]);
    }
}
