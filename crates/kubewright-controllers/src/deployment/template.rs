//! The pod template of a Deployment: when two are the same, and the ReplicaSet that is made for one.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kubewright_objects::{field, optional};
use kubewright_runtime::owner;

use crate::hash;

/// The label that tells the ReplicaSets of a Deployment, and their pods, apart.
pub(super) const HASH_LABEL: &str = "pod-template-hash";

/// The longest name of an object (`validation.DNS1123SubdomainMaxLength`).
const LONGEST_NAME: usize = 253;

/// Whether two templates are the same but for the hash label (`EqualIgnoreHash`).
pub(super) fn same(a: &PodTemplateSpec, b: &PodTemplateSpec) -> bool {
    a.spec == b.spec && plain(a.metadata.as_ref()) == plain(b.metadata.as_ref())
}

/// Metadata without the hash label, and with nothing where it says only "empty".
fn plain(metadata: Option<&ObjectMeta>) -> ObjectMeta {
    let mut metadata = metadata.cloned().unwrap_or_default();
    let filled = |map: Option<BTreeMap<String, String>>| map.filter(|map| !map.is_empty());
    let mut labels = metadata.labels.unwrap_or_default();
    labels.remove(HASH_LABEL);
    metadata.labels = filled(Some(labels));
    metadata.annotations = filled(metadata.annotations);
    metadata
}

/// The ReplicaSet for the current template of `deployment`: named after the template's hash, so that making it twice
/// makes it once; without annotations.
pub(super) fn new_replica_set(deployment: &Deployment, replicas: i32) -> ReplicaSet {
    let spec = optional::<DeploymentSpec>(&deployment.spec).cloned().unwrap_or_default();
    let mut template = spec.template;
    let hash =
        hash::of_template(&template, deployment.status.as_ref().and_then(|status| status.collision_count));
    let metadata = template.metadata.get_or_insert_default();
    metadata.labels.get_or_insert_default().insert(HASH_LABEL.into(), hash.clone());
    let labels = metadata.labels.clone();

    let mut selector = spec.selector;
    let selected: &mut BTreeMap<_, _> = selector.match_labels.get_or_insert_default();
    selected.insert(HASH_LABEL.into(), hash.clone());
    ReplicaSet {
        metadata: ObjectMeta {
            name: Some(name(deployment.metadata.name.as_deref().unwrap_or_default(), &hash)),
            namespace: deployment.metadata.namespace.clone(),
            labels,
            owner_references: Some(vec![owner::controller_reference(deployment)]),
            ..ObjectMeta::default()
        },
        spec: field(ReplicaSetSpec {
            replicas: Some(replicas),
            min_ready_seconds: spec.min_ready_seconds,
            selector: LabelSelector { match_expressions: selector.match_expressions, ..selector },
            template: Some(template),
        }),
        status: None,
    }
}

/// `<deployment>-<hash>`, the Deployment's part cut off where the name would be too long.
fn name(deployment: &str, hash: &str) -> String {
    let room = LONGEST_NAME.saturating_sub(hash.len() + 1);
    let end = (0..=room.min(deployment.len())).rev().find(|end| deployment.is_char_boundary(*end));
    format!("{}-{hash}", &deployment[..end.unwrap_or_default()])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::deployment;
    use super::*;

    fn template(value: serde_json::Value) -> PodTemplateSpec {
        kubewright_objects::from_value(value).expect("a template")
    }

    #[test]
    fn the_hash_label_does_not_make_a_template_another() {
        let bare = template(json!({"metadata": {}, "spec": {"containers": []}}));
        let labelled = template(
            json!({"metadata": {"labels": {HASH_LABEL: "abc"}, "annotations": {}}, "spec": {"containers": []}}),
        );
        assert!(same(&bare, &labelled));
        let other = template(json!({"metadata": {"labels": {"tier": "front"}}, "spec": {"containers": []}}));
        assert!(!same(&bare, &other));
    }

    #[test]
    fn the_replica_set_of_a_template_is_labelled_and_selects_by_its_hash() {
        let set = new_replica_set(&deployment(3), 2);
        let hash = set.metadata.labels.as_ref().unwrap()[HASH_LABEL].clone();
        assert_eq!(set.metadata.name, Some(format!("web-{hash}")));
        let spec = set.spec.unwrap();
        assert_eq!(spec.selector.match_labels.unwrap()[HASH_LABEL], hash);
        let labels = spec.template.unwrap().metadata.unwrap().labels.unwrap();
        assert_eq!((labels[HASH_LABEL].as_str(), labels["app"].as_str()), (hash.as_str(), "web"));
        assert_eq!(spec.replicas, Some(2));
    }

    #[test]
    fn a_name_that_would_be_too_long_is_cut() {
        assert_eq!(name("web", "abc"), "web-abc");
        assert_eq!(name(&"a".repeat(253), "0123456789").len(), 253);
    }
}
