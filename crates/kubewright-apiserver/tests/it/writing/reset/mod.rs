//! A cluster that is put back to its beginning.

mod property;

use kubewright_engine::verbs;
use kubewright_kinds::Verbs;
use serde_json::{Value, json};

use crate::support::Api;

pub(crate) const DEFAULT: &str = "/api/v1/namespaces/default";
pub(crate) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(crate) const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

pub(crate) fn definition() -> Value {
    json!({"metadata": {"name": "widgets.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
            {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

/// Everything that is served, without what differs between two clusters.
pub(crate) async fn everything(api: &Api) -> Vec<Value> {
    let kinds = api.server.engine().kinds();
    let mut all = Vec::new();
    for kind in kinds.iter().filter(|kind| kind.verbs != Verbs::CreateOnly) {
        let group = if kind.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", kind.group) };
        let mut list = api.get(&format!("{group}/{}/{}", kind.version, kind.plural)).await.expect(200);
        strip(&mut list);
        all.push(list);
    }
    all.push(json!(
        kinds.iter().map(|kind| format!("{}/{}", kind.api_version(), kind.plural)).collect::<Vec<_>>()
    ));
    all
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for field in ["uid", "resourceVersion", "creationTimestamp", "time", "lastTransitionTime"] {
                members.remove(field);
            }
            members.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

pub(crate) async fn reset(api: &Api) {
    verbs::reset(api.server.engine()).await.expect("the store is well");
}

#[tokio::test(start_paused = true)]
async fn nothing_that_somebody_wrote_is_left_whatever_holds_it() {
    let api = Api::start().await;
    let fresh = everything(&api).await;
    let revision = api.server.engine().store().revision();

    api.post(CRDS, definition()).await.expect(201);
    let held = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "finalizers": ["example.com/hold"]}});
    api.post(WIDGETS, held).await.expect(201);
    api.delete(&format!("{WIDGETS}/w")).await.expect(200);
    api.delete(&format!("{CRDS}/widgets.example.com")).await.expect(200);
    api.post("/api/v1/namespaces", json!({"metadata": {"name": "going"}})).await.expect(201);
    api.post("/api/v1/namespaces/going/configmaps", json!({"metadata": {"name": "a"}})).await.expect(201);
    api.delete("/api/v1/namespaces/going").await.expect(200);
    api.delete(&format!("{DEFAULT}/services/kubernetes")).await.expect(200);
    let label = json!({"metadata": {"annotations": {"resourceVersion": "\"resourceVersion\":\"7\""}}});
    api.patch(DEFAULT, "merge", label).await.expect(200);
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    api.delete(&format!("{roles}/view")).await.expect(200);
    api.patch(&format!("{roles}/edit"), "merge", json!({"rules": []})).await.expect(200);

    reset(&api).await;
    assert_eq!(everything(&api).await, fresh);
    assert!(api.server.engine().store().revision() > revision);
    api.get("/apis/example.com/v1").await.expect(404);
    api.post(WIDGETS, json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}))
        .await
        .expect(404);
}

#[tokio::test(start_paused = true)]
async fn what_was_used_is_free_again() {
    let api = Api::start().await;
    let services = format!("{DEFAULT}/services");
    let service = json!({"metadata": {"name": "s"}, "spec": {"type": "NodePort", "clusterIP": "10.0.0.77", "ports": [{"port": 80, "nodePort": 30777}]}});
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"count/configmaps": "1"}}});
    for _ in 0..2 {
        api.post(&services, service.clone()).await.expect(201);
        api.post(&format!("{DEFAULT}/resourcequotas"), quota.clone()).await.expect(201);
        let status =
            json!({"status": {"hard": {"count/configmaps": "1"}, "used": {"count/configmaps": "0"}}});
        api.patch(&format!("{DEFAULT}/resourcequotas/q/status"), "merge", status).await.expect(200);
        let maps = format!("{DEFAULT}/configmaps");
        api.post(&maps, json!({"metadata": {"name": "a"}})).await.expect(201);
        api.post(&maps, json!({"metadata": {"name": "b"}})).await.refused(403, "Forbidden");
        reset(&api).await;
        api.post(&maps, json!({"metadata": {"name": "a"}})).await.expect(201);
        api.post(&maps, json!({"metadata": {"name": "b"}})).await.expect(201);
        reset(&api).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_is_told_of_all_of_it_and_goes_on() {
    let api = Api::start().await;
    api.post(CRDS, definition()).await.expect(201);
    let maps = format!("{DEFAULT}/configmaps");
    let mut of_maps = api.watch(&format!("{maps}?watch=1&resourceVersion=0")).await;
    let mut of_widgets = api.watch(&format!("{WIDGETS}?watch=1&resourceVersion=0")).await;
    let mut of_namespaces = api.watch("/api/v1/namespaces?watch=1&fieldSelector=metadata.name=default").await;
    let first = of_namespaces.expect("ADDED", "default").await;
    let made = api.post(&maps, json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).await.expect(201);
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}});
    api.post(WIDGETS, widget.clone()).await.expect(201);
    api.patch(DEFAULT, "merge", json!({"metadata": {"labels": {"a": "b"}}})).await.expect(200);
    reset(&api).await;

    assert_eq!(of_maps.expect("ADDED", "a").await, made);
    let mut gone = of_maps.expect("DELETED", "a").await;
    let version = |object: &Value| {
        object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse::<u64>().ok())
    };
    assert!(version(&gone) > version(&made));
    gone["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"].clone();
    assert_eq!(gone, made);
    of_widgets.expect("ADDED", "w").await;
    of_widgets.expect("DELETED", "w").await;
    of_namespaces.expect("MODIFIED", "default").await;
    let back = of_namespaces.expect("MODIFIED", "default").await;
    assert_eq!(
        (&back["metadata"]["labels"], &back["metadata"]["uid"]),
        (&first["metadata"]["labels"], &first["metadata"]["uid"])
    );

    api.post(&maps, json!({"metadata": {"name": "b"}})).await.expect(201);
    of_maps.expect("ADDED", "b").await;
    api.post(CRDS, definition()).await.expect(201);
    api.post(WIDGETS, widget).await.expect(201);
    of_widgets.expect("ADDED", "w").await;
}

