//! Update: an object, or a part of it, is replaced.

use kubewright_codec::body::Decoded;
use kubewright_identity::authz::forbidden;
use kubewright_meta::{ApiError, object};
use serde_json::Value;

use super::preconditions::precondition_failed;
use super::swap::{Step, swap};
use super::{Part, Written, create};
use crate::engine::Engine;
use crate::request::place::{check_name, place_in_namespace};
use crate::request::{Call, WriteOptions, body, version_of};

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
    let mut warnings = Vec::new();
    let replacement =
        body::object_of(call.kind, decoded, options.validation, &mut warnings).and_then(|mut object| {
            place_in_namespace(call, &mut object)?;
            check_name(call, object::name(&object))?;
            Ok(object)
        });
    match replacement {
        Ok(object) if creates(engine, call, part) => {
            create_by_update(engine, call, part, object, options, warnings).await
        }
        Ok(object) => swap(engine, call, part, &Step::Replace(object), &options, warnings).await,
        Err(error) => Err(error.with_warnings(warnings)),
    }
}

fn creates(engine: &Engine, call: Call<'_>, part: Part) -> bool {
    call.kind.behaviour.create_on_update
        && matches!(part, Part::Main | Part::Status)
        && engine.snapshot().get(&call.kind.collection, &call.key()).is_none()
}

async fn create_by_update(
    engine: &Engine,
    call: Call<'_>,
    part: Part,
    mut object: Value,
    options: WriteOptions,
    warnings: Vec<String>,
) -> Result<Written, ApiError> {
    let uid = object::uid(&object).to_owned();
    let allowed = if uid.is_empty() {
        version_of(&object).map(drop)
    } else {
        Err(precondition_failed(call, options.dry_run, "UID", &uid, ""))
    };
    if let Err(error) = allowed {
        return Err(error.with_warnings(warnings));
    }
    // What is not stored is answered as it was sent.
    if !options.dry_run {
        object::set_meta(&mut object, "resourceVersion", None);
    }
    create::create_decoded(engine, call, part, object, &options, warnings).await
}

/// Who creates by an update needs the right to create, too
/// (`k8s.io/apiserver/pkg/endpoints/handlers/update.go`, `withAuthorization`).
pub(super) async fn may_create(engine: &Engine, call: Call<'_>) -> Result<(), ApiError> {
    let what = call.attributes("create");
    let snapshot = engine.snapshot();
    let decision = engine.authorizer().resolve(&snapshot, |rights| rights.authorize(call.user, &what)).await;
    if decision.allowed() { Ok(()) } else { Err(forbidden(call.user, &what, &decision.reason)) }
}
