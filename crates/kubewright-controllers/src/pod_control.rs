//! Creating and deleting the pods of an owner, and telling people about it (`RealPodControl` in
//! `pkg/controller/controller_utils.go`).

use std::sync::Arc;

use futures::future::join_all;
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, Preconditions};
use kubewright_runtime::{Context, Deletion, Error, EventType, Key, Object, owner};

use crate::is_namespace_terminating;

/// A pod of `owner` from a template, without a name: the API server makes one from `generateName`.
pub(crate) fn from_template<O: Object>(owner: &O, template: PodTemplateSpec) -> Pod {
    let PodTemplateSpec { metadata, spec } = template;
    let of_template = metadata.unwrap_or_default();
    let name = owner.meta().name.as_deref().unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(format!("{name}-")),
            namespace: owner.meta().namespace.clone(),
            labels: of_template.labels,
            annotations: of_template.annotations,
            finalizers: of_template.finalizers,
            owner_references: Some(vec![owner::controller_reference(owner)]),
            ..ObjectMeta::default()
        },
        spec,
        status: None,
    }
}

/// Creates `pods`, first one, then two, then four and so on: what one is refused for, the next would be too, and nobody
/// wants to read that a thousand times. After a batch with a refusal no other follows; the first refusal is told.
///
/// # Errors
/// The first refusal. A namespace that is going away is none: no pod will ever be let into it again.
pub(crate) async fn create<O: Object>(ctx: &Context, owner: &O, pods: Vec<Pod>) -> Result<(), Error> {
    for batch in slow_start(&pods) {
        let answers = join_all(batch.iter().map(|pod| create_one(ctx, owner, pod))).await;
        answers.into_iter().collect::<Result<(), Error>>()?;
    }
    Ok(())
}

/// `items` in batches of one, two, four and so on (`slowStartBatch`).
pub(crate) fn slow_start<T>(items: &[T]) -> impl Iterator<Item = &[T]> {
    let (mut rest, mut size) = (items, 1);
    std::iter::from_fn(move || {
        let (batch, after) = rest.split_at(size.min(rest.len()));
        (rest, size) = (after, size * 2);
        (!batch.is_empty()).then_some(batch)
    })
}

async fn create_one<O: Object>(ctx: &Context, owner: &O, pod: &Pod) -> Result<(), Error> {
    match ctx.create(pod).await {
        Ok(pod) => {
            let name = pod.metadata.name.unwrap_or_default();
            ctx.event(owner, EventType::Normal, "SuccessfulCreate", &format!("Created pod: {name}"));
            Ok(())
        }
        Err(error) if is_namespace_terminating(&error) => Ok(()),
        Err(error @ Error::OwnerGone(_)) => Err(error),
        Err(error) => {
            ctx.event(owner, EventType::Warning, "FailedCreate", &format!("Error creating: {error}"));
            Err(error)
        }
    }
}

/// Deletes all of `pods`, as they were seen: another pod that got the name of one meanwhile stays.
///
/// # Errors
/// The first refusal, after all were tried.
pub(crate) async fn delete<O: Object>(ctx: &Context, owner: &O, pods: &[Arc<Pod>]) -> Result<(), Error> {
    let answers = join_all(pods.iter().map(|pod| delete_one(ctx, owner, pod))).await;
    answers.into_iter().collect()
}

async fn delete_one<O: Object>(ctx: &Context, owner: &O, pod: &Pod) -> Result<(), Error> {
    match ctx.delete::<Pod>(&Key::of(pod), as_seen(pod)).await {
        Ok(Deletion::Absent) => Ok(()),
        Ok(Deletion::Gone | Deletion::Terminating(_)) => {
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            ctx.event(owner, EventType::Normal, "SuccessfulDelete", &format!("Deleted pod: {name}"));
            Ok(())
        }
        Err(error) => {
            ctx.event(owner, EventType::Warning, "FailedDelete", &format!("Error deleting: {error}"));
            Err(error)
        }
    }
}

/// Deletes this very pod, not one that came after it under its name.
pub(crate) fn as_seen(pod: &Pod) -> DeleteParams {
    let uid = Preconditions { uid: pod.metadata.uid.clone(), resource_version: None };
    DeleteParams { preconditions: Some(uid), ..DeleteParams::default() }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::ReplicaSet;
    use serde_json::json;

    use super::*;

    fn owner(name: &str) -> ReplicaSet {
        kubewright_objects::from_value(json!({"metadata": {"name": name, "namespace": "shop", "uid": "u"}}))
            .expect("a set")
    }

    #[test]
    fn a_new_pod_carries_the_template_and_its_controller() {
        let template = json!({
            "metadata": {"labels": {"app": "web"}, "annotations": {"note": "x"}, "finalizers": ["example.com/hold"],
                "name": "ignored"},
            "spec": {"containers": []},
        });
        let pod = from_template(&owner("web"), kubewright_objects::from_value(template).expect("a template"));
        assert_eq!(
            kubewright_objects::to_value(&pod.metadata).expect("JSON"),
            json!({
                "generateName": "web-", "namespace": "shop", "labels": {"app": "web"}, "annotations": {"note": "x"},
                "finalizers": ["example.com/hold"],
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u",
                    "controller": true, "blockOwnerDeletion": true}],
            })
        );
        assert!(pod.spec.is_some());
    }

    #[test]
    fn a_slow_start_doubles_its_batches() {
        let sizes = |count: usize| slow_start(&vec![(); count]).map(<[()]>::len).collect::<Vec<_>>();
        assert_eq!(sizes(0), Vec::<usize>::new());
        assert_eq!(sizes(1), [1]);
        assert_eq!(sizes(10), [1, 2, 4, 3]);
    }
}
