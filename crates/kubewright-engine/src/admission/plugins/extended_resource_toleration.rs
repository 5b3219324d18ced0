//! ExtendedResourceToleration: a pod that asks for a device stands the taint of the nodes that have it
//! (`k8s.io/kubernetes/plugin/pkg/admission/extendedresourcetoleration`).

use std::collections::BTreeSet;

use kubewright_kinds::rules::resources::is_extended;
use kubewright_meta::{ApiError, object};
use serde_json::{Value, json};

use super::{AdmissionPlugin, Plugin, Review};

/// Gives pods a toleration for each extended resource that they ask for.
pub(super) struct ExtendedResourceToleration;

impl AdmissionPlugin for ExtendedResourceToleration {
    fn name(&self) -> Plugin {
        Plugin::ExtendedResourceToleration
    }

    fn handles(&self, review: &Review<'_>) -> bool {
        review.is_of_whole()
    }

    fn mutate(&self, _: &Review<'_>, pod: &mut Value) -> Result<(), ApiError> {
        mutate(pod);
        Ok(())
    }
}

/// Adds a toleration for each extended resource that a container asks for; one of the same key, effect and operator is
/// replaced.
fn mutate(pod: &mut Value) {
    let containers =
        ["containers", "initContainers"].into_iter().flat_map(|list| pod["spec"][list].as_array());
    let requests =
        containers.flatten().filter_map(|container| container["resources"]["requests"].as_object());
    let resources: BTreeSet<String> =
        requests.flat_map(serde_json::Map::keys).filter(|name| is_extended(name)).cloned().collect();
    for resource in resources {
        let toleration = json!({"key": resource, "operator": "Exists", "effect": "NoSchedule"});
        let list = object::member_mut(pod, "spec").entry("tolerations").or_insert_with(|| json!([]));
        if list.is_null() {
            *list = json!([]);
        }
        let Value::Array(list) = list else { continue };
        let same = |one: &&mut Value| {
            ["key", "operator", "effect"].iter().all(|field| one[*field] == toleration[*field])
                && one["value"].as_str().unwrap_or_default().is_empty()
        };
        match list.iter_mut().find(same) {
            Some(one) => *one = toleration,
            None => list.push(toleration),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_device_that_is_asked_for_is_stood_once() {
        let requests = json!({"cpu": "1", "example.com/gpu": "1"});
        let container = json!({"name": "c", "resources": {"requests": requests}});
        let mut pod = json!({"spec": {"containers": [container.clone(), container]}});
        mutate(&mut pod);
        mutate(&mut pod);
        let stood = json!([{"key": "example.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]);
        assert_eq!(pod["spec"]["tolerations"], stood);
    }
}
