//! Claims that are made for pods: one for each volume that a pod describes instead of naming a claim. They go with the
//! pod, which owns them (`pkg/controller/volume/ephemeral/controller.go`).

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kubewright_runtime::{
    Context, Controller, Error, Event, EventType, Key, Outcome, Predicate, Reconciler, owner,
};

/// The controller.
pub(crate) fn controller() -> Controller {
    Controller::new("ephemeral-volume-controller", Claims)
        .event_source("ephemeral_volume")
        .for_kind::<Pod>()
        .predicate(Predicate::of(
            |event: &Event<'_, Pod>| matches!(event, Event::Create(pod) if ephemeral(pod).next().is_some()),
        ))
        // A claim that somebody deletes is made again.
        .watches(|claim: &PersistentVolumeClaim| pod_of(claim).into_iter().collect())
        .predicate(Predicate::of(|event: &Event<'_, PersistentVolumeClaim>| {
            matches!(event, Event::Delete(_))
        }))
}

/// The pod that owns a claim.
fn pod_of(claim: &PersistentVolumeClaim) -> Option<Key> {
    let owners = claim.metadata.owner_references.iter().flatten();
    let mut pods = owners.filter(|owner| owner.kind == "Pod" && owner.controller == Some(true));
    let namespace = claim.metadata.namespace.clone().unwrap_or_default();
    pods.next().map(|owner| Key::namespaced(namespace, owner.name.clone()))
}

fn ephemeral(pod: &Pod) -> impl Iterator<Item = &Volume> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.filter(|volume| volume.ephemeral.is_some())
}

struct Claims;

impl Reconciler for Claims {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let pod = ctx.get::<Pod>(key).filter(|pod| pod.metadata.deletion_timestamp.is_none());
        let Some(pod) = pod else { return Ok(Outcome::Done) };
        for volume in ephemeral(&pod) {
            if let Err(failed) = provide(ctx, &pod, volume).await {
                let note = format!("ephemeral volume {}: {}", volume.name, failed.why);
                ctx.event(&*pod, EventType::Warning, "FailedBinding", &note);
                return Err(failed.error);
            }
        }
        Ok(Outcome::Done)
    }
}

/// Why there is no claim for a volume.
struct Failed {
    why: String,
    error: Error,
}

async fn provide(ctx: &Context, pod: &Pod, volume: &Volume) -> Result<(), Failed> {
    let Some(wanted) = claim(pod, volume) else { return Ok(()) };
    let key = Key::of(&wanted);
    match ctx.get::<PersistentVolumeClaim>(&key) {
        Some(there) if owner::is_controlled_by(&*there, pod) => Ok(()),
        Some(_) => {
            let why = format!("PVC {key} was not created for pod {} (pod is not owner)", Key::of(pod));
            Err(Failed { error: Error::new(why.clone()), why })
        }
        None => match ctx.create(&wanted).await {
            Ok(_) => Ok(()),
            Err(error) => {
                let message =
                    error.status().map_or_else(|| error.to_string(), |status| status.message.clone());
                Err(Failed { why: format!("create PVC {}: {message}", key.name), error })
            }
        },
    }
}

/// The claim for a volume that a pod describes.
fn claim(pod: &Pod, volume: &Volume) -> Option<PersistentVolumeClaim> {
    let template = volume.ephemeral.as_ref()?.volume_claim_template.as_ref()?;
    let pod_name = pod.metadata.name.clone()?;
    let described = template.metadata.clone().unwrap_or_default();
    Some(PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some(format!("{pod_name}-{}", volume.name)),
            namespace: pod.metadata.namespace.clone(),
            annotations: described.annotations,
            labels: described.labels,
            owner_references: Some(vec![OwnerReference {
                api_version: "v1".into(),
                kind: "Pod".into(),
                name: pod_name,
                uid: pod.metadata.uid.clone()?,
                controller: Some(true),
                block_owner_deletion: Some(true),
            }]),
            ..ObjectMeta::default()
        },
        spec: Some(template.spec.clone()),
        status: None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_claim_has_the_name_of_pod_and_volume_and_what_its_template_says() {
        let pod: Pod = kubewright_objects::from_value(json!({
            "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
            "spec": {"containers": [], "volumes": [
                {"name": "plain", "emptyDir": {}},
                {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}}}}]}}))
        .expect("a pod");
        let volumes: Vec<&Volume> = ephemeral(&pod).collect();
        assert_eq!(volumes.len(), 1);
        let made = claim(&pod, volumes[0]).expect("a claim");
        assert_eq!(Key::of(&made), Key::namespaced("ns", "p-scratch"));
        assert_eq!(pod_of(&made), Some(Key::namespaced("ns", "p")));
        let made = json!(made);
        assert_eq!(made["metadata"]["labels"], json!({"a": "b"}));
        assert_eq!(made["metadata"]["ownerReferences"][0]["blockOwnerDeletion"], true);
        assert_eq!(made["spec"]["storageClassName"], "fast");
    }
}
