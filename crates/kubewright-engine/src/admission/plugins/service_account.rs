//! ServiceAccount: every pod runs as a service account that exists, and gets its token
//! (`k8s.io/kubernetes/plugin/pkg/admission/serviceaccount`).

use kubewright_kinds::built_in::core::service_account::SERVICE_ACCOUNT;
use kubewright_meta::{ApiError, object};
use kubewright_world::Dice;
use serde_json::{Map, Value, json};

use super::refusal::{forbidden, unaskable};
use super::{AdmissionPlugin, Operation, Plugin, Review};

/// Where containers find the token.
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// How the names of token volumes begin.
const VOLUME: &str = "kube-api-access-";
/// How long a token lives; the odd seven seconds mark tokens that a pod got without asking.
const TOKEN_SECONDS: i64 = 3607;
/// The annotation of pods that a node runs by itself.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// The annotation of accounts whose pods may use no secrets but theirs.
const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";

/// Gives a new pod its service account, and refuses secrets that are not the account's.
pub(super) struct ServiceAccount;

impl AdmissionPlugin for ServiceAccount {
    fn name(&self) -> Plugin {
        Plugin::ServiceAccount
    }

    fn handles(&self, review: &Review<'_>) -> bool {
        review.is_of_new()
            || (review.operation == Operation::Update && review.subresource == "ephemeralcontainers")
    }

    fn mutate(&self, review: &Review<'_>, pod: &mut Value) -> Result<(), ApiError> {
        if review.is_of_new() { mutate(review, pod) } else { Ok(()) }
    }

    fn validate(&self, review: &Review<'_>, pod: &Value, _: &mut Vec<String>) -> Result<(), ApiError> {
        validate(review, pod)
    }
}

/// Gives a new pod its service account, with its token and its pull secrets.
///
/// # Errors
/// 403 when the account is not there.
fn mutate(review: &Review<'_>, pod: &mut Value) -> Result<(), ApiError> {
    if is_mirror(pod) {
        return check_mirror(review, pod);
    }
    let name = Some(account_name(pod)).filter(|name| !name.is_empty()).unwrap_or("default").to_owned();
    let account = find(review, pod, &name)?;
    let spec = object::member_mut(pod, "spec");
    spec.insert("serviceAccountName".into(), name.clone().into());
    spec.insert("serviceAccount".into(), name.into());
    let wanted =
        spec.get("automountServiceAccountToken").or_else(|| account.get("automountServiceAccountToken"));
    if wanted.and_then(Value::as_bool).unwrap_or(true) {
        mount_token(&review.objects.world().dice, spec);
    }
    let pulls = spec.get("imagePullSecrets").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    if !pulls && let Some(secrets) = account.get("imagePullSecrets") {
        spec.insert("imagePullSecrets".into(), secrets.clone());
    }
    Ok(())
}

/// Asks whether the account of a pod is there, and whether the pod may use the secrets that it uses.
///
/// # Errors
/// 403.
fn validate(review: &Review<'_>, pod: &Value) -> Result<(), ApiError> {
    if review.is_of_new() && is_mirror(pod) {
        return check_mirror(review, pod);
    }
    let name = account_name(pod);
    if name.is_empty() {
        let why =
            format!("no service account specified for pod {}/{}", review.call.namespace, object::name(pod));
        return Err(forbidden(review, pod, &why));
    }
    let account = find(review, pod, name)?;
    let enforced = account["metadata"]["annotations"][ENFORCE].as_str();
    if !enforced.is_some_and(|value| matches!(value, "1" | "t" | "T" | "TRUE" | "true" | "True")) {
        return Ok(());
    }
    let foreign = if review.subresource.is_empty() {
        foreign_secret(&account, pod)
    } else {
        foreign_later(&account, pod)
    };
    foreign.map_or(Ok(()), |why| Err(forbidden(review, pod, &why)))
}

fn account_name(pod: &Value) -> &str {
    pod["spec"]["serviceAccountName"].as_str().unwrap_or_default()
}

fn find(review: &Review<'_>, pod: &Value, name: &str) -> Result<Value, ApiError> {
    let namespace = review.call.namespace;
    let found = review.objects.object(&SERVICE_ACCOUNT, &format!("{namespace}/{name}"));
    found.ok_or_else(|| {
        let why = unaskable(name).unwrap_or_else(|| format!("serviceaccount {name:?} not found"));
        forbidden(review, pod, &format!("error looking up service account {namespace}/{name}: {why}"))
    })
}

