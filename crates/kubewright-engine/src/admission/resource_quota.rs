//! ResourceQuota: what a write adds is charged to the quotas of its namespace, or the write is refused
//! (`k8s.io/apiserver/pkg/admission/plugin/resourcequota`).

use kubewright_kinds::Counted;
use kubewright_kinds::built_in::core::resource_quota::RESOURCE_QUOTA;
use kubewright_meta::{ApiError, object};
use kubewright_quota::{Change, Charge, Evaluator};
use serde_json::Value;

use super::refusal::forbidden;
use super::{Operation, Review};

/// Charges a write to every quota that it concerns. Each charge is one compare-and-swap of the quota's status, which
/// is checked again at that moment: of two writes that both would fit, and not together, one is refused.
///
/// # Errors
/// 403 for a write that does not fit, or does not say what the quota limits.
pub(super) async fn charge(review: &Review<'_>, object: &Value) -> Result<(), ApiError> {
    let call = review.call;
    if call.namespace.is_empty()
        || call.kind.counted == Counted::Uncharged
        || review.objects.snapshot().len(RESOURCE_QUOTA.collection()) == 0
    {
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
        now: review.objects.world().clock.now(),
    };
    let refuse = |why: String| forbidden(review, object, &why);
    let mut charged = Vec::new();
    for quota in review.objects.in_namespace(&RESOURCE_QUOTA, call.namespace) {
        if change.charge(&quota).map_err(refuse)? != Charge::None {
            charged.push(object::name(&quota).to_owned());
        }
    }
    if review.dry_run || charged.is_empty() {
        return Ok(());
    }
    for name in charged {
        let edit = |quota: &mut Value| {
            if let Charge::Used(used) = change.charge(quota).map_err(refuse)? {
                object::member_mut(quota, "status").insert("used".into(), used);
            }
            Ok(())
        };
        match review.objects.edit_quota(call.namespace, &name, &edit).await {
            // The quota is gone: it limits nothing any more.
            Err(error) if error.reason == "NotFound" => {}
            written => written?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use kubewright_kinds::built_in::core::pod::POD;
    use serde_json::json;

    use super::super::fake::Fake;
    use super::*;

    #[tokio::test]
    async fn what_does_not_fit_is_refused_and_what_nothing_keeps_is_not_charged() {
        let meta = json!({"namespace": "n", "name": "q"});
        let (spec, status) =
            (json!({"hard": {"pods": "1"}}), json!({"hard": {"pods": "1"}, "used": {"pods": "0"}}));
        let fake =
            Fake::with(&[(&RESOURCE_QUOTA, json!({"metadata": meta, "spec": spec, "status": status}))]);
        let pod = json!({"metadata": {"namespace": "n", "name": "p"}, "spec": {"containers": []}});
        let review = fake.review(&POD, Operation::Create);
        charge(&Review { dry_run: true, ..review }, &pod).await.expect("there is room");
        charge(&review, &pod).await.expect("there is room");
        let refused = charge(&review, &pod).await.expect_err("there is none left").message;
        assert!(refused.contains("exceeded quota: q"), "{refused}");
    }
}
