//! Custom objects as the version asked for shows them: what selectors look at, and what is read back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kubewright_identity::webhook::Local;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::{Api, Watch};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const V1: &str = "/apis/example.com/v1/namespaces/default/ends";
const V2: &str = "/apis/example.com/v2/namespaces/default/ends";

/// A definition of ends in these versions, of which the first is stored.
fn definition(versions: &[(&str, Value, &[&str])], webhook: bool) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .enumerate()
        .map(|(at, (name, properties, selectable))| {
            let selectable: Vec<Value> = selectable.iter().map(|path| json!({"jsonPath": path})).collect();
            json!({"name": name, "served": true, "storage": at == 0, "selectableFields": selectable,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}}})
        })
        .collect();
    let mut definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "ends.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "ends", "kind": "End"},
            "versions": versions}
    });
    if webhook {
        definition["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
            "clientConfig": {"url": "https://convert.test/"}, "conversionReviewVersions": ["v1"]}});
    }
    definition
}

fn end(version: &str, name: &str, content: Value) -> Value {
    let mut end = content;
    end["apiVersion"] = format!("example.com/{version}").into();
    end["kind"] = "End".into();
    end["metadata"] = json!({"name": name});
    end
}

/// Lets answers through when it is told to.
#[derive(Default)]
struct Gate {
    is_shut: AtomicBool,
    reached: Notify,
    opened: Notify,
}

impl Gate {
    async fn pass(&self) {
        if self.is_shut.load(Ordering::Relaxed) {
            self.reached.notify_one();
            self.opened.notified().await;
        }
    }

    /// Lets go of one answer after something else was done while it was under way.
    async fn pass_after(&self, other: impl Future<Output = ()>) {
        self.reached.notified().await;
        other.await;
        self.is_shut.store(false, Ordering::Relaxed);
        self.opened.notify_one();
    }
}

/// Converts ends: v1 has `hostPort`, v2 has `host` and `port`, and a label that says so.
#[derive(Default)]
struct Converter {
    fails: AtomicBool,
    /// How many reviews it was asked for.
    asked: AtomicUsize,
    gate: Arc<Gate>,
}

impl Local for Converter {
    fn call(&self, request: &Request<Bytes>) -> Option<BoxFuture<'static, Response<Bytes>>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut review: Value = serde_json::from_slice(request.body()).expect("a review");
        let wanted = review["request"]["desiredAPIVersion"].take();
        let mut objects = review["request"]["objects"].take();
        for object in objects.as_array_mut().expect("objects") {
            let fields = object.as_object_mut().expect("an object");
            let mut take = |name: &str| match fields.remove(name) {
                Some(Value::String(text)) => text,
                _ => String::new(),
            };
            if wanted == "example.com/v2" {
                let both = take("hostPort");
                let (host, port) = both.split_once(':').unwrap_or((&both, ""));
                fields.insert("host".into(), host.into());
                fields.insert("port".into(), port.into());
                object["metadata"]["labels"] = json!({"shown": "v2"});
            } else {
                let both = format!("{}:{}", take("host"), take("port"));
                fields.insert("hostPort".into(), both.into());
                object["metadata"]["labels"] = Value::Null;
            }
            object["apiVersion"] = wanted.clone();
        }
        let result = if self.fails.load(Ordering::Relaxed) {
            json!({"status": "Failed", "message": "it is broken"})
        } else {
            json!({"status": "Success"})
        };
        review["response"] =
            json!({"uid": review["request"]["uid"], "result": result, "convertedObjects": objects});
        let gate = Arc::clone(&self.gate);
        let answer = async move {
            gate.pass().await;
            Response::new(review.to_string().into())
        };
        Some(answer.boxed())
    }
}

/// A server with the ends a, b and c, made in v2 and stored in v1.
async fn three_ends() -> (Api, Arc<Converter>) {
    let api = Api::start().await;
    let converter = Arc::new(Converter::default());
    api.server.engine().webhooks().attach(Arc::clone(&converter) as Arc<dyn Local>);
    let text = json!({"type": "string"});
    let old = ("v1", json!({"hostPort": text}), &[".hostPort"][..]);
    let new = ("v2", json!({"host": text, "port": text}), &[".host", ".port"][..]);
    api.post(DEFINITIONS, definition(&[old, new], true)).await.expect(201);
    for (name, host, port) in [("a", "host1", "80"), ("b", "host1", "8080"), ("c", "host2", "80")] {
        api.post(V2, end("v2", name, json!({"host": host, "port": port}))).await.expect(201);
    }
    (api, converter)
}

