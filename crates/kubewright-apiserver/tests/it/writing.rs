//! Updates and patches: which fields they may change, and how they are refused.

mod admission;
mod devices;
mod reset;

use http::Method;
use kubewright_engine::Settings;
use kubewright_identity::authn::User;
use kubewright_spec::Version;
use serde_json::{Value, json};

use crate::support::{Answer, Api};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";

async fn with_things(subresources: Value) -> Api {
    let api = Api::start().await;
    let definition = json!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": subresources,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                    "status": {"type": "object", "properties": {"phase": {"type": "string"}}}
                }}}
            }]
        }
    });
    api.post(DEFINITIONS, definition).await.expect(201);
    let thing = json!({
        "apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"size": 1}
    });
    api.post(THINGS, thing).await.expect(201);
    api
}

#[tokio::test(start_paused = true)]
async fn an_update_that_must_name_a_version_is_refused_in_the_name_of_the_resource() {
    let api = Api::start().await;
    api.post(LEASES, json!({"metadata": {"name": "a"}})).await.expect(201);
    let answer = api.put(&format!("{LEASES}/a"), json!({"metadata": {"name": "a"}})).await;
    assert_eq!(answer.body["details"]["kind"], "leases");
    assert_eq!(
        answer.refused(422, "Invalid"),
        "leases.coordination.k8s.io \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    );
}

#[tokio::test(start_paused = true)]
async fn an_update_that_creates_names_no_uid() {
    let api = Api::start().await;
    let message = api
        .put(&format!("{LEASES}/a"), json!({"metadata": {"name": "a", "uid": "u"}}))
        .await
        .refused(409, "Conflict");
    assert_eq!(
        message,
        "Operation cannot be fulfilled on leases.coordination.k8s.io \"a\": StorageError: invalid object, Code: 4, Key: /registry/leases/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: u, UID in object meta: "
    );
}

#[tokio::test(start_paused = true)]
async fn a_patch_that_makes_a_value_of_a_wrong_type_is_invalid() {
    let api = Api::start().await;
    api.post(MAPS, json!({"metadata": {"name": "a"}})).await.expect(201);
    let message =
        api.patch(&format!("{MAPS}/a"), "merge", json!({"data": {"k": 1}})).await.refused(422, "Invalid");
    assert!(message.starts_with(" \"\" is invalid: patch: Invalid value: \"{"), "{message}");
    assert!(
        message.ends_with("json: cannot unmarshal number into Go struct field ConfigMap.data of type string"),
        "{message}"
    );
    let strict = format!("{MAPS}/a?fieldValidation=Strict");
    let message = api.patch(&strict, "merge", json!({"bogus": 1})).await.refused(422, "Invalid");
    assert!(message.contains("bogus\\\":1"), "the object is told as it was patched: {message}");
    assert!(message.ends_with("strict decoding error: unknown field \"bogus\""), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_patch_does_not_make_a_custom_object_one_of_another_kind() {
    let api = with_things(json!({})).await;
    let message =
        api.patch(&format!("{THINGS}/a"), "merge", json!({"kind": "Other"})).await.refused(422, "Invalid");
    assert_eq!(message, "Other.example.com \"a\" is invalid: kind: Invalid value: \"Other\": must be Thing");
    let message = api
        .patch(&format!("{THINGS}/a"), "strategic-merge", json!({}))
        .await
        .refused(415, "UnsupportedMediaType");
    assert!(message.ends_with("application/merge-patch+json, application/apply-patch+yaml"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn an_owner_is_named_once() {
    let api = Api::start().await;
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"});
    let twice = json!({"metadata": {"name": "a", "ownerReferences": [owner, owner]}});
    for (answer, when) in [
        (api.post(MAPS, twice.clone()).await, "entries; API"),
        (
            api.patch(&format!("{MAPS}/a"), "merge", twice).await,
            "entries after mutating admission happens; API",
        ),
    ] {
        assert_eq!(answer.body["metadata"]["ownerReferences"], json!([owner]));
        let warning = answer.headers["warning"].to_str().unwrap();
        assert!(warning.contains(when) && warning.ends_with("observed: u\""), "{warning}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_namespace_an_object_of_the_cluster_names_does_not_matter() {
    let api = Api::start().await;
    let role = |namespace: &str| json!({"metadata": {"name": namespace, "namespace": namespace}});
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    for namespace in ["default", "other"] {
        let made = api.post(roles, role(namespace)).await.expect(201);
        assert!(made["metadata"].get("namespace").is_none(), "{made}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_write_changes_the_labels_of_built_in_kinds_and_not_of_custom_ones() {
    let api = with_things(json!({"status": {}})).await;
    let labels = json!({"metadata": {"labels": {"a": "b"}}, "status": {"phase": "X"}, "spec": {"size": 7}});
    let thing = api.patch(&format!("{THINGS}/a/status"), "merge", labels).await.expect(200);
    assert_eq!((&thing["metadata"]["labels"], &thing["spec"]["size"]), (&json!(null), &json!(1)));
    let job = json!({"metadata": {"name": "a"}, "spec": {"schedule": "@yearly", "jobTemplate": {"spec": {"template": {
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "nginx"}]}
    }}}}});
    let jobs = "/apis/batch/v1/namespaces/default/cronjobs";
    api.post(jobs, job).await.expect(201);
    let change = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"schedule": "@daily"}});
    let job = api.patch(&format!("{jobs}/a/status"), "merge", change).await.expect(200);
    assert_eq!((&job["metadata"]["labels"]["a"], &job["spec"]["schedule"]), (&json!("b"), &json!("@yearly")));
}

#[tokio::test(start_paused = true)]
async fn a_status_that_is_not_written_apart_counts_as_a_new_generation() {
    let api = with_things(json!({})).await;
    let changed =
        api.patch(&format!("{THINGS}/a"), "merge", json!({"status": {"phase": "Y"}})).await.expect(200);
    assert_eq!(changed["metadata"]["generation"], 2);
    let labelled = api
        .patch(&format!("{THINGS}/a"), "merge", json!({"metadata": {"labels": {"a": "b"}}}))
        .await
        .expect(200);
    assert_eq!(labelled["metadata"]["generation"], 2);
}

#[tokio::test(start_paused = true)]
async fn options_of_a_write_are_checked() {
    let api = Api::start().await;
    let body = json!({"metadata": {"name": "a"}});
    let message = api.post(&format!("{MAPS}?fieldManager=a%07"), body.clone()).await.refused(422, "Invalid");
    assert!(message.ends_with("invalid character U+0007 (at position 1)"), "{message}");
    api.post(MAPS, body).await.expect(201);
    let message =
        api.patch(&format!("{MAPS}/a?force=true"), "merge", json!({})).await.refused(422, "Invalid");
    assert!(message.ends_with("force: Forbidden: may not be specified for non-apply patch"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn an_event_of_the_newer_group_is_refused_as_one_of_the_core_group() {
    let api = Api::start().await;
    let event = json!({"metadata": {"name": "a"}, "regarding": {"namespace": "default"}});
    let answer = api.post("/apis/events.k8s.io/v1/namespaces/default/events", event).await;
    assert_eq!(answer.body["details"].get("group"), None);
    assert!(answer.refused(422, "Invalid").starts_with("Event \"a\" is invalid"));
    let event =
        json!({"metadata": {"name": "a", "generateName": "a-"}, "involvedObject": {"namespace": "default"}});
    api.post("/api/v1/namespaces/default/events", event).await.expect(201);
    let event = json!({
        "metadata": {"name": "a", "generateName": "a-"}, "regarding": {"namespace": "default"}, "reason": "r", "action": "a",
        "type": "Normal", "eventTime": "2024-01-02T03:04:05.000000Z", "reportingController": "example.com/c", "reportingInstance": "i"
    });
    let answer = api.post("/apis/events.k8s.io/v1/namespaces/default/events", event).await;
    assert_eq!(answer.body["details"].get("group"), None);
    let message = answer.refused(409, "AlreadyExists");
    assert!(message.starts_with("events \"a\" already exists, the server was not able"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_value_that_is_not_supported_is_told_once() {
    let api = Api::start().await;
    let node = json!({"metadata": {"name": "a"}, "spec": {"taints": [{"key": "k", "effect": "Sometimes"}]}});
    let answer = api.post("/api/v1/nodes", node).await;
    assert_eq!(answer.body["details"]["causes"].as_array().map(Vec::len), Some(1), "{}", answer.body);
    answer.refused(422, "Invalid");
}

#[tokio::test(start_paused = true)]
async fn the_addresses_of_a_service_are_checked_before_they_are_given() {
    let api = Api::start().await;
    let services = "/api/v1/namespaces/default/services";
    let service =
        |ip: &str| json!({"metadata": {"name": "a"}, "spec": {"clusterIP": ip, "ports": [{"port": 80}]}});
    let message = api.post(services, service("banana")).await.refused(422, "Invalid");
    assert!(
        message.starts_with(
            "Service \"a\" is invalid: spec.clusterIPs[0]: Invalid value: \"banana\": must be a valid IP"
        ),
        "{message}"
    );
    api.post(services, service("")).await.expect(201);
    let change = json!({"spec": {"clusterIP": "192.0.2.9", "clusterIPs": ["192.0.2.9"]}});
    let message = api.patch(&format!("{services}/a"), "merge", change).await.refused(422, "Invalid");
    assert_eq!(
        message,
        "Service \"a\" is invalid: spec.clusterIPs[0]: Invalid value: [\"192.0.2.9\"]: may not change once set"
    );
}

#[tokio::test(start_paused = true)]
async fn who_may_only_update_cannot_create_by_an_update() {
    let api = Api::start().await;
    let role = json!({
        "metadata": {"name": "updater"},
        "rules": [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["update"]}]
    });
    api.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", role).await.expect(201);
    let binding = json!({
        "metadata": {"name": "updater"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "updater"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "eve"}]
    });
    api.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding).await.expect(201);
    let eve = api.as_user(User::new("eve", Vec::<String>::new()));
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/a";
    let message = eve.put(path, json!({"metadata": {"name": "a"}})).await.refused(403, "Forbidden");
    assert!(message.contains("cannot create resource \"leases\""), "{message}");
    api.put(path, json!({"metadata": {"name": "a"}})).await.expect(201);
    eve.put(path, json!({"metadata": {"name": "a", "resourceVersion": version(&api, path).await}}))
        .await
        .expect(200);
}

async fn version(api: &Api, path: &str) -> Value {
    api.get(path).await.expect(200)["metadata"]["resourceVersion"].clone()
}

fn code_and_warnings(answer: &Answer) -> (u16, Vec<String>) {
    let warnings = answer.headers.get_all("warning").iter();
    (answer.code.as_u16(), warnings.map(|text| text.to_str().unwrap().to_owned()).collect())
}

#[tokio::test(start_paused = true)]
async fn a_refused_write_warns_of_what_was_found_before() {
    let api = Api::start().await;
    let map = |name: &str| json!({"metadata": {"name": name}, "x": 1});
    let told = vec![r#"299 - "unknown field \"x\"""#.to_owned()];
    assert_eq!(code_and_warnings(&api.post(MAPS, map("a")).await), (201, told.clone()));
    assert_eq!(code_and_warnings(&api.post(MAPS, map("a")).await), (409, told.clone()));
    assert_eq!(code_and_warnings(&api.post(MAPS, map("A")).await), (422, told.clone()));
    let elsewhere = json!({"metadata": {"name": "b", "namespace": "other"}, "x": 1});
    assert_eq!(code_and_warnings(&api.post(MAPS, elsewhere).await), (400, told.clone()));
    let path = format!("{MAPS}/a");
    assert_eq!(code_and_warnings(&api.put(&path, map("b")).await), (400, told.clone()));
    let old = json!({"metadata": {"name": "a", "resourceVersion": "1"}, "x": 1});
    assert_eq!(code_and_warnings(&api.put(&path, old.clone()).await), (409, told.clone()));
    assert_eq!(code_and_warnings(&api.patch(&path, "merge", old).await), (409, told.clone()));
    assert_eq!(code_and_warnings(&api.put(&format!("{MAPS}/none"), map("none")).await), (404, told.clone()));
}

#[tokio::test(start_paused = true)]
async fn a_deprecated_version_warns_of_itself_whatever_the_answer() {
    let api = Api::start().await;
    let endpoints = "/api/v1/namespaces/default/endpoints";
    let told = vec![
        r#"299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice""#.to_owned(),
    ];
    assert_eq!(code_and_warnings(&api.get(endpoints).await), (200, told.clone()));
    assert_eq!(code_and_warnings(&api.get(&format!("{endpoints}/none")).await), (404, told.clone()));
}

#[tokio::test(start_paused = true)]
async fn a_creation_with_a_version_is_refused_where_it_would_be_stored() {
    let api = Api::start().await;
    let map = |name: &str| json!({"metadata": {"name": name, "resourceVersion": "5"}});
    let tried = api.post(&format!("{MAPS}?dryRun=All"), map("a")).await.expect(201);
    assert_eq!(tried["metadata"]["resourceVersion"], "5");
    let refused = api.post(MAPS, map("a")).await.expect(500);
    assert_eq!(refused["message"], "resourceVersion should not be set on objects to be created");
    api.post(MAPS, map("A")).await.expect(422);
}

#[tokio::test(start_paused = true)]
async fn fields_of_a_custom_object_are_told_before_that_its_version_is_another_one() {
    let api = with_things(json!({})).await;
    let thing = |api_version: &str| json!({"apiVersion": api_version, "kind": "Thing", "metadata": {"name": "b"}, "no": 1});
    let strict = format!("{THINGS}?fieldValidation=Strict");
    let told = api.post(&strict, thing("example.com/v9")).await.refused(400, "BadRequest");
    let start = "Thing in version \"v9\" cannot be handled as a Thing: strict decoding error: ";
    assert_eq!(told, format!("{start}unknown field \"no\""));
    let mut none = thing("");
    none["metadata"]["no"] = 1.into();
    assert_eq!(
        api.post(&strict, none).await.refused(400, "BadRequest"),
        "Object 'apiVersion' is missing in 'object has no apiVersion field'"
    );
    let kindless = json!({"apiVersion": "example.com/v1", "metadata": {"name": "b"}});
    let told =
        api.post(&format!("{THINGS}?fieldValidation=Ignore"), kindless).await.refused(400, "BadRequest");
    assert!(
        told.starts_with("Thing in version \"v1\" cannot be handled as a Thing: Object 'Kind'"),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn where_an_object_says_to_be_is_compared_before_its_name() {
    let api = Api::start().await;
    let elsewhere = json!({"name": "b", "namespace": "other"});
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": elsewhere}).to_string();
    let apply = [("content-type", "application/apply-patch+yaml")];
    let applied = api.send(Method::PATCH, &format!("{MAPS}/a?fieldManager=m"), &apply, config).await;
    let told = "the namespace of the provided object does not match the namespace sent on the request";
    assert_eq!(applied.refused(400, "BadRequest"), told);
    let sets = "/apis/apps/v1/namespaces/default/replicasets";
    let template =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template});
    api.post(sets, json!({"metadata": {"name": "a"}, "spec": spec})).await.expect(201);
    let scaled = api.patch(&format!("{sets}/a/scale"), "merge", json!({"metadata": elsewhere})).await;
    assert_eq!(scaled.refused(400, "BadRequest"), told);
}

#[tokio::test(start_paused = true)]
async fn an_empty_map_in_a_list_that_is_one_value_makes_it_another_one() {
    let api = Api::start().await;
    let ranges = "/api/v1/namespaces/default/limitranges";
    let range = |limit: Value| json!({"metadata": {"name": "a"}, "spec": {"limits": [limit]}});
    let plain = || json!({"type": "Container", "default": {"cpu": "1"}});
    api.post(&format!("{ranges}?fieldManager=one"), range(plain())).await.expect(201);
    let mut empty = plain();
    empty["max"] = json!({});
    let api = &api;
    let put = |manager: &str, limit: Value| {
        let path = format!("{ranges}/a?fieldManager={manager}");
        let body = range(limit).to_string();
        async move { api.send(Method::PUT, &path, &[], body).await.expect(200) }
    };
    let managers = |object: &Value| object["metadata"]["managedFields"].as_array().map_or(0, Vec::len);
    let same = put("two", plain()).await;
    assert_eq!((managers(&same), &same["metadata"]["managedFields"][0]["manager"]), (1, &json!("one")));
    let other = put("two", empty).await;
    assert_eq!(other["metadata"]["managedFields"][0]["manager"], "two");
    assert_eq!(other["spec"]["limits"][0].get("max"), None);
}

#[tokio::test(start_paused = true)]
async fn quantities_in_a_list_that_is_one_value_are_stored_in_canonical_form_however_they_came() {
    let api = Api::start().await;
    let ranges = "/api/v1/namespaces/default/limitranges";
    let range = |name: &str, cpu: &str| {
        let limits = json!([{"type": "Pod", "max": {"cpu": cpu}}]);
        json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": name}, "spec": {"limits": limits}})
    };
    let cpu = |written: &Value| written["spec"]["limits"][0]["max"]["cpu"].clone();
    let created = api.post(ranges, range("a", "1.5")).await.expect(201);
    assert_eq!(cpu(&created), "1500m");
    let apply = [("content-type", "application/apply-patch+yaml")];
    for (at, code) in [("b", 201), ("b", 200)] {
        let path = format!("{ranges}/{at}?fieldManager=me");
        let body = range(at, "1.5").to_string();
        assert_eq!(cpu(&api.send(Method::PATCH, &path, &apply, body).await.expect(code)), "1500m");
    }
    for kind in ["merge", "strategic-merge"] {
        let change = json!({"spec": range("a", "2.5")["spec"]});
        assert_eq!(cpu(&api.patch(&format!("{ranges}/a"), kind, change).await.expect(200)), "2500m");
    }
    assert_eq!(cpu(&api.put(&format!("{ranges}/a"), range("a", "1.5")).await.expect(200)), "1500m");
}

/// Its content is compared without (`apiequality.Semantic`).
#[tokio::test(start_paused = true)]
async fn an_empty_map_in_a_list_that_is_one_value_is_no_new_generation() {
    let api = Api::start().await;
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let endpoint = json!({"addresses": ["192.0.2.10"]});
    let slice =
        |endpoint: &Value| json!({"metadata": {"name": "a"}, "addressType": "IPv4", "endpoints": [endpoint]});
    let made = api.post(slices, slice(&endpoint)).await.expect(201);
    let mut empty = endpoint;
    empty["deprecatedTopology"] = json!({});
    let written = api.put(&format!("{slices}/a"), slice(&empty)).await.expect(200);
    assert_eq!(written, made);
}

/// Go decodes the second value into what the first has left.
#[tokio::test(start_paused = true)]
async fn structs_that_stand_twice_in_a_body_are_merged() {
    let api = Api::start().await;
    let body = r#"{"metadata": {"name": "a", "labels": {"a": "1"}}, "data": {"a": "1", "b": "1"},
        "metadata": {"labels": {"b": "2"}}, "data": {"b": "2"}, "immutable": true, "immutable": null}"#;
    let made = api.send(Method::POST, MAPS, &[], body.to_owned()).await.expect(201);
    assert_eq!(
        (&made["metadata"]["name"], &made["metadata"]["labels"]),
        (&json!("a"), &json!({"a": "1", "b": "2"}))
    );
    assert_eq!((&made["data"], made.get("immutable")), (&json!({"a": "1", "b": "2"}), None));
}

/// It is there in memory, where owners are told of it, and in protobuf.
#[tokio::test(start_paused = true)]
async fn a_time_that_is_gos_zero_is_written_as_null_and_has_an_owner() {
    let api = Api::start().await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let spec = json!({"leaseDurationSeconds": 3, "renewTime": "0001-01-01T00:00:00.000000Z"});
    let made = api.post(leases, json!({"metadata": {"name": "a"}, "spec": spec})).await.expect(201);
    assert_eq!(made["spec"].get("renewTime"), Some(&Value::Null));
    assert!(made["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:renewTime"].is_object());
    let written = api.put(&format!("{leases}/a"), made.clone()).await.expect(200);
    assert_eq!(written["spec"].get("renewTime"), None, "null says nothing");
    assert_ne!(written["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
    // A time that is no pointer is none then.
    let event = json!({"metadata": {"name": "a", "namespace": "default"}, "involvedObject": {"namespace": "default"},
        "firstTimestamp": "0001-01-01T00:00:00Z"});
    let made = api.post("/api/v1/namespaces/default/events", event).await.expect(201);
    assert_eq!(made.get("firstTimestamp"), Some(&Value::Null));
}

/// None of it is as much as the node has.
#[tokio::test(start_paused = true)]
async fn a_node_that_says_to_give_nothing_is_not_said_to_give_all() {
    let api = Api::start().await;
    api.post("/api/v1/nodes", json!({"metadata": {"name": "n"}})).await.expect(201);
    let put = async |allocatable: Option<Value>| {
        let mut node = json!({"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}}});
        if let Some(allocatable) = allocatable {
            node["status"]["allocatable"] = allocatable;
        }
        api.put("/api/v1/nodes/n/status", node).await.expect(200)["status"]["allocatable"].clone()
    };
    assert_eq!(put(None).await, json!({"cpu": "4"}));
    assert_eq!(put(Some(json!({}))).await, Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_resize_of_a_pod_that_goes_leaves_its_grace_period_alone() {
    let api = Api::start().await;
    api.post("/api/v1/namespaces/default/serviceaccounts", json!({"metadata": {"name": "default"}})).await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod = || {
        json!({"metadata": {"name": "a", "finalizers": ["example.com/hold"]},
        "spec": {"containers": [{"name": "c", "image": "i"}]}})
    };
    api.post(pods, pod()).await.expect(201);
    api.delete(&format!("{pods}/a")).await.expect(200);
    let resized =
        api.send(Method::PUT, &format!("{pods}/a/resize"), &[], pod().to_string()).await.expect(200);
    assert_eq!(resized["metadata"]["deletionGracePeriodSeconds"], 0);
}

#[tokio::test(start_paused = true)]
async fn managed_fields_are_seen_in_what_is_applied_only_where_all_of_them_are_entries() {
    let api = Api::start().await;
    let apply = async |managed: Value| {
        let metadata = json!({"name": "a", "managedFields": managed});
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}});
        let headers = [("content-type", "application/apply-patch+yaml")];
        api.send(Method::PATCH, &format!("{MAPS}/a?fieldManager=me"), &headers, map.to_string()).await
    };
    for seen in [json!([]), json!([{}]), json!([{"other": 1}])] {
        let told = apply(seen).await.refused(400, "BadRequest");
        assert_eq!(told, "metadata.managedFields must be nil");
    }
    for (unseen, why) in [
        (json!([{"manager": 1}]), ".metadata.managedFields[0].manager: expected string"),
        (json!([{}, "x"]), ".metadata.managedFields[1]: expected map, got &{x}"),
        (json!([{"time": "x"}]), r#"parsing time "x" as"#),
    ] {
        let told = apply(unseen).await.expect(500)["message"].to_string().replace('\\', "");
        assert!(told.contains(why), "{told}");
    }
    let applied = apply(json!([null])).await.expect(201);
    assert_eq!(applied["metadata"]["managedFields"][0]["manager"], "me");
}

/// Go leaves out a name that is empty, and an item of a map list without its key does not fit the schema (`UpdateNoErrors`, which since v1.37
/// leaves the owners as they were).
#[tokio::test(start_paused = true)]
async fn an_item_that_was_applied_with_an_empty_key_takes_all_owners_with_the_next_write_before_1_37() {
    for (kubernetes, keeps) in [(Version::V1_36, false), (Version::V1_37, true)] {
        with_an_empty_key(kubernetes, keeps).await;
    }
}

async fn with_an_empty_key(kubernetes: Version, keeps: bool) {
    let api = Api::start_with(Settings { kubernetes, ..Settings::default() }).await;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}, "secrets": [{"name": ""}]});
    let path = "/api/v1/namespaces/default/serviceaccounts/a";
    let yaml = [("content-type", "application/apply-patch+yaml")];
    let apply = format!("{path}?fieldManager=m");
    let made = api.send(Method::PATCH, &apply, &yaml, account.to_string()).await.expect(201);
    let owners = made["metadata"].get("managedFields");
    assert!(owners.is_some_and(Value::is_array));
    let change = json!({"automountServiceAccountToken": false});
    let changed = api.patch(path, "merge", change).await.expect(200);
    assert_eq!(changed["metadata"].get("managedFields"), owners.filter(|_| keeps));
}

/// Protobuf has an entry without a value for them, and one with an empty value for bytes without contents (`generated.pb.go`).
#[tokio::test(start_paused = true)]
async fn bytes_of_a_map_that_are_none_are_read_as_empty_and_stored_otherwise() {
    let api = Api::start().await;
    for (path, member) in [
        ("/api/v1/namespaces/default/secrets", "data"),
        ("/api/v1/namespaces/default/configmaps", "binaryData"),
    ] {
        let put = async |bytes: Value| {
            let object = json!({"metadata": {"name": "a"}, member: {"k": bytes}});
            let written = api.put(&format!("{path}/a"), object).await.expect(200);
            assert_eq!(written[member], json!({"k": ""}));
            written["metadata"]["resourceVersion"].clone()
        };
        let made = api.post(path, json!({"metadata": {"name": "a"}, member: {"k": ""}})).await.expect(201);
        assert_eq!(put("".into()).await, made["metadata"]["resourceVersion"]);
        let none = put(Value::Null).await;
        assert_ne!(none, made["metadata"]["resourceVersion"]);
        assert_eq!(put(Value::Null).await, none);
        assert_ne!(put("".into()).await, none);
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_whose_bytes_are_none_is_there() {
    let api = Api::start().await;
    let data = json!({"tls.crt": null, "tls.key": null});
    let secret = json!({"metadata": {"name": "a"}, "type": "kubernetes.io/tls", "data": data});
    api.post("/api/v1/namespaces/default/secrets", secret).await.expect(201);
    let map = json!({"metadata": {"name": "a"}, "data": {"k": "a"}, "binaryData": {"k": null}});
    let told = api.post("/api/v1/namespaces/default/configmaps", map).await.refused(422, "Invalid");
    assert!(told.ends_with("duplicate of key present in binaryData"), "{told}");
}
