//! The garbage collector alone.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Api;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, PropagationPolicy,
};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use crate::support::World;

const COLLECTOR: &str = "garbage-collector-controller";

/// A reference to the ConfigMap.
fn owner(map: &ConfigMap) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "name": map.metadata.name, "uid": map.metadata.uid})
}

fn blocking(map: &ConfigMap) -> Value {
    let mut owner = owner(map);
    owner["blockOwnerDeletion"] = json!(true);
    owner
}

async fn map(world: &World, name: &str, owners: &[Value], finalizers: &[&str]) -> ConfigMap {
    world
        .create(json!({"metadata": {"name": name, "ownerReferences": owners, "finalizers": finalizers}}))
        .await
}

async fn delete(world: &World, name: &str, policy: PropagationPolicy) {
    let params = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
    world.api::<ConfigMap>().delete(name, &params).await.expect("deleted");
    world.settle().await;
}

async fn let_go(world: &World, name: &str) {
    world.merge::<ConfigMap>(name, json!({"metadata": {"finalizers": null}})).await;
    world.settle().await;
}

async fn left(world: &World) -> Vec<String> {
    world.names::<ConfigMap>().await
}

#[tokio::test(start_paused = true)]
async fn dependents_of_dependents_go_and_others_stay() {
    let world = World::with(COLLECTOR).await;
    let top = map(&world, "owner", &[], &[]).await;
    let child = map(&world, "child", &[owner(&top)], &[]).await;
    map(&world, "grandchild", &[owner(&child)], &[]).await;
    map(&world, "bystander", &[], &[]).await;
    world.settle().await;
    delete(&world, "owner", PropagationPolicy::Background).await;
    assert_eq!(left(&world).await, ["bystander"]);
}

