//! What is behind a Service, over sockets: the condition says what is missing, and requests say it, too.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use kubewright_serve::authority::Authority;
use kubewright_spec::Version;
use kubewright_world::World;
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::{API_SERVICES, api_service, condition, front};
use crate::support::Api;

const SERVICES: &str = "/api/v1/namespaces/default/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

async fn started(version: Version) -> Api {
    let world = World::real();
    let authority = Authority::new(&world).expect("there is entropy");
    let api = front(world, version, &authority).await;
    api.post("/api/v1/namespaces", json!({"metadata": {"name": "default"}})).await;
    api
}

/// An API server at a port of this machine that says the same to everybody; where it is, and its certificate.
async fn serve(code: u16) -> (SocketAddr, String) {
    let params = CertificateParams::new(["api.default.svc".to_owned()]).expect("a good name");
    let key = KeyPair::generate().expect("entropy");
    let certificate = params.self_signed(&key).expect("a good certificate");
    let tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("TLS 1.2 and 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key.into())
        .expect("a good key");
    let tls = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.64.0.77:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let tls = tls.clone();
            tokio::spawn(async move {
                let Ok(stream) = tls.accept(stream).await else { return };
                let answer = service_fn(move |_: Request<Incoming>| async move {
                    let answer = Response::builder().status(code).body(Full::new(Bytes::from_static(b"{}")));
                    Ok::<_, hyper::Error>(answer.expect("a good response"))
                });
                let server = auto::Builder::new(TokioExecutor::new());
                let _ = server.serve_connection(TokioIo::new(stream), answer).await;
            });
        }
    });
    (address, certificate.pem())
}

fn service() -> Value {
    let ports = json!([{"name": "https", "port": 443}]);
    json!({"metadata": {"name": "api"}, "spec": {"clusterIP": "10.0.0.77", "ports": ports}})
}

fn slice(address: SocketAddr, ready: bool) -> Value {
    json!({
        "metadata": {"name": "api", "labels": {"kubernetes.io/service-name": "api"}},
        "addressType": "IPv4",
        "ports": [{"name": "https", "port": address.port()}],
        "endpoints": [{"addresses": [address.ip().to_string()], "conditions": {"ready": ready}}]
    })
}

async fn refused(api: &Api, why: &str) {
    let answer = api.get("/apis/example.com/v1/things").await;
    let text = String::from_utf8_lossy(&answer.bytes).into_owned();
    assert_eq!((answer.code.as_u16(), text.as_str()), (503, why));
    assert_eq!(answer.headers["content-type"], "text/plain; charset=utf-8");
}

#[tokio::test]
async fn the_condition_says_what_is_missing_until_the_server_answers() {
    let api = started(Version::DEFAULT).await;
    let (address, certificate) = serve(200).await;
    let mut object = api_service("v1");
    object["spec"]["insecureSkipTLSVerify"] = false.into();
    object["spec"]["caBundle"] = STANDARD.encode(certificate).into();
    api.post(API_SERVICES, object).await.expect(201);
    let name = "v1.example.com";
    let missing = condition(&api, name, "ServiceNotFound").await;
    assert_eq!(missing["message"], "service/api in \"default\" is not present");
    refused(&api, "service unavailable\n").await;
    let mut other = service();
    other["spec"]["ports"][0]["port"] = 80.into();
    api.post(SERVICES, other).await.expect(201);
    let missing = condition(&api, name, "ServicePortError").await;
    assert_eq!(missing["message"], "service/api in \"default\" is not listening on port 443");
    api.patch(&format!("{SERVICES}/api"), "merge", json!({"spec": service()["spec"]})).await.expect(200);
    let missing = condition(&api, name, "EndpointsNotFound").await;
    assert_eq!(missing["message"], "cannot find endpointslices for service/api in \"default\"");
    api.post(SLICES, slice(address, false)).await.expect(201);
    condition(&api, name, "MissingEndpoints").await;
    let ready = json!({"endpoints": slice(address, true)["endpoints"]});
    api.patch(&format!("{SLICES}/api"), "merge", ready).await.expect(200);
    let passed = condition(&api, name, "Passed").await;
    assert_eq!((&passed["status"], &passed["message"]), (&json!("True"), &json!("all checks passed")));
    api.get("/apis/example.com/v1/things").await.expect(200);
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let path = format!("{API_SERVICES}/{name}");
    let printed = api.send(http::Method::GET, &path, &[("accept", table)], "").await.expect(200);
    assert_eq!(printed["rows"][0]["cells"][1], "default/api");
    assert_eq!(printed["rows"][0]["cells"][2], "True");
}

#[tokio::test]
async fn a_server_that_refuses_is_not_available() {
    let api = started(Version::DEFAULT).await;
    let (address, _) = serve(503).await;
    api.post(SERVICES, service()).await.expect(201);
    api.post(SLICES, slice(address, true)).await.expect(201);
    api.post(API_SERVICES, api_service("v1")).await.expect(201);
    let failed = condition(&api, "v1.example.com", "FailedDiscoveryCheck").await;
    let url = "https://10.0.0.77:443/apis/example.com/v1";
    assert_eq!(
        failed["message"],
        format!("failing or missing response from {url}: bad status from {url}: 503")
    );
    refused(&api, "service unavailable\n").await;
}

#[tokio::test]
async fn nobody_at_the_address_is_told_as_go_tells_it() {
    let api = started(Version::DEFAULT).await;
    let nobody = SocketAddr::from(([127, 64, 0, 77], 1));
    api.post(SERVICES, service()).await.expect(201);
    api.post(SLICES, slice(nobody, true)).await.expect(201);
    api.post(API_SERVICES, api_service("v1")).await.expect(201);
    let failed = condition(&api, "v1.example.com", "FailedDiscoveryCheck").await;
    let url = "https://10.0.0.77:443/apis/example.com/v1";
    let why = format!(
        "failing or missing response from {url}: Get \"{url}\": dial tcp 127.64.0.77:1: connect: connection refused"
    );
    assert_eq!(failed["message"], why);
}

#[tokio::test]
async fn a_certificate_that_the_bundle_does_not_vouch_for_is_found_out_by_requests_and_since_1_36_by_the_condition()
 {
    for (version, found) in [(Version::V1_35, "Passed"), (Version::V1_36, "FailedDiscoveryCheck")] {
        let api = started(version).await;
        let ((address, _), (_, other)) = (serve(200).await, serve(200).await);
        api.post(SERVICES, service()).await.expect(201);
        api.post(SLICES, slice(address, true)).await.expect(201);
        let mut object = api_service("v1");
        object["spec"]["insecureSkipTLSVerify"] = false.into();
        object["spec"]["caBundle"] = STANDARD.encode(other).into();
        api.post(API_SERVICES, object).await.expect(201);
        let condition = condition(&api, "v1.example.com", found).await;
        let unknown = "tls: failed to verify certificate: x509: certificate signed by unknown authority";
        if found == "Passed" {
            let answer = api.get("/apis/example.com/v1/things").await;
            let text = String::from_utf8_lossy(&answer.bytes).into_owned();
            assert!(text.starts_with(&format!("error trying to reach service: {unknown}")), "{text}");
            assert_eq!(answer.code, 503);
        } else {
            let text = condition["message"].as_str().unwrap_or_default();
            assert!(text.contains(unknown), "{text}");
        }
    }
}
