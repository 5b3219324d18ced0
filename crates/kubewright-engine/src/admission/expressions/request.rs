//! The variable `request`: an admission request without its objects.

use kubewright_kinds::Kind;
use serde_json::{Value, json};

use super::super::matching::{Attributes, Gvk};

/// The request, whose objects are seen in the version of `matched`.
pub(in crate::admission) fn request_value(attributes: &Attributes<'_>, matched: &Kind) -> Value {
    let review = attributes.review;
    let kind = review.call.kind;
    let mut request = json!({
        "uid": "",
        "kind": gvk(&attributes.gvk(matched)),
        "resource": gvr(matched),
        "requestKind": gvk(&attributes.gvk(kind)),
        "requestResource": gvr(kind),
        "operation": attributes.operation(),
        "userInfo": review.call.user.to_info(),
        "object": null,
        "oldObject": null,
        "dryRun": review.dry_run,
        "options": review.options.to_value(review.operation),
    });
    let texts = [
        ("subResource", review.subresource),
        ("requestSubResource", review.subresource),
        ("name", attributes.name),
        ("namespace", attributes.namespace),
    ];
    for (field, text) in texts {
        if !text.is_empty() {
            request[field] = text.into();
        }
    }
    request
}

fn gvk(of: &Gvk) -> Value {
    json!({"group": of.group, "version": of.version, "kind": of.kind})
}

fn gvr(kind: &Kind) -> Value {
    json!({"group": kind.group, "version": kind.version, "resource": kind.plural})
}
