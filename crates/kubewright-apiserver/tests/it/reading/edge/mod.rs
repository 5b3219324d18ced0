//! What clients trip over at the edge: content types, discovery, protobuf, and what is switched there.

mod places;
mod room;
mod sharing;

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method};
use http_body_util::BodyExt;
use kubewright_apiserver::http::Settings;
use kubewright_kinds::RuntimeConfig;
use kubewright_store::Memory;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::Api;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// What client-go asks discovery for.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

async fn with(edge: Settings) -> Api {
    Api::start_as(Arc::new(Memory::new()), kubewright_engine::Settings::default(), edge).await
}

fn content_type(headers: &HeaderMap) -> &str {
    headers["content-type"].to_str().expect("text")
}

#[tokio::test(start_paused = true)]
async fn what_checks_of_health_found_is_counted_until_it_is_forgotten() {
    let api = Api::start().await;
    let text = async |method: Method| {
        let answer = api.send(method, "/metrics/slis", &[], "").await.bytes;
        String::from_utf8_lossy(&answer).into_owned()
    };
    assert!(!text(Method::GET).await.contains("healthcheck"));
    for path in ["/livez", "/livez?verbose", "/readyz?exclude=etcd", "/healthz/etcd"] {
        api.get(path).await;
    }
    let told = text(Method::GET).await;
    for line in [
        "kubernetes_healthcheck{name=\"etcd\",type=\"livez\"} 1\n",
        "kubernetes_healthchecks_total{name=\"etcd\",status=\"success\",type=\"livez\"} 2\n",
        "kubernetes_healthchecks_total{name=\"shutdown\",status=\"success\",type=\"readyz\"} 1\n",
    ] {
        assert!(told.contains(line), "{line} in {told}");
    }
    assert!(!told.contains("name=\"etcd\",type=\"readyz\""), "what is excluded is not looked at: {told}");
    assert!(!told.contains("type=\"healthz\""), "a check that is asked alone does not count: {told}");
    assert_eq!(text(Method::DELETE).await, "metrics reset\n");
    assert!(!text(Method::GET).await.contains("healthcheck"));
}

