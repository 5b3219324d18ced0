//! Webhooks of an operator that runs beside its API server: defaults, checks and two versions of a kind. Installs the kind
//! `boxes.example.kubewright.dev`, serves until ctrl-c, and leaves what it has registered.
//!
//! `KUBECONFIG=... cargo run -p kubewright-runtime --example webhooks`

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, CustomResource,
    api::{Patch, PatchParams},
};
use kubewright_runtime::{
    CancellationToken, Manager, World,
    webhook::{
        Conversion, Defaulter, Denied, FieldError, Request, Server, ValidationResult, Validator, Warnings,
        Webhook, Webhooks,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const GROUP: &str = "example.kubewright.dev";

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize)]
#[kube(group = "example.kubewright.dev", version = "v1", kind = "Box", root = "BoxV1")]
#[kube(schema = "disabled", namespaced)]
struct SpecV1 {
    size: String,
}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize)]
#[kube(group = "example.kubewright.dev", version = "v2", kind = "Box", root = "BoxV2")]
#[kube(schema = "disabled", namespaced)]
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

/// Boxes are brown.
struct Brown;

impl Defaulter<BoxV2> for Brown {
    async fn apply_defaults(&self, _: &Request, mut item: BoxV2) -> Result<BoxV2, Denied> {
        item.spec.color.get_or_insert_with(|| "brown".to_owned());
        Ok(item)
    }
}

/// Boxes are not too large.
struct Small;

impl Validator<BoxV2> for Small {
    async fn validate_create(&self, _: &Request, item: &BoxV2) -> ValidationResult {
        check(item)
    }

    async fn validate_update(&self, _: &Request, _: &BoxV2, item: &BoxV2) -> ValidationResult {
        check(item)
    }
}

fn check(item: &BoxV2) -> ValidationResult {
    if item.spec.width > 100 {
        let error = FieldError::invalid("spec.width", item.spec.width, "must be 100 or less");
        return Err(Denied::invalid(item, &[error]));
    }
    match item.spec.height {
        0 => Ok(Warnings::none().and("spec.height: a flat box")),
        _ => Ok(Warnings::none()),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::try_default().await?;
    let annotation = format!("{GROUP}/conversion-data");
    let webhooks = Webhooks::new("boxes-example")
        .add(Webhook::defaulting::<BoxV2>(Brown))
        .add(Webhook::validating::<BoxV2>(Small))
        .convert(Conversion::hub::<BoxV2>().spoke::<BoxV1>().keeping(&annotation));

    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = PatchParams::apply("boxes-example-installer").force();
    definitions.patch(&format!("boxes.{GROUP}"), &params, &Patch::Apply(definition())).await?;

    let mut manager = Manager::new(client, World::real());
    manager.serve(Server::new(webhooks));
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    tokio::spawn(async move {
        let _ = tokio::signal::ctrl_c().await;
        stop.cancel();
    });
    manager.run(shutdown).await?;
    Ok(())
}

fn definition() -> Value {
    let version = |name: &str, spec: Value| {
        let spec = json!({"type": "object", "properties": spec});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        json!({"name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}})
    };
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("boxes.{GROUP}")},
        "spec": {"group": GROUP, "scope": "Namespaced",
            "names": {"plural": "boxes", "singular": "box", "kind": "Box", "listKind": "BoxList"},
            "versions": [
                version("v1", json!({"size": text})),
                version("v2", json!({"width": number, "height": number, "color": text}))
            ]}
    })
}
