//! Which autoscalers scale which pods: two that scale one would work against each other
//! (`hpasControllingPodsUnderSelector` in `pkg/controller/podautoscaler/horizontal.go`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::api::ObjectMeta;
use kubewright_meta::selector::LabelSelector;
use kubewright_runtime::Key;
use parking_lot::Mutex;

/// The selector of each autoscaler's target, as it was last seen.
#[derive(Default)]
pub(super) struct Selectors(Mutex<BTreeMap<Key, LabelSelector>>);

impl Selectors {
    /// Remembers the selector of an autoscaler's target.
    pub(super) fn set(&self, autoscaler: &Key, selector: &LabelSelector) {
        self.0.lock().insert(autoscaler.clone(), selector.clone());
    }

    /// Forgets an autoscaler that is gone.
    pub(super) fn forget(&self, autoscaler: &Key) {
        self.0.lock().remove(autoscaler);
    }

    /// Those that scale any of `pods`, by name.
    pub(super) fn controlling(&self, pods: &[Arc<Pod>]) -> BTreeSet<Key> {
        let selectors = self.0.lock();
        let scales = |(key, selector): &(&Key, &LabelSelector)| {
            let mut own = pods.iter().filter(|pod| pod.metadata.namespace == key.namespace);
            own.any(|pod| matches(selector, &pod.metadata))
        };
        selectors.iter().filter(scales).map(|(key, _)| key.clone()).collect()
    }
}

/// Whether a selector matches an object's labels.
pub(super) fn matches(selector: &LabelSelector, meta: &ObjectMeta) -> bool {
    selector.matches_by(|key| meta.labels.as_ref()?.get(key).map(String::as_str))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(namespace: &str, name: &str) -> Key {
        Key::namespaced(namespace, name)
    }

    #[test]
    fn only_autoscalers_of_the_pods_namespace_count() {
        let selectors = Selectors::default();
        let web = LabelSelector::parse("app=web").expect("a selector");
        for one in [key("a", "one"), key("a", "two"), key("b", "three")] {
            selectors.set(&one, &web);
        }
        let pod = json!({"metadata": {"name": "p", "namespace": "a", "labels": {"app": "web", "tier": "x"}}});
        let pods = [Arc::new(kubewright_objects::from_value(pod).expect("a pod"))];
        assert_eq!(selectors.controlling(&pods), [key("a", "one"), key("a", "two")].into());
        selectors.forget(&key("a", "one"));
        selectors.set(&key("a", "two"), &LabelSelector::parse("tier=y").expect("a selector"));
        assert!(selectors.controlling(&pods).is_empty());
    }
}
