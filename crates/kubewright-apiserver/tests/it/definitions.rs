//! CustomResourceDefinitions: served at once, checked by their schema, removed with their objects.

use std::path::Path;
use std::sync::Arc;

use http::Method;
use kubewright_engine::{Settings, tags};
use kubewright_kinds::encode;
use kubewright_spec::Version;
use kubewright_store::{Change, Disk, DiskOptions, Expect, Memory, Store};
use serde_json::{Value, json};

use crate::support::Api;

mod conversions;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const BOXES: &str = "/apis/example.com/v1/namespaces/default/boxes";

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "boxes.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "boxes", "kind": "Box", "shortNames": ["bx"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"
                }},
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "required": ["spec"],
                    "properties": {
                        "spec": {
                            "type": "object",
                            "required": ["size"],
                            "properties": {
                                "size": {"type": "integer", "minimum": 1},
                                "color": {"type": "string", "default": "red"}
                            }
                        },
                        "status": {"type": "object", "properties": {"size": {"type": "integer"}}}
                    }
                }}
            }]
        }
    })
}

fn a_box(name: &str, size: i64) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": name}, "spec": {"size": size}})
}

#[tokio::test(start_paused = true)]
async fn a_definition_is_served_as_soon_as_it_is_created() {
    let api = Api::start().await;
    api.get(BOXES).await;
    api.post(DEFINITIONS, definition()).await.expect(201);
    let made = api.get(&format!("{DEFINITIONS}/boxes.example.com")).await.expect(200);
    let conditions = made["status"]["conditions"].as_array().unwrap();
    for name in ["NamesAccepted", "Established"] {
        assert!(conditions.iter().any(|one| one["type"] == name && one["status"] == "True"), "{made}");
    }
    assert_eq!(api.get(BOXES).await.expect(200)["kind"], "BoxList");
    let resources = api.get("/apis/example.com/v1").await.expect(200);
    assert_eq!(resources["resources"][0]["name"], "boxes");
}

