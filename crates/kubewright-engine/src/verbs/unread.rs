//! Delete, of an object that cannot be read (`k8s.io/apiserver/pkg/registry/generic/registry/corrupt_obj_deleter.go`).

use kubewright_identity::authz::Rights;
use kubewright_kinds::{encode, unreadable};
use kubewright_meta::ApiError;
use kubewright_store::{Change, Expect};
use serde_json::json;

use super::{WriteResult, follow_up};
use crate::engine::Engine;
use crate::request::{Call, DeleteOptions};

/// The verb of who may.
const VERB: &str = "unsafe-delete-ignore-read-errors";

/// Deletes an object that cannot be read, whatever holds it; nobody is asked.
///
/// # Errors
/// 403 for who may not; 404; 409 when it can be read.
pub(super) async fn delete(
    engine: &Engine,
    call: Call<'_>,
    options: &DeleteOptions,
) -> Result<WriteResult, ApiError> {
    authorize(engine, call).await?;
    let epoch = engine.epoch();
    loop {
        let entry = engine.stored(call)?;
        if unreadable::why(call.kind, &entry).is_none() {
            return Err(unreadable::is_readable(call.kind, call.name, &entry.key));
        }
        if options.dry_run {
            return Ok(answer(call));
        }
        let change = Change::Delete(encode::last_state(&entry));
        if engine.commit(epoch, call.kind, &call.key(), Expect::At(entry.revision), change).await?.is_some() {
            follow_up::object_gone(engine, call.kind).await;
            follow_up::follow_up(engine, call.kind, call.name).await;
            return Ok(answer(call));
        }
    }
}

async fn authorize(engine: &Engine, call: Call<'_>) -> Result<(), ApiError> {
    let what = call.attributes(VERB);
    let judge = |rights: &Rights| rights.authorize(call.user, &what);
    let decision = engine.authorizer().resolve(&engine.snapshot(), judge).await;
    if decision.allowed() {
        return Ok(());
    }
    let why = format!("not permitted to do {VERB:?}, reason: {}", decision.reason);
    Err(ApiError::forbidden(&call.kind.group, &call.kind.plural, call.name, &why))
}

fn answer(call: Call<'_>) -> WriteResult {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": {"name": call.name, "kind": call.kind.kind}, "code": 200});
    WriteResult::Status(status.to_string().into())
}
