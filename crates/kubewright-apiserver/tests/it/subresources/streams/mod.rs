//! What the API server asks kubelets for: logs, sessions, ports.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ::http::{Method, StatusCode};
use http_body_util::BodyExt;
use kubewright_identity::authn::User;
use serde_json::{Value, json};

use crate::support::Api;
use crate::support::kubelet::Fake;

const PODS: &str = "/api/v1/namespaces/default/pods";
const SERVICES: &str = "/api/v1/namespaces/default/services";

/// A pod on a node whose kubelet is a fake, and one on a node without.
async fn with_pods() -> (Api, Arc<Fake>) {
    let api = Api::start().await;
    let kubelet = Arc::new(Fake::default());
    api.server.kubelets().register("n", Arc::clone(&kubelet) as _);
    api.post("/api/v1/namespaces/default/serviceaccounts", json!({"metadata": {"name": "default"}})).await;
    for node in ["n", "down"] {
        let status = json!({"addresses": [{"type": "InternalIP", "address": "10.0.0.9"}]});
        api.post("/api/v1/nodes", json!({"metadata": {"name": node}, "status": status})).await.expect(201);
    }
    for (name, node) in [("a", "n"), ("b", "down")] {
        let containers: Vec<Value> = ["c", "late", "lost", "broken"]
            .into_iter()
            .map(|name| json!({"name": name, "image": "x", "ports": [{"containerPort": 80}]}))
            .collect();
        let pod = json!({"metadata": {"name": name}, "spec": {"nodeName": node, "containers": containers}});
        api.post(PODS, pod).await.expect(201);
        let status = json!({"status": {"podIP": "10.1.1.1", "podIPs": [{"ip": "10.1.1.1"}]}});
        api.patch(&format!("{PODS}/{name}/status"), "merge", status).await.expect(200);
    }
    (api, kubelet)
}

#[tokio::test(start_paused = true)]
async fn a_log_is_the_part_that_is_asked_for() {
    let (api, kubelet) = with_pods().await;
    let query =
        "container=c&tailLines=5&limitBytes=100&timestamps=true&sinceTime=2026-01-02T03:04:05.6%2B01:00";
    let log = api.get(&format!("{PODS}/a/log?{query}")).await;
    assert_eq!((log.code, &log.bytes[..]), (StatusCode::OK, &b"one\ntwo\n"[..]));
    assert_eq!(log.headers["content-type"], "text/plain");
    let asked = kubelet.asked.lock().pop().expect("it was asked");
    assert_eq!(
        asked,
        "logs default/a c LogOptions { follow: false, previous: false, \
         since: Some(Time(2026-01-02T02:04:05Z)), timestamps: true, tail_lines: Some(5), \
         limit_bytes: Some(100), stream: All }"
    );
    api.get(&format!("{PODS}/a/log?container=c&sinceSeconds=60")).await;
    assert!(kubelet.asked.lock()[0].contains("since: Some(Ago(60s))"), "{:?}", kubelet.asked);
}

#[tokio::test(start_paused = true)]
async fn what_a_kubelet_says_of_a_log_is_told() {
    let (api, _) = with_pods().await;
    let log = async |query: &str| api.get(&format!("{PODS}/a/log?{query}")).await;
    assert_eq!(
        log("container=late").await.refused(400, "BadRequest"),
        "container \"late\" in pod \"a\" is waiting to start: ContainerCreating"
    );
    assert_eq!(
        log("container=c&previous=true").await.refused(400, "BadRequest"),
        "previous terminated container \"c\" in pod \"a\" not found"
    );
    assert_eq!(
        log("container=lost").await.refused(404, "NotFound"),
        "the server could not find the requested resource ( pods/log a)"
    );
    assert_eq!(
        log("container=broken").await.refused(500, "InternalError"),
        "Internal error occurred: the disk is gone"
    );
    assert_eq!(
        log("container=c&sinceTime=x").await.refused(400, "BadRequest"),
        "parsing time \"x\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"x\" as \"2006\""
    );
}