#[tokio::test(start_paused = true)]
async fn what_was_deleted_comes_back_as_another_and_what_was_replaced_stays_itself() {
    let api = Api::start().await;
    let class = "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical";
    let place = format!("{DEFAULT}/services/kubernetes");
    let (first_class, first) = (api.get(class).await.expect(200), api.get(&place).await.expect(200));
    api.delete(&place).await.expect(200);
    let own =
        json!({"metadata": {"name": "kubernetes"}, "spec": {"clusterIP": "None", "ports": [{"port": 1}]}});
    let replaced = api.post(&format!("{DEFAULT}/services"), own).await.expect(201);
    api.delete("/apis/networking.k8s.io/v1/servicecidrs/kubernetes").await;
    reset(&api).await;
    let back = api.get(&place).await.expect(200);
    assert_eq!((&back["spec"], &back["metadata"]["uid"]), (&first["spec"], &replaced["metadata"]["uid"]));
    assert_eq!(api.get(class).await.expect(200), first_class);

    api.delete(&place).await.expect(200);
    reset(&api).await;
    let back = api.get(&place).await.expect(200);
    assert_eq!(back["spec"], first["spec"]);
    assert!(back["metadata"]["uid"] != first["metadata"]["uid"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_more_than_is_kept_is_not_lost() {
    let api = Api::start().await;
    let maps = format!("{DEFAULT}/configmaps");
    let mut watch = api.watch(&format!("{maps}?watch=1")).await;
    let large = "x".repeat(400_000);
    for at in 0..30 {
        api.post(&maps, json!({"metadata": {"name": format!("m{at}")}, "data": {"k": large}}))
            .await
            .expect(201);
        watch.expect("ADDED", &format!("m{at}")).await;
    }
    let engine = std::sync::Arc::clone(api.server.engine());
    let done = tokio::spawn(async move { verbs::reset(&engine).await });
    for _ in 0..30 {
        let event = watch.next().await.expect("an event");
        assert_eq!(event["type"], "DELETED", "{}", event["object"]["message"]);
    }
    done.await.expect("no panic").expect("the store is well");
}