/// The names that a list has.
async fn names(api: &Api, path: &str) -> Vec<String> {
    names_of(&api.get(path).await.expect(200))
}

fn names_of(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().expect("a list").iter();
    items.map(|item| item["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
}

async fn move_to(api: &Api, name: &str, host_port: &str) -> Value {
    api.patch(&format!("{V1}/{name}"), "merge", json!({"hostPort": host_port})).await.expect(200)
}

fn version(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn selectors_look_at_the_version_asked_for() {
    let (api, _) = three_ends().await;
    for (path, expected) in [
        (format!("{V2}?fieldSelector=host%3Dhost1"), &["a", "b"][..]),
        (format!("{V2}?fieldSelector=host!%3Dhost1"), &["c"]),
        (format!("{V2}?fieldSelector=host%3Dhost1,port%3D80"), &["a"]),
        (format!("{V2}?fieldSelector=host%3Dhost1,metadata.name%3Db"), &["b"]),
        (format!("{V1}?fieldSelector=hostPort%3Dhost1:80"), &["a"]),
        (format!("{V1}?fieldSelector=hostPort!%3Dhost1:80"), &["b", "c"]),
        (format!("{V2}?labelSelector=shown%3Dv2"), &["a", "b", "c"]),
        (format!("{V1}?labelSelector=shown%3Dv2"), &[]),
    ] {
        assert_eq!(names(&api, &path).await, expected, "{path}");
    }
    // It is the same for what is written in the version that is stored.
    move_to(&api, "c", "host1:1").await;
    assert_eq!(names(&api, &format!("{V2}?fieldSelector=host%3Dhost1")).await, ["a", "b", "c"]);
    assert_eq!(names(&api, &format!("{V1}?fieldSelector=hostPort%3Dhost1:1")).await, ["c"]);
}

#[tokio::test(start_paused = true)]
async fn pages_are_full_of_what_is_selected_in_the_version_asked_for() {
    let (api, converter) = three_ends().await;
    let mut seen = Vec::new();
    let mut token = String::new();
    let before = converter.asked.load(Ordering::Relaxed);
    loop {
        let path = format!("{V2}?fieldSelector=port%3D80&limit=1&continue={token}");
        let page = api.get(&path).await.expect(200);
        assert_eq!(page["metadata"].get("remainingItemCount"), None, "nobody has counted what is selected");
        seen.push(names_of(&page));
        token = page["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(seen, [["a"], ["c"]]);
    assert_eq!(converter.asked.load(Ordering::Relaxed), before + 1, "what is known is not asked again");
    // More is said to be there when there are more objects, whether they are selected or not.
    let page = api.get(&format!("{V2}?fieldSelector=host%3Dhost1&limit=2")).await.expect(200);
    assert_eq!(names_of(&page), ["a", "b"]);
    assert_ne!(page["metadata"]["continue"], "");
    let single = api.get(&format!("{V2}?fieldSelector=metadata.name%3Da&limit=1")).await.expect(200);
    assert_eq!((names_of(&single), &single["metadata"]["continue"]), (vec!["a".to_owned()], &json!("")));
}

async fn watch(api: &Api, query: &str) -> Watch {
    api.watch(&format!("{V2}?watch=true&{query}")).await
}

#[tokio::test(start_paused = true)]
async fn a_watch_follows_what_comes_into_its_selection_and_leaves_it() {
    let (api, _) = three_ends().await;
    let list = api.get(V2).await.expect(200);
    let mut from_start = watch(&api, "fieldSelector=host%3Dhost1").await;
    let since = format!("fieldSelector=host%3Dhost1&resourceVersion={}", version(&list));
    let mut from_list = watch(&api, &since).await;
    for name in ["a", "b"] {
        from_start.expect("ADDED", name).await;
    }
    let moved = move_to(&api, "a", "host3:80").await;
    move_to(&api, "c", "host1:1").await;
    move_to(&api, "c", "host1:2").await;
    api.delete(&format!("{V1}/a")).await.expect(200);
    api.delete(&format!("{V1}/c")).await.expect(200);
    for events in [&mut from_start, &mut from_list] {
        let left = events.expect("DELETED", "a").await;
        assert_eq!(
            (&left["host"], version(&left)),
            (&json!("host1"), version(&moved)),
            "its last state inside"
        );
        assert_eq!(events.expect("ADDED", "c").await["port"], "1");
        assert_eq!(events.expect("MODIFIED", "c").await["port"], "2");
        assert_eq!(events.expect("DELETED", "c").await["apiVersion"], "example.com/v2");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_of_many_deletes_what_is_selected_in_the_version_asked_for() {
    let (api, _) = three_ends().await;
    let gone = api.delete(&format!("{V2}?fieldSelector=host!%3Dhost1")).await.expect(200);
    assert_eq!(names_of(&gone), ["c"]);
    assert_eq!(names(&api, V1).await, ["a", "b"]);
    api.delete(&format!("{V2}?labelSelector=shown!%3Dv2")).await.expect(200);
    assert_eq!(names(&api, V1).await, ["a", "b"]);
    api.delete(&format!("{V1}?fieldSelector=hostPort%3Dhost1:80")).await.expect(200);
    assert_eq!(names(&api, V1).await, ["b"]);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_fails_deletes_nothing() {
    let (api, converter) = three_ends().await;
    converter.fails.store(true, Ordering::Relaxed);
    let why = "conversion webhook for example.com/v1, Kind=End failed: it is broken";
    for selector in ["fieldSelector=host!%3Dhost1", "labelSelector=shown!%3Dv2", ""] {
        let refused = api.delete(&format!("{V2}?{selector}")).await.expect(500);
        assert_eq!((&refused["message"], &refused["reason"]), (&json!(why), &Value::Null), "{selector}");
        api.get(&format!("{V2}?{selector}")).await.refused(429, "TooManyRequests");
    }
    assert_eq!(names(&api, V1).await, ["a", "b", "c"]);
    // Nobody has to be asked about the version that is stored.
    api.delete(&format!("{V1}?fieldSelector=hostPort%3Dhost1:80")).await.expect(200);
    assert_eq!(names(&api, V1).await, ["b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_conversion_of_before_is_not_shown_when_the_definition_has_changed() {
    let (api, converter) = three_ends().await;
    converter.gate.is_shut.store(true, Ordering::Relaxed);
    let port = "/spec/versions/1/schema/openAPIV3Schema/properties/port";
    let fields = "/spec/versions/1/selectableFields/1";
    let change = json!([{"op": "remove", "path": fields}, {"op": "remove", "path": port}]);
    let change = async {
        api.patch(&format!("{DEFINITIONS}/ends.example.com"), "json", change).await.expect(200);
    };
    let (before, ()) = futures::join!(api.get(V2), converter.gate.pass_after(change));
    assert_eq!(before.expect(200)["items"][0]["port"], "80", "it was asked before");
    assert_eq!(api.get(V2).await.expect(200)["items"][0].get("port"), None);
}

#[tokio::test(start_paused = true)]
async fn selectors_see_the_fields_and_defaults_that_the_definition_has_today() {
    let api = Api::start().await;
    let properties =
        |color: Value| json!({"color": color, "size": {"type": "integer"}, "more": {"type": "string"}});
    let v1 = ("v1", properties(json!({"type": "string", "default": "red"})), &[".color"][..]);
    let v2 = ("v2", properties(json!({"type": "string"})), &[".color", ".more"][..]);
    api.post(DEFINITIONS, definition(&[v1, v2], false)).await.expect(201);
    api.post(V1, end("v1", "old", json!({"size": 1, "color": "blue"}))).await.expect(201);
    api.post(V2, end("v2", "new", json!({"size": 2}))).await.expect(201);
    for path in [V1, V2] {
        assert_eq!(names(&api, &format!("{path}?fieldSelector=color%3Dred")).await, ["new"]);
        assert_eq!(names(&api, &format!("{path}?fieldSelector=color%3Dblue")).await, ["old"]);
    }

    // Another default, then another field.
    let path = format!("{DEFINITIONS}/ends.example.com");
    let default = "/spec/versions/0/schema/openAPIV3Schema/properties/color/default";
    let change = json!([{"op": "replace", "path": default, "value": "green"}]);
    api.patch(&path, "json", change).await.expect(200);
    for path in [V1, V2] {
        assert_eq!(names(&api, &format!("{path}?fieldSelector=color%3Dred")).await, Vec::<String>::new());
        assert_eq!(names(&api, &format!("{path}?fieldSelector=color%3Dgreen")).await, ["new"]);
    }
    let fields = "/spec/versions/1/selectableFields/-";
    let change = json!([{"op": "add", "path": fields, "value": {"jsonPath": ".size"}}]);
    api.patch(&path, "json", change).await.expect(200);
    let gone = api.delete(&format!("{V2}?fieldSelector=size!%3D1,color%3Dgreen")).await.expect(200);
    assert_eq!(names_of(&gone), ["new"]);
    assert_eq!(names(&api, V1).await, ["old"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_shows_objects_as_the_definition_of_today_has_them() {
    let (api, _) = three_ends().await;
    let mut stored = api.watch(&format!("{V1}?watch=true&fieldSelector=metadata.name%3Dd")).await;
    let mut converted = watch(&api, "fieldSelector=metadata.name%3Dd").await;
    let change: Vec<Value> = [0, 1]
        .iter()
        .map(|version| format!("/spec/versions/{version}/schema/openAPIV3Schema/properties/more"))
        .map(|path| json!({"op": "add", "path": path, "value": {"type": "string", "default": "none"}}))
        .collect();
    api.patch(&format!("{DEFINITIONS}/ends.example.com"), "json", change.into()).await.expect(200);
    api.post(V1, end("v1", "d", json!({"hostPort": "h:1", "more": "new"}))).await.expect(201);
    for events in [&mut stored, &mut converted] {
        assert_eq!(events.expect("ADDED", "d").await["more"], "new");
    }
}

/// One version, with a status that has a default and is written apart.
fn with_status(default: i64) -> Value {
    let mut definition = definition(
        &[(
            "v1",
            json!({
                "spec": {"type": "object", "properties": {"a": {"type": "string"}}},
                "status": {"type": "object", "default": {"observedGeneration": default}, "properties": {
                    "observedGeneration": {"type": "integer"}, "x": {"type": "string"}}}
            }),
            &[".status.observedGeneration"],
        )],
        false,
    );
    definition["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    definition
}

#[tokio::test(start_paused = true)]
async fn the_default_of_a_status_that_nobody_has_written_is_read() {
    let api = Api::start().await;
    api.post(DEFINITIONS, with_status(-1)).await.expect(201);
    let unseen = json!({"observedGeneration": -1});
    let dry =
        api.post(&format!("{V1}?dryRun=All"), end("v1", "a", json!({"spec": {"a": "1"}}))).await.expect(201);
    assert_eq!((&dry["status"], version(&dry)), (&unseen, ""));
    let mut events =
        api.watch(&format!("{V1}?watch=true&fieldSelector=status.observedGeneration%3D-1")).await;
    let made = api.post(V1, end("v1", "a", json!({"spec": {"a": "1"}}))).await.expect(201);
    assert_eq!((&made["status"], &made["metadata"]["generation"]), (&unseen, &json!(1)));
    assert_eq!(events.expect("ADDED", "a").await, made);
    assert_eq!(api.get(&format!("{V1}/a")).await.expect(200), made);
    assert_eq!(api.get(V1).await.expect(200)["items"][0], made);
    let selected = format!("{V1}?fieldSelector=status.observedGeneration%3D-1");
    assert_eq!(names(&api, &selected).await, ["a"]);
    let table = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    api.send(Method::GET, V1, &table, "").await.expect(200);

    // The default of the day is read, until a write stores it.
    let path = format!("{DEFINITIONS}/ends.example.com");
    let at = "/spec/versions/0/schema/openAPIV3Schema/properties/status/default/observedGeneration";
    api.patch(&path, "json", json!([{"op": "replace", "path": at, "value": -2}])).await.expect(200);
    let read = api.get(&format!("{V1}/a")).await.expect(200);
    assert_eq!((&read["status"], version(&read)), (&json!({"observedGeneration": -2}), version(&made)));
    assert_eq!(names(&api, &selected).await, Vec::<String>::new());
    let unchanged = format!("{V1}/a?dryRun=All");
    assert_eq!(api.put(&unchanged, read.clone()).await.expect(200), read);
    let mut stored = api.put(&format!("{V1}/a"), read.clone()).await.expect(200);
    assert_eq!(api.put(&format!("{V1}/a"), stored.clone()).await.expect(200), stored, "it is stored now");
    api.patch(&path, "json", json!([{"op": "replace", "path": at, "value": -3}])).await.expect(200);
    assert_eq!(api.get(&format!("{V1}/a")).await.expect(200), stored);
    assert_ne!(version(&stored), version(&read));
    stored["metadata"]["resourceVersion"] = read["metadata"]["resourceVersion"].clone();
    assert_eq!(stored, read, "and nothing else is another");
}

#[tokio::test(start_paused = true)]
async fn nobody_owns_the_default_of_a_status() {
    let api = Api::start().await;
    api.post(DEFINITIONS, with_status(-1)).await.expect(201);
    api.post(&format!("{V1}?fieldManager=author"), end("v1", "a", json!({"spec": {"a": "1"}})))
        .await
        .expect(201);
    let path = format!("{V1}/a/status?fieldManager=operator");
    let written = api.patch(&path, "merge", json!({"status": {"x": "y"}})).await.expect(200);
    assert_eq!(written["status"], json!({"observedGeneration": -1, "x": "y"}));
    let managers = written["metadata"]["managedFields"].as_array().expect("managers");
    let owned: Vec<_> = managers.iter().map(|one| (&one["manager"], &one["fieldsV1"])).collect();
    let (author, operator) = (json!("author"), json!("operator"));
    let (spec, status) = (json!({"f:spec": {".": {}, "f:a": {}}}), json!({"f:status": {"f:x": {}}}));
    assert_eq!(owned, [(&author, &spec), (&operator, &status)]);

    let config = end("v1", "b", json!({"spec": {"a": "1"}})).to_string();
    let path = format!("{V1}/b?fieldManager=author");
    let apply = [("content-type", "application/apply-patch+yaml")];
    let applied = api.send(Method::PATCH, &path, &apply, config.clone()).await.expect(201);
    assert_eq!(applied["status"], json!({"observedGeneration": -1}));
    let again = api.send(Method::PATCH, &path, &apply, config).await.expect(200);
    let owned = &again["metadata"]["managedFields"];
    assert_eq!((owned[0]["fieldsV1"].clone(), owned.get(1)), (json!({"f:spec": {"f:a": {}}}), None));
    assert_ne!(version(&again), version(&applied), "the default is stored by it");
}

/// As the definition of Kong's KongPluginBinding has it.
#[tokio::test(start_paused = true)]
async fn rules_find_the_defaults_of_the_object_that_was_there() {
    let api = Api::start().await;
    let condition =
        json!({"type": "object", "properties": {"type": {"type": "string"}, "status": {"type": "string"}}});
    let unknown = json!([{"type": "Programmed", "status": "Unknown"}]);
    let mut definition = with_status(-1);
    let root = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    root["properties"]["status"] = json!({"type": "object", "default": {"conditions": unknown}, "properties": {
        "conditions": {"type": "array", "maxItems": 8, "items": condition}}});
    root["x-kubernetes-validations"] = json!([{
        "rule": "(!oldSelf.status.conditions.exists(c, c.type == 'Programmed' && c.status == 'True')) ? true : oldSelf.spec.a == self.spec.a",
        "message": "spec.a is immutable when an entity is already Programmed"}]);
    definition["spec"]["versions"][0]["selectableFields"] = json!([]);
    api.post(DEFINITIONS, definition).await.expect(201);
    let made = api.post(V1, end("v1", "a", json!({"spec": {"a": "1"}}))).await.expect(201);
    assert_eq!(made["status"]["conditions"], unknown);
    api.put(&format!("{V1}/a"), made).await.expect(200);
    let programmed = json!({"status": {"conditions": [{"type": "Programmed", "status": "True"}]}});
    api.patch(&format!("{V1}/a/status"), "merge", programmed).await.expect(200);
    let refused =
        api.patch(&format!("{V1}/a"), "merge", json!({"spec": {"a": "2"}})).await.refused(422, "Invalid");
    assert!(refused.contains("spec.a is immutable"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_answers_what_would_be_read_back() {
    let api = Api::start().await;
    let policy = |default: Option<&str>| match default {
        Some(default) => json!({"policy": {"type": "string", "default": default}}),
        None => json!({"policy": {"type": "string"}, "more": {"type": "string"}}),
    };
    let versions = [("v1", policy(Some("Background")), &[][..]), ("v2", policy(None), &[][..])];
    api.post(DEFINITIONS, definition(&versions, false)).await.expect(201);
    let given = end("v2", "a", json!({"more": "x"}));
    let dry = api.post(&format!("{V2}?dryRun=All"), given.clone()).await.expect(201);
    let made = api.post(V2, given).await.expect(201);
    for answer in [&dry, &made] {
        assert_eq!(answer["apiVersion"], "example.com/v2");
        assert_eq!((&answer["policy"], answer.get("more")), (&json!("Background"), None));
    }
    let change = json!({"policy": null, "more": "y"});
    let dry = api.patch(&format!("{V2}/a?dryRun=All"), "merge", change.clone()).await.expect(200);
    assert_eq!((&dry["policy"], dry.get("more")), (&json!("Background"), None));
    assert_eq!(version(&dry), version(&made));
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_goes_through_the_webhook_as_the_write_does() {
    let (api, converter) = three_ends().await;
    let given = end("v2", "d", json!({"host": "h:1", "port": "2"}));
    let dry = api.post(&format!("{V2}?dryRun=All"), given.clone()).await.expect(201);
    let made = api.post(V2, given).await.expect(201);
    // This converter cannot tell the two apart again: what comes back is not what was given.
    for answer in [&dry, &made] {
        assert_eq!((&answer["host"], &answer["port"]), (&json!("h"), &json!("1:2")));
        assert_eq!(answer["metadata"]["labels"], json!({"shown": "v2"}));
    }
    converter.fails.store(true, Ordering::Relaxed);
    api.post(&format!("{V2}?dryRun=All"), end("v2", "e", json!({}))).await.expect(500);
}

/// Admits all that it is asked about, in its time.
struct Doorman(Arc<Gate>);

impl Local for Doorman {
    fn call(&self, request: &Request<Bytes>) -> Option<BoxFuture<'static, Response<Bytes>>> {
        let mut review: Value = serde_json::from_slice(request.body()).expect("a review");
        review["response"] = json!({"uid": review["request"]["uid"], "allowed": true});
        let gate = Arc::clone(&self.0);
        let answer = async move {
            gate.pass().await;
            Response::new(review.to_string().into())
        };
        Some(answer.boxed())
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_written_while_its_definition_changes_is_read_by_the_new_one() {
    let api = Api::start().await;
    let gate = Arc::new(Gate { is_shut: true.into(), ..Gate::default() });
    api.server.engine().webhooks().attach(Arc::new(Doorman(Arc::clone(&gate))));
    api.post(DEFINITIONS, with_status(-1)).await.expect(201);
    let rule = json!({"apiGroups": ["example.com"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["ends"]});
    let hook = json!({"name": "gate.example.com", "clientConfig": {"url": "https://gate.test/"}, "rules": [rule],
        "sideEffects": "None", "admissionReviewVersions": ["v1"]});
    let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "gate"}, "webhooks": [hook]});
    let configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    api.post(configurations, configuration).await.expect(201);
    let late = json!({"type": "string", "default": "late"});
    let at = "/spec/versions/0/schema/openAPIV3Schema/properties/late";
    let change = json!([{"op": "add", "path": at, "value": late}]);
    let change = async {
        api.patch(&format!("{DEFINITIONS}/ends.example.com"), "json", change).await.expect(200);
    };
    let (made, ()) = futures::join!(api.post(V1, end("v1", "a", json!({}))), gate.pass_after(change));
    made.expect(201);
    assert_eq!(api.get(&format!("{V1}/a")).await.expect(200)["late"], "late");
}
