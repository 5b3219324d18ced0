//! Update: an object, or a part of it, is replaced.

use kubewright_codec::body::Decoded;
use kubewright_identity::authz::forbidden;
use kubewright_meta::{ApiError, object};

use super::swap::{Step, precondition_failed, swap};
use super::{Part, Written, create};
use crate::engine::Engine;
use crate::request::place::{check_name, place};
use crate::request::{Call, WriteOptions, body};

/// Replaces an object (or a part) by what a request's body says. Kinds that allow it are created when they are missing.
///
/// # Errors
/// 404, 409 when the body names another resource version or uid than the current, and all that [`create`](fn@super::create) has.
pub async fn update(
    engine: &Engine,
    call: Call<'_>,
    part: Part,
    decoded: Decoded,
    options: WriteOptions,
) -> Result<Written, ApiError> {
    if call.kind.behaviour.create_on_update
        && part == Part::Main
        && engine.snapshot().get(&call.kind.collection, &call.key()).is_none()
    {
        check_name(call, object::name(&decoded.value))?;
        return create_by_update(engine, call, decoded, options).await;
    }
    let mut warnings = Vec::new();
    let replacement =
        body::object_of(call.kind, decoded, options.validation, &mut warnings).and_then(|mut object| {
            check_name(call, object::name(&object))?;
            place(call, &mut object)?;
            Ok(object)
        });
    match replacement {
        Ok(object) => swap(engine, call, part, &Step::Replace(object), &options, warnings).await,
        Err(error) => Err(error.with_warnings(warnings)),
    }
}

async fn create_by_update(
    engine: &Engine,
    call: Call<'_>,
    mut decoded: Decoded,
    options: WriteOptions,
) -> Result<Written, ApiError> {
    let uid = object::uid(&decoded.value).to_owned();
    if !uid.is_empty() {
        return Err(precondition_failed(call, "UID", &uid, ""));
    }
    may_create(engine, call).await?;
    object::set_meta(&mut decoded.value, "resourceVersion", None);
    create::create(engine, call, decoded, options).await
}

/// Who creates by an update needs the right to create, too
/// (`k8s.io/apiserver/pkg/endpoints/handlers/update.go`, `withAuthorization`).
pub(super) async fn may_create(engine: &Engine, call: Call<'_>) -> Result<(), ApiError> {
    let what = call.attributes("create");
    let snapshot = engine.snapshot();
    let decision = engine.authorizer().resolve(&snapshot, |rights| rights.authorize(call.user, &what)).await;
    if decision.allowed() { Ok(()) } else { Err(forbidden(call.user, &what, &decision.reason)) }
}
