//! Webhooks behind services: which of their endpoints are called, and what is told of those that cannot be.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::{NAMESPACE, started};
use crate::support::Api;
use crate::support::kubelet::Fake;

const HOOK: &str = "hook.example.com";

/// A webhook that refuses everything, listening at `address`; where it does, and its certificate.
async fn refuse_all(address: &str) -> (SocketAddr, String) {
    let params = CertificateParams::new(["hook.default.svc".to_owned()]).expect("a good name");
    let key = KeyPair::generate().expect("entropy");
    let certificate = params.self_signed(&key).expect("a good certificate");
    let tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("TLS 1.2 and 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key.into())
        .expect("a good key");
    let tls = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind(address).await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(stream) = tls.accept(stream).await else { continue };
            let served = auto::Builder::new(TokioExecutor::new());
            tokio::spawn(async move {
                let served = served.serve_connection(TokioIo::new(stream), service_fn(refuse));
                let _ = served.await;
            });
        }
    });
    (address, certificate.pem())
}

async fn refuse(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    let response =
        json!({"uid": review["request"]["uid"], "allowed": false, "status": {"message": "it was asked"}});
    let review =
        json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response});
    Ok(Response::new(Full::new(review.to_string().into())))
}

/// An endpoint at an address, a pod on a node or none, in this state.
fn endpoint(address: &str, pod: Option<&str>, conditions: &Value) -> Value {
    let mut endpoint = json!({"addresses": [address], "conditions": conditions});
    if let Some(pod) = pod {
        endpoint["targetRef"] = json!({"kind": "Pod", "name": pod, "namespace": "default"});
    }
    endpoint
}

fn ready() -> Value {
    json!({"ready": true, "serving": true, "terminating": false})
}

