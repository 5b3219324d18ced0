//! An operator's webhooks behind the embedded control plane.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request as HttpRequest};
use http_body_util::BodyExt;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, CustomResource};
use kubewright_cluster::Cluster;
use kubewright_runtime::webhook::{
    Authentication, Authenticator, Certificates, Conversion, Defaulter, Denied, FailurePolicy, FieldError,
    Lifetimes, Operation, Reach, Registration, Request, Server, Service, TokenRequest, ValidationResult,
    Validator, Warnings, Webhook, Webhooks,
};
use kubewright_runtime::{Error, Key, ListOptions, Manager, World};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

const HOST: &str = "hooks.default.svc";
const HOUR: Duration = Duration::from_secs(3600);

/// Gives every map an owner, and notes who asked.
#[derive(Clone, Default)]
struct Owner {
    dry_runs: Arc<Mutex<Vec<bool>>>,
}

impl Defaulter<ConfigMap> for Owner {
    async fn apply_defaults(&self, request: &Request, mut map: ConfigMap) -> Result<ConfigMap, Denied> {
        self.dry_runs.lock().push(request.dry_run);
        let labels = map.metadata.labels.get_or_insert_default();
        labels.entry("owner".to_owned()).or_insert_with(|| request.user().to_owned());
        Ok(map)
    }
}

/// `size` is a number below ten and only grows; what is locked is not deleted.
struct Sizes;

fn size(map: &ConfigMap) -> Result<Option<u64>, Denied> {
    let Some(text) = map.data.as_ref().and_then(|data| data.get("size")) else { return Ok(None) };
    let size = text.parse().ok().filter(|size| *size < 10);
    let wrong =
        || Denied::invalid(map, &[FieldError::invalid("data.size", text.clone(), "must be below 10")]);
    size.map(Some).ok_or_else(wrong)
}

impl Validator<ConfigMap> for Sizes {
    async fn validate_create(&self, _: &Request, map: &ConfigMap) -> ValidationResult {
        match map.metadata.name.as_deref() {
            Some("panic") => panic!("out of ideas"),
            Some("slow") => tokio::time::sleep(Duration::from_secs(60)).await,
            _ => {}
        }
        Ok(match size(map)? {
            Some(_) => Warnings::none(),
            None => Warnings::none().and("data.size is not set: 1 is meant"),
        })
    }

    async fn validate_update(&self, _: &Request, old: &ConfigMap, new: &ConfigMap) -> ValidationResult {
        match size(new)? < size(old)? {
            true => Err(Denied::forbidden("a map does not shrink").warning("think again")),
            false => Ok(Warnings::none()),
        }
    }

    async fn validate_delete(&self, _: &Request, map: &ConfigMap) -> ValidationResult {
        match map.data.as_ref().is_some_and(|data| data.contains_key("locked")) {
            true => Err(Denied::forbidden("it is locked")),
            false => Ok(Warnings::none()),
        }
    }
}

fn sizes() -> Webhook {
    Webhook::validating::<ConfigMap>(Sizes).operations([
        Operation::Create,
        Operation::Update,
        Operation::Delete,
    ])
}

fn in_process(webhooks: Webhooks) -> Server {
    Server::new(webhooks).in_process(Reach::service("default", "hooks"))
}

/// Runs a server in the cluster, and mounts it.
async fn run(cluster: &Cluster, server: Server) -> (Service, JoinHandle<Result<(), Error>>) {
    let service = server.service();
    cluster.mount_webhooks(HOST, service.clone());
    let running = tokio::spawn(server.run(cluster.client(), cluster.world().clone(), cluster.shutdown()));
    cluster.settle().await;
    (service, running)
}

async fn cluster() -> Cluster {
    Cluster::builder().controllers("").nodes(0).start().await.unwrap()
}

