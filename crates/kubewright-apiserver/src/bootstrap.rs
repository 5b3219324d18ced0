//! What is in a cluster before anybody has written to it: the system namespaces, the API server's own service, the
//! priority classes, and the default roles.

use futures::future::{try_join, try_join_all};
use serde_json::{Value, json};

use crate::authn::User;
use crate::authz::bootstrap::objects as roles;
use crate::error::ApiError;
use crate::http::body::Decoded;
use crate::kinds::rules::flow::bootstrap as flow;
use crate::registry::{API_SERVER, Call, FieldValidation, Registry, WriteOptions, object};

/// Who has written them, as field ownership tells it.
const MANAGER: &str = "kube-apiserver";

/// The namespaces of every cluster.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Writes what is missing, and goes on with what a server before this one has left half done. Objects that are there stay
/// as they are.
///
/// # Errors
/// When one of them is refused, which would be a defect of this table.
pub async fn bootstrap(registry: &Registry) -> Result<(), ApiError> {
    let namespaces = NAMESPACES.iter().map(|name| {
        ("namespaces", json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    });
    let others = [
        ("services", service()),
        priority_class("system-cluster-critical"),
        priority_class("system-node-critical"),
    ];
    for (plural, value) in namespaces.chain(others) {
        create(registry, MANAGER, plural, value).await?;
    }
    // Together: a store on a disk syncs them all at once.
    let roles = roles().into_iter().map(async |value| {
        let plural = format!("{}s", value["kind"].as_str().unwrap_or_default().to_ascii_lowercase());
        create(registry, MANAGER, &plural, value).await
    });
    let flows = flow::objects()
        .into_iter()
        .map(async |(plural, value)| create(registry, flow::MANAGER, plural, value).await);
    try_join(try_join_all(roles), try_join_all(flows)).await?;
    registry.resume_definitions().await;
    Ok(())
}

async fn create(registry: &Registry, manager: &str, plural: &str, value: Value) -> Result<(), ApiError> {
    let api_version = value["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kinds = registry.kinds();
    let kind = kinds.get(group, version, plural).ok_or_else(ApiError::no_such_resource)?;
    let user = User::new("system:apiserver", ["system:masters"]);
    let (namespace, name) = (object::namespace(&value).to_owned(), object::name(&value).to_owned());
    let call = Call { kind, namespace: &namespace, name: "", user: &user };
    if registry.entry(Call { name: &name, ..call }).is_ok() {
        return Ok(());
    }
    let options = WriteOptions {
        validation: FieldValidation::Strict,
        manager: manager.to_owned(),
        ..WriteOptions::default()
    };
    registry.create(call, Decoded::of(value), options).await.map(drop)
}

fn service() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"}
        },
        "spec": {
            "clusterIP": API_SERVER.to_string(),
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}]
        }
    })
}

/// The two classes above all others (`k8s.io/kubernetes/pkg/apis/scheduling/v1/helpers.go`).
fn priority_class(name: &str) -> (&'static str, Value) {
    let (value, description) = match name {
        "system-node-critical" => {
            (2_000_001_000, "Used for system critical pods that must not be moved from their current node.")
        }
        _ => (
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        ),
    };
    let object = json!({
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "description": description
    });
    ("priorityclasses", object)
}
