//! A pod of a StatefulSet: its name, what it is called in the network, and its volumes
//! (`pkg/controller/statefulset/stateful_set_utils.go`).

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, Volume};
use kubewright_objects::optional;

use super::ordinals;
use super::revisions::Revision;
use crate::{history, pod, pod_control};

/// The pod's name again, for services that select one pod.
const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
/// The pod's ordinal.
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// The pod `ordinal` of `set`, as `revision` has it.
pub(super) fn new(set: &StatefulSet, revision: &Revision, ordinal: i32) -> Pod {
    let mut pod = pod_control::from_template(set, revision.template.clone());
    pod.metadata.name = Some(ordinals::pod_name(set, ordinal));
    identify(set, &mut pod);
    mount(set, &mut pod);
    pod.metadata.labels.get_or_insert_default().insert(history::POD_LABEL.into(), revision.name.clone());
    let spec = pod.spec.get_or_insert_default();
    spec.hostname.clone_from(&pod.metadata.name);
    spec.subdomain = optional::<StatefulSetSpec>(&set.spec)
        .and_then(|spec| spec.service_name.clone())
        .filter(|name| !name.is_empty());
    pod
}

/// The revision that the pod says it is of; empty when it does not say.
pub(super) fn revision(pod: &Pod) -> &str {
    pod::label(pod, history::POD_LABEL).unwrap_or_default()
}

/// Whether the pod is called what a pod of `set` with its ordinal is called, by name and label.
pub(super) fn is_identified(set: &StatefulSet, pod: &Pod) -> bool {
    let name = pod.metadata.name.as_deref();
    let called = ordinals::of(name).map(|ordinal| ordinals::pod_name(set, ordinal));
    called.is_some() && called.as_deref() == name && pod::label(pod, POD_NAME) == name
}

/// Gives the pod the labels of its ordinal.
pub(super) fn identify(set: &StatefulSet, pod: &mut Pod) {
    let Some(ordinal) = ordinals::of(pod.metadata.name.as_deref()) else { return };
    let name = ordinals::pod_name(set, ordinal);
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(POD_NAME.into(), name.clone());
    labels.insert(POD_INDEX.into(), ordinal.to_string());
    pod.metadata.name = Some(name);
}

/// Whether each claim of the pod's ordinal is one of its volumes.
pub(super) fn is_mounted(set: &StatefulSet, pod: &Pod) -> bool {
    let volumes = || pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    claims(set, pod).iter().all(|(template, claim)| {
        let volume = volumes().find(|volume| volume.name == *template);
        let source = volume.and_then(|volume| volume.persistent_volume_claim.as_ref());
        source.is_some_and(|source| Some(&source.claim_name) == claim.metadata.name.as_ref())
    })
}

/// Makes the claims of the pod's ordinal its volumes, in place of others of these names.
pub(super) fn mount(set: &StatefulSet, pod: &mut Pod) {
    let claims = claims(set, pod);
    if claims.is_empty() {
        return;
    }
    let volumes = pod.spec.get_or_insert_default().volumes.get_or_insert_default();
    volumes.retain(|volume| !claims.contains_key(&volume.name));
    let claimed = claims.into_iter().map(|(template, claim)| Volume {
        name: template,
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: claim.metadata.name.unwrap_or_default(),
            read_only: None,
        }),
        ..Volume::default()
    });
    volumes.splice(0..0, claimed);
}

/// The claims of the pod's ordinal, by the name of their template.
pub(super) fn claims(set: &StatefulSet, pod: &Pod) -> BTreeMap<String, PersistentVolumeClaim> {
    let (Some(ordinal), Some(spec)) =
        (ordinals::of(pod.metadata.name.as_deref()), optional::<StatefulSetSpec>(&set.spec))
    else {
        return BTreeMap::new();
    };
    let claim = |template: &PersistentVolumeClaim| {
        let name = template.metadata.name.clone().unwrap_or_default();
        let mut claim = template.clone();
        claim.metadata.name = Some(format!("{name}-{}-{ordinal}", ordinals::name(set)));
        claim.metadata.namespace.clone_from(&set.metadata.namespace);
        let labels = claim.metadata.labels.get_or_insert_default();
        labels.extend(spec.selector.match_labels.clone().unwrap_or_default());
        if labels.is_empty() {
            claim.metadata.labels = None;
        }
        claim.status = None;
        (name, claim)
    };
    spec.volume_claim_templates.iter().flatten().map(claim).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{revision_of, stateful_set, with_claims};
    use super::*;

    #[test]
    fn a_pod_is_called_by_its_ordinal_everywhere() {
        let set = stateful_set(3);
        let pod = new(&set, &revision_of("web-1", "web:1"), 2);
        let shown = kubewright_objects::to_value(&pod).expect("JSON");
        assert_eq!(
            shown["metadata"]["labels"],
            json!({"app": "web", POD_NAME: "web-2", POD_INDEX: "2", history::POD_LABEL: "web-1"})
        );
        assert_eq!(
            (&shown["spec"]["hostname"], &shown["spec"]["subdomain"]),
            (&json!("web-2"), &json!("peers"))
        );
        assert_eq!(shown["metadata"]["generateName"], "web-");
        assert!(is_identified(&set, &pod) && is_mounted(&set, &pod));
    }

    #[test]
    fn claims_become_the_first_volumes_and_replace_those_of_their_name() {
        let set = with_claims(stateful_set(1), &json!({}));
        let mut revision = revision_of("web-1", "web:1");
        let volumes = json!([{"name": "tmp", "emptyDir": {}}, {"name": "data", "emptyDir": {}}]);
        revision.template.spec.as_mut().expect("a spec").volumes =
            kubewright_objects::from_value(volumes).ok();
        let pod = new(&set, &revision, 0);
        assert_eq!(
            kubewright_objects::to_value(&pod.spec.as_ref().expect("a spec").volumes).expect("JSON"),
            json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}}, {"name": "tmp", "emptyDir": {}}])
        );
        assert!(is_mounted(&set, &pod));
        assert!(!is_mounted(&set, &new(&stateful_set(1), &revision, 0)));
    }

    #[test]
    fn a_claim_carries_the_labels_of_its_template_and_of_the_selector() {
        let set = with_claims(stateful_set(1), &json!({}));
        let claim = &claims(&set, &new(&set, &revision_of("web-1", "web:1"), 4))["data"];
        assert_eq!(claim.metadata.name.as_deref(), Some("data-web-4"));
        assert_eq!(
            kubewright_objects::to_value(&claim.metadata.labels).expect("JSON"),
            json!({"app": "web", "tier": "disk"})
        );
        assert_eq!(claim.status, None);
    }

    #[test]
    fn a_pod_that_lost_its_label_gets_it_back() {
        let set = stateful_set(1);
        let mut pod = new(&set, &revision_of("web-1", "web:1"), 0);
        pod.metadata.labels.as_mut().expect("labels").remove(POD_NAME);
        assert!(!is_identified(&set, &pod));
        identify(&set, &mut pod);
        assert!(is_identified(&set, &pod));
    }
}