#[tokio::test(start_paused = true)]
async fn in_the_foreground_the_owner_goes_last() {
    let world = World::with(COLLECTOR).await;
    let top = map(&world, "owner", &[], &[]).await;
    let child = map(&world, "child", &[blocking(&top)], &[]).await;
    map(&world, "grandchild", &[blocking(&child)], &["example.com/hold"]).await;
    world.settle().await;
    delete(&world, "owner", PropagationPolicy::Foreground).await;
    assert_eq!(left(&world).await, ["child", "grandchild", "owner"]);
    let held = world.api::<ConfigMap>().get("child").await.expect("the child").metadata;
    assert_eq!(held.finalizers, Some(vec!["foregroundDeletion".to_owned()]));
    let_go(&world, "grandchild").await;
    assert!(left(&world).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_dependent_that_does_not_block_is_not_waited_for() {
    let world = World::with(COLLECTOR).await;
    let top = map(&world, "owner", &[], &[]).await;
    map(&world, "child", &[owner(&top)], &["example.com/hold"]).await;
    world.settle().await;
    delete(&world, "owner", PropagationPolicy::Foreground).await;
    assert_eq!(left(&world).await, ["child"]);
    let_go(&world, "child").await;
    assert!(left(&world).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_does_not_block_a_held_owner_goes_with_its_foreground_deletion() {
    let world = World::with(COLLECTOR).await;
    let top = map(&world, "owner", &[], &[]).await;
    let child = map(&world, "child", &[owner(&top)], &["example.com/hold"]).await;
    map(&world, "leaf", &[owner(&child), owner(&top)], &[]).await;
    world.settle().await;
    delete(&world, "owner", PropagationPolicy::Foreground).await;
    assert_eq!(left(&world).await, ["child"]);
    let_go(&world, "child").await;
    assert!(left(&world).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn orphans_stay_and_forget_their_owner() {
    let world = World::with(COLLECTOR).await;
    let top = map(&world, "owner", &[], &[]).await;
    map(&world, "child", &[owner(&top)], &[]).await;
    // At once: the collector may not have seen the child yet.
    delete(&world, "owner", PropagationPolicy::Orphan).await;
    assert_eq!(left(&world).await, ["child"]);
    assert_eq!(
        world.api::<ConfigMap>().get("child").await.expect("the child").metadata.owner_references,
        None
    );
}

#[tokio::test(start_paused = true)]
async fn orphans_of_the_cluster_forget_their_owner_too() {
    let world = World::with(COLLECTOR).await;
    let top = map(&world, "owner", &[], &[]).await;
    let role = json!({"metadata": {"name": "child", "ownerReferences": [owner(&top)]}, "rules": []});
    let role: ClusterRole = kubewright_objects::from_value(role).expect("a role");
    let roles = Api::<ClusterRole>::all(world.client.clone());
    roles.create(&PostParams::default(), &role).await.expect("created");
    world.settle().await;
    delete(&world, "owner", PropagationPolicy::Orphan).await;
    assert_eq!(roles.get("child").await.expect("the role").metadata.owner_references, None);
}

#[tokio::test(start_paused = true)]
async fn an_object_with_another_owner_stays_and_forgets_the_first() {
    let world = World::with(COLLECTOR).await;
    let first = map(&world, "first", &[], &[]).await;
    let second = map(&world, "second", &[], &[]).await;
    map(&world, "child", &[blocking(&first), owner(&second)], &[]).await;
    world.settle().await;
    delete(&world, "first", PropagationPolicy::Foreground).await;
    assert_eq!(left(&world).await, ["child", "second"]);
    let owners = world.api::<ConfigMap>().get("child").await.expect("the child").metadata.owner_references;
    assert_eq!(owners.expect("owners").len(), 1);
    delete(&world, "second", PropagationPolicy::Background).await;
    assert!(left(&world).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn owners_and_dependents_that_wait_for_each_other_go() {
    let world = World::with(COLLECTOR).await;
    let one = map(&world, "one", &[], &[]).await;
    let two = map(&world, "two", &[blocking(&one)], &[]).await;
    world.merge::<ConfigMap>("one", json!({"metadata": {"ownerReferences": [blocking(&two)]}})).await;
    world.settle().await;
    delete(&world, "one", PropagationPolicy::Foreground).await;
    assert!(left(&world).await.is_empty(), "{:?}", left(&world).await);
}

#[tokio::test(start_paused = true)]
async fn an_owner_with_a_finalizer_keeps_its_dependents_until_it_is_gone() {
    let world = World::with(COLLECTOR).await;
    let top = map(&world, "owner", &[], &["example.com/hold"]).await;
    map(&world, "child", &[owner(&top)], &[]).await;
    world.settle().await;
    delete(&world, "owner", PropagationPolicy::Background).await;
    assert_eq!(left(&world).await, ["child", "owner"]);
    let_go(&world, "owner").await;
    assert!(left(&world).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_wrong_uid_is_an_absent_owner_and_an_unknown_kind_is_not() {
    let world = World::with(COLLECTOR).await;
    map(&world, "owner", &[], &[]).await;
    let uid = "00000000-0000-4000-8000-000000000000";
    let wrong = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid});
    map(&world, "wrong", &[wrong], &[]).await;
    let ghost = json!({"apiVersion": "nowhere.example.com/v1", "kind": "Ghost", "name": "x", "uid": uid});
    map(&world, "ghostly", &[ghost], &[]).await;
    world.settle().await;
    assert_eq!(left(&world).await, ["ghostly", "owner"]);
}

#[tokio::test(start_paused = true)]
async fn an_owner_of_another_namespace_counts_as_absent_and_people_are_told() {
    let world = World::with(COLLECTOR).await;
    let namespace =
        kubewright_objects::from_value(json!({"metadata": {"name": "elsewhere"}})).expect("a namespace");
    Api::<Namespace>::all(world.client.clone())
        .create(&PostParams::default(), &namespace)
        .await
        .expect("created");
    let top = kubewright_objects::from_value(json!({"metadata": {"name": "owner"}})).expect("a map");
    let elsewhere = Api::<ConfigMap>::namespaced(world.client.clone(), "elsewhere");
    let top = elsewhere.create(&PostParams::default(), &top).await.expect("created");
    world.settle().await;
    map(&world, "child", &[owner(&top)], &[]).await;
    world.settle().await;
    assert!(left(&world).await.is_empty());
    let uid = top.metadata.uid.expect("a uid");
    let message = format!(
        "ownerRef [v1/ConfigMap, namespace: default, name: owner, uid: {uid}] does not exist in namespace \"default\""
    );
    assert_eq!(world.events("ConfigMap").await, [("OwnerRefInvalidNamespace".to_owned(), message)]);
    assert!(elsewhere.get_opt("owner").await.expect("an answer").is_some());
}

fn definitions(world: &World) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    Api::all_with(world.client.clone(), &ApiResource::from_gvk(&kind))
}

/// A ConfigMap `child`, whose owner is the `app` of a new kind; the objects of that kind.
async fn child_of_a_custom_resource(world: &World) -> Api<DynamicObject> {
    let definition: DynamicObject = kubewright_objects::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "parents.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "parents", "singular": "parent", "kind": "Parent", "listKind": "ParentList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    }))
    .expect("a definition");
    definitions(world).create(&PostParams::default(), &definition).await.expect("created");
    world.settle().await;
    let parents = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Parent"));
    let parents = Api::<DynamicObject>::default_namespaced_with(world.client.clone(), &parents);
    let parent = json!({"apiVersion": "example.com/v1", "kind": "Parent", "metadata": {"name": "app"}});
    let parent: DynamicObject = kubewright_objects::from_value(parent).expect("a parent");
    let parent = parents.create(&PostParams::default(), &parent).await.expect("created");
    let reference =
        json!({"apiVersion": "example.com/v1", "kind": "Parent", "name": "app", "uid": parent.metadata.uid});
    map(world, "child", &[reference], &[]).await;
    world.settle().await;
    assert_eq!(left(world).await, ["child"]);
    parents
}

#[tokio::test(start_paused = true)]
async fn custom_resources_are_collected_as_soon_as_they_are_served() {
    let world = World::with(COLLECTOR).await;
    let parents = child_of_a_custom_resource(&world).await;
    parents.delete("app", &DeleteParams::default()).await.expect("deleted");
    world.settle().await;
    assert!(left(&world).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_objects_of_a_definition_own_goes_with_the_definition() {
    let world = World::with(COLLECTOR).await;
    child_of_a_custom_resource(&world).await;
    definitions(&world).delete("parents.example.com", &DeleteParams::default()).await.expect("deleted");
    world.settle().await;
    assert!(left(&world).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_objects_of_a_kind_own_stays_while_the_kind_is_merely_not_served() {
    let world = World::with(COLLECTOR).await;
    child_of_a_custom_resource(&world).await;
    let patch = json!([{"op": "replace", "path": "/spec/versions/0/served", "value": false}]);
    let patch: Patch<()> = Patch::Json(kubewright_objects::from_value(patch).expect("a patch"));
    let unserved = definitions(&world).patch("parents.example.com", &PatchParams::default(), &patch).await;
    unserved.expect("patched");
    world.settle().await;
    assert_eq!(left(&world).await, ["child"]);
}
