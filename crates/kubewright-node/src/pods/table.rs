//! Which pods are on which node, so that a node's news reach its pods.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kubewright_runtime::Key;
use parking_lot::Mutex;

/// The pods of each node, the node being there or not.
#[derive(Clone, Debug, Default)]
pub(super) struct PodTable(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    by_node: BTreeMap<Arc<str>, BTreeSet<Key>>,
    nodes: BTreeMap<Key, Arc<str>>,
    /// Those whose node had news that they have not been asked about.
    news: BTreeSet<Key>,
}

impl PodTable {
    /// The pod is on this node; whether the node had news since it was last met.
    pub(super) fn insert(&self, node: &str, pod: &Key) -> bool {
        let mut inner = self.0.lock();
        if inner.nodes.get(pod).is_none_or(|known| **known != *node) {
            inner.leave(pod);
            let node: Arc<str> =
                inner.by_node.get_key_value(node).map_or_else(|| node.into(), |(name, _)| Arc::clone(name));
            inner.by_node.entry(Arc::clone(&node)).or_default().insert(pod.clone());
            inner.nodes.insert(pod.clone(), node);
        }
        inner.news.remove(pod)
    }

    /// The pod is gone.
    pub(super) fn forget(&self, pod: &Key) {
        self.0.lock().leave(pod);
    }

    /// The pods of the node.
    pub(super) fn on(&self, node: &str) -> Vec<Key> {
        self.0.lock().by_node.get(node).into_iter().flatten().cloned().collect()
    }

    /// The node has news: those are to be looked at.
    pub(super) fn wake(&self, node: &str) -> Vec<Key> {
        let mut inner = self.0.lock();
        let pods: Vec<Key> = inner.by_node.get(node).into_iter().flatten().cloned().collect();
        inner.news.extend(pods.iter().cloned());
        pods
    }
}

impl Inner {
    fn leave(&mut self, pod: &Key) {
        self.news.remove(pod);
        let Some(node) = self.nodes.remove(pod) else { return };
        if let Some(pods) = self.by_node.get_mut(&node) {
            pods.remove(pod);
            if pods.is_empty() {
                self.by_node.remove(&node);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_reach_the_pods_of_the_node_once() {
        let table = PodTable::default();
        let (here, there) = (Key::namespaced("shop", "here"), Key::namespaced("shop", "there"));
        assert!(!table.insert("a", &here) && !table.insert("b", &there));
        assert_eq!(table.wake("a"), std::slice::from_ref(&here));
        assert!(table.insert("a", &here) && !table.insert("a", &here));
        table.forget(&here);
        assert!(table.wake("a").is_empty());
    }
}
