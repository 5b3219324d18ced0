//! Certificates that are signed, and tokens that Secrets hold.

use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::authentication::v1::TokenReview;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest as Csr;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};

use crate::support::World;

const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const KUBELET: &str = "kubernetes.io/kube-apiserver-client-kubelet";

fn request(organization: &str, name: &str) -> ByteString {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, organization);
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().expect("a key");
    ByteString(params.serialize_request(&key).expect("a request").pem().expect("PEM").into_bytes())
}

/// The request after the cluster has come to rest.
async fn asked(world: &World, signer: &str, request: ByteString) -> Csr {
    let spec =
        json!({"signerName": signer, "request": request, "usages": ["digital signature", "client auth"]});
    let csr = kubewright_objects::from_value(json!({"metadata": {"name": "csr"}, "spec": spec}))
        .expect("a request");
    csrs(world).create(&PostParams::default(), &csr).await.expect("created");
    world.settle().await;
    csrs(world).get("csr").await.expect("the request")
}

fn csrs(world: &World) -> Api<Csr> {
    Api::all(world.client.clone())
}

fn certificate(csr: &Csr) -> Option<String> {
    let certificate = csr.status.as_ref()?.certificate.as_ref()?;
    Some(String::from_utf8_lossy(&certificate.0).into_owned())
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_gets_its_certificate_and_the_request_goes_after_an_hour() {
    let world = World::start().await;
    let csr = asked(&world, KUBELET, request("system:nodes", "system:node:a")).await;
    assert!(certificate(&csr).expect("signed").starts_with("-----BEGIN CERTIFICATE-----\n"));
    let conditions = csr.status.and_then(|status| status.conditions).unwrap_or_default();
    let approved: Vec<_> = conditions.iter().map(|one| (&*one.type_, one.message.as_deref())).collect();
    let message = "Auto approving kubelet client certificate after SubjectAccessReview.";
    assert_eq!(approved, [("Approved", Some(message))]);
    tokio::time::sleep(Duration::from_secs(3590)).await;
    assert!(csrs(&world).get_opt("csr").await.expect("an answer").is_some());
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(csrs(&world).get_opt("csr").await.expect("an answer").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_client_gets_a_certificate_when_somebody_approves_and_nobody_else_does() {
    let world = World::start().await;
    let mut csr = asked(&world, CLIENT, request("team", "ada")).await;
    assert_eq!(certificate(&csr), None);
    let approval = json!({"conditions": [{"type": "Approved", "status": "True", "reason": "Test"}]});
    csr.status = Some(kubewright_objects::from_value(approval).expect("a status"));
    let _: Csr = csrs(&world)
        .replace_subresource("approval", "csr", &PostParams::default(), &csr)
        .await
        .expect("approved");
    world.settle().await;
    assert!(certificate(&csrs(&world).get("csr").await.expect("the request")).is_some());
}

/// Who the API server says has this token.
async fn user(world: &World, token: &str) -> Option<String> {
    let review: TokenReview =
        kubewright_objects::from_value(json!({"spec": {"token": token}})).expect("a review");
    let reviews = Api::<TokenReview>::all(world.client.clone());
    let status = reviews.create(&PostParams::default(), &review).await.expect("an answer").status?;
    status.user.and_then(|user| user.username).filter(|_| status.authenticated == Some(true))
}

async fn token(world: &World) -> Option<String> {
    world.settle().await;
    let secret = world.api::<Secret>().get_opt("robot-token").await.expect("an answer")?;
    let token = secret.data?.remove("token")?;
    Some(String::from_utf8_lossy(&token.0).into_owned())
}

fn secret(annotations: &Value) -> Value {
    json!({"type": "kubernetes.io/service-account-token",
        "metadata": {"name": "robot-token", "annotations": annotations}})
}

#[tokio::test(start_paused = true)]
async fn a_secret_holds_a_good_token_until_it_or_its_account_goes() {
    let world = World::start().await;
    let robot = json!({"metadata": {"name": "robot"}, "secrets": [{"name": "robot-token"}]});
    world.create::<ServiceAccount>(robot).await;
    let named = json!({"kubernetes.io/service-account.name": "robot"});
    world.create::<Secret>(secret(&named)).await;
    let first = token(&world).await.expect("a token");
    let robot = Some("system:serviceaccount:default:robot".to_owned());
    assert_eq!(user(&world, &first).await, robot);

    world.merge::<Secret>("robot-token", json!({"data": {"token": null}})).await;
    let second = token(&world).await.expect("a token");
    assert_eq!(user(&world, &second).await, robot, "there is one again");

    let accounts = world.api::<ServiceAccount>();
    world.api::<Secret>().delete("robot-token", &DeleteParams::default()).await.expect("deleted");
    assert_eq!(user(&world, &second).await, None);
    world.settle().await;
    assert_eq!(accounts.get("robot").await.expect("the account").secrets.unwrap_or_default(), []);

    world.create::<Secret>(secret(&named)).await;
    assert!(token(&world).await.is_some());
    accounts.delete("robot", &DeleteParams::default()).await.expect("deleted");
    assert_eq!(token(&world).await, None);
    assert!(world.names::<Secret>().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_secret_of_an_account_that_is_not_there_goes() {
    let world = World::start().await;
    let other =
        json!({"kubernetes.io/service-account.name": "default", "kubernetes.io/service-account.uid": "9"});
    world.create::<Secret>(secret(&other)).await;
    world.settle().await;
    assert!(world.names::<Secret>().await.is_empty());
}
