//! Objects that are stored anew in the storage version, and what else came with v1.37.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kubewright_cluster::{Cluster, KubernetesVersion};
use kubewright_controllers::Setup;
use kubewright_runtime::{CancellationToken, Manager};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{World, setup};

const PUBLISHER: &str = "kube-apiserver-serving-clustertrustbundle-publisher-controller";

async fn newest() -> World {
    World::at_rest(Cluster::builder().kubernetes_version(KubernetesVersion::V1_37).nodes(0)).await
}

fn kind(group: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind))
}

fn migrations(world: &World) -> Api<DynamicObject> {
    let kind = kind("storagemigration.k8s.io", "StorageVersionMigration");
    Api::all_with(world.client.clone(), &kind)
}

fn bundles(world: &World) -> Api<DynamicObject> {
    Api::all_with(world.client.clone(), &kind("certificates.k8s.io", "ClusterTrustBundle"))
}

fn object(value: Value) -> DynamicObject {
    kubewright_objects::from_value(value).expect("an object")
}

/// Asks for a migration.
async fn migrate(world: &World, name: &str, group: &str, resource: &str) {
    let wanted = object(json!({
        "apiVersion": "storagemigration.k8s.io/v1",
        "kind": "StorageVersionMigration",
        "metadata": {"name": name},
        "spec": {"resource": {"group": group, "resource": resource}},
    }));
    migrations(world).create(&PostParams::default(), &wanted).await.expect("created");
}

/// Status, reason and message of a condition of a migration.
async fn condition(world: &World, name: &str, of: &str) -> Option<(String, String, String)> {
    let migration = migrations(world).get(name).await.expect("it is there");
    let conditions = migration.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|condition| condition["type"] == of)?;
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    Some((text("status"), text("reason"), text("message")))
}

fn said(status: &str, reason: &str, message: &str) -> Option<(String, String, String)> {
    Some((status.to_owned(), reason.to_owned(), message.to_owned()))
}

fn definition(versions: &[(&str, bool)]) -> CustomResourceDefinition {
    let versions: Vec<Value> = versions
        .iter()
        .map(|(name, storage)| {
            let schema =
                json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
            json!({"name": name, "served": true, "storage": storage, "schema": schema})
        })
        .collect();
    kubewright_objects::from_value(json!({
        "metadata": {"name": "things.g.io"},
        "spec": {
            "group": "g.io", "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": versions,
        },
    }))
    .expect("a definition")
}

/// Objects that were stored in `v1` when that was the storage version, which is `v2` now.
async fn things_of_old(world: &World) -> Api<CustomResourceDefinition> {
    let definitions = Api::<CustomResourceDefinition>::all(world.client.clone());
    let old = definition(&[("v1", true), ("v2", false)]);
    definitions.create(&PostParams::default(), &old).await.expect("created");
    world.settle().await;
    let things = Api::<DynamicObject>::default_namespaced_with(world.client.clone(), &kind("g.io", "Thing"));
    for name in ["a", "b", "c"] {
        let thing = object(json!({"apiVersion": "g.io/v1", "kind": "Thing", "metadata": {"name": name}}));
        things.create(&PostParams::default(), &thing).await.expect("created");
    }
    let new = json!({"spec": definition(&[("v1", false), ("v2", true)]).spec});
    definitions.patch("things.g.io", &PatchParams::default(), &Patch::Merge(new)).await.expect("patched");
    world.settle().await;
    definitions
}

/// The versions that things are stored in.
fn stored(world: &World) -> Vec<String> {
    let snapshot = world.cluster.server().engine().snapshot();
    let entries = snapshot.range("g.io/things", "", None);
    let version = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).expect("JSON")["apiVersion"].clone();
    entries.map(|entry| version(&entry.bytes).as_str().unwrap_or_default().to_owned()).collect()
}

