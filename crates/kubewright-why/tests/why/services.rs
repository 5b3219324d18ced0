//! Services, Ingresses, requests for certificates.

use kubewright_why::Cause;
use serde_json::{Value, json};

use crate::lab::{Lab, annotated, pod, says};

fn service(spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "default"}, "spec": spec})
}

#[tokio::test(start_paused = true)]
async fn a_service_whose_selector_matches_nothing_says_so() {
    let lab = Lab::start(1).await;
    lab.create(pod(json!({}))).await;
    lab.create(service(json!({"selector": {"app": "wbe"}, "ports": [{"port": 80}]}))).await;
    says(&lab.finds("svc/s", Cause::ServiceSelectsNothing).await, &["wbe", "--show-labels"]);
}

#[tokio::test(start_paused = true)]
async fn a_service_whose_pods_are_not_ready_shows_why() {
    let lab = Lab::start(1).await;
    lab.create(annotated(json!({"kubewright.dev/waiting": "ErrImagePull"}), json!({}))).await;
    lab.create(service(json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}))).await;
    says(&lab.finds("svc/s", Cause::ServicePodsNotReady).await, &["none of its 1 pods is ready"]);
    lab.finds("svc/s", Cause::ImagePull).await;
}

#[tokio::test(start_paused = true)]
async fn a_port_that_no_pod_names_is_found() {
    let lab = Lab::start(1).await;
    let ports = json!([{"name": "c", "image": "web:1", "ports": [{"name": "http", "containerPort": 80}]}]);
    lab.create(pod(json!({"containers": ports}))).await;
    lab.create(service(json!({"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "htpp"}]})))
        .await;
    says(&lab.finds("svc/s", Cause::ServicePortMissing).await, &["htpp", "they have http"]);
}

#[tokio::test(start_paused = true)]
async fn a_service_without_selector_needs_endpoints() {
    let lab = Lab::start(1).await;
    lab.create(service(json!({"ports": [{"port": 80}]}))).await;
    says(&lab.finds("svc/s", Cause::ServiceNoEndpoints).await, &["kubernetes.io/service-name=s"]);
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_nobody_makes_is_pending() {
    let lab = Lab::start(1).await;
    lab.create(pod(json!({}))).await;
    lab.create(service(json!({"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80}]})))
        .await;
    says(&lab.finds("svc/s", Cause::LoadBalancerPending).await, &["MetalLB"]);
}

#[tokio::test(start_paused = true)]
async fn an_ingress_names_the_service_that_is_missing() {
    let lab = Lab::start(1).await;
    let backend = json!({"service": {"name": "web", "port": {"number": 80}}});
    let ingress = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i", "namespace": "default"},
        "spec": {"rules": [{"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}]}});
    lab.create(ingress).await;
    says(&lab.finds("ing/i", Cause::BackendMissing).await, &["service web does not exist"]);
}

#[tokio::test(start_paused = true)]
async fn a_request_for_a_certificate_waits_is_denied_or_is_not_signed() {
    let lab = Lab::with("").await;
    let key = rcgen::KeyPair::generate().expect("a key");
    let pem = rcgen::CertificateParams::default()
        .serialize_request(&key)
        .and_then(|one| one.pem())
        .expect("a request");
    let request = |name: &str| {
        json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
            "spec": {"request": base64(&pem), "signerName": "example.org/signer", "usages": ["client auth"]}})
    };
    for (name, kind) in [("pending", ""), ("denied", "Denied"), ("approved", "Approved")] {
        let made = lab.create(request(name)).await;
        if !kind.is_empty() {
            lab.decide(&made, kind).await;
        }
    }
    says(&lab.finds("csr/pending", Cause::RequestPending).await, &["kubectl certificate approve pending"]);
    says(&lab.finds("csr/denied", Cause::RequestDenied).await, &["was denied: not today"]);
    says(
        &lab.finds("csr/approved", Cause::RequestNotIssued).await,
        &["example.org/signer has not signed it"],
    );
}

fn base64(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(text)
}