#[tokio::test(start_paused = true)]
async fn a_log_is_followed_until_the_server_stops() {
    let (api, _) = with_pods().await;
    let path = format!("{PODS}/a/log?container=c&follow=true");
    let mut body = api.open(Method::GET, &path, &[], "").await.into_body();
    for line in ["one\n", "two\n"] {
        let frame = body.frame().await.expect("a line").expect("no error");
        assert_eq!(frame.into_data().expect("data"), line);
    }
    api.shutdown.cancel();
    assert!(body.frame().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_node_without_a_kubelet_refuses_connections() {
    let (api, _) = with_pods().await;
    let upgrade = [("connection", "Upgrade"), ("upgrade", "SPDY/3.1")];
    let path = format!("{PODS}/b/exec?container=c&command=ls&stdout=true");
    let answer = api.send(Method::POST, &path, &upgrade, "").await;
    assert_eq!(
        answer.body["message"],
        "error dialing backend: dial tcp 10.0.0.9:10250: connect: connection refused"
    );
    let log = api.get(&format!("{PODS}/b/log?container=c")).await;
    assert_eq!(
        log.body["message"],
        "Get \"https://10.0.0.9:10250/containerLogs/default/b/c\": dial tcp 10.0.0.9:10250: connect: connection refused"
    );
}

#[tokio::test(start_paused = true)]
async fn a_session_asks_for_another_protocol_than_http() {
    let (api, kubelet) = with_pods().await;
    for subresource in
        ["exec?container=c&command=ls&stdout=true", "attach?container=c&stdin=true", "portforward?ports=80"]
    {
        let answer = api.post(&format!("{PODS}/a/{subresource}"), Value::Null).await;
        assert_eq!(answer.refused(400, "BadRequest"), "Upgrade request required");
    }
    assert_eq!(kubelet.running.load(Ordering::SeqCst), 0, "nothing was begun");
}

/// A WebSocket is asked for with GET.
#[tokio::test(start_paused = true)]
async fn who_may_only_get_a_session_may_not_have_one() {
    let (api, _) = with_pods().await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let rules = json!([{"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get"]}]);
    api.post(&format!("{rbac}/roles"), json!({"metadata": {"name": "r"}, "rules": rules})).await.expect(201);
    let binding = json!({
        "metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "eve"}]
    });
    api.post(&format!("{rbac}/rolebindings"), binding).await.expect(201);
    let eve = api.as_user(User::new("eve", Vec::<String>::new()));
    let path = format!("{PODS}/a/exec?container=c&command=ls&stdout=true");
    assert_eq!(eve.get(&path).await.refused(403, "Forbidden"), "pods \"a\" is forbidden: ");
    assert_eq!(api.get(&path).await.refused(400, "BadRequest"), "Upgrade request required");
}

#[tokio::test(start_paused = true)]
async fn a_request_goes_through_to_a_pod() {
    let (api, _) = with_pods().await;
    let headers = [
        ("host", "cluster.example.com"),
        ("authorization", "Bearer secret"),
        ("accept", "text/html"),
        ("content-type", "text/plain"),
    ];
    let path = format!("{PODS}/a:8080/proxy/some%20path?b=c");
    let answer = api.send(Method::PATCH, &path, &headers, "hello").await;
    assert_eq!(answer.code, StatusCode::OK, "{:?}", answer.bytes);
    assert_eq!(
        String::from_utf8_lossy(&answer.bytes),
        format!(
            "PATCH /some%20path?b=c host=cluster.example.com via={PODS}/a:8080/proxy/some%20path body=hello\n"
        )
    );
    let asked = api.send(Method::OPTIONS, &format!("{PODS}/a:8080/proxy/x"), &headers, "").await;
    assert_eq!(asked.code, StatusCode::OK, "{:?}", asked.bytes);
    assert!(asked.bytes.starts_with(b"OPTIONS /x "), "{:?}", asked.bytes);
    let elsewhere = api.send(Method::OPTIONS, &format!("{PODS}/a/log"), &[], "").await;
    assert_eq!(elsewhere.code, StatusCode::METHOD_NOT_ALLOWED);
    let away = api.get(&format!("{PODS}/a/proxy/away")).await;
    assert_eq!(away.code, StatusCode::FOUND);
    assert_eq!(away.headers["location"], &*format!("{PODS}/a/proxy/home?a=b"));
    let root = api.get(&format!("{PODS}/a/proxy")).await;
    assert_eq!(
        (root.code, root.headers["location"].to_str().unwrap()),
        (StatusCode::MOVED_PERMANENTLY, &*format!("{PODS}/a/proxy/"))
    );
}

#[tokio::test(start_paused = true)]
async fn links_of_a_page_lead_through_the_proxy() {
    let (api, _) = with_pods().await;
    for place in ["a:8080", "https:a:443"] {
        let page = api.get(&format!("{PODS}/{place}/proxy/page")).await;
        assert_eq!(
            String::from_utf8_lossy(&page.bytes),
            format!("<a href=\"{PODS}/{place}/proxy/x\">/x</a>")
        );
        assert!(!page.headers.contains_key("access-control-allow-origin"), "{:?}", page.headers);
        let head = api.send(Method::HEAD, &format!("{PODS}/{place}/proxy/page"), &[], "").await;
        assert_eq!((head.code, &head.bytes[..]), (StatusCode::OK, &b""[..]));
    }
}

/// Who is behind the proxy compresses what they say, and a page that was is not compressed again.
#[tokio::test(start_paused = true)]
async fn a_long_page_comes_through_the_proxy_as_it_is_encoded() {
    let (api, _) = with_pods().await;
    let path = format!("{PODS}/a:8080/proxy/long");
    let page = api.send(Method::GET, &path, &[("accept-encoding", "gzip")], "").await;
    assert!(!page.headers.contains_key("content-encoding"), "{:?}", page.headers);
    assert_eq!(page.headers["content-length"], page.bytes.len().to_string());
    assert!(page.bytes.starts_with(format!("<a href=\"{PODS}/a:8080/proxy/x\">").as_bytes()));
}

#[tokio::test(start_paused = true)]
async fn a_proxy_says_who_does_not_answer() {
    let (api, _) = with_pods().await;
    let refused =
        async |name: &str| api.get(&format!("{PODS}/{name}/proxy/")).await.refused(503, "ServiceUnavailable");
    assert_eq!(
        refused("a:81").await,
        "error trying to reach service: dial tcp4 127.0.0.1:81: connect: connection refused"
    );
    assert_eq!(
        refused("b").await,
        "error trying to reach service: dial tcp 10.1.1.1:80: connect: connection refused"
    );
    let plain = refused("https:a:80").await;
    assert!(plain.starts_with("error trying to reach service: received corrupt message"), "{plain}");
    let message = api.get(&format!("{PODS}/a:b:c:d/proxy/")).await.refused(400, "BadRequest");
    assert_eq!(message, "invalid pod request \"a:b:c:d\"");
    api.get(&format!("{PODS}/gone:80/proxy/")).await.refused(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn a_request_goes_through_to_an_endpoint_of_a_service() {
    let (api, _) = with_pods().await;
    let ports = json!([{"name": "web", "port": 90, "targetPort": 80}, {"name": "other", "port": 91}]);
    api.post(SERVICES, json!({"metadata": {"name": "s"}, "spec": {"ports": ports}})).await.expect(201);
    let address = |pod: &str| json!({"ip": "10.1.1.1", "targetRef": {"kind": "Pod", "namespace": "default", "name": pod}});
    let subsets =
        json!([{"addresses": [address("b"), address("a")], "ports": [{"name": "web", "port": 80}]}]);
    let endpoints = json!({"metadata": {"name": "s"}, "subsets": subsets});
    api.post("/api/v1/namespaces/default/endpoints", endpoints).await.expect(201);
    for port in ["web", "90"] {
        let answer = api.get(&format!("{SERVICES}/s:{port}/proxy/x")).await;
        assert_eq!(answer.code, StatusCode::OK, "{:?}", answer.bytes);
        assert!(answer.bytes.starts_with(b"GET /x "), "{:?}", answer.bytes);
    }
    let asked = api.send(Method::OPTIONS, &format!("{SERVICES}/s:web/proxy/x"), &[], "").await;
    assert!(asked.bytes.starts_with(b"OPTIONS /x "), "{:?}", asked.bytes);
    let unknown = api.get(&format!("{SERVICES}/s:92/proxy/x")).await.refused(503, "ServiceUnavailable");
    assert_eq!(unknown, "no service port 92 found for service \"s\"");
    let empty = api.get(&format!("{SERVICES}/s:other/proxy/x")).await.refused(503, "ServiceUnavailable");
    assert_eq!(empty, "no endpoints available for service \"s:other\"");
}