/// A server with the pods `real`, on a node whose kubelet can be reached, and `simulated`, on one without; and the service
/// `hook`, whose port `https` leads to nothing yet.
async fn with_service() -> Api {
    let api = started().await;
    api.server.kubelets().register("process", Arc::new(Fake::default()));
    for (pod, node) in [("real", "process"), ("simulated", "node-0")] {
        let pod = json!({"metadata": {"name": pod}, "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}});
        api.post(&format!("{NAMESPACE}/pods"), pod).await.expect(201);
    }
    let service = json!({"metadata": {"name": "hook"}, "spec": {"clusterIP": "10.0.0.166",
        "ports": [{"name": "https", "port": 443, "targetPort": "webhook"}, {"name": "other", "port": 80}]}});
    api.post(&format!("{NAMESPACE}/services"), service).await.expect(201);
    api
}

/// Lets these endpoints stand behind the service, in a slice for each.
async fn lead(api: &Api, port: u16, endpoints: &[Value]) {
    for (number, endpoint) in endpoints.iter().enumerate() {
        let address = endpoint["addresses"][0].as_str().unwrap_or_default();
        let slice = json!({
            "metadata": {"name": format!("hook-{number}"), "labels": {"kubernetes.io/service-name": "hook"}},
            "addressType": if address.contains(':') { "IPv6" } else { "IPv4" },
            "ports": [{"name": "other", "port": 1}, {"name": "https", "port": port}], "endpoints": [endpoint]
        });
        api.post("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", slice).await.expect(201);
    }
}

/// Configures the webhook for config maps, and creates one: what comes of that.
async fn ask(api: &Api, policy: &str, bundle: &str) -> (u16, String) {
    let config =
        json!({"service": {"namespace": "default", "name": "hook"}, "caBundle": STANDARD.encode(bundle)});
    let hook = json!({"name": HOOK, "clientConfig": config, "failurePolicy": policy,
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
        "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 5});
    let configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let object = json!({"metadata": {"name": "hook"}, "webhooks": [hook]});
    api.post(configurations, object).await.expect(201);
    let made = api.post(&format!("{NAMESPACE}/configmaps"), json!({"metadata": {"name": "m"}})).await;
    let message = made.body["message"].as_str().unwrap_or_default().to_owned();
    (made.code.as_u16(), message)
}

fn asked() -> (u16, String) {
    (400, format!("admission webhook {HOOK:?} denied the request: it was asked"))
}

fn not_asked(why: &str) -> (u16, String) {
    let call = "failed to call webhook: Post \"https://hook.default.svc:443/?timeout=5s\"";
    (500, format!("Internal error occurred: failed calling webhook {HOOK:?}: {call}: {why}"))
}

#[tokio::test]
async fn a_pod_that_runs_is_called_where_it_listens() {
    let api = with_service().await;
    let (address, bundle) = refuse_all("127.64.0.23:0").await;
    lead(&api, address.port(), &[endpoint("127.64.0.23", Some("real"), &ready())]).await;
    assert_eq!(ask(&api, "Fail", &bundle).await, asked());
}

#[tokio::test]
async fn an_endpoint_that_refuses_makes_way_for_the_next_and_a_simulated_pod_for_all() {
    let api = with_service().await;
    let (address, bundle) = refuse_all("127.64.0.24:0").await;
    let endpoints = [
        endpoint("10.1.2.3", Some("simulated"), &ready()),
        endpoint("127.64.0.98", Some("real"), &ready()),
        endpoint("127.64.0.99", Some("real"), &json!({"ready": false})),
        endpoint("127.64.0.24", None, &ready()),
    ];
    lead(&api, address.port(), &endpoints).await;
    assert_eq!(ask(&api, "Fail", &bundle).await, asked());
}

#[tokio::test]
async fn a_pod_that_ends_is_called_as_long_as_it_serves_and_no_other_is_ready() {
    let api = with_service().await;
    let (address, bundle) = refuse_all("127.64.0.25:0").await;
    let ending = json!({"ready": false, "serving": true, "terminating": true});
    lead(&api, address.port(), &[endpoint("127.64.0.25", Some("real"), &ending)]).await;
    assert_eq!(ask(&api, "Fail", &bundle).await, asked());
}

#[tokio::test]
async fn a_pod_that_does_not_listen_refuses_the_connection() {
    let api = with_service().await;
    lead(&api, 1, &[endpoint("127.64.0.26", Some("real"), &ready())]).await;
    let why = "dial tcp 127.64.0.26:1: connect: connection refused";
    assert_eq!(ask(&api, "Fail", "").await, not_asked(why));
}

#[tokio::test(start_paused = true)]
async fn who_calls_a_simulated_pod_is_told_what_it_is() {
    let api = with_service().await;
    lead(&api, 8443, &[endpoint("10.1.2.3", Some("simulated"), &ready())]).await;
    let why = "dial tcp 10.0.0.166:443: connect: connection refused: pod \"simulated\" is simulated, nothing listens in it (run pods as processes with \"kubewright up --runtime process\", or lead to the webhook by a URL or an EndpointSlice of your own)";
    assert_eq!(ask(&api, "Fail", "").await, not_asked(why));
}

#[tokio::test(start_paused = true)]
async fn a_service_without_endpoints_refuses_connections_in_kubernetes_words() {
    let api = with_service().await;
    lead(&api, 8443, &[endpoint("127.64.0.27", Some("real"), &json!({"ready": false}))]).await;
    assert_eq!(
        ask(&api, "Fail", "").await,
        not_asked("dial tcp 10.0.0.166:443: connect: connection refused")
    );
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_fails_open_is_counted() {
    const COUNT: &str = "apiserver_admission_webhook_fail_open_count";
    let api = with_service().await;
    lead(&api, 8443, &[endpoint("10.1.2.3", Some("simulated"), &ready())]).await;
    let metrics = async || String::from_utf8(api.get("/metrics").await.bytes.to_vec()).expect("text");
    assert!(!metrics().await.contains(COUNT));
    assert_eq!(ask(&api, "Ignore", "").await.0, 201);
    let line = format!("{COUNT}{{name=\"{HOOK}\",type=\"validating\"}} 1\n");
    assert!(metrics().await.contains(&line), "{}", metrics().await);

    // Now each family has a value.
    let found = kubewright_reference::families(&metrics().await);
    let made_by = "cargo test -p kubewright-apiserver --test it counted";
    kubewright_reference::check_part(
        "metrics.md",
        "api-server",
        made_by,
        &kubewright_reference::metric_table(&found),
    );
}

/// An engine that is served by nobody reaches no pod.
#[tokio::test(start_paused = true)]
async fn pods_are_reached_by_the_kubelets_that_a_server_has() {
    let api = with_service().await;
    lead(&api, 1, &[endpoint("127.64.0.28", Some("real"), &ready())]).await;
    api.server.engine().webhooks().reach_pods_of(|_| false);
    let (code, why) = ask(&api, "Fail", "").await;
    assert_eq!((code, why.contains("pod \"real\" is simulated")), (500, true), "{why}");
}
