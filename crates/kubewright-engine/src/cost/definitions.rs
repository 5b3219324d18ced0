//! Definitions: what is done with one in a cluster of many does not look at the others.

use std::sync::Arc;

use kubewright_codec::body::Decoded;
use kubewright_identity::authn::User;
use kubewright_kinds::encode;
use kubewright_meta::cost::counted;
use kubewright_store::Memory;
use kubewright_views::openapi;
use kubewright_world::World;
use serde_json::{Map, Value, json};

use super::steps;
use crate::bootstrap::bootstrap;
use crate::engine::Engine;
use crate::request::{Call, DeleteOptions, WriteOptions};
use crate::verbs::{self, Part};

/// A definition whose schema has so many fields.
fn definition(plural: &str, fields: usize) -> Value {
    let field = |at: usize| (format!("field{at}"), json!({"type": "string", "description": "one of many"}));
    let fields: Map<String, Value> = (0..fields).map(field).collect();
    let spec = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": plural.to_uppercase()},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": spec}}
            ],
        },
    })
}

/// A cluster.
struct Cluster {
    engine: Engine,
    admin: User,
}

impl Cluster {
    async fn start() -> Self {
        let engine = Engine::new(World::simulated(7), Arc::new(Memory::new()));
        bootstrap(&engine).await.expect("the first objects are accepted");
        Self { engine, admin: User::new("admin", ["system:masters"]) }
    }

    /// One with so many definitions, each of so many fields.
    async fn with(definitions: usize, fields: usize) -> Self {
        let cluster = Self::start().await;
        for at in 0..definitions {
            cluster.define(&definition(&format!("others{at}"), fields)).await;
        }
        cluster
    }

    async fn create(&self, group: &str, plural: &str, namespace: &str, object: &Value) {
        let kind = self.engine.kinds().get(group, "v1", plural).expect("it is served").clone();
        let call = Call { kind: &kind, namespace, name: "", user: &self.admin };
        let created =
            verbs::create(&self.engine, call, Decoded::of(object.clone()), WriteOptions::default()).await;
        created.expect("it is accepted");
    }

    async fn define(&self, definition: &Value) {
        self.create("apiextensions.k8s.io", "customresourcedefinitions", "", definition).await;
    }

    /// A call for a definition.
    async fn with_definition<T>(&self, plural: &str, work: impl AsyncFnOnce(Call<'_>) -> T) -> T {
        let kinds = self.engine.kinds();
        let kind = kinds.get("apiextensions.k8s.io", "v1", "customresourcedefinitions").expect("built in");
        let name = format!("{plural}.example.com");
        work(Call { kind, namespace: "", name: &name, user: &self.admin }).await
    }

    async fn delete_definition(&self, plural: &str) {
        let delete =
            async |call: Call<'_>| verbs::delete(&self.engine, call, &DeleteOptions::default()).await;
        self.with_definition(plural, delete).await.expect("it is deleted");
    }

    /// Creates a definition, changes and deletes it.
    async fn one_more(&self) -> u64 {
        let before = counted();
        self.define(&definition("things", 1)).await;
        let changed = async |call: Call<'_>| {
            let entry = self.engine.entry(call).expect("it is there");
            let mut object = encode::value(call.kind, &entry);
            object["spec"]["names"]["shortNames"] = json!(["th"]);
            let options = WriteOptions::default();
            verbs::update(&self.engine, call, Part::Main, Decoded::of(object), options).await
        };
        self.with_definition("things", changed).await.expect("it is changed");
        self.delete_definition("things").await;
        counted() - before
    }
}

#[tokio::test(start_paused = true)]
async fn one_more_definition_costs_the_same_beside_few_and_many_others() {
    let few = Cluster::with(2, 10).await.one_more().await;
    let many = Cluster::with(20, 100).await.one_more().await;
    assert!(few > 100, "only {few} steps are counted");
    assert!(many <= few + few / 10, "{few} steps beside 2 others, {many} beside 20 larger ones");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_goes_does_not_have_its_definition_read() {
    let mut costs = Vec::new();
    for fields in [1, 1000] {
        let cluster = Cluster::with(1, fields).await;
        let object = json!({"apiVersion": "example.com/v1", "kind": "OTHERS0", "metadata": {"name": "a"}});
        cluster.create("example.com", "others0", "default", &object).await;
        let kind = cluster.engine.kinds().get("example.com", "v1", "others0").expect("served").clone();
        let call = Call { kind: &kind, namespace: "default", name: "a", user: &cluster.admin };
        let before = counted();
        verbs::delete(&cluster.engine, call, &DeleteOptions::default()).await.expect("it is deleted");
        costs.push(counted() - before);
    }
    assert_eq!(costs[0], costs[1]);
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_waits_for_a_name_gets_it() {
    let cluster = Cluster::with(2, 1).await;
    let mut rival = definition("rivals", 1);
    rival["spec"]["names"]["kind"] = json!("OTHERS0");
    cluster.define(&rival).await;
    let served = |cluster: &Cluster| cluster.engine.kinds().get("example.com", "v1", "rivals").is_some();
    assert!(!served(&cluster));
    cluster.delete_definition("others1").await;
    assert!(!served(&cluster));
    // Of a store that is taken over it is known, too.
    let engine = Engine::new(World::simulated(8), Arc::clone(cluster.engine.store()));
    let cluster = Cluster { engine, ..cluster };
    cluster.delete_definition("others0").await;
    assert!(served(&cluster));
}

#[tokio::test(start_paused = true)]
async fn the_list_of_openapi_documents_is_made_without_a_look_at_schemas() {
    let mut costs = Vec::new();
    for fields in [1, 1000] {
        let kinds = Cluster::with(2, fields).await.engine.kinds();
        costs.push(steps(|| openapi::index(&kinds)));
    }
    assert_eq!(costs[0], costs[1]);
}
