//! Definitions come into force: what is told of one is served already, or no longer.

use futures::future::BoxFuture;
use kubewright_engine::verbs;
use kubewright_identity::authn::User;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::hooked::{Hook, Hooked};
use crate::support::{Api, Watch};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const OF_BOXES: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/boxes.example.com";

/// A definition of boxes in these versions, of which the last is stored and those in `served` are served.
fn definition(versions: &[&str], served: &[&str]) -> Value {
    let version = |name: &&str| {
        json!({
            "name": name, "served": served.contains(name), "storage": versions.last() == Some(name),
            "schema": {"openAPIV3Schema": {"type": "object"}}
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "boxes.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "boxes", "kind": "Box"},
            "versions": versions.iter().map(version).collect::<Vec<_>>()
        }
    })
}

/// The watchers of a store have read a commit before its writer goes on.
struct WatchersFirst;

impl Hook for WatchersFirst {
    fn after(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
        })
    }
}

/// The versions of boxes that discovery has.
async fn versions_of_boxes(api: &Api) -> Vec<String> {
    let group = api.get("/apis/example.com").await.body;
    let versions = group["versions"].as_array().into_iter().flatten();
    versions.filter_map(|version| version["version"].as_str().map(str::to_owned)).collect()
}

/// A server on such a store, and what the versions of boxes are for one who is told of definitions, each time until the
/// definition is told to be gone: what it says itself.
async fn observed() -> (Api, JoinHandle<Vec<String>>) {
    let api = Api::start_on(Hooked::new(WatchersFirst)).await;
    let mut watch = api.watch(&format!("{DEFINITIONS}?watch=true")).await;
    let observer = api.as_user(User::new("observer", ["system:masters"]));
    let told = tokio::spawn(async move {
        let mut told = Vec::new();
        loop {
            let event = watch.next().await.expect("an event");
            let definition = &event["object"];
            let gone = event["type"] == "DELETED";
            let mut conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
            let established = conditions.any(|one| one["type"] == "Established" && one["status"] == "True");
            let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
            let served = versions.filter(|version| !gone && established && version["served"] == true);
            let says: Vec<_> = served.filter_map(|version| version["name"].as_str()).collect();
            let found = versions_of_boxes(&observer).await;
            assert_eq!(says, found, "{event}");
            told.push(found.concat());
            if gone {
                return told;
            }
        }
    });
    (api, told)
}

#[tokio::test(start_paused = true)]
async fn who_is_told_of_a_definition_finds_what_it_says() {
    let (api, told) = observed().await;
    api.post(DEFINITIONS, definition(&["v1"], &["v1"])).await.expect(201);
    api.patch(OF_BOXES, "merge", definition(&["v2", "v1"], &["v2", "v1"])).await.expect(200);
    api.patch(OF_BOXES, "merge", definition(&["v2", "v1"], &["v2"])).await.expect(200);
    api.delete(OF_BOXES).await.expect(200);
    assert_eq!(told.await.expect("what was told was so"), ["", "v1", "v2v1", "v2", "v2", "v2", ""]);
}

#[tokio::test(start_paused = true)]
async fn who_is_told_of_a_reset_finds_no_kind_of_a_definition_that_it_took() {
    let (api, told) = observed().await;
    api.post(DEFINITIONS, definition(&["v1"], &["v1"])).await.expect(201);
    verbs::reset(api.server.engine()).await.expect("the store is well");
    assert_eq!(told.await.expect("what was told was so"), ["", "v1", ""]);
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_is_there_already_is_served_on() {
    let api = Api::start_on(Hooked::new(WatchersFirst)).await;
    api.post(DEFINITIONS, definition(&["v1"], &["v1"])).await.expect(201);
    let observer = api.as_user(User::new("observer", ["system:masters"]));
    let (again, seen) = tokio::join!(api.post(DEFINITIONS, definition(&["v2"], &["v2"])), async {
        tokio::task::yield_now().await;
        versions_of_boxes(&observer).await
    });
    again.refused(409, "AlreadyExists");
    assert_eq!(seen, ["v1"]);
    assert_eq!(versions_of_boxes(&api).await, ["v1"]);
}

/// What a watch tells next; it is not waited for without end.
async fn next(watch: &mut Watch) -> Value {
    let event = tokio::time::timeout(std::time::Duration::from_secs(60), watch.next()).await;
    event.expect("it is told in time").expect("an event")
}

/// Sends a request whose client leaves as soon as a watch tells of its commit.
async fn left(watch: &mut Watch, request: impl Future) -> Value {
    tokio::select! {
        biased;
        event = next(watch) => event,
        _ = request => panic!("it is answered before its commit is told"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_definition_whose_client_leaves_comes_into_force_and_goes_with_its_objects() {
    let api = Api::start_on(Hooked::new(WatchersFirst)).await;
    let mut watch = api.watch(&format!("{DEFINITIONS}?watch=true")).await;
    let added = left(&mut watch, api.post(DEFINITIONS, definition(&["v1"], &["v1"]))).await;
    assert!(added["object"]["status"]["conditions"].as_array().is_none_or(Vec::is_empty), "{added}");
    let established = next(&mut watch).await;
    assert_eq!(established["object"]["status"]["acceptedNames"]["plural"], "boxes", "{established}");

    let boxes = "/apis/example.com/v1/namespaces/default/boxes";
    let one = json!({"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "a"}});
    api.post(boxes, one).await.expect(201);
    let marked = left(&mut watch, api.delete(OF_BOXES)).await;
    assert!(marked["object"]["metadata"]["deletionTimestamp"].is_string(), "{marked}");
    while next(&mut watch).await["type"] != "DELETED" {}
    assert_eq!(versions_of_boxes(&api).await, [""; 0]);
}
