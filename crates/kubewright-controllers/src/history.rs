//! Revisions of a pod template, kept as ControllerRevisions (`pkg/controller/history/controller_history.go`).
//!
//! A revision holds a strategic merge patch that puts a template back: StatefulSets and DaemonSets write the same, and
//! `kubectl rollout undo` sends it.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kubewright_objects::{field, optional};
use kubewright_runtime::{Object, owner};
use serde_json::{Value, json};

/// The label by which pods say which revision they are of, and DaemonSets find their revisions.
pub(crate) const POD_LABEL: &str = "controller-revision-hash";
/// The longest part of a revision's name that is its owner's (`ControllerRevisionName`).
const LONGEST_PREFIX: usize = 223;

/// What a revision of `template` holds.
pub(crate) fn snapshot(template: &PodTemplateSpec) -> Value {
    let mut template = kubewright_objects::to_value(template).unwrap_or_else(|_| json!({}));
    template["$patch"] = json!("replace");
    json!({"spec": {"template": template}})
}

/// The template that `revision` puts back; `None` when it holds none.
pub(crate) fn template(revision: &ControllerRevision) -> Option<PodTemplateSpec> {
    let mut template = data(revision).pointer("/spec/template")?.clone();
    template.as_object_mut()?.remove("$patch");
    kubewright_objects::from_value(template).ok()
}

/// What the revision holds.
pub(crate) fn data(revision: &ControllerRevision) -> &Value {
    optional::<RawExtension>(&revision.data).map_or(&Value::Null, |data| &data.0)
}

/// The revision's number.
pub(crate) fn number(revision: &ControllerRevision) -> i64 {
    optional::<i64>(&revision.revision).copied().unwrap_or_default()
}

/// The revision's name.
pub(crate) fn name(revision: &ControllerRevision) -> &str {
    revision.metadata.name.as_deref().unwrap_or_default()
}

/// Sorts by number, then age, then name (`SortControllerRevisions`).
pub(crate) fn sort<R: AsRef<ControllerRevision>>(revisions: &mut [R]) {
    revisions.sort_by(|a, b| {
        let rank = |revision: &R| {
            let revision = revision.as_ref();
            let meta = &revision.metadata;
            (revision.revision, meta.creation_timestamp.clone(), meta.name.clone())
        };
        rank(a).cmp(&rank(b))
    });
}

/// A revision `number` of `owner` that holds `data`, named after `hash`.
pub(crate) fn revision<O: Object>(
    owner: &O,
    labels: BTreeMap<String, String>,
    data: Value,
    number: i64,
    hash: &str,
) -> ControllerRevision {
    let meta = owner.meta();
    ControllerRevision {
        metadata: ObjectMeta {
            name: Some(revision_name(meta.name.as_deref().unwrap_or_default(), hash)),
            namespace: meta.namespace.clone(),
            labels: Some(labels),
            annotations: meta.annotations.clone(),
            owner_references: Some(vec![owner::controller_reference(owner)]),
            ..ObjectMeta::default()
        },
        data: field(RawExtension(data)),
        revision: field(number),
    }
}

/// `<owner>-<hash>`, the owner's part cut where the name would be too long.
pub(crate) fn revision_name(owner: &str, hash: &str) -> String {
    let end = (0..=LONGEST_PREFIX.min(owner.len())).rev().find(|end| owner.is_char_boundary(*end));
    format!("{}-{hash}", &owner[..end.unwrap_or_default()])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::apps::v1::StatefulSet;

    use super::*;

    fn owner() -> StatefulSet {
        kubewright_objects::from_value(json!({"metadata": {"name": "web", "namespace": "shop", "uid": "u",
            "annotations": {"kubernetes.io/change-cause": "first"}}}))
        .expect("a StatefulSet")
    }

    #[test]
    fn a_revision_puts_back_the_template_that_it_was_taken_of() {
        let before = json!({"metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "web:1", "resources": {}}], "securityContext": {}}});
        let before: PodTemplateSpec = kubewright_objects::from_value(before).expect("a template");
        let data = snapshot(&before);
        assert_eq!(data["spec"]["template"]["$patch"], "replace");
        assert_eq!(data["spec"]["template"]["spec"]["securityContext"], json!({}));
        let taken = revision(&owner(), BTreeMap::new(), data, 3, "abc");
        assert_eq!(template(&taken), Some(before));
        assert_eq!((name(&taken), taken.revision), ("web-abc", 3));
        assert_eq!(taken.metadata.annotations, owner().metadata.annotations);
    }

    #[test]
    fn revisions_are_sorted_by_number_before_name() {
        let numbered =
            |number, hash| Arc::new(revision(&owner(), BTreeMap::new(), Value::Null, number, hash));
        let mut revisions = [numbered(10, "a"), numbered(9, "c"), numbered(9, "b")];
        sort(&mut revisions);
        assert_eq!(revisions.each_ref().map(|revision| name(revision)), ["web-b", "web-c", "web-a"]);
    }

    #[test]
    fn a_long_owner_is_cut() {
        assert_eq!(revision_name(&"a".repeat(253), "5d4f").len(), 223 + 5);
    }
}
