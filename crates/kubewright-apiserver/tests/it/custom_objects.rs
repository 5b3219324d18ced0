//! Custom objects that say to be something else, that are scaled, and that are stored otherwise than they are read.

use http::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Api};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const JARS: &str = "/apis/example.com/v1/namespaces/default/jars";

fn version(name: &str, is_stored: bool) -> Value {
    let spec = json!({"type": "object", "properties": {
        "size": {"type": "integer"},
        "color": {"type": "string", "default": "red"},
        "label": {"type": "object"},
    }, "maxProperties": 2});
    let status =
        json!({"type": "object", "properties": {"size": {"type": "integer"}, "seen": {"type": "object"}}});
    json!({
        "name": name, "served": true, "storage": is_stored,
        "subresources": {"status": {}, "scale": {
            "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"
        }},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}}
    })
}

fn definition(stored: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "jars.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "jars", "kind": "Jar"},
            "versions": [version("v1", stored == "v1"), version("v2", stored == "v2")]
        }
    })
}

fn jar(name: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Jar", "metadata": {"name": name}})
}

async fn start() -> Api {
    let api = Api::start().await;
    api.post(DEFINITIONS, definition("v1")).await.expect(201);
    api
}

/// As [`start`], with a number in spec and status that the first version alone has.
async fn start_with_own() -> Api {
    let api = Api::start().await;
    let mut definition = definition("v1");
    for part in ["spec", "status"] {
        let properties = format!("/spec/versions/0/schema/openAPIV3Schema/properties/{part}/properties");
        definition.pointer_mut(&properties).expect("properties")["own"] = json!({"type": "integer"});
    }
    api.post(DEFINITIONS, definition).await.expect(201);
    api
}

async fn apply(api: &Api, path: &str, body: Value) -> Answer {
    let headers = [("content-type", "application/apply-patch+yaml")];
    api.send(Method::PATCH, &format!("{path}?fieldManager=me"), &headers, body.to_string()).await
}

