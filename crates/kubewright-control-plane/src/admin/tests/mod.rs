//! Each fault and each path as a client sees it.

mod paths;
mod reconciles;
mod requests;
mod watches;

use http::{Request, StatusCode};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use kube::client::Body;
use serde_json::{Value, json};

use super::{Admin, ApiFault, Match, Rule};
use crate::{ControlPlane, User};

/// A cluster without controllers whose clients pass an admin.
async fn cluster() -> ControlPlane {
    ControlPlane::builder().admin(true).start().await.unwrap()
}

fn admin(cluster: &ControlPlane) -> &Admin {
    cluster.admin().expect("it was asked for")
}

fn maps(cluster: &ControlPlane) -> Api<ConfigMap> {
    Api::default_namespaced(cluster.client())
}

fn map(name: &str) -> ConfigMap {
    kubewright_objects::from_value(json!({"metadata": {"name": name}})).unwrap()
}

async fn create(cluster: &ControlPlane, name: &str) -> ConfigMap {
    maps(cluster).create(&PostParams::default(), &map(name)).await.unwrap()
}

/// Reads a rule as it is posted.
fn rule(json: &Value) -> Rule {
    Rule::read(json.to_string().as_bytes()).expect("a rule")
}

/// Sends a request as somebody, and gives the answer's status, one header, and the body.
async fn send(
    cluster: &ControlPlane,
    user: User,
    request: http::request::Builder,
    body: &Value,
) -> (StatusCode, String, String) {
    use http_body_util::BodyExt;
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let response = cluster.client_as(user).send(request.body(Body::from(body)).unwrap()).await.unwrap();
    let (status, header) = (response.status(), response.headers().get("retry-after").cloned());
    let text = response.into_body().collect().await.unwrap().to_bytes();
    let header = header.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
    (status, header, String::from_utf8_lossy(&text).into_owned())
}

fn master() -> User {
    User::new("root", ["system:masters"])
}

fn code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        other => panic!("no answer of the API: {other}"),
    }
}
