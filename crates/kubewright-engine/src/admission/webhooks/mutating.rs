//! Mutating webhooks are asked one after the other; each sees what the one before made of the object
//! (`.../webhook/mutating/dispatcher.go`).

use std::sync::Arc;

use kubewright_kinds::Kind;
use kubewright_meta::{ApiError, object::read_doubles_back};
use kubewright_schema::patch::{JsonPatch, explain};
use serde_json::Value;

use super::super::matching::{Attributes, converted};
use super::super::reinvocation::Round;
use super::super::{Review, adopt, warn};
use super::answer::{Answer, denial};
use super::hook::{Hook, Refusal};

/// Asks every mutating webhook that wants to know, and changes the object as they say. In the second round only those
/// that were asked in the first one, want to be asked again, and whose object has changed since.
///
/// # Errors
/// The first refusal.
pub(crate) async fn mutate(
    review: &Review<'_>,
    mut object: Option<&mut Value>,
    round: &mut Round<String>,
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    let snapshot = review.objects.snapshot();
    let webhooks = review.objects.admission().webhooks();
    let hooks = webhooks.mutating(&snapshot);
    if hooks.is_empty() || Attributes::of(review, object.as_deref()).is_exempt_from_webhooks() {
        return Ok(());
    }
    round.begin(object.as_deref());
    for hook in &hooks {
        let attributes = Attributes::of(review, object.as_deref());
        let Some(matched) = hook.wants(&attributes)? else { continue };
        if !round.includes(&hook.id) {
            continue;
        }
        let answer = hook.ask(webhooks.client(), &snapshot, &attributes, &matched, true).await;
        let outcome = heed(review, hook, &matched, answer, object.as_deref_mut(), warnings).await;
        round.done(hook.is_reinvoked.then(|| hook.id.clone()), matches!(outcome, Ok(true)));
        match outcome {
            Ok(_) => {}
            Err(Refusal::NotAsked(why)) if hook.ignores_failures => {
                webhooks.fail_open.passed_over(&hook.name, "admit", &why);
            }
            Err(Refusal::NotAsked(why)) => return Err(hook.not_asked(&why)),
            Err(Refusal::Denied(error)) => return Err(error),
        }
    }
    round.end(object.as_deref());
    Ok(())
}

/// Does what an answer says; returns whether it has changed the object.
async fn heed(
    review: &Review<'_>,
    hook: &Hook,
    matched: &Arc<Kind>,
    answer: Result<Answer, Refusal>,
    object: Option<&mut Value>,
    warnings: &mut Vec<String>,
) -> Result<bool, Refusal> {
    let answer = answer?;
    answer.warnings.iter().for_each(|warning| warn(warnings, warning));
    if !answer.allowed {
        return Err(Refusal::Denied(denial(&hook.name, answer.status.as_ref())));
    }
    let Some((bytes, patch_type)) = answer.patch else { return Ok(false) };
    let patch = JsonPatch::parse(&bytes).map_err(|error| {
        let why = error.message.replace("error decoding patch: ", "");
        let why = why.replace("[]handlers.jsonPatchOp", "jsonpatch.Patch");
        Refusal::NotAsked(format!("received undecodable patch in webhook response: {why}"))
    })?;
    if patch.is_empty() {
        return Ok(false);
    }
    let Some(object) = object else {
        return Err(Refusal::Denied(ApiError::internal(&format!(
            "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
            hook.name
        ))));
    };
    if patch_type != "JSONPatch" {
        return Err(Refusal::NotAsked(format!("unsupported patch type {patch_type:?}")));
    }
    apply(review, matched, (&patch, &bytes), object).await.map_err(Refusal::Denied)
}

/// Patches an object in the version of `matched`; returns whether that has changed it.
async fn apply(
    review: &Review<'_>,
    matched: &Arc<Kind>,
    (patch, bytes): (&JsonPatch, &[u8]),
    object: &mut Value,
) -> Result<bool, ApiError> {
    let attributes = Attributes::of(review, Some(object));
    let seen = attributes.as_matched(object, matched).await?;
    let mut written = seen.clone();
    // What is built in is decoded by its types.
    if matched.custom.is_some() {
        read_doubles_back(written.to_mut());
    }
    let patched = patch.apply(&written).map_err(|_| ApiError::internal(&explain(bytes, &seen)))?;
    let adopted = adopt(review, matched, patched, false)?;
    let changed = *seen != adopted;
    let kind = review.call.kind;
    let same = attributes.gvk(kind) == attributes.gvk(matched);
    // It was written as JSON, and read: it is taken over though nothing has changed.
    *object = if same {
        adopted
    } else {
        match review.objects.in_version(kind, &adopted).await? {
            Some(back) => back,
            None => converted(adopted, matched, kind),
        }
    };
    Ok(changed)
}
