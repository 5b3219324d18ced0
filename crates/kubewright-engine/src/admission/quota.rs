//! ResourceQuota: what a write adds is charged to the quotas of its namespace, or the write is refused
//! (`k8s.io/apiserver/pkg/admission/plugin/resourcequota`).

use std::sync::{Arc, LazyLock};

use futures::future::BoxFuture;
use kubewright_identity::authn::User;
use kubewright_kinds::built_in::core::resource_quota::RESOURCE_QUOTA;
use kubewright_kinds::{Counted, Kind};
use kubewright_meta::{ApiError, object};
use kubewright_quota::{Change, Charge, Evaluator};
use serde_json::Value;

use super::refusal::forbidden;
use super::{Operation, Review, stored};
use crate::registry::{Call, Part, Written};

const COLLECTION: &str = "/resourcequotas";
/// Who writes the status of quotas.
static SERVER: LazyLock<User> = LazyLock::new(|| User::new("system:apiserver", ["system:masters"]));

/// Charges a write to every quota that it concerns. Each charge is one compare-and-swap of the quota's status, which
/// is checked again at that moment: of two writes that both would fit, and not together, one is refused.
///
/// # Errors
/// 403 for a write that does not fit, or does not say what the quota limits.
pub(super) async fn charge(review: &Review<'_>, object: &Value) -> Result<(), ApiError> {
    let call = review.call;
    let snapshot = review.registry.snapshot();
    if call.namespace.is_empty() || snapshot.len(COLLECTION) == 0 || call.kind.counted == Counted::Uncharged {
        return Ok(());
    }
    let evaluator = Evaluator::of_kind(call.kind);
    let old = review.old.filter(|_| review.operation == Operation::Update);
    if !evaluator.handles(review.operation, review.subresource, object, old) {
        return Ok(());
    }
    let change = Change {
        evaluator: &evaluator,
        object,
        old,
        always: review.subresource == "status",
        now: review.registry.world().clock.now(),
    };
    let refuse = |why: String| forbidden(review, object, &why);
    let mut charged = Vec::new();
    for quota in stored::in_namespace(&snapshot, COLLECTION, call.namespace) {
        if change.charge(&quota).map_err(refuse)? != Charge::None {
            charged.push(object::name(&quota).to_owned());
        }
    }
    if review.dry_run || charged.is_empty() {
        return Ok(());
    }
    let Some(kind) = review.registry.kinds().find(&RESOURCE_QUOTA).cloned() else { return Ok(()) };
    for name in charged {
        let edit = |quota: &mut Value| {
            if let Charge::Used(used) = change.charge(quota).map_err(refuse)? {
                object::member_mut(quota, "status").insert("used".into(), used);
            }
            Ok(())
        };
        match write(review, &kind, &name, &edit).await {
            // The quota is gone: it limits nothing any more.
            Err(error) if error.reason == "NotFound" => {}
            written => drop(written?),
        }
    }
    Ok(())
}

/// A write within a write: its type has to be told.
fn write<'a>(
    review: &'a Review<'_>,
    kind: &'a Arc<Kind>,
    name: &'a str,
    edit: &'a (dyn Fn(&mut Value) -> Result<(), ApiError> + Send + Sync),
) -> BoxFuture<'a, Result<Written, ApiError>> {
    let call = Call { kind, namespace: review.call.namespace, name, user: &SERVER };
    Box::pin(review.registry.edit(call, Part::Status, false, edit))
}