async fn stored_versions(definitions: &Api<CustomResourceDefinition>) -> Vec<String> {
    let definition = definitions.get("things.g.io").await.expect("it is there");
    definition.status.and_then(|status| status.stored_versions).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_migration_stores_old_objects_in_the_new_version_so_that_the_old_one_can_go() {
    let world = newest().await;
    let definitions = things_of_old(&world).await;
    assert_eq!(stored(&world), ["g.io/v1"; 3]);
    assert_eq!(stored_versions(&definitions).await, ["v1", "v2"]);

    migrate(&world, "m", "g.io", "things").await;
    world.settle().await;
    assert_eq!(stored(&world), ["g.io/v2"; 3]);
    let done = said("True", "StorageVersionMigrationSucceeded", "Migration completed");
    assert_eq!(condition(&world, "m", "Succeeded").await, done);
    let over = said("False", "MigrationCompleted", "Migration completed");
    assert_eq!(condition(&world, "m", "Running").await, over);
    assert_eq!(stored_versions(&definitions).await, ["v2"]);
    let told = definitions.get("things.g.io").await.expect("it is there").status;
    let told = told.and_then(|status| status.conditions).unwrap_or_default();
    let told = told.into_iter().find(|condition| condition.type_ == "StorageMigrating").expect("it is told");
    assert_eq!((told.status.as_str(), told.reason.as_deref()), ("False", Some("MigrationSucceeded")));

    let alone = json!({"spec": definition(&[("v2", true)]).spec});
    definitions.patch("things.g.io", &PatchParams::default(), &Patch::Merge(alone)).await.expect("v1 goes");
}

#[tokio::test(start_paused = true)]
async fn migrations_of_one_resource_come_one_after_the_other_and_built_in_ones_succeed_too() {
    let world = newest().await;
    let definitions = things_of_old(&world).await;
    for name in ["b", "a"] {
        migrate(&world, name, "g.io", "things").await;
    }
    migrate(&world, "maps", "", "configmaps").await;
    world.settle().await;
    for name in ["a", "b", "maps"] {
        let status = condition(&world, name, "Succeeded").await.map(|(status, ..)| status);
        assert_eq!(status.as_deref(), Some("True"), "{name}");
        let running = condition(&world, name, "Running").await.map(|(status, ..)| status);
        assert_eq!(running.as_deref(), Some("False"), "{name}");
    }
    assert_eq!(stored_versions(&definitions).await, ["v2"]);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_does_not_come_or_cannot_be_written_fails_its_migration() {
    let world = newest().await;
    migrate(&world, "nothing", "g.io", "things").await;
    migrate(&world, "components", "", "componentstatuses").await;
    world.settle().await;
    assert_eq!(condition(&world, "nothing", "Failed").await, None, "it may come");
    let why = "resource \"/v1, Resource=componentstatuses\" does not support discovery operations: [update patch list]";
    let failed = said("True", "StorageVersionMigrationFailed", why);
    assert_eq!(condition(&world, "components", "Failed").await, failed);
    tokio::time::sleep(Duration::from_secs(70)).await;
    let failed = said("True", "StorageVersionMigrationFailed", "resource does not exist in discovery");
    assert_eq!(condition(&world, "nothing", "Failed").await, failed);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_comes_within_a_minute_is_migrated() {
    let world = newest().await;
    migrate(&world, "m", "g.io", "things").await;
    world.settle().await;
    things_of_old(&world).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let status = condition(&world, "m", "Succeeded").await.map(|(status, ..)| status);
    assert_eq!(status.as_deref(), Some("True"));
    assert_eq!(stored(&world), ["g.io/v2"; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_request_for_a_certificate_of_a_pod_goes_after_a_quarter_of_an_hour() {
    let world = newest().await;
    let requests = Api::<DynamicObject>::default_namespaced_with(
        world.client.clone(),
        &kind("certificates.k8s.io", "PodCertificateRequest"),
    );
    let key = rcgen::KeyPair::generate().expect("a key");
    let stub = rcgen::CertificateParams::default().serialize_request(&key).expect("a request");
    let stub = k8s_openapi::ByteString(stub.der().to_vec());
    let request = object(json!({
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "PodCertificateRequest",
        "metadata": {"name": "r"},
        "spec": {
            "signerName": "example.com/s",
            "podName": "p", "podUID": "1",
            "serviceAccountName": "default", "serviceAccountUID": "2",
            "nodeName": "n", "nodeUID": "3",
            "stubPKCS10Request": stub,
        },
    }));
    let made = requests.create(&PostParams::default(), &request).await.expect("created");
    assert_eq!(made.data["spec"]["maxExpirationSeconds"], 86400);
    tokio::time::sleep(Duration::from_secs(14 * 60 + 55)).await;
    assert!(requests.get_opt("r").await.expect("an answer").is_some());
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(requests.get_opt("r").await.expect("an answer").is_none());
}

/// Runs the publisher for an API server with this certificate, until what is given back is dropped.
fn publish(world: &World, ca: &str) -> JoinSet<()> {
    let setup = Setup { ca: ca.to_owned(), ..setup() };
    let mut manager = Manager::in_process(world.client.clone(), world.cluster.world().clone());
    for builtin in kubewright_controllers::select(PUBLISHER).expect("a known name") {
        for controller in builtin.controllers(&setup) {
            manager.add(controller);
        }
    }
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let ended = manager.run(CancellationToken::new()).await;
        panic!("the manager ended: {ended:?}");
    });
    tasks
}

/// A certificate of an authority, in PEM.
fn authority() -> String {
    let mut parameters = rcgen::CertificateParams::default();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    parameters.self_signed(&rcgen::KeyPair::generate().expect("a key")).expect("a certificate").pem()
}

#[tokio::test(start_paused = true)]
async fn the_certificates_of_the_api_server_are_a_trust_bundle_that_is_put_back() {
    let world = newest().await;
    let ca = authority();
    let _publisher = publish(&world, &ca);
    world.settle().await;
    let only = ListParams::default().fields("spec.signerName=kubernetes.io/kube-apiserver-serving");
    let [bundle] = <[DynamicObject; 1]>::try_from(bundles(&world).list(&only).await.expect("a list").items)
        .expect("one bundle");
    let name = bundle.metadata.name.clone().expect("a name");
    assert!(name.starts_with("kubernetes.io:kube-apiserver-serving:"), "{name}");
    assert_eq!(bundle.data["spec"]["trustBundle"], ca);
    bundles(&world).delete(&name, &DeleteParams::default()).await.expect("deleted");
    world.settle().await;
    let again = bundles(&world).get(&name).await.expect("it is there again");
    assert_eq!(again.data["spec"]["trustBundle"], ca);
    let mut old = again.clone();
    old.metadata = kube::api::ObjectMeta {
        name: Some("kubernetes.io:kube-apiserver-serving:old".to_owned()),
        ..Default::default()
    };
    bundles(&world).create(&PostParams::default(), &old).await.expect("created");
    world.settle().await;
    let left = bundles(&world).list(&only).await.expect("a list").items;
    assert_eq!(left.into_iter().filter_map(|one| one.metadata.name).collect::<Vec<_>>(), [name]);
}

#[tokio::test(start_paused = true)]
async fn a_version_without_their_kinds_runs_without_these_controllers() {
    let controllers =
        format!("storage-version-migrator-controller,podcertificaterequest-cleaner-controller,{PUBLISHER}");
    let older = Cluster::builder().kubernetes_version(KubernetesVersion::V1_36).controllers(&controllers);
    let world = World::at_rest(older).await;
    let before = world.cluster.server().engine().snapshot().revision();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(world.cluster.server().engine().snapshot().revision(), before);
    assert!(bundles(&world).list(&ListParams::default()).await.is_err(), "the kind is not there");
}