fn map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Code, body and warnings, as kubectl sees them.
async fn send(client: &Client, method: Method, path: &str, body: &Value) -> (u16, Value, Vec<String>) {
    let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = HttpRequest::builder().method(method).uri(path).header("content-type", kind);
    let answer = client.send(request.body(body.into()).unwrap()).await.unwrap();
    let (parts, body) = answer.into_parts();
    let warnings = parts.headers.get_all("warning").iter().map(|text| text.to_str().unwrap().to_owned());
    let body = body.collect().await.unwrap().to_bytes();
    (parts.status.as_u16(), serde_json::from_slice(&body).unwrap(), warnings.collect())
}

#[tokio::test(start_paused = true)]
async fn objects_are_defaulted_and_checked_before_they_are_stored() {
    let (cluster, owner) = (cluster().await, Owner::default());
    let webhooks = Webhooks::new("test").add(Webhook::defaulting::<ConfigMap>(owner.clone())).add(sizes());
    let (service, _) = run(&cluster, in_process(webhooks)).await;
    let client = cluster.client();

    let (code, made, warnings) = send(&client, Method::POST, MAPS, &map("a", &json!({"size": "3"}))).await;
    assert_eq!((code, &made["metadata"]["labels"]["owner"]), (201, &json!("kubernetes-admin")), "{made}");
    assert!(warnings.is_empty());
    let (_, _, warnings) = send(&client, Method::POST, MAPS, &map("b", &json!({"locked": ""}))).await;
    assert_eq!(warnings, [r#"299 - "data.size is not set: 1 is meant""#]);

    let (code, refused, _) = send(&client, Method::POST, MAPS, &map("c", &json!({"size": "x"}))).await;
    let denied = "admission webhook \"validate.v1.configmaps.core\" denied the request: ";
    let why = r#"ConfigMap "c" is invalid: data.size: Invalid value: "x": must be below 10"#;
    assert_eq!((code, &refused["reason"]), (422, &json!("Invalid")));
    assert_eq!(refused["message"], format!("{denied}{why}"));
    assert_eq!(refused["details"]["causes"][0]["field"], "data.size");

    let one = format!("{MAPS}/a");
    let smaller = json!({"data": {"size": "2"}});
    let (code, refused, warnings) = send(&client, Method::PATCH, &one, &smaller).await;
    assert_eq!((code, &refused["message"]), (403, &json!(format!("{denied}a map does not shrink"))));
    assert_eq!(warnings, [r#"299 - "think again""#]);
    let (code, _, _) = send(&client, Method::PATCH, &one, &json!({"data": {"size": "4"}})).await;
    assert_eq!(code, 200);

    let (code, refused, _) = send(&client, Method::DELETE, &format!("{MAPS}/b"), &Value::Null).await;
    assert_eq!((code, &refused["message"]), (403, &json!(format!("{denied}it is locked"))));
    let (code, _, _) = send(&client, Method::DELETE, &one, &Value::Null).await;
    assert_eq!(code, 200);

    owner.dry_runs.lock().clear();
    let dry = format!("{MAPS}?dryRun=All");
    let (code, made, _) = send(&client, Method::POST, &dry, &map("d", &json!({"size": "1"}))).await;
    assert_eq!((code, &made["metadata"]["labels"]["owner"]), (201, &json!("kubernetes-admin")));
    assert_eq!(*owner.dry_runs.lock(), [true]);
    let counts = service.metrics().read();
    assert_eq!(counts.webhooks["/validate--v1-configmap"].requests, BTreeMap::from([(200, 8), (500, 0)]));
    cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_becomes_of_a_request_when_a_handler_fails_is_the_policys_choice() {
    for (policy, expected) in [(FailurePolicy::Fail, 500), (FailurePolicy::Ignore, 201)] {
        let cluster = cluster().await;
        let webhook = sizes().failure_policy(policy).timeout(Duration::from_secs(5));
        let (service, _) = run(&cluster, in_process(Webhooks::new("test").add(webhook))).await;
        let client = cluster.client();
        let (code, said, _) = send(&client, Method::POST, MAPS, &map("panic", &json!({}))).await;
        assert_eq!(code, expected, "{said}");
        let failed = "Internal error occurred: failed calling webhook \"validate.v1.configmaps.core\": failed to call webhook: ";
        if expected == 500 {
            assert_eq!(said["message"], format!("{failed}panic: out of ideas [recovered]"));
        }
        let before = tokio::time::Instant::now();
        let (code, said, _) = send(&client, Method::POST, MAPS, &map("slow", &json!({}))).await;
        assert_eq!(code, expected, "{said}");
        assert_eq!(before.elapsed(), Duration::from_secs(5));
        let counts = service.metrics().read();
        assert_eq!((counts.panics, counts.webhooks["/validate--v1-configmap"].in_flight), (1, 0));
        cluster.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_is_down_is_no_reason_to_wait_where_it_is_ignored() {
    for (policy, expected) in [(FailurePolicy::Fail, 500), (FailurePolicy::Ignore, 201)] {
        let cluster = cluster().await;
        let webhooks = Webhooks::new("test").add(sizes().failure_policy(policy));
        let (reach, client) = (Reach::service("default", "nowhere"), cluster.client());
        webhooks.register(&client, &reach, kubewright_runtime::webhook::Trust::Later).await.unwrap();
        let (code, said, _) = send(&client, Method::POST, MAPS, &map("a", &json!({"size": "x"}))).await;
        assert_eq!(code, expected, "{said}");
        let revision = cluster.revision();
        webhooks.register(&client, &reach, kubewright_runtime::webhook::Trust::Later).await.unwrap();
        assert_eq!(cluster.revision(), revision, "what is there already is not written again");
        cluster.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn configurations_that_somebody_changes_or_deletes_are_put_right() {
    let cluster = cluster().await;
    let mut manager = Manager::new(cluster.client(), cluster.world().clone());
    let webhooks = Webhooks::new("test").add(sizes()).add(Webhook::defaulting::<ConfigMap>(Owner::default()));
    manager.serve(in_process(webhooks));
    let running = tokio::spawn(manager.run(cluster.shutdown()));
    cluster.settle().await;
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(cluster.client());
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(cluster.client());
    let wanted = validating.get("test-validating").await.unwrap().webhooks;

    let other = json!({"webhooks": []});
    validating.patch("test-validating", &PatchParams::default(), &Patch::Merge(&other)).await.unwrap();
    mutating.delete("test-mutating", &DeleteParams::default()).await.unwrap();
    cluster.settle().await;
    assert_eq!(validating.get("test-validating").await.unwrap().webhooks, wanted);
    assert!(mutating.get("test-mutating").await.is_ok());

    let revision = cluster.revision();
    tokio::time::sleep(24 * HOUR).await;
    assert_eq!(cluster.revision(), revision, "nothing is written while nothing changes");
    cluster.stop().await;
    running.await.unwrap().unwrap();
}

fn bundle(secret: &Secret) -> String {
    String::from_utf8(secret.data.as_ref().unwrap()["ca.crt"].0.clone()).unwrap()
}

async fn trusted(client: &Client) -> String {
    let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let webhooks = api.get("test-validating").await.unwrap().webhooks.unwrap();
    String::from_utf8(webhooks[0].client_config.ca_bundle.clone().unwrap().0).unwrap()
}

#[tokio::test(start_paused = true)]
async fn replicas_share_an_authority_that_is_followed_by_the_next_before_it_ends() {
    let cluster = cluster().await;
    let client = cluster.client();
    let lifetimes = Lifetimes { authority: 9 * HOUR, overlap: HOUR / 10, serving: 2 * HOUR };
    let replica = || {
        let webhooks = Webhooks::new("test").add(sizes().failure_policy(FailurePolicy::Ignore));
        let server = Server::new(webhooks)
            .bind(([127, 0, 0, 1], 0).into())
            .reached_at(Reach::service("default", "hooks"))
            .certificates(Certificates::in_secret("default", "ca").lifetimes(lifetimes));
        tokio::spawn(server.run(client.clone(), cluster.world().clone(), cluster.shutdown()))
    };
    let replicas = [replica(), replica()];
    cluster.settle().await;
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let first = bundle(&secrets.get("ca").await.unwrap());
    assert_eq!(first.matches("BEGIN CERTIFICATE").count(), 1);
    assert_eq!(trusted(&client).await, first);

    let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let overwritten = json!([{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]);
    let overwritten: json_patch::Patch = kubewright_objects::from_value(overwritten).unwrap();
    api.patch("test-validating", &PatchParams::default(), &Patch::Json::<()>(overwritten)).await.unwrap();
    cluster.settle().await;
    assert_eq!(trusted(&client).await, first, "somebody else's bundle is put right");

    tokio::time::sleep(6 * HOUR + HOUR / 20).await;
    let both = trusted(&client).await;
    assert_eq!(both.matches("BEGIN CERTIFICATE").count(), 2, "the next one is trusted before it is used");
    assert!(both.starts_with(&first));
    tokio::time::sleep(3 * HOUR).await;
    let second = trusted(&client).await;
    assert_eq!(second.matches("BEGIN CERTIFICATE").count(), 1);
    assert!(both.ends_with(&second) && second != first);
    assert_eq!(bundle(&secrets.get("ca").await.unwrap()), second);

    // Whoever loses the authority gets a new one.
    secrets.delete("ca", &DeleteParams::default()).await.unwrap();
    cluster.settle().await;
    assert_ne!(trusted(&client).await, second);
    cluster.stop().await;
    for replica in replicas {
        replica.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_bundle_alone_goes_into_configurations_of_somebody_else() {
    let cluster = cluster().await;
    let client = cluster.client();
    let webhooks = Webhooks::new("test").add(sizes().failure_policy(FailurePolicy::Ignore));
    let reach = Reach::service("default", "hooks");
    let mut installed =
        webhooks.manifests(&reach, kubewright_runtime::webhook::Trust::Later).validating.unwrap();
    let mine = installed.webhooks.as_mut().unwrap();
    let mut other = mine[0].clone();
    other.name = "somebody.elses.example.com".to_owned();
    other.client_config.service.as_mut().unwrap().path = Some("/elsewhere".to_owned());
    mine.push(other);
    let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    api.create(&PostParams::default(), &installed).await.unwrap();
    let server = Server::new(webhooks)
        .bind(([127, 0, 0, 1], 0).into())
        .reached_at(reach)
        .registration(Registration::CaBundle);
    tokio::spawn(server.run(client.clone(), cluster.world().clone(), cluster.shutdown()));
    cluster.settle().await;
    let found = api.get("test-validating").await.unwrap().webhooks.unwrap();
    assert!(found[0].client_config.ca_bundle.is_some());
    assert_eq!(found[1].client_config.ca_bundle, None, "nobody else's entry is touched");
    assert_eq!(found.len(), 2);
    cluster.stop().await;
}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize)]
#[kube(group = "example.com", version = "v1", kind = "Box", root = "BoxV1", schema = "disabled", namespaced)]
struct SpecV1 {
    size: String,
}

#[derive(CustomResource, Clone, Debug, PartialEq, Deserialize, Serialize)]
#[kube(group = "example.com", version = "v2", kind = "Box", root = "BoxV2", schema = "disabled", namespaced)]
struct SpecV2 {
    width: u32,
    height: u32,
    color: Option<String>,
}

impl From<BoxV2> for BoxV1 {
    fn from(new: BoxV2) -> Self {
        let size = format!("{}x{}", new.spec.width, new.spec.height);
        Self { metadata: new.metadata, spec: SpecV1 { size } }
    }
}

impl TryFrom<BoxV1> for BoxV2 {
    type Error = String;

    fn try_from(old: BoxV1) -> Result<Self, String> {
        let size = old.spec.size.split_once('x').and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
        let (width, height) = size.ok_or_else(|| format!("{:?} is no size", old.spec.size))?;
        Ok(Self { metadata: old.metadata, spec: SpecV2 { width, height, color: None } })
    }
}

/// With this version stored.
fn definition(stored: &str) -> CustomResourceDefinition {
    let version = |name: &str, spec: Value| {
        let schema =
            json!({"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}});
        json!({"name": name, "served": true, "storage": name == stored, "schema": {"openAPIV3Schema": schema}})
    };
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boxes.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "boxes", "singular": "box", "kind": "Box", "listKind": "BoxList"},
            "versions": [
                version("v1", json!({"size": text})),
                version("v2", json!({"width": number, "height": number, "color": text}))
            ]}
    });
    kubewright_objects::from_value(definition).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_kind_is_served_in_two_versions_whichever_is_stored() {
    let cluster = cluster().await;
    let client = cluster.client();
    let conversion = Conversion::hub::<BoxV2>().spoke::<BoxV1>().keeping("example.com/conversion-data");
    let (service, _) = run(&cluster, in_process(Webhooks::new("test").convert(conversion))).await;
    // The definition comes after the webhooks.
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.create(&PostParams::default(), &definition("v1")).await.unwrap();
    cluster.settle().await;
    let (old, new): (Api<BoxV1>, Api<BoxV2>) =
        (Api::default_namespaced(client.clone()), Api::default_namespaced(client.clone()));

    let spec = SpecV2 { width: 3, height: 4, color: Some("red".into()) };
    new.create(&PostParams::default(), &BoxV2::new("a", spec.clone())).await.unwrap();
    let mut stored = old.get("a").await.unwrap();
    assert_eq!(stored.spec.size, "3x4");
    assert_eq!(new.get("a").await.unwrap().spec, spec, "a color outlives the version that has none");
    stored.spec.size = "5x4".into();
    old.replace("a", &PostParams::default(), &stored).await.unwrap();
    assert_eq!(new.get("a").await.unwrap().spec, SpecV2 { width: 5, ..spec.clone() });

    let broken = BoxV1::new("b", SpecV1 { size: "big".into() });
    old.create(&PostParams::default(), &broken).await.unwrap();
    let refused = Error::from(new.get("b").await.unwrap_err()).to_string();
    assert_eq!(
        refused,
        "conversion webhook for example.com/v1, Kind=Box failed: Box \"default/b\" cannot be converted from example.com/v1 to example.com/v2: \"big\" is no size"
    );
    old.delete("b", &DeleteParams::default()).await.unwrap();

    // v2 is stored from now on.
    let switched = definition("v2");
    let versions = json!({"spec": {"versions": switched.spec.versions}});
    definitions.patch("boxes.example.com", &PatchParams::default(), &Patch::Merge(&versions)).await.unwrap();
    cluster.settle().await;
    new.create(&PostParams::default(), &BoxV2::new("c", spec.clone())).await.unwrap();
    assert_eq!(old.get("c").await.unwrap().spec.size, "3x4");
    let names: Vec<String> = new
        .list(&Default::default())
        .await
        .unwrap()
        .items
        .into_iter()
        .map(|one| one.spec.width.to_string())
        .collect();
    assert_eq!(names, ["5", "3"]);

    // Somebody turns conversion off; it comes back.
    let none = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
    definitions.patch("boxes.example.com", &PatchParams::default(), &Patch::Merge(&none)).await.unwrap();
    cluster.settle().await;
    assert_eq!(old.get("a").await.unwrap().spec.size, "5x4");
    assert!(service.metrics().read().webhooks["/convert"].requests[&200] > 5);
    cluster.stop().await;
}

/// Paints boxes, and takes none that is too wide.
struct Painter;

impl Defaulter<BoxV2> for Painter {
    async fn apply_defaults(&self, _: &Request, mut item: BoxV2) -> Result<BoxV2, Denied> {
        item.spec.color.get_or_insert_with(|| "brown".to_owned());
        Ok(item)
    }
}

impl Validator<BoxV2> for Painter {
    async fn validate_update(&self, _: &Request, old: &BoxV2, new: &BoxV2) -> ValidationResult {
        match old.spec.color == new.spec.color && new.spec.width < 10 {
            true => Ok(Warnings::none()),
            false => Err(Denied::forbidden("it is too wide, or of another color")),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn webhooks_of_one_version_see_what_is_written_in_the_other() {
    let cluster = cluster().await;
    let client = cluster.client();
    let conversion = Conversion::hub::<BoxV2>().spoke::<BoxV1>().keeping("example.com/conversion-data");
    let webhooks = Webhooks::new("test")
        .add(Webhook::defaulting::<BoxV2>(Painter))
        .add(Webhook::validating::<BoxV2>(Painter))
        .convert(conversion);
    run(&cluster, in_process(webhooks)).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.create(&PostParams::default(), &definition("v1")).await.unwrap();
    cluster.settle().await;
    let (old, new): (Api<BoxV1>, Api<BoxV2>) =
        (Api::default_namespaced(client.clone()), Api::default_namespaced(client.clone()));

    let mut item =
        old.create(&PostParams::default(), &BoxV1::new("a", SpecV1 { size: "3x4".into() })).await.unwrap();
    let painted = SpecV2 { width: 3, height: 4, color: Some("brown".into()) };
    assert_eq!(new.get("a").await.unwrap().spec, painted);
    item.spec.size = "9x4".into();
    item = old.replace("a", &PostParams::default(), &item).await.unwrap();
    assert_eq!(new.get("a").await.unwrap().spec, SpecV2 { width: 9, ..painted });
    item.spec.size = "10x4".into();
    let refused = Error::from(old.replace("a", &PostParams::default(), &item).await.unwrap_err()).to_string();
    assert!(refused.ends_with("denied the request: it is too wide, or of another color"), "{refused}");

    let bad = BoxV1::new("b", SpecV1 { size: "big".into() });
    let refused = Error::from(old.create(&PostParams::default(), &bad).await.unwrap_err()).to_string();
    assert_eq!(
        refused,
        "Internal error occurred: Internal error occurred: conversion webhook for example.com/v1, Kind=Box failed: Box \"default/b\" cannot be converted from example.com/v1 to example.com/v2: \"big\" is no size"
    );

    // What server-side apply takes away is converted as well.
    let whole = json!({"apiVersion": "example.com/v2", "kind": "Box", "metadata": {"name": "c"},
        "spec": {"width": 1, "height": 2}});
    let other = json!({"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "c"},
        "spec": {"size": "1x2"}});
    let params = PatchParams::apply("me").force();
    new.patch("c", &params, &Patch::Apply(&whole)).await.unwrap();
    old.patch("c", &params, &Patch::Apply(&other)).await.unwrap();
    assert_eq!(new.get("c").await.unwrap().spec, SpecV2 { width: 1, height: 2, color: Some("brown".into()) });
    cluster.stop().await;
}

#[tokio::test]
async fn an_operator_outside_of_the_cluster_is_called_over_tls() {
    let cluster = Cluster::builder().world(World::real()).controllers("").nodes(0).start().await.unwrap();
    let client = cluster.client();
    let webhooks = Webhooks::new("test").add(sizes());
    let server = Server::new(webhooks).bind(([127, 0, 0, 1], 0).into());
    let service = server.service();
    let mut listening = server.listening();
    let running = tokio::spawn(server.run(client.clone(), cluster.world().clone(), cluster.shutdown()));
    let address = listening.wait().await.unwrap();

    let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let registered = async {
        while api.get_opt("test-validating").await.unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), registered).await.unwrap();
    let configuration = api.get("test-validating").await.unwrap().webhooks.unwrap();
    let url = configuration[0].client_config.url.clone().unwrap();
    assert_eq!(url, format!("https://{address}/validate--v1-configmap"));

    let (code, said, _) = send(&client, Method::POST, MAPS, &map("a", &json!({"size": "x"}))).await;
    assert_eq!(code, 422, "{said}");
    let (code, said, warnings) = send(&client, Method::POST, MAPS, &map("b", &json!({}))).await;
    assert_eq!((code, warnings.len()), (201, 1), "{said}");
    assert_eq!(service.metrics().read().webhooks["/validate--v1-configmap"].requests[&200], 2);
    cluster.stop().await;
    running.await.unwrap().unwrap();
}

/// A map may be made where there is a Secret of its name.
struct NeedsSecret;

impl Validator<ConfigMap> for NeedsSecret {
    async fn validate_create(&self, request: &Request, map: &ConfigMap) -> ValidationResult {
        let (ctx, key) = (request.context()?, Key::of(map));
        assert!(ctx.world().clock.now() > jiff::Timestamp::UNIX_EPOCH);
        let all = ctx.list::<Secret>(key.namespace.as_deref());
        let named = ListOptions::in_namespace("default").fields(&format!("metadata.name={}", key.name));
        let (cached, live) = (ctx.list_selected::<Secret>(&named)?, ctx.live_list::<Secret>(&named).await?);
        assert_eq!(cached.len(), live.len(), "{} in the cache", all.len());
        match (ctx.get::<Secret>(&key), ctx.live::<Secret>(&key).await?) {
            (Some(cached), Some(live)) if cached.metadata.uid == live.metadata.uid => Ok(Warnings::none()),
            (None, None) => Err(Denied::forbidden("there is no such Secret")),
            other => panic!("{other:?}"),
        }
    }

    async fn validate_update(&self, request: &Request, _: &ConfigMap, _: &ConfigMap) -> ValidationResult {
        drop(request.context()?.get::<CustomResourceDefinition>(&Key::cluster_scoped("a")));
        Ok(Warnings::none())
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_reads_what_its_webhook_declares_and_is_not_asked_before_it_is_there() {
    let cluster = cluster().await;
    let client = cluster.client();
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
    for name in ["a", "b"] {
        let secret = json!({"metadata": {"name": name}});
        secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    }
    let server = in_process(
        Webhooks::new("test").add(Webhook::validating::<ConfigMap>(NeedsSecret).reads::<Secret>()),
    );
    cluster.mount_webhooks(HOST, server.service());
    let mut manager = Manager::in_process(client.clone(), cluster.world().clone());
    manager.serve(server);
    let rights: Vec<_> = manager.rights().rules().iter().map(|rule| format!("{rule:?}")).collect();
    assert!(
        rights.iter().any(|rule| rule.contains("\"secrets\"") && rule.contains("\"watch\"")),
        "{rights:?}"
    );
    let running = tokio::spawn(manager.run(cluster.shutdown()));
    // The configuration comes at once; the list of Secrets may come later.
    let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    while api.get_opt("test-validating").await.unwrap().is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for (name, code) in [("a", 201), ("c", 403), ("b", 201)] {
        let (answer, said, _) = send(&client, Method::POST, MAPS, &map(name, &json!({}))).await;
        assert_eq!(answer, code, "{name}: {said}");
    }
    let patch = json!({"data": {"x": "y"}});
    let (code, said, _) = send(&client, Method::PATCH, &format!("{MAPS}/a"), &patch).await;
    assert_eq!(code, 500, "{said}");
    let why = "the webhook /validate--v1-configmap reads customresourcedefinitions but does not declare it: add .reads::<CustomResourceDefinition>()";
    assert!(said["message"].as_str().unwrap().contains(why), "{said}");
    cluster.stop().await;
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_reads_caches_is_served_by_a_manager() {
    let cluster = cluster().await;
    let reading =
        || Webhooks::new("test").add(Webhook::validating::<ConfigMap>(NeedsSecret).reads::<Secret>());
    let run = in_process(reading()).run(cluster.client(), cluster.world().clone(), cluster.shutdown()).await;
    assert_eq!(
        run.unwrap_err().to_string(),
        "webhook /validate--v1-configmap: it reads caches, and there are none without a manager: hand the server to Manager::serve"
    );
    // Nobody runs it: there is a service alone.
    let server = in_process(Webhooks::new("test").add(Webhook::validating::<ConfigMap>(NeedsSecret)));
    cluster.mount_webhooks(HOST, server.service());
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "1", "operation": "CREATE",
            "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
            "resource": {"group": "", "version": "v1", "resource": "configmaps"},
            "object": map("a", &json!({})),
        },
    });
    let request = HttpRequest::post("/validate--v1-configmap").header("content-type", "application/json");
    let answer = server.service().call(request.body(review.to_string().into()).unwrap()).await;
    let said: Value = serde_json::from_slice(answer.body()).unwrap();
    assert_eq!(said["response"]["status"]["code"], 500, "{said}");
    assert!(said["response"]["status"]["message"].as_str().unwrap().contains("Manager::serve"), "{said}");
    cluster.stop().await;
}

/// Knows one token.
struct Staff;

impl Authenticator for Staff {
    async fn authenticate(&self, request: &TokenRequest) -> Authentication {
        match request.token() {
            "let-me-in" => Authentication::user("jane", ["staff"]),
            _ => Authentication::Unauthenticated,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_is_reviewed_at_the_path_that_the_api_server_is_told_of() {
    let cluster = cluster().await;
    let server = in_process(Webhooks::new("test").authenticate("/authenticate", Staff));
    let (service, _) = run(&cluster, server).await;
    let review = |token: &str| json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
    for (token, user) in [("let-me-in", json!("jane")), ("let-me-out", Value::Null)] {
        let request = HttpRequest::post("/authenticate").header("content-type", "application/json");
        let answer = service.call(request.body(review(token).to_string().into()).unwrap()).await;
        let said: Value = serde_json::from_slice(answer.body()).unwrap();
        assert_eq!(
            (&said["status"]["user"]["username"], &said["status"]["authenticated"]),
            (&user, &json!(!user.is_null()))
        );
    }
    let request = HttpRequest::post("/authenticate").header("content-type", "application/json");
    let long = review(&"x".repeat(2 << 20)).to_string();
    assert_eq!(service.call(request.body(long.into()).unwrap()).await.status(), 413);
    cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_put_together_wrongly_does_not_start() {
    let cluster = cluster().await;
    let started = |server: Server| server.run(cluster.client(), cluster.world().clone(), cluster.shutdown());
    for (server, why) in [
        (Server::new(Webhooks::new("test")), "there is nothing to serve"),
        (
            Server::new(Webhooks::new("test").add(sizes()).add(sizes())),
            "two webhooks are named validate.v1.configmaps.core; two webhooks are served at /validate--v1-configmap; give one another path with `at`",
        ),
        (
            Server::new(Webhooks::new("test").add(sizes())).bind(([0, 0, 0, 0], 0).into()),
            "webhooks: a server on all addresses has to say where it is reached: Server::reached_at",
        ),
        (
            in_process(Webhooks::new("test").add(sizes())).reached_at(Reach::Url("http://a/b".into())),
            "\"http://a/b\" is no URL of webhooks: write https://host:port",
        ),
    ] {
        let error = started(server).await.unwrap_err();
        assert!(matches!(error, Error::Misconfigured(_)), "{error}");
        assert_eq!(error.to_string(), why);
    }
    cluster.stop().await;
}