fn is_mirror(pod: &Value) -> bool {
    pod["metadata"]["annotations"].get(MIRROR).is_some()
}

/// What only shows what a node runs has no rights of its own.
fn check_mirror(review: &Review<'_>, pod: &Value) -> Result<(), ApiError> {
    let volumes = || pod["spec"]["volumes"].as_array().into_iter().flatten();
    let tokens = || volumes().flat_map(|volume| volume["projected"]["sources"].as_array()).flatten();
    let why = if !account_name(pod).is_empty() {
        "a mirror pod may not reference service accounts"
    } else if uses_secrets(pod) {
        "a mirror pod may not reference secrets"
    } else if tokens().any(|source| source["serviceAccountToken"].is_object()) {
        "a mirror pod may not use ServiceAccountToken volume projections"
    } else {
        return Ok(());
    };
    Err(forbidden(review, pod, why))
}

fn containers<'a>(pod: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    pod["spec"][list].as_array().into_iter().flatten()
}

fn uses_secrets(pod: &Value) -> bool {
    let pulls = containers(pod, "imagePullSecrets").next().is_some();
    let mounts = containers(pod, "volumes").any(|volume| {
        let projects = volume["projected"]["sources"].as_array().into_iter().flatten();
        volume["secret"].is_object() || projects.into_iter().any(|source| source["secret"].is_object())
    });
    let reads = ["initContainers", "containers", "ephemeralContainers"]
        .into_iter()
        .flat_map(|list| containers(pod, list))
        .any(|container| secrets_of_env(container).next().is_some());
    pulls || mounts || reads
}

/// The secrets in the environment of a container, each with where it is named.
fn secrets_of_env(container: &Value) -> impl Iterator<Item = (String, &str)> {
    let variables = container["env"].as_array().into_iter().flatten().filter_map(|variable| {
        let secret = variable["valueFrom"]["secretKeyRef"].as_object()?;
        let at = format!("envVar {}", variable["name"].as_str().unwrap_or_default());
        Some((at, secret.get("name").and_then(Value::as_str).unwrap_or_default()))
    });
    let sources = container["envFrom"].as_array().into_iter().flatten().filter_map(|source| {
        let secret = source["secretRef"].as_object()?;
        Some(("envFrom".to_owned(), secret.get("name").and_then(Value::as_str).unwrap_or_default()))
    });
    variables.chain(sources)
}

/// The first use of a secret that an account does not name.
fn foreign_secret(account: &Value, pod: &Value) -> Option<String> {
    let owner = object::name(account);
    let names = |list: &Value, name: &str| {
        list.as_array().is_some_and(|all| all.iter().any(|one| one["name"] == name))
    };
    for volume in containers(pod, "volumes").filter(|volume| volume["secret"].is_object()) {
        let secret = volume["secret"]["secretName"].as_str().unwrap_or_default();
        if !names(&account["secrets"], secret) {
            return Some(format!(
                "volume with secret.secretName=\"{secret}\" is not allowed because service account {owner} does not reference that secret"
            ));
        }
    }
    let of_containers = [("initContainers", "init container"), ("containers", "container")]
        .into_iter()
        .find_map(|(list, what)| foreign_in_env(account, pod, list, what));
    if of_containers.is_some() {
        return of_containers;
    }
    containers(pod, "imagePullSecrets").enumerate().find_map(|(at, secret)| {
        let secret = secret["name"].as_str().unwrap_or_default();
        (!names(&account["imagePullSecrets"], secret)).then(|| {
            format!(
                "imagePullSecrets[{at}].name=\"{secret}\" is not allowed because service account {owner} does not reference that imagePullSecret"
            )
        })
    })
}

/// As [`foreign_secret`], of containers that are added to a running pod.
fn foreign_later(account: &Value, pod: &Value) -> Option<String> {
    foreign_in_env(account, pod, "ephemeralContainers", "ephemeral container")
}