#[tokio::test(start_paused = true)]
async fn the_status_of_a_definition_is_owned_by_the_server_that_writes_it() {
    let api = Api::start().await;
    api.post(DEFINITIONS, definition()).await.expect(201);
    let made = api.get(&format!("{DEFINITIONS}/boxes.example.com")).await.expect(200);
    let owners = made["metadata"]["managedFields"].as_array().unwrap();
    let owner = owners.iter().find(|owner| owner["subresource"] == "status").unwrap();
    assert_eq!((&owner["manager"], &owner["operation"]), (&json!("kube-apiserver"), &json!("Update")));
    let condition = json!({".": {}, "f:lastTransitionTime": {}, "f:message": {}, "f:reason": {}, "f:status": {}, "f:type": {}});
    let names = json!({"f:kind": {}, "f:listKind": {}, "f:plural": {}, "f:shortNames": {}, "f:singular": {}});
    let conditions =
        json!({r#"k:{"type":"Established"}"#: condition, r#"k:{"type":"NamesAccepted"}"#: condition});
    assert_eq!(
        owner["fieldsV1"],
        json!({"f:status": {"f:acceptedNames": names, "f:conditions": conditions}})
    );
}

#[tokio::test(start_paused = true)]
async fn objects_are_defaulted_pruned_and_checked_by_the_schema() {
    let api = Api::start().await;
    api.post(DEFINITIONS, definition()).await.expect(201);
    let mut object = a_box("a", 2);
    object["spec"]["nope"] = 1.into();
    let made = api.post(BOXES, object).await.expect(201);
    assert_eq!(made["spec"], json!({"size": 2, "color": "red"}));
    assert_eq!(made["metadata"]["generation"], 1);
    let message = api.post(BOXES, a_box("b", 0)).await.refused(422, "Invalid");
    assert!(
        message
            .contains("spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"),
        "{message}"
    );
    let without_kind = api.post(BOXES, json!({"metadata": {"name": "c"}})).await;
    assert_eq!(
        without_kind.refused(400, "BadRequest"),
        r#"the object provided is unrecognized (must be of type Box): Object 'Kind' is missing in '{"metadata":{"name":"c"}}' ({"metadata":{"name":"c"}})"#
    );
    let empty = json!({"kind": "Box", "apiVersion": "example.com/v1", "metadata": {"name": "c"}});
    let message = api.post(BOXES, empty).await.refused(422, "Invalid");
    assert!(message.contains("spec: Required value"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_custom_status_and_scale_are_subresources() {
    let api = Api::start().await;
    api.post(DEFINITIONS, definition()).await.expect(201);
    let mut object = a_box("a", 2);
    object["status"] = json!({"size": 9});
    assert!(api.post(BOXES, object).await.expect(201).get("status").is_none());
    let path = format!("{BOXES}/a");
    let body = json!({"spec": {"size": 7}, "status": {"size": 2}});
    let status = api.patch(&format!("{path}/status"), "merge", body).await.expect(200);
    assert_eq!((&status["spec"]["size"], &status["status"]["size"]), (&json!(2), &json!(2)));
    assert_eq!(status["metadata"]["generation"], 1);
    let scale =
        api.patch(&format!("{path}/scale"), "merge", json!({"spec": {"replicas": 5}})).await.expect(200);
    assert_eq!((&scale["spec"]["replicas"], &scale["status"]["replicas"]), (&json!(5), &json!(2)));
    assert_eq!(api.get(&path).await.expect(200)["metadata"]["generation"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_status_that_is_applied_without_a_value_is_owned_and_not_there() {
    let api = Api::start().await;
    api.post(DEFINITIONS, definition()).await.expect(201);
    api.post(BOXES, a_box("a", 1)).await.expect(201);
    let mut nothing = a_box("a", 1);
    nothing["status"] = Value::Null;
    let yaml = [("content-type", "application/apply-patch+yaml")];
    let path = format!("{BOXES}/a/status?fieldManager=m");
    let applied = api.send(Method::PATCH, &path, &yaml, nothing.to_string()).await.expect(200);
    assert_eq!(applied.get("status"), None);
    let owners = applied["metadata"]["managedFields"].as_array().expect("owners");
    let owned = owners.iter().find(|entry| entry["manager"] == "m").map(|entry| &entry["fieldsV1"]);
    assert_eq!(owned, Some(&json!({"f:status": {}})));
}

/// Lists may have items twice where they are not kept, but not where they are converted for a manager of another version.
#[tokio::test(start_paused = true)]
async fn an_item_twice_in_what_is_converted_for_a_manager_takes_all_owners_before_1_37() {
    for (kubernetes, keeps) in [(Version::V1_36, false), (Version::V1_37, true)] {
        with_an_item_twice(kubernetes, keeps).await;
    }
}

async fn with_an_item_twice(kubernetes: Version, keeps: bool) {
    let api = Api::start_with(Settings { kubernetes, ..Settings::default() }).await;
    let mut definition = definition();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["set"] =
        json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"});
    let mut newer = definition["spec"]["versions"][0].clone();
    (newer["name"], newer["storage"]) = ("v2".into(), false.into());
    definition["spec"]["versions"].as_array_mut().unwrap().push(newer);
    api.post(DEFINITIONS, definition).await.expect(201);
    api.post(BOXES, a_box("a", 1)).await.expect(201);
    let twice = json!({"status": {"set": ["a", "a"]}});
    let same = api.patch(&format!("{BOXES}/a"), "merge", twice.clone()).await.expect(200);
    let owners = same["metadata"].get("managedFields");
    assert!(owners.is_some_and(Value::is_array));
    let newer = BOXES.replace("/v1/", "/v2/");
    let other = api.patch(&format!("{newer}/a"), "merge", twice).await.expect(200);
    assert_eq!(other["metadata"].get("managedFields"), owners.filter(|_| keeps));
}

#[tokio::test(start_paused = true)]
async fn columns_make_the_table() {
    let api = Api::start().await;
    api.post(DEFINITIONS, definition()).await.expect(201);
    api.post(BOXES, a_box("a", 2)).await.expect(201);
    let accept = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let table = api.send(Method::GET, BOXES, &accept, "").await.expect(200);
    let columns: Vec<&str> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(columns, ["Name", "Size"]);
    assert_eq!(table["rows"][0]["cells"], json!(["a", 2]));
}

#[tokio::test(start_paused = true)]
async fn deleting_a_definition_deletes_its_objects_and_ends_its_kind() {
    let api = Api::start().await;
    api.post(DEFINITIONS, definition()).await.expect(201);
    api.post(BOXES, a_box("a", 2)).await.expect(201);
    let mut watch = api.watch(&format!("{BOXES}?watch=true")).await;
    watch.expect("ADDED", "a").await;
    api.delete(&format!("{DEFINITIONS}/boxes.example.com")).await.expect(200);
    watch.expect("DELETED", "a").await;
    api.get(&format!("{DEFINITIONS}/boxes.example.com")).await.refused(404, "NotFound");
    assert_eq!(api.get(BOXES).await.bytes, "404 page not found\n");
}

#[tokio::test(start_paused = true)]
async fn a_definition_waits_for_the_finalizers_of_its_objects() {
    let api = Api::start().await;
    api.post(DEFINITIONS, definition()).await.expect(201);
    let mut object = a_box("a", 2);
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    api.post(BOXES, object).await.expect(201);
    let path = format!("{DEFINITIONS}/boxes.example.com");
    api.delete(&path).await.expect(200);
    let held = api.get(&path).await.expect(200);
    assert_eq!(held["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
    api.patch(&format!("{BOXES}/a"), "merge", json!({"metadata": {"finalizers": null}})).await.expect(200);
    api.get(&path).await.refused(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn a_schema_change_holds_for_the_next_write() {
    let api = Api::start().await;
    api.post(DEFINITIONS, definition()).await.expect(201);
    let path = format!("{DEFINITIONS}/boxes.example.com");
    let patch = json!([{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size/minimum", "value": 5}]);
    api.patch(&path, "json", patch).await.expect(200);
    api.post(BOXES, a_box("a", 2)).await.refused(422, "Invalid");
    api.post(BOXES, a_box("a", 5)).await.expect(201);
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_is_not_structural_is_refused() {
    let api = Api::start().await;
    let mut bad = definition();
    bad["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = json!({"properties": {}});
    let message = api.post(DEFINITIONS, bad).await.refused(422, "Invalid");
    assert!(message.contains("Required value: must not be empty for specified object fields"), "{message}");
    let mut bad = definition();
    bad["metadata"]["name"] = "boxes".into();
    api.post(DEFINITIONS, bad).await.refused(422, "Invalid");
}

fn change_of(schema_path: &str, value: &Value) -> Value {
    json!([{"op": "add", "path": format!("/spec/versions/0/schema/openAPIV3Schema/properties/{schema_path}"), "value": value}])
}

#[tokio::test(start_paused = true)]
async fn a_default_that_comes_later_is_seen_on_objects_of_before() {
    let api = Api::start().await;
    api.post(DEFINITIONS, definition()).await.expect(201);
    let before = api.post(BOXES, a_box("a", 1)).await.expect(201);
    let change = change_of("spec/properties/late", &json!({"type": "string", "default": "late"}));
    api.patch(&format!("{DEFINITIONS}/boxes.example.com"), "json", change).await.expect(200);
    let after = api.get(&format!("{BOXES}/a")).await.expect(200);
    assert_eq!(after["spec"]["late"], "late");
    assert_eq!(after["metadata"], before["metadata"], "it is not written for that");
    assert_eq!(api.get(BOXES).await.expect(200)["items"][0], after);
    // Who takes it away from the schema takes it away from the objects too, as nothing of it was stored.
    let gone = json!([{"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/late"}]);
    api.patch(&format!("{DEFINITIONS}/boxes.example.com"), "json", gone).await.expect(200);
    assert_eq!(api.get(&format!("{BOXES}/a")).await.expect(200), before);
}

#[tokio::test(start_paused = true)]
async fn an_object_stored_in_an_older_version_is_served_and_changed_in_the_newer() {
    let api = Api::start().await;
    api.post(DEFINITIONS, definition()).await.expect(201);
    api.post(BOXES, a_box("a", 1)).await.expect(201);
    let mut definition = api.get(&format!("{DEFINITIONS}/boxes.example.com")).await.expect(200);
    let mut newer = definition["spec"]["versions"][0].clone();
    newer["name"] = "v2".into();
    definition["spec"]["versions"][0]["storage"] = false.into();
    definition["spec"]["versions"].as_array_mut().unwrap().push(newer);
    api.put(&format!("{DEFINITIONS}/boxes.example.com"), definition).await.expect(200);
    let newer = BOXES.replace("/v1/", "/v2/");
    let seen = api.get(&format!("{newer}/a")).await.expect(200);
    assert_eq!(seen["apiVersion"], "example.com/v2");
    let changed = api.patch(&format!("{newer}/a"), "merge", json!({"spec": {"size": 2}})).await.expect(200);
    assert_eq!((&changed["apiVersion"], &changed["spec"]["size"]), (&json!("example.com/v2"), &json!(2)));
    assert_eq!(api.get(&format!("{BOXES}/a")).await.expect(200)["apiVersion"], "example.com/v1");
}

#[tokio::test(start_paused = true)]
async fn a_deprecated_version_warns_on_failures_too() {
    let api = Api::start().await;
    let mut definition = definition();
    definition["spec"]["versions"][0]["deprecated"] = true.into();
    api.post(DEFINITIONS, definition).await.expect(201);
    let answer = api.get(&format!("{BOXES}/nope")).await;
    assert!(answer.headers["warning"].to_str().unwrap().contains("example.com/v1 Box is deprecated"));
    answer.refused(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn the_history_of_a_kind_begins_with_its_definition() {
    let api = Api::start().await;
    api.post(DEFINITIONS, definition()).await.expect(201);
    let list = api.get(BOXES).await.expect(200);
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    api.post(BOXES, a_box("a", 1)).await.expect(201);
    let mut old = api.watch(&format!("{BOXES}?watch=true&resourceVersion=1")).await;
    let event = old.next().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert!(old.next().await.is_none());
    // A change of the definition takes nothing from the history.
    let change = change_of("spec/properties/more", &json!({"type": "string"}));
    api.patch(&format!("{DEFINITIONS}/boxes.example.com"), "json", change).await.expect(200);
    let mut since = api.watch(&format!("{BOXES}?watch=true&resourceVersion={version}")).await;
    since.expect("ADDED", "a").await;
}

/// The names that a list has.
async fn names(api: &Api, path: &str) -> Vec<String> {
    let list = api.get(path).await.expect(200);
    let items = list["items"].as_array().expect("a list").iter();
    items.map(|item| item["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn a_store_that_is_opened_again_serves_its_definitions_and_selects_by_their_fields() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("definitions");
    let _ = std::fs::remove_dir_all(&folder);
    let open = || {
        Arc::new(
            Disk::open(&folder, DiskOptions::default(), |stored: &_| tags(Version::DEFAULT, stored))
                .expect("nobody else has it"),
        )
    };
    let api = Api::start_on(open()).await;
    let mut selectable = definition();
    selectable["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.color"}]);
    api.post(DEFINITIONS, selectable).await.expect(201);
    for (name, color) in [("one", "red"), ("two", "blue")] {
        let mut object = a_box(name, 1);
        object["spec"]["color"] = color.into();
        object["metadata"]["labels"] = json!({"of": name});
        api.post(BOXES, object).await.expect(201);
    }
    let before = api.get(&format!("{BOXES}/two")).await.expect(200);
    drop(api);

    let api = Api::start_on(open()).await;
    assert_eq!(api.get(&format!("{BOXES}/two")).await.expect(200), before);
    assert_eq!(names(&api, &format!("{BOXES}?fieldSelector=spec.color%3Dblue")).await, ["two"]);
    assert_eq!(names(&api, &format!("{BOXES}?labelSelector=of%3Done")).await, ["one"]);
    let namespaces = "/api/v1/namespaces?fieldSelector=status.phase%3DActive,metadata.name%3Ddefault";
    assert_eq!(names(&api, namespaces).await, ["default"]);
    let version = |object: &Value| {
        object["metadata"]["resourceVersion"].as_str().and_then(|version| version.parse::<u64>().ok())
    };
    let after = api.post(BOXES, a_box("three", 3)).await.expect(201);
    assert_eq!(version(&after), version(&before).map(|version| version + 1));
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_a_server_has_left_half_done_is_established_by_the_next() {
    let store = Arc::new(Memory::new());
    let kinds = kubewright_kinds::Kinds::built_in();
    let kind = kinds.get("apiextensions.k8s.io", "v1", "customresourcedefinitions").expect("a built-in kind");
    let mut written = definition();
    written["metadata"]["uid"] = "1".into();
    let change = Change::Put(encode::draft(kind, written));
    let name = "boxes.example.com".into();
    store.commit(&kind.collection, &name, Expect::Absent, change).await.expect("an empty store");

    let api = Api::start_on(store).await;
    api.post(BOXES, a_box("one", 1)).await.expect(201);
}

#[tokio::test(start_paused = true)]
async fn rules_refuse_warn_and_are_checked_themselves() {
    let api = Api::start().await;
    let with_rule = |rule: &str| {
        let mut definition = definition();
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] =
            json!([{"rule": rule, "message": "too large"}]);
        definition
    };
    let message = api.post(DEFINITIONS, with_rule("self.nope < 5")).await.refused(422, "Invalid");
    assert!(message.contains("ERROR: <input>:1:5: undefined field 'nope'"), "{message}");
    api.post(DEFINITIONS, definition()).await.expect(201);
    api.post(BOXES, a_box("old", 9)).await.expect(201);
    let rule = json!([{"rule": "self.size < 5", "message": "too large"}]);
    let change = change_of("spec/x-kubernetes-validations", &rule);
    api.patch(&format!("{DEFINITIONS}/boxes.example.com"), "json", change).await.expect(200);
    let message = api.post(BOXES, a_box("new", 9)).await.refused(422, "Invalid");
    assert!(message.ends_with("spec: Invalid value: too large"), "{message}");
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    let answer = api.patch(&format!("{BOXES}/old"), "merge", labels).await;
    assert!(answer.headers["warning"].to_str().unwrap().contains("spec: Invalid value: too large"));
    answer.expect(200);
}

/// A server of that version with the box `a`, stored in a version that its definition no longer has; and where boxes are now.
async fn with_an_unreadable_box(version: Version) -> (Api, String) {
    let settings =
        kubewright_engine::Settings { kubernetes: version, ..kubewright_engine::Settings::default() };
    let api = Api::start_with(settings).await;
    let path = format!("{DEFINITIONS}/boxes.example.com");
    api.post(DEFINITIONS, definition()).await.expect(201);
    api.post(BOXES, a_box("a", 1)).await.expect(201);
    let mut definition = api.get(&path).await.expect(200);
    let mut newer = definition["spec"]["versions"][0].clone();
    newer["name"] = "v2".into();
    definition["spec"]["versions"][0]["storage"] = false.into();
    definition["spec"]["versions"].as_array_mut().unwrap().push(newer);
    let changed = api.put(&path, definition).await.expect(200);
    assert_eq!(changed["status"]["storedVersions"], json!(["v1", "v2"]));
    let remove = json!([{"op": "remove", "path": "/spec/versions/0"}]);
    let message = api.patch(&path, "json", remove.clone()).await.refused(422, "Invalid");
    assert!(
        message.contains("status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions"),
        "{message}"
    );
    let stored = json!({"status": {"storedVersions": ["v2"]}});
    api.patch(&format!("{path}/status"), "merge", stored).await.expect(200);
    api.patch(&path, "json", remove).await.expect(200);
    (api, BOXES.replace("/v1/", "/v2/"))
}

#[tokio::test(start_paused = true)]
async fn an_object_in_a_version_that_is_gone_cannot_be_read() {
    let why = "request to convert CR from an invalid group/version: example.com/v1";
    for version in [Version::V1_36, Version::V1_37] {
        let (api, boxes) = with_an_unreadable_box(version).await;
        let refused = api.get(&format!("{boxes}/a")).await.expect(500)["message"].to_string();
        assert!(refused.contains(why), "{refused}");
        assert_eq!(
            refused.contains("Key: /example.com/boxes/default/a,"),
            version >= Version::V1_37,
            "{refused}"
        );
        let message = api.get(&boxes).await.refused(429, "TooManyRequests");
        assert!(message.contains(why), "{message}");
        api.patch(&format!("{boxes}/a"), "merge", json!({"spec": {"size": 2}})).await.expect(500);
        api.delete(&format!("{boxes}/a")).await.expect(500);
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_is_deleted_unread_from_v1_37_on() {
    const UNREAD: &str = "ignoreStoreReadErrorWithClusterBreakingPotential=true";
    let (older, boxes) = with_an_unreadable_box(Version::V1_36).await;
    older.delete(&format!("{boxes}/a?{UNREAD}")).await.expect(500);

    let (api, boxes) = with_an_unreadable_box(Version::V1_37).await;
    api.get(&format!("{boxes}?watch=true")).await.refused(429, "TooManyRequests");
    api.delete(&format!("{boxes}/a?{UNREAD}&gracePeriodSeconds=1")).await.refused(422, "Invalid");
    api.delete(&format!("{boxes}?{UNREAD}")).await.refused(422, "Invalid");
    api.delete(&format!("{boxes}/a?{UNREAD}&dryRun=All")).await.expect(200);
    api.get(&format!("{boxes}/a")).await.expect(500);
    api.delete(&format!("{boxes}/a?{UNREAD}")).await.expect(200);
    api.get(&format!("{boxes}/a")).await.refused(404, "NotFound");
    assert_eq!(api.get(&boxes).await.expect(200)["items"], json!([]));
    let mut readable = a_box("b", 1);
    readable["apiVersion"] = "example.com/v2".into();
    api.post(&boxes, readable).await.expect(201);
    let message = api.delete(&format!("{boxes}/b?{UNREAD}")).await.refused(409, "Conflict");
    assert!(message.ends_with("the object is decodable from storage"), "{message}");
}

/// TPR and CRDs, Beyond 2: as those who move stored objects rely on; then nobody needs the old version any more.
#[tokio::test(start_paused = true)]
async fn a_label_that_is_applied_without_a_value_makes_the_next_write_one() {
    let api = Api::start().await;
    api.post(DEFINITIONS, definition()).await.expect(201);
    for (labels, writes) in [(json!({"a": null}), true), (json!({"a": ""}), false)] {
        let mut config = a_box("a", 1);
        config["apiVersion"] = "example.com/v1".into();
        config["kind"] = "Box".into();
        config["metadata"]["labels"] = labels;
        let path = format!("{BOXES}/a?fieldManager=m");
        let yaml = [("content-type", "application/apply-patch+yaml")];
        let made = api.send(Method::PATCH, &path, &yaml, config.to_string()).await.expect(201);
        assert_eq!(made["metadata"]["labels"], json!({"a": ""}));
        let next = api.put(&format!("{BOXES}/a"), made.clone()).await.expect(200);
        assert_eq!(next["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"], writes);
        api.delete(&format!("{BOXES}/a")).await.expect(200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_changes_nothing_moves_an_object_to_the_storage_version_once() {
    let api = Api::start().await;
    let path = format!("{DEFINITIONS}/boxes.example.com");
    api.post(DEFINITIONS, definition()).await.expect(201);
    let made = api.post(BOXES, a_box("a", 1)).await.expect(201);
    assert_eq!(api.put(&format!("{BOXES}/a"), made.clone()).await.expect(200), made, "it is stored so");

    let mut definition = api.get(&path).await.expect(200);
    let mut newer = definition["spec"]["versions"][0].clone();
    newer["name"] = "v2".into();
    definition["spec"]["versions"][0]["storage"] = false.into();
    definition["spec"]["versions"].as_array_mut().unwrap().push(newer);
    api.put(&path, definition).await.expect(200);
    let dry = api.put(&format!("{BOXES}/a?dryRun=All"), made.clone()).await.expect(200);
    assert_eq!(dry, made);
    let mut moved = api.put(&format!("{BOXES}/a"), made.clone()).await.expect(200);
    assert_eq!(api.put(&format!("{BOXES}/a"), moved.clone()).await.expect(200), moved, "once");
    assert_ne!(moved["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
    moved["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"].clone();
    assert_eq!(moved, made, "and nothing else is another");

    let stored = json!({"status": {"storedVersions": ["v2"]}});
    api.patch(&format!("{path}/status"), "merge", stored).await.expect(200);
    let remove = json!([{"op": "remove", "path": "/spec/versions/0"}]);
    api.patch(&path, "json", remove).await.expect(200);
    let newer = api.get(&format!("{}/a", BOXES.replace("/v1/", "/v2/"))).await.expect(200);
    assert_eq!(newer["spec"], made["spec"]);
}

/// A definition of one kind in the group `names.example.com`.
fn named(plural: &str, kind: &str, short: &[&str]) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.names.example.com")},
        "spec": {
            "group": "names.example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, "shortNames": short},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}]
        }
    })
}

/// The status of the conditions `NamesAccepted` and `Established`.
async fn accepted(api: &Api, plural: &str) -> [bool; 2] {
    let definition = api.get(&format!("{DEFINITIONS}/{plural}.names.example.com")).await.expect(200);
    let conditions = definition["status"]["conditions"].as_array().expect("conditions");
    ["NamesAccepted", "Established"]
        .map(|kind| conditions.iter().any(|one| one["type"] == kind && one["status"] == "True"))
}

#[tokio::test(start_paused = true)]
async fn names_that_a_definition_gives_up_go_to_one_that_waits_for_them() {
    let api = Api::start().await;
    for definition in [
        named("widgets", "Widget", &["w"]),
        named("gadgets", "Widget", &[]),
        named("things", "Thing", &["w"]),
    ] {
        api.post(DEFINITIONS, definition).await.expect(201);
    }
    assert_eq!(accepted(&api, "gadgets").await, [false, false]);
    assert_eq!(accepted(&api, "things").await, [false, false]);
    // A short name that is given up.
    let without = json!({"spec": {"names": {"shortNames": null}}});
    api.patch(&format!("{DEFINITIONS}/widgets.names.example.com"), "merge", without).await.expect(200);
    assert_eq!(accepted(&api, "things").await, [true, true]);
    api.get("/apis/names.example.com/v1/things").await.expect(200);
    assert_eq!(accepted(&api, "gadgets").await, [false, false]);
    // A definition that goes.
    api.delete(&format!("{DEFINITIONS}/widgets.names.example.com")).await.expect(200);
    assert_eq!(accepted(&api, "gadgets").await, [true, true]);
    api.get("/apis/names.example.com/v1/gadgets").await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn nothing_comes_while_the_definition_goes() {
    let api = Api::start().await;
    api.post(DEFINITIONS, definition()).await.expect(201);
    let mut held = a_box("a", 1);
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    api.post(BOXES, held).await.expect(201);
    api.delete(&format!("{DEFINITIONS}/boxes.example.com")).await.expect(200);
    let message = api.post(BOXES, a_box("b", 1)).await.refused(403, "Forbidden");
    let why = "create not allowed while custom resource definition is terminating";
    assert_eq!(message, format!("boxes.example.com \"b\" is forbidden: {why}"));
}
