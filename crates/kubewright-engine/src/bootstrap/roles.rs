//! The roles and bindings of a cluster's version, also where there are some of another version
//! (`k8s.io/kubernetes/pkg/registry/rbac/rest/storage_rbac.go`, `ensureRBACPolicy`).

use kubewright_codec::body::Decoded;
use kubewright_identity::authz::bootstrap::{Reconciliation, objects, reconcile};
use kubewright_kinds::encode;
use kubewright_meta::{ApiError, object};
use serde_json::Value;

use super::{MANAGER, create, written_by};
use crate::engine::{Engine, SERVER};
use crate::request::{Call, DeleteOptions};
use crate::verbs::{self, Part};

/// What they are, in the order in which they are made.
pub(super) fn expected(engine: &Engine) -> Vec<Value> {
    objects(engine.kinds().version())
}

/// Creates one that is missing; to one that is there it adds what it lacks.
pub(super) async fn ensure(engine: &Engine, expected: Value) -> Result<(), ApiError> {
    let plural = format!("{}s", expected["kind"].as_str().unwrap_or_default().to_ascii_lowercase());
    let api_version = expected["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kinds = engine.kinds();
    let Some(kind) = kinds.get(group, version, &plural) else { return Ok(()) };
    let (namespace, name) = (object::namespace(&expected).to_owned(), object::name(&expected).to_owned());
    let call = Call { kind, namespace: &namespace, name: &name, user: &SERVER };
    let Ok(entry) = engine.entry(call) else { return create(engine, MANAGER, &plural, expected).await };
    let existing = encode::value(kind, &entry);
    match reconcile(&existing, &expected) {
        Reconciliation::None => Ok(()),
        Reconciliation::Update(wanted) => {
            let options = written_by(MANAGER);
            verbs::update(engine, call, Part::Main, Decoded::of(wanted), options).await.map(drop)
        }
        Reconciliation::Recreate => {
            let uid = existing["metadata"]["uid"].as_str().map(ToOwned::to_owned);
            verbs::delete(engine, call, &DeleteOptions { uid, ..DeleteOptions::default() }).await?;
            create(engine, MANAGER, &plural, expected).await
        }
    }
}