fn foreign_in_env(account: &Value, pod: &Value, list: &str, what: &str) -> Option<String> {
    let owner = object::name(account);
    let allowed = |name: &str| {
        account["secrets"].as_array().is_some_and(|all| all.iter().any(|one| one["name"] == name))
    };
    containers(pod, list).find_map(|container| {
        let (at, secret) = secrets_of_env(container).find(|(_, secret)| !allowed(secret))?;
        Some(format!(
            "{what} {} with {at} referencing secret.secretName=\"{secret}\" is not allowed because service account {owner} does not reference that secret",
            object_name(container)
        ))
    })
}

fn object_name(container: &Value) -> &str {
    container["name"].as_str().unwrap_or_default()
}

/// Mounts a projected token volume into every container that has nothing at its place.
fn mount_token(dice: &Dice, spec: &mut Map<String, Value>) {
    let there = spec.get("volumes").and_then(Value::as_array).into_iter().flatten();
    let there = there
        .filter_map(|volume| volume["name"].as_str())
        .find(|name| name.starts_with(VOLUME))
        .map(str::to_owned);
    let volume = there.clone().unwrap_or_else(|| format!("{VOLUME}{}", dice.suffix(5)));
    let mut mounted = false;
    for list in ["initContainers", "containers"] {
        let Some(Value::Array(containers)) = spec.get_mut(list) else { continue };
        for container in containers {
            let mounts = object::as_map(container).entry("volumeMounts").or_insert_with(|| json!([]));
            if mounts.is_null() {
                *mounts = json!([]);
            }
            let Value::Array(mounts) = mounts else { continue };
            if mounts.iter().all(|mount| mount["mountPath"] != MOUNT_PATH) {
                mounts.push(json!({"name": volume, "readOnly": true, "mountPath": MOUNT_PATH}));
                mounted = true;
            }
        }
    }
    if there.is_some() || !mounted {
        return;
    }
    let volumes = spec.entry("volumes").or_insert_with(|| json!([]));
    if volumes.is_null() {
        *volumes = json!([]);
    }
    if let Value::Array(volumes) = volumes {
        volumes.push(token_volume(&volume));
    }
}

fn token_volume(name: &str) -> Value {
    json!({
        "name": name,
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
    })
}

#[cfg(test)]
mod tests {
    use kubewright_kinds::built_in::core::pod::POD;

    use super::*;
    use crate::admission::fake::Fake;

    fn admitted(pod: &Value) -> Result<Value, ApiError> {
        let account =
            json!({"metadata": {"namespace": "n", "name": "default"}, "imagePullSecrets": [{"name": "s"}]});
        let fake = Fake::with(&[(&SERVICE_ACCOUNT, account)]);
        let (review, mut pod) = (fake.review(&POD, Operation::Create), pod.clone());
        ServiceAccount.mutate(&review, &mut pod)?;
        ServiceAccount.validate(&review, &pod, &mut Vec::new()).map(|()| pod)
    }

    #[test]
    fn a_pod_gets_the_default_account_with_its_token_and_its_pull_secrets() {
        let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}});
        let pod = admitted(&pod).expect("it is admitted");
        let spec = &pod["spec"];
        assert_eq!(spec["serviceAccountName"], "default");
        assert_eq!(spec["imagePullSecrets"], json!([{"name": "s"}]));
        assert_eq!(spec["containers"][0]["volumeMounts"][0]["mountPath"], MOUNT_PATH);
        assert_eq!(spec["containers"][0]["volumeMounts"][0]["name"], spec["volumes"][0]["name"]);
    }

    #[test]
    fn an_account_has_to_be_there_and_a_mirror_pod_has_none() {
        let of = |spec: Value, annotations: Value| {
            let meta = json!({"name": "p", "annotations": annotations});
            admitted(&json!({"metadata": meta, "spec": spec})).map_err(|error| error.message)
        };
        let missing = of(json!({"serviceAccountName": "other"}), json!({})).expect_err("it is not there");
        assert!(missing.ends_with("serviceaccount \"other\" not found"), "{missing}");
        let mirror = of(json!({"serviceAccountName": "default"}), json!({MIRROR: "x"}));
        let mirror = mirror.expect_err("a mirror pod has no account");
        assert!(mirror.ends_with("a mirror pod may not reference service accounts"), "{mirror}");
        assert!(of(json!({}), json!({MIRROR: "x"})).is_ok());
    }
}
