//! Webhooks: who is asked, in which order, and what their answers do.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::support::{Cluster, at_once, patch};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn add(key: &'static str) -> impl Fn(&Value) -> (Value, Duration) + Send + Sync {
    move |_| at_once(patch(&json!([{"op": "add", "path": format!("/data/{key}"), "value": "x"}])))
}

fn allow(_: &Value) -> (Value, Duration) {
    at_once(json!({}))
}

#[tokio::test(start_paused = true)]
async fn mutating_webhooks_are_asked_by_name_and_see_what_the_others_changed() {
    let cluster = Cluster::start().await;
    let second = cluster.hook(true, "b", json!({}), add("b")).await;
    let first = cluster.hook(true, "a", json!({}), add("a")).await;
    let (code, made, _) = cluster.create("x", "").await;
    assert_eq!((code, &made["data"]), (201, &json!({"a": "x", "b": "x", "k": "v"})));
    assert_eq!(first.seen.lock()[0]["object"]["data"], json!({"k": "v"}));
    assert_eq!(second.seen.lock()[0]["object"]["data"], json!({"a": "x", "k": "v"}));
    assert_eq!((first.seen.lock().len(), second.seen.lock().len()), (1, 1), "nobody wants to be asked again");
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_wants_to_is_asked_again_when_a_later_one_changed_the_object() {
    let cluster = Cluster::start().await;
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    let first = cluster.hook(true, "a", again.clone(), add("a")).await;
    let last = cluster.hook(true, "b", again, add("b")).await;
    cluster.create("x", "").await;
    assert_eq!(first.seen.lock().len(), 2);
    assert_eq!(first.seen.lock()[1]["object"]["data"], json!({"a": "x", "b": "x", "k": "v"}));
    assert_eq!(last.seen.lock().len(), 1, "nothing has changed since it was asked");
}

#[tokio::test(start_paused = true)]
async fn validating_webhooks_are_asked_at_once_and_the_first_refusal_counts() {
    let cluster = Cluster::start().await;
    let deny = |why: &'static str, seconds| {
        move |_: &Value| (json!({"allowed": false, "status": {"message": why}}), Duration::from_secs(seconds))
    };
    cluster.hook(false, "a", json!({}), deny("slowly", 5)).await;
    cluster.hook(false, "b", json!({}), deny("quickly", 3)).await;
    let asked = Instant::now();
    let (code, refused, _) = cluster.create("x", "").await;
    assert_eq!((code, asked.elapsed()), (400, Duration::from_secs(5)));
    assert_eq!(refused["message"], r#"admission webhook "b.hooks.test" denied the request: quickly"#);
}

#[tokio::test(start_paused = true)]
async fn the_failure_policy_decides_about_a_webhook_that_does_not_answer_in_time() {
    let cluster = Cluster::start().await;
    let late = |_: &Value| (json!({}), Duration::from_secs(60));
    cluster.hook(false, "a", json!({"failurePolicy": "Ignore", "timeoutSeconds": 7}), late).await;
    let asked = Instant::now();
    assert_eq!(cluster.create("x", "").await.0, 201);
    assert_eq!(asked.elapsed(), Duration::from_secs(7));
    cluster.hook(false, "b", json!({"failurePolicy": "Fail", "timeoutSeconds": 2}), late).await;
    let (code, refused, _) = cluster.create("y", "").await;
    let why = r#"failed calling webhook "b.hooks.test": failed to call webhook: Post "https://b.test/?timeout=2s": context deadline exceeded"#;
    assert_eq!((code, &refused["message"]), (500, &json!(format!("Internal error occurred: {why}"))));
    assert_eq!(refused["details"], json!({"causes": [{"message": why}]}));
}

#[tokio::test(start_paused = true)]
async fn a_webhook_is_told_everything_about_the_request() {
    let cluster = Cluster::start().await;
    let hook = cluster.hook(false, "a", json!({}), allow).await;
    cluster.create("x", "?dryRun=All&fieldValidation=Strict").await;
    let mut told = hook.seen.lock().remove(0);
    assert!(told["uid"].as_str().is_some_and(|uid| uid.len() == 36));
    assert!(told["object"]["metadata"]["uid"].is_string(), "validation sees what will be stored");
    for field in ["uid", "object", "userInfo"] {
        told.as_object_mut().expect("an object").remove(field);
    }
    let kind = json!({"group": "", "version": "v1", "kind": "ConfigMap"});
    let resource = json!({"group": "", "version": "v1", "resource": "configmaps"});
    assert_eq!(
        told,
        json!({
            "kind": kind, "requestKind": kind, "resource": resource, "requestResource": resource,
            "name": "x", "namespace": "default", "operation": "CREATE", "oldObject": null, "dryRun": true,
            "options": {
                "kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"],
                "fieldValidation": "Strict"
            }
        })
    );
}

