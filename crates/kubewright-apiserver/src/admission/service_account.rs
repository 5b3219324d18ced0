//! ServiceAccount: every pod runs as a service account that exists, and gets its token
//! (`k8s.io/kubernetes/plugin/pkg/admission/serviceaccount`).

use serde_json::{Value, json};

use super::Review;
use crate::error::ApiError;
use crate::kinds::Role;
use crate::registry::{Registry, encode, object};

/// Where containers find the token.
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// How long a token lives; the odd seven seconds mark tokens that a pod got without asking.
const TOKEN_SECONDS: i64 = 3607;
/// The annotation of pods that a node runs by itself.
const MIRROR: &str = "kubernetes.io/config.mirror";

pub(super) fn admit(review: &Review<'_>, pod: &mut Value) -> Result<(), ApiError> {
    let Review { registry, call, .. } = *review;
    if call.kind.behaviour.role != Role::Pod || pod["metadata"]["annotations"].get(MIRROR).is_some() {
        return Ok(());
    }
    let spec = object::member_mut(pod, "spec");
    let account = match spec.get("serviceAccountName").and_then(Value::as_str) {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => "default".to_owned(),
    };
    spec.insert("serviceAccountName".into(), account.clone().into());
    spec.insert("serviceAccount".into(), account.clone().into());
    let found = find(registry, call.namespace, &account).ok_or_else(|| {
        let why = format!(
            "error looking up service account {}/{account}: serviceaccount {account:?} not found",
            call.namespace
        );
        ApiError::forbidden("", &call.kind.plural, object::name(pod), &why)
    })?;
    let spec = object::member_mut(pod, "spec");
    if spec.get("imagePullSecrets").is_none_or(|secrets| secrets.as_array().is_none_or(Vec::is_empty))
        && let Some(secrets) = found.get("imagePullSecrets")
    {
        spec.insert("imagePullSecrets".into(), secrets.clone());
    }
    let wanted =
        spec.get("automountServiceAccountToken").or_else(|| found.get("automountServiceAccountToken"));
    if wanted.and_then(Value::as_bool).unwrap_or(true) {
        mount_token(registry, spec);
    }
    Ok(())
}

fn find(registry: &Registry, namespace: &str, name: &str) -> Option<Value> {
    let kinds = registry.kinds();
    let accounts = kinds.get("", "v1", "serviceaccounts")?;
    let key = format!("{namespace}/{name}");
    let entry = registry.snapshot().get(&accounts.collection, &key).cloned()?;
    Some(encode::value(accounts, &entry))
}

/// Mounts a projected token volume into every container that has nothing at its place.
fn mount_token(registry: &Registry, spec: &mut serde_json::Map<String, Value>) {
    let volume = format!("kube-api-access-{}", registry.world().dice.suffix(5));
    let mut mounted = false;
    for list in ["initContainers", "containers"] {
        let Some(Value::Array(containers)) = spec.get_mut(list) else { continue };
        for container in containers {
            let mounts = object::as_map(container).entry("volumeMounts").or_insert_with(|| json!([]));
            let Value::Array(mounts) = mounts else { continue };
            if mounts.iter().all(|mount| mount["mountPath"] != MOUNT_PATH) {
                mounts.push(json!({"name": volume, "readOnly": true, "mountPath": MOUNT_PATH}));
                mounted = true;
            }
        }
    }
    if !mounted {
        return;
    }
    let volumes = spec.entry("volumes").or_insert_with(|| json!([]));
    if let Value::Array(volumes) = volumes {
        volumes.push(json!({
            "name": volume,
            "projected": {
                "defaultMode": 420,
                "sources": [
                    {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
                    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                    {"downwardAPI": {"items": [{
                        "path": "namespace",
                        "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
                    }]}}
                ]
            }
        }));
    }
}