#[tokio::test(start_paused = true)]
async fn an_object_that_names_another_kind_is_missing_before_that_is_told() {
    let api = start().await;
    let mut pot = jar("a");
    pot["kind"] = "Pot".into();
    api.put(&format!("{JARS}/a"), pot.clone()).await.refused(404, "NotFound");
    api.put(&format!("{JARS}/b"), pot.clone()).await.refused(400, "BadRequest");
    let made = api.post(JARS, jar("a")).await.expect(201);
    let told = api.put(&format!("{JARS}/a"), pot.clone()).await.refused(422, "Invalid");
    assert_eq!(
        told,
        r#"jars.example.com "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"#
    );
    pot["metadata"] = made["metadata"].clone();
    let told = api.put(&format!("{JARS}/a"), pot).await.refused(422, "Invalid");
    assert_eq!(told, r#"Pot.example.com "a" is invalid: kind: Invalid value: "Pot": must be Jar"#);
}

#[tokio::test(start_paused = true)]
async fn metadata_of_an_object_that_is_patched_to_be_of_another_kind_is_told_beside_that() {
    let api = start().await;
    api.post(JARS, jar("a")).await.expect(201);
    let patch = json!({"kind": "Pot", "metadata": {"uid": "x"}, "spec": {"size": "x"}});
    let told = api.patch(&format!("{JARS}/a"), "merge", patch.clone()).await.refused(422, "Invalid");
    assert_eq!(
        told,
        r#"Pot.example.com "a" is invalid: [metadata.uid: Invalid value: "x": field is immutable, kind: Invalid value: "Pot": must be Jar]"#
    );
    let mut new = jar("b");
    new["kind"] = "Pot".into();
    new["metadata"]["labels"] = json!({"-": "-"});
    let told = api.post(JARS, new).await.refused(422, "Invalid");
    assert_eq!(told, r#"Pot.example.com "b" is invalid: kind: Invalid value: "Pot": must be Jar"#);
}

#[tokio::test(start_paused = true)]
async fn a_status_is_written_whatever_kind_the_patch_names() {
    let api = start().await;
    let mut owned = jar("a");
    owned["spec"] = json!({"size": 1});
    let made = api.post(JARS, owned).await.expect(201);
    let status = format!("{JARS}/a/status");
    let patch = json!({"kind": "Pot", "status": {"size": 1, "other": 2}});
    let written = api.patch(&status, "merge", patch).await.expect(200);
    assert_eq!((&written["kind"], &written["status"]), (&json!("Jar"), &json!({"size": 1})));
    // Nobody can say who owns what: since v1.37 the owners stay.
    assert_eq!(written["metadata"]["managedFields"], made["metadata"]["managedFields"]);
    let patch = json!({"kind": "Pot", "status": {"size": "x"}});
    let told = api.patch(&status, "merge", patch).await.refused(422, "Invalid");
    assert!(told.starts_with(r#"Pot.example.com "a" is invalid: "#), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_scale_puts_no_defaults_into_its_object() {
    let api = start().await;
    let mut full = jar("a");
    full["metadata"]["labels"] = json!({"a": "b"});
    api.post(JARS, full).await.expect(201);
    let mut schema = definition("v1");
    schema["metadata"]["resourceVersion"] =
        api.get(&format!("{DEFINITIONS}/jars.example.com")).await.expect(200)["metadata"]["resourceVersion"]
            .clone();
    for at in [0, 1] {
        schema["spec"]["versions"][at]["schema"]["openAPIV3Schema"]["properties"]["spec"]["maxProperties"] =
            1.into();
    }
    api.put(&format!("{DEFINITIONS}/jars.example.com"), schema).await.expect(200);
    let scaled = api.patch(&format!("{JARS}/a/scale"), "merge", json!({"spec": {"replicas": 2}})).await;
    assert_eq!(scaled.expect(200)["spec"]["replicas"], 2);
    assert_eq!(api.get(&format!("{JARS}/a")).await.expect(200)["spec"], json!({"size": 2, "color": "red"}));
}

#[tokio::test(start_paused = true)]
async fn the_scale_of_a_custom_object_cannot_be_applied() {
    let api = start().await;
    api.post(JARS, jar("a")).await.expect(201);
    let scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 2}});
    let path = format!("{JARS}/a/scale");
    let told = apply(&api, &path, scale.clone()).await.expect(500)["message"].clone();
    assert_eq!(
        told,
        "failed to create manager for existing fields: failed to convert live object (/; autoscaling/v1, Kind=Scale) to proper version: request to convert CR to an invalid group/version: autoscaling/v1"
    );
    let mut owned = jar("b");
    owned["spec"] = json!({"size": 2});
    api.post(JARS, owned).await.expect(201);
    let told = apply(&api, &format!("{JARS}/b/scale"), scale).await.expect(500)["message"].clone();
    assert_eq!(
        told,
        "failed to convert new object (default/b; autoscaling/v1, Kind=Scale) to proper version: request to convert CR to an invalid group/version: autoscaling/v1"
    );
}

#[tokio::test(start_paused = true)]
async fn applying_fields_that_are_not_kept_is_a_new_generation_each_time() {
    let api = start().await;
    let path = format!("{JARS}/a");
    let mut config = jar("a");
    config["spec"] = json!({"label": {"of": "glass"}});
    for (code, generation) in [(201, 1), (200, 2), (200, 3)] {
        let applied = apply(&api, &path, config.clone()).await.expect(code);
        assert_eq!(applied["spec"], json!({"color": "red", "label": {}}));
        assert_eq!(applied["metadata"]["generation"], generation);
    }
    config["spec"] = json!({"label": {}});
    let kept = apply(&api, &path, config.clone()).await.expect(200);
    let again = apply(&api, &path, config).await.expect(200);
    assert_eq!(kept["metadata"], again["metadata"]);
}

/// Nobody decodes it before it is stored.
#[tokio::test(start_paused = true)]
async fn what_is_applied_is_validated_with_the_fields_that_are_not_kept() {
    let api = Api::start().await;
    let mut definition = definition("v1");
    let properties = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/label";
    definition.pointer_mut(properties).expect("a field")["maxProperties"] = 0.into();
    api.post(DEFINITIONS, definition).await.expect(201);
    let mut full = jar("a");
    full["spec"] = json!({"label": {"of": "glass"}});
    let told = apply(&api, &format!("{JARS}/a"), full.clone()).await.refused(422, "Invalid");
    assert!(told.contains("spec.label: Too many: 1: must have at most 0 items"), "{told}");
    api.post(JARS, full).await.expect(201);
}

#[tokio::test(start_paused = true)]
async fn a_label_of_null_in_what_is_applied_is_answered_as_sent_where_the_object_goes_with_that() {
    let api = start().await;
    let path = format!("{JARS}/a");
    let mut config = jar("a");
    config["metadata"]["finalizers"] = json!(["example.com/hold"]);
    apply(&api, &path, config).await.expect(201);
    api.delete(&path).await.expect(200);
    let mut last = jar("a");
    last["metadata"]["labels"] = json!({"a": null});
    assert_eq!(apply(&api, &path, last).await.expect(200)["metadata"]["labels"], json!({"a": null}));
    api.get(&path).await.refused(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn no_annotations_are_some_to_a_policy_where_they_were_applied() {
    let api = start().await;
    let rules = json!({"resourceRules": [{
        "apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["jars"]
    }]});
    let validation = json!({"expression": "has(object.metadata.annotations)"});
    let policy =
        json!({"metadata": {"name": "p"}, "spec": {"matchConstraints": rules, "validations": [validation]}});
    let binding =
        json!({"metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
    let registration = "/apis/admissionregistration.k8s.io/v1";
    api.post(&format!("{registration}/validatingadmissionpolicies"), policy).await.expect(201);
    api.post(&format!("{registration}/validatingadmissionpolicybindings"), binding).await.expect(201);
    let mut with_none = jar("a");
    with_none["metadata"]["annotations"] = Value::Null;
    api.post(JARS, with_none.clone()).await.refused(422, "Invalid");
    apply(&api, &format!("{JARS}/a"), jar("a")).await.refused(422, "Invalid");
    let made = apply(&api, &format!("{JARS}/a"), with_none).await.expect(201);
    assert!(made["metadata"].get("annotations").is_none(), "{made}");
}

/// It is pruned by the schema of the version that is stored.
#[tokio::test(start_paused = true)]
async fn a_scale_in_a_version_that_has_not_its_field_sets_it() {
    let api = Api::start().await;
    let mut definition = definition("v1");
    let properties = "/spec/versions/1/schema/openAPIV3Schema/properties/spec/properties";
    definition.pointer_mut(properties).and_then(Value::as_object_mut).expect("fields").remove("size");
    api.post(DEFINITIONS, definition).await.expect(201);
    api.post(JARS, jar("a")).await.expect(201);
    let scale = "/apis/example.com/v2/namespaces/default/jars/a/scale";
    api.patch(scale, "merge", json!({"spec": {"replicas": 2}})).await.expect(200);
    assert_eq!(api.get(&format!("{JARS}/a")).await.expect(200)["spec"]["size"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_status_that_is_applied_with_fields_that_are_not_kept_is_written_each_time() {
    let api = start().await;
    api.post(JARS, jar("a")).await.expect(201);
    let mut config = jar("a");
    config["status"] = json!({"seen": {"by": "me"}});
    let path = format!("{JARS}/a/status");
    let first = apply(&api, &path, config.clone()).await.expect(200);
    let second = apply(&api, &path, config).await.expect(200);
    assert_eq!(second["status"], json!({"seen": {}}));
    assert_eq!(second["metadata"]["generation"], 1);
    assert_eq!(first["metadata"]["resourceVersion"], second["metadata"]["resourceVersion"], "the same bytes");
    let noop = api.patch(&format!("{JARS}/a"), "merge", json!({})).await.expect(200);
    assert_ne!(second["metadata"]["resourceVersion"], noop["metadata"]["resourceVersion"]);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_writes_what_is_stored_in_another_version() {
    let api = start().await;
    let mut held = jar("a");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    api.post(JARS, held).await.expect(201);
    let path = format!("{JARS}/a");
    let marked = api.delete(&path).await.expect(200);
    assert_eq!(api.delete(&path).await.expect(200)["metadata"], marked["metadata"]);
    let mut other = definition("v2");
    other["metadata"]["resourceVersion"] =
        api.get(&format!("{DEFINITIONS}/jars.example.com")).await.expect(200)["metadata"]["resourceVersion"]
            .clone();
    api.put(&format!("{DEFINITIONS}/jars.example.com"), other).await.expect(200);
    let moved = api.delete(&path).await.expect(200);
    assert_ne!(moved["metadata"]["resourceVersion"], marked["metadata"]["resourceVersion"]);
    assert_eq!(api.delete(&path).await.expect(200)["metadata"], moved["metadata"]);
}

/// A policy about version `v2` that does this to a jar, and its binding.
async fn mutate(api: &Api, versions: Value, operation: &str) {
    let rules = json!({"resourceRules": [{
        "apiGroups": ["example.com"], "apiVersions": versions, "operations": ["CREATE", "UPDATE"], "resources": ["jars"]
    }]});
    let mutation = json!({"patchType": "JSONPatch", "jsonPatch": {"expression": format!("[{operation}]")}});
    let policy = json!({"metadata": {"name": "p"}, "spec": {
        "matchConstraints": rules, "reinvocationPolicy": "Never", "mutations": [mutation]
    }});
    let binding = json!({"metadata": {"name": "p"}, "spec": {"policyName": "p"}});
    for (kind, object) in
        [("mutatingadmissionpolicies", policy), ("mutatingadmissionpolicybindings", binding)]
    {
        api.post(&format!("/apis/admissionregistration.k8s.io/v1/{kind}"), object).await.expect(201);
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_a_policy_has_made_one_of_another_kind_is_refused_where_it_is_validated() {
    let api = start().await;
    let path = format!("{JARS}/a");
    let old = api.post(JARS, jar("a")).await.expect(201);
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    api.patch(&path, "merge", labels).await.expect(200);
    mutate(&api, json!(["v1"]), "JSONPatch{op: 'replace', path: '/kind', value: 'Other'}").await;
    api.put(&path, old).await.refused(409, "Conflict");
    let new = api.get(&path).await.expect(200);
    assert_eq!(
        api.put(&path, new).await.refused(422, "Invalid"),
        "Other.example.com \"a\" is invalid: kind: Invalid value: \"Other\": must be Jar"
    );
}

#[tokio::test(start_paused = true)]
async fn the_kind_that_a_policy_about_another_version_writes_is_refused_too() {
    let api = start().await;
    let made = api.post(JARS, jar("a")).await.expect(201);
    mutate(&api, json!(["v2"]), "JSONPatch{op: 'replace', path: '/kind', value: 'Other'}").await;
    assert_eq!(
        api.put(&format!("{JARS}/a"), made).await.refused(422, "Invalid"),
        "Other.example.com \"a\" is invalid: kind: Invalid value: \"Other\": must be Jar"
    );
}

/// What only its own version has survives the change (nothing is pruned before it is stored).
#[tokio::test(start_paused = true)]
async fn a_policy_about_another_version_leaves_fields_that_this_version_alone_has() {
    let api = start_with_own().await;
    mutate(&api, json!(["v2"]), "JSONPatch{op: 'add', path: '/metadata/labels', value: {'a': 'b'}}").await;
    let mut new = jar("a");
    new["spec"] = json!({"own": 1});
    let made = api.post(JARS, new).await.expect(201);
    assert_eq!((&made["spec"]["own"], &made["metadata"]["labels"]["a"]), (&json!(1), &json!("b")));
}

#[tokio::test(start_paused = true)]
async fn a_status_of_another_version_takes_fields_of_the_spec_from_nobody() {
    let api = start().await;
    let mut new = jar("a");
    new["spec"] = json!({"size": 1});
    let made = api.post(JARS, new).await.expect(201);
    let status = "/apis/example.com/v2/namespaces/default/jars/a/status";
    let mut written = made.clone();
    written["apiVersion"] = "example.com/v2".into();
    written["spec"] = json!({});
    written["status"] = json!({"size": 1});
    let written = api.put(status, written).await.expect(200);
    assert_eq!(written["metadata"]["managedFields"][0], made["metadata"]["managedFields"][0]);
    assert_eq!(written["metadata"]["managedFields"][1]["subresource"], "status");
}

/// `GuaranteedUpdate` compares what would be stored. (In a spec it is another generation.)
#[tokio::test(start_paused = true)]
async fn a_double_in_a_status_that_is_the_same_whole_number_is_no_write() {
    let api = start_with_own().await;
    api.post(JARS, jar("a")).await.expect(201);
    let status = format!("{JARS}/a/status");
    let patch = |own: Value| json!({"status": {"own": own}});
    let first = api.patch(&status, "merge", patch(json!(1))).await.expect(200);
    assert_eq!(api.patch(&status, "merge", patch(json!(1.0))).await.expect(200), first);
    let next = api.patch(&status, "merge", patch(json!(2.0))).await.expect(200);
    assert_ne!(next["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
}
