//! Patch: an object, or a part of it, is changed by a patch or by server-side apply.

use kubewright_meta::ApiError;
use kubewright_schema::patch::Patch;

use super::swap::{Step, swap};
use super::{Part, Written, create};
use crate::engine::Engine;
use crate::request::{Call, WriteOptions};

/// Changes an object (or a part) by a patch.
///
/// # Errors
/// As [`update`](fn@super::update), and what the patch itself has.
pub async fn patch(
    engine: &Engine,
    call: Call<'_>,
    part: Part,
    patch: Patch,
    options: WriteOptions,
) -> Result<Written, ApiError> {
    match &patch {
        Patch::Change(change) => swap(engine, call, part, &Step::Change(change), &options, Vec::new()).await,
        Patch::Apply(config) => {
            let missing = engine.snapshot().get(&call.kind.collection, &call.key()).is_none();
            let behaviour = call.kind.behaviour;
            let creates = match part {
                Part::Main => true,
                Part::Status => behaviour.create_on_update || behaviour.create_on_status_apply,
                Part::Member(_) | Part::Trusted => false,
            };
            if creates && missing {
                return create::create_by_apply(engine, call, part, config, &options).await;
            }
            swap(engine, call, part, &Step::Apply(config), &options, Vec::new()).await
        }
    }
}
