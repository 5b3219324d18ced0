//! Tells people that an object names an owner of another namespace, which the collector takes for absent.

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use kube::core::ApiResource;
use kubewright_runtime::Context;

use super::item::Item;

/// Records that `owner` is not in the namespace of the object with this metadata.
pub(super) async fn owner_of_another_namespace(
    ctx: &Context,
    resource: &ApiResource,
    meta: &ObjectMeta,
    owner: &Item,
) {
    let event = event(resource, meta, owner, ctx.controller(), ctx.world());
    let namespace = event.metadata.namespace.clone().unwrap_or_default();
    let api = Api::<Event>::namespaced(ctx.client().clone(), &namespace);
    if let Err(error) = api.create(&PostParams::default(), &event).await {
        tracing::warn!(%error, "cannot record an event");
    }
}

fn event(
    resource: &ApiResource,
    meta: &ObjectMeta,
    owner: &Item,
    component: &str,
    world: &kubewright_runtime::World,
) -> Event {
    let now = Time(world.clock.now());
    let name = meta.name.clone().unwrap_or_default();
    let namespace = meta.namespace.clone().unwrap_or_default();
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{name}.{}", world.dice.suffix(16))),
            // Events of cluster-scoped objects live in `default`.
            namespace: Some(meta.namespace.clone().unwrap_or_else(|| "default".into())),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            api_version: Some(resource.api_version.clone()),
            kind: Some(resource.kind.clone()),
            namespace: meta.namespace.clone(),
            name: Some(name),
            uid: meta.uid.clone(),
            ..ObjectReference::default()
        },
        type_: Some("Warning".into()),
        reason: Some("OwnerRefInvalidNamespace".into()),
        message: Some(message(meta, owner, &namespace)),
        source: Some(EventSource { component: Some(component.into()), host: None }),
        reporting_component: Some(component.into()),
        first_timestamp: Some(now.clone()),
        last_timestamp: Some(now),
        count: Some(1),
        ..Event::default()
    }
}

fn message(meta: &ObjectMeta, owner: &Item, namespace: &str) -> String {
    let reference = meta.owner_references.iter().flatten().find(|reference| reference.uid == owner.uid);
    let api_version = reference.map_or("", |reference| &reference.api_version);
    let Item { kind, name, uid, .. } = owner;
    format!(
        "ownerRef [{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}] does not exist in namespace \
         {namespace:?}"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::item::tests::meta;
    use super::*;

    #[test]
    fn the_message_names_owner_and_namespace() {
        let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "u"});
        let child = meta(json!({"name": "child", "namespace": "shop", "ownerReferences": [owner]}));
        let owner = Item::owners(&child.metadata).next().expect("an owner");
        assert_eq!(
            message(&child.metadata, &owner, "shop"),
            "ownerRef [v1/ConfigMap, namespace: shop, name: owner, uid: u] does not exist in namespace \"shop\""
        );
    }
}