#[tokio::test(start_paused = true)]
async fn mutation_sees_the_object_before_the_server_names_it() {
    let cluster = Cluster::start().await;
    let hook = cluster.hook(true, "a", json!({}), allow).await;
    let object = json!({"metadata": {"generateName": "g-"}});
    let (code, made, _) = cluster.send(Method::POST, MAPS, &object).await;
    assert_eq!(code, 201);
    let mut seen = hook.seen.lock().remove(0);
    assert_eq!(seen.get("name"), None);
    let metadata = seen["object"]["metadata"].as_object_mut().unwrap();
    assert!(metadata.remove("managedFields").is_some_and(|owners| owners[0]["operation"] == "Update"));
    assert_eq!(seen["object"]["metadata"], json!({"generateName": "g-", "namespace": "default"}));
    assert!(made["metadata"]["name"].as_str().is_some_and(|name| name.len() == 7));
}

#[tokio::test(start_paused = true)]
async fn updates_and_deletions_show_the_old_object() {
    let cluster = Cluster::start().await;
    let hook = cluster.hook(false, "a", json!({}), allow).await;
    cluster.create("x", "").await;
    cluster.send(Method::PATCH, &format!("{MAPS}/x"), &json!({"data": {"k": "w"}})).await;
    cluster.send(Method::DELETE, &format!("{MAPS}/x?gracePeriodSeconds=0"), &Value::Null).await;
    let seen = hook.seen.lock();
    assert_eq!(
        (&seen[1]["oldObject"]["data"]["k"], &seen[1]["object"]["data"]["k"]),
        (&json!("v"), &json!("w"))
    );
    assert_eq!((&seen[2]["oldObject"]["data"]["k"], &seen[2]["object"]), (&json!("w"), &Value::Null));
    assert_eq!(
        seen[2]["options"],
        json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "gracePeriodSeconds": 0})
    );
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_is_denied_leaves_the_object() {
    let cluster = Cluster::start().await;
    cluster.create("x", "").await;
    let only = json!({"rules": [{
        "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["DELETE"], "resources": ["*/*"]
    }]});
    cluster.hook(true, "a", only, |_| at_once(json!({"allowed": false}))).await;
    let (code, refused, _) = cluster.send(Method::DELETE, &format!("{MAPS}/x"), &Value::Null).await;
    let why = r#"admission webhook "a.hooks.test" denied the request without explanation"#;
    assert_eq!((code, &refused["message"]), (400, &json!(why)));
    assert_eq!(cluster.send(Method::GET, &format!("{MAPS}/x"), &Value::Null).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn selectors_and_rules_decide_who_is_asked() {
    let rules = |what: Value| json!({"rules": [what]});
    let all = json!({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]});
    let with = |field: &str, value: Value| {
        let mut rule = all.clone();
        rule[field] = value;
        rules(rule)
    };
    for (members, asked) in [
        (rules(all.clone()), true),
        (with("scope", json!("Cluster")), false),
        (with("scope", json!("Namespaced")), true),
        (with("resources", json!(["configmaps/status", "pods"])), false),
        (with("resources", json!(["*/*"])), true),
        (with("operations", json!(["UPDATE"])), false),
        (with("apiGroups", json!(["apps"])), false),
        (with("apiVersions", json!(["v2"])), false),
        (json!({"objectSelector": {"matchLabels": {"app": "x"}}}), true),
        (json!({"objectSelector": {"matchLabels": {"app": "y"}}}), false),
        (json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}), true),
        (json!({"namespaceSelector": {"matchExpressions": [{"key": "none", "operator": "Exists"}]}}), false),
        (
            json!({"namespaceSelector": {"matchExpressions": [{"key": "none", "operator": "DoesNotExist"}]}}),
            true,
        ),
    ] {
        let cluster = Cluster::start().await;
        let hook = cluster.hook(false, "a", members.clone(), allow).await;
        cluster.create("x", "").await;
        assert_eq!(hook.seen.lock().len(), usize::from(asked), "{members}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_about_another_version_counts_unless_the_match_is_exact() {
    let cluster = Cluster::start().await;
    let events = json!([{
        "apiGroups": ["events.k8s.io"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["events"]
    }]);
    let hook = cluster.hook(false, "a", json!({"rules": events}), allow).await;
    let exact = cluster.hook(false, "b", json!({"rules": events, "matchPolicy": "Exact"}), allow).await;
    let event = json!({
        "metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "message": "hello", "reason": "R", "type": "Normal"
    });
    let (code, made, _) = cluster.send(Method::POST, "/api/v1/namespaces/default/events", &event).await;
    assert_eq!(code, 201, "{made}");
    let seen = hook.seen.lock().remove(0);
    assert_eq!(
        (&seen["object"]["apiVersion"], &seen["object"]["note"]),
        (&json!("events.k8s.io/v1"), &json!("hello"))
    );
    assert_eq!(seen["resource"]["group"], "events.k8s.io");
    assert_eq!(seen["requestResource"]["group"], "");
    assert_eq!(exact.seen.lock().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn configurations_of_admission_are_never_shown_to_a_webhook() {
    let cluster = Cluster::start().await;
    let everything = json!({"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]});
    let first = cluster.hook(false, "a", everything.clone(), allow).await;
    cluster.hook(true, "b", everything, allow).await;
    assert_eq!(first.seen.lock().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn warnings_reach_the_client_once_even_with_a_refusal() {
    let cluster = Cluster::start().await;
    let warn = |_: &Value| at_once(json!({"warnings": ["careful", "careful", "two\nlines"]}));
    cluster.hook(true, "a", json!({}), warn).await;
    assert_eq!(cluster.create("x", "").await.2, [r#"299 - "careful""#]);
    cluster.hook(false, "b", json!({}), |_| at_once(json!({"allowed": false, "warnings": ["no"]}))).await;
    assert_eq!(cluster.create("y", "").await.2, [r#"299 - "careful""#, r#"299 - "no""#]);
}

#[tokio::test(start_paused = true)]
async fn what_a_patch_makes_is_pruned_defaulted_and_validated() {
    let cluster = Cluster::start().await;
    let patched = |operations: Value| move |_: &Value| at_once(patch(&operations));
    let unknown = json!([{"op": "add", "path": "/junk", "value": 1}]);
    cluster
        .hook(true, "a", json!({"objectSelector": {"matchLabels": {"app": "unknown"}}}), patched(unknown))
        .await;
    let wrong = json!([{"op": "add", "path": "/data", "value": {"a": 1}}]);
    cluster
        .hook(true, "b", json!({"objectSelector": {"matchLabels": {"app": "wrong"}}}), patched(wrong))
        .await;
    let invalid = json!([{"op": "add", "path": "/data", "value": {"a b": "x"}}]);
    cluster
        .hook(true, "c", json!({"objectSelector": {"matchLabels": {"app": "invalid"}}}), patched(invalid))
        .await;
    let (code, made, _) = cluster.create("unknown", "").await;
    assert_eq!((code, made.get("junk")), (201, None));
    let (code, refused, _) = cluster.create("wrong", "").await;
    let why = "Internal error occurred: json: cannot unmarshal number into Go struct field ConfigMap.data of type string";
    assert_eq!((code, &refused["message"]), (500, &json!(why)));
    assert_eq!(cluster.create("invalid", "").await.0, 422);
}

#[tokio::test(start_paused = true)]
async fn a_changed_configuration_counts_for_the_next_request() {
    let cluster = Cluster::start().await;
    let hook = cluster.hook(false, "a", json!({}), allow).await;
    cluster.create("x", "").await;
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/a";
    cluster.send(Method::DELETE, path, &Value::Null).await;
    cluster.create("y", "").await;
    assert_eq!(hook.seen.lock().len(), 1);
}