#[tokio::test(start_paused = true)]
async fn discovery_is_aggregated_for_those_who_want_it_and_only_where_it_is_on() {
    let (on, off) =
        (Api::start().await, with(Settings { aggregated_discovery: false, ..Settings::default() }).await);
    for path in ["/api", "/apis"] {
        let answer = on.send(Method::GET, path, &[("accept", AGGREGATED)], "").await;
        assert_eq!(
            content_type(&answer.headers),
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        );
        assert_eq!(answer.body["kind"], "APIGroupDiscoveryList");
        let beta =
            "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
        let answer = on.send(Method::GET, path, &[("accept", beta)], "").await;
        assert_eq!(answer.body["apiVersion"], "apidiscovery.k8s.io/v2beta1");
        let answer = off.send(Method::GET, path, &[("accept", AGGREGATED)], "").await;
        assert_eq!((answer.code.as_u16(), content_type(&answer.headers)), (200, "application/json"));
        assert_eq!(answer.body["kind"], if path == "/api" { "APIVersions" } else { "APIGroupList" });
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_switched_off_is_not_served_and_the_rest_works() {
    let (runtime_config, _) =
        RuntimeConfig::parse(["batch/v1=false", "rbac.authorization.k8s.io/v1/roles=false"])
            .expect("it can be read");
    let api = Api::start_with(kubewright_engine::Settings {
        runtime_config,
        ..kubewright_engine::Settings::default()
    })
    .await;
    api.get("/apis/batch/v1").await.expect(404);
    api.get("/apis/batch/v1/namespaces/default/jobs").await.expect(404);
    let groups = api.get("/apis").await.expect(200);
    let names: Vec<&Value> =
        groups["groups"].as_array().expect("groups").iter().map(|group| &group["name"]).collect();
    assert!(!names.contains(&&json!("batch")) && names.contains(&&json!("apps")));
    api.get("/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles").await.expect(404);
    api.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/view").await.expect(200);
    api.post(MAPS, json!({"metadata": {"name": "a"}})).await.expect(201);
}

#[tokio::test(start_paused = true)]
async fn a_watch_lasts_as_long_as_the_server_says_and_up_to_twice() {
    let api = with(Settings { min_request_timeout: Duration::from_secs(10), ..Settings::default() }).await;
    let start = Instant::now();
    let mut watch = api.watch(&format!("{MAPS}?watch=1")).await;
    assert_eq!(watch.next().await, None);
    let lasted = start.elapsed();
    assert!((10..=20).contains(&lasted.as_secs()), "{lasted:?}");
}

/// client-go's typed client compares the whole text.
#[tokio::test(start_paused = true)]
async fn what_was_applied_is_answered_as_exactly_json() {
    let api = Api::start().await;
    let config =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
    for code in [201, 200] {
        let headers = [("content-type", "application/apply-patch+yaml"), ("accept", "application/json")];
        let answer =
            api.send(Method::PATCH, &format!("{MAPS}/a?fieldManager=m"), &headers, config.to_string()).await;
        assert_eq!((answer.code.as_u16(), content_type(&answer.headers)), (code, "application/json"));
    }
}

/// What metadata clients ask for.
#[tokio::test(start_paused = true)]
async fn metadata_come_in_protobuf() {
    let api = Api::start().await;
    api.post(MAPS, json!({"metadata": {"name": "a"}, "data": {"secret": "s3cret"}})).await.expect(201);
    for (path, kind) in
        [(MAPS.to_owned(), "PartialObjectMetadataList"), (format!("{MAPS}/a"), "PartialObjectMetadata")]
    {
        let accept = format!(
            "{PROTOBUF};as={kind};g=meta.k8s.io;v=v1,application/json;as={kind};g=meta.k8s.io;v=v1,application/json"
        );
        let answer = api.send(Method::GET, &path, &[("accept", &accept)], "").await;
        assert_eq!((answer.code.as_u16(), content_type(&answer.headers)), (200, PROTOBUF));
        assert!(answer.bytes.starts_with(b"k8s\0"));
        let holds = |text: &str| answer.bytes.windows(text.len()).any(|part| part == text.as_bytes());
        assert!(holds(kind) && holds("default") && !holds("s3cret"));
    }
}

/// Each event is its length in four bytes, and then itself.
#[tokio::test(start_paused = true)]
async fn a_watch_in_protobuf_is_framed() {
    let api = Api::start().await;
    api.post(MAPS, json!({"metadata": {"name": "a"}})).await.expect(201);
    let accept = format!("{PROTOBUF};stream=watch");
    let response =
        api.open(Method::GET, &format!("{MAPS}?watch=1&timeoutSeconds=5"), &[("accept", &accept)], "").await;
    assert_eq!(content_type(response.headers()), "application/vnd.kubernetes.protobuf;stream=watch");
    api.delete(&format!("{MAPS}/a")).await.expect(200);
    let mut rest = &*response.into_body().collect().await.expect("a body cannot fail").to_bytes();
    let mut events = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let (event, after) = after.split_at(u32::from_be_bytes(*length) as usize);
        assert!(event.windows(4).any(|part| part == b"k8s\0"));
        events.push(event[2..2 + usize::from(event[1])].to_vec());
        rest = after;
    }
    assert_eq!(events, [b"ADDED".to_vec(), b"DELETED".to_vec()]);
}

#[tokio::test(start_paused = true)]
async fn ages_in_a_watch_are_as_of_its_events() {
    let api = Api::start().await;
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let watch = format!("{MAPS}?watch=1&timeoutSeconds=60");
    let response = api.open(Method::GET, &watch, &[("accept", accept)], "").await;
    tokio::time::advance(std::time::Duration::from_secs(30)).await;
    api.post(MAPS, json!({"metadata": {"name": "a"}})).await.expect(201);
    let told = response.into_body().collect().await.expect("a body cannot fail").to_bytes();
    let event: serde_json::Value = serde_json::from_slice(told.trim_ascii_end()).expect("one event");
    assert_eq!(event["object"]["rows"][0]["cells"], json!(["a", 0, "0s"]));
}

/// Custom resources have no messages.
#[tokio::test(start_paused = true)]
async fn a_custom_resource_is_json_or_not_acceptable() {
    let api = Api::start().await;
    let definition = json!({"metadata": {"name": "widgets.example.com"}, "spec": {
        "group": "example.com", "scope": "Cluster", "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    api.post(CRDS, definition).await.expect(201);
    let widgets = "/apis/example.com/v1/widgets";
    let both = format!("{PROTOBUF},application/json");
    let answer = api.send(Method::GET, widgets, &[("accept", &both)], "").await;
    assert_eq!((answer.code.as_u16(), content_type(&answer.headers)), (200, "application/json"));
    let answer = api.send(Method::GET, widgets, &[("accept", PROTOBUF)], "").await;
    assert_eq!(answer.code, 406);
    let metadata = format!("{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
    let answer = api.send(Method::GET, widgets, &[("accept", &metadata)], "").await;
    assert_eq!((answer.code.as_u16(), content_type(&answer.headers)), (200, PROTOBUF));
}

/// A reflector that is refused lists instead; one whose wish is silently dropped hangs for ever.
#[tokio::test(start_paused = true)]
async fn a_streaming_list_that_makes_no_sense_is_refused() {
    let api = Api::start().await;
    for query in [
        "watch=1&sendInitialEvents=true",
        "watch=1&resourceVersionMatch=NotOlderThan",
        "watch=1&sendInitialEvents=true&resourceVersionMatch=Exact",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
    ] {
        api.get(&format!("{MAPS}?{query}")).await.refused(422, "Invalid");
    }
}

const V2: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const V3: &str = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";

/// As `k8s.io/kube-openapi/pkg/handler` chooses, and handler3.
#[tokio::test(start_paused = true)]
async fn openapi_is_had_in_the_form_that_is_asked_for() {
    let api = Api::start().await;
    let (v2, v3) = ("/openapi/v2", "/openapi/v3/apis/apps/v1");
    for (path, accept, media_type) in [
        // What client-go's discovery asks for is not what the answer is called.
        (v2, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf", V2),
        (v2, V2, V2),
        (v2, "application/json;q=0.8, application/com.github.proto-openapi.spec.v2.v1.0+protobuf", V2),
        (
            v2,
            "text/html, application/json;q=0.5, application/com.github.proto-openapi.spec.v2@v1.0+protobuf;q=0.4",
            "application/json",
        ),
        (v2, "application/*", "application/json"),
        (v2, "*/json", "application/json"),
        (v2, "", "application/json"),
        (v3, "application/com.github.proto-openapi.spec.v3@v1.0+protobuf", V3),
        (v3, V3, V3),
        (v3, "*/*", "application/json"),
    ] {
        let answer = api.send(Method::GET, path, &[("accept", accept)], "").await;
        assert_eq!(
            (answer.code.as_u16(), content_type(&answer.headers)),
            (200, media_type),
            "{path} {accept}"
        );
        assert_eq!(answer.headers["vary"], "Accept");
        let begins: &[u8] = match media_type {
            "application/json" => b"{",
            V2 => b"\x0a\x032.0",
            _ => b"\x0a\x053.0.0",
        };
        assert!(answer.bytes.starts_with(begins), "{path} {accept}");
    }
    for (path, accept, code) in [
        (v2, V3, 406),
        (v2, "application/x-protobuf", 406),
        (v2, "garbage", 406),
        (v3, V2, 406),
        (v3, "text/html", 406),
        (v3, "garbage", 200),
    ] {
        let answer = api.send(Method::GET, path, &[("accept", accept)], "").await;
        assert_eq!((answer.code.as_u16(), answer.bytes.len()), (code, 0), "{path} {accept}");
        assert_eq!(answer.headers["vary"], "Accept");
    }
}

#[tokio::test(start_paused = true)]
async fn both_forms_of_openapi_have_one_tag_until_a_kind_comes() {
    let api = Api::start().await;
    let tag = async |accept: &str| {
        let answer = api.send(Method::GET, "/openapi/v2", &[("accept", accept)], "").await;
        answer.headers["etag"].to_str().expect("text").to_owned()
    };
    let first = tag(V2).await;
    assert_eq!(tag("application/json").await, first);
    let has = [("accept", V2), ("if-none-match", &*first)];
    let answer = api.send(Method::GET, "/openapi/v2", &has, "").await;
    assert_eq!((answer.code.as_u16(), answer.bytes.len()), (304, 0));

    let zipped = [("accept", V2), ("accept-encoding", "gzip")];
    let answer = api.send(Method::GET, "/openapi/v2", &zipped, "").await;
    assert_eq!(answer.headers["content-encoding"], "gzip");
    assert!(answer.bytes.starts_with(b"\x1f\x8b"));

    let v3 = api.send(Method::GET, "/openapi/v3/apis/apps/v1?hash=other", &[("accept", V3)], "").await;
    assert_eq!((v3.code.as_u16(), content_type(&v3.headers)), (301, V3));
    let place = v3.headers["location"].to_str().expect("text").to_owned();
    let v3 = api.send(Method::GET, &place, &[("accept", V3)], "").await;
    assert_eq!(
        (v3.code.as_u16(), v3.headers["cache-control"].to_str().expect("text")),
        (200, "public, immutable")
    );
    let hash = format!("\"{}\"", place.split_once('=').expect("a hash").1);
    assert_eq!(v3.headers["etag"].to_str().expect("text"), hash);

    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}});
    let boxes = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boxes.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "boxes", "kind": "Box"},
            "versions": [version],
        },
    });
    api.post(CRDS, boxes).await.expect(201);
    assert_ne!(tag(V2).await, first);
}
