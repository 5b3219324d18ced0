//! An operator asks for nothing that it has no right to, and writes nothing that a schema forbids.
//!
//! Judged: answers of 403 to any request, and of 422 to creations, updates and patches (no fault of a plan answers so). Not
//! judged: 403 in a namespace that is being deleted or has a quota (nothing may be created there, whoever asks); 422 for a
//! JSON patch, in which a `test` may not hold, and for a patch of an object that was being deleted, or was deleted, at some time:
//! it may have been meant for the one before (a uid is a precondition), or have come too late to add a finalizer.

use std::collections::BTreeSet;
use std::sync::Arc;

use kubewright_cluster::admin::AnsweredRequest;
use kubewright_cluster::recording::{Did, Write};

use super::Evidence;

pub(super) fn judge(evidence: &Evidence) -> Option<String> {
    let (closed, ended) = (closed_namespaces(evidence), ended_objects(evidence));
    let wrong = |request: &&AnsweredRequest| match (request.code, request.info.verb) {
        (Some(403), "create") => !closed.contains(request.info.namespace.as_str()),
        (Some(403), _) | (Some(422), "create" | "update") => true,
        (Some(422), "patch") => {
            let of = [&request.info.resource, &request.info.namespace, &request.info.name];
            matches!(request.info.patch, "merge" | "strategic" | "apply")
                && !ended.contains(&of.map(String::clone))
        }
        _ => false,
    };
    let found = evidence.requests.iter().find(wrong)?;
    let (info, code) = (&found.info, found.code.unwrap_or_default());
    let slash = if info.subresource.is_empty() { "" } else { "/" };
    let what = if code == 403 { "has no right to" } else { "was refused as invalid (422) when it tried to" };
    Some(format!(
        "{} {what} {} {}{slash}{} {}/{} at {}",
        info.user, info.verb, info.resource, info.subresource, info.namespace, info.name, found.time
    ))
}

/// The namespaces in which not everything may be created, at least at some time.
fn closed_namespaces(evidence: &Evidence) -> BTreeSet<String> {
    let mut closed = BTreeSet::new();
    for write in evidence.recording.writes() {
        match &*write.collection {
            "/namespaces" if write.object()["metadata"]["deletionTimestamp"].is_string() => {
                closed.insert(write.name().to_owned());
            }
            "/resourcequotas" => {
                closed.insert(write.namespace().to_owned());
            }
            _ => {}
        }
    }
    closed
}

/// The objects that were being deleted or were deleted at some time: resource, namespace and name.
fn ended_objects(evidence: &Evidence) -> BTreeSet<[String; 3]> {
    let ends = |write: &&Arc<Write>| {
        write.did == Did::Delete || write.object()["metadata"]["deletionTimestamp"].is_string()
    };
    let ended = evidence.recording.writes().iter().filter(ends);
    let named = ended.map(|write| {
        let resource = write.collection.rsplit('/').next().unwrap_or_default();
        [resource, write.namespace(), write.name()].map(str::to_owned)
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use kubewright_cluster::admin::RequestInfo;
    use serde_json::json;

    use super::super::evidence::stories::{Story, TEST};
    use super::*;

    fn judged(verb: &'static str, code: u16) -> Option<String> {
        judge(&Story::default().request(1.0, verb, "configmaps a", code, false).evidence())
    }

    #[test]
    fn a_right_that_is_missing_is_found() {
        for verb in ["get", "list", "watch", "create", "patch", "delete"] {
            let found = judged(verb, 403).expect(verb);
            assert!(found.contains(&format!("has no right to {verb} configmaps default/a")), "{found}");
        }
    }

    #[test]
    fn an_object_that_a_schema_forbids_is_found() {
        assert!(judged("create", 422).is_some() && judged("update", 422).is_some());
        for (patch, is_found) in [("merge", true), ("strategic", true), ("apply", true), ("json", false)] {
            let mut evidence = Story::default().request(1.0, "patch", "configmaps a", 422, false).evidence();
            let info = RequestInfo { patch, ..(*evidence.requests[0].info).clone() };
            evidence.requests[0].info = Arc::new(info);
            assert_eq!(judge(&evidence).is_some(), is_found, "{patch}");
        }
    }

    #[test]
    fn a_patch_that_was_meant_for_the_object_before_is_not() {
        let story = Story::default().write(0.5, TEST, Did::Create, "/configmaps default/a", json!({}));
        let story = story.write(0.7, TEST, Did::Delete, "/configmaps default/a", json!({}));
        let mut evidence = story.request(1.0, "patch", "configmaps a", 422, false).evidence();
        let info = RequestInfo { patch: "merge", ..(*evidence.requests[0].info).clone() };
        evidence.requests[0].info = Arc::new(info);
        assert_eq!(judge(&evidence), None);
    }

    #[test]
    fn what_is_normal_is_not() {
        for code in [200, 404, 409, 410, 429, 500, 504] {
            assert_eq!(judged("update", code), None);
        }
    }

    #[test]
    fn nothing_is_created_in_a_namespace_that_goes() {
        let going = json!({"metadata": {"name": "default", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
        let story = Story::default().write(0.0, TEST, Did::Update, "/namespaces default", going);
        assert_eq!(judge(&story.request(1.0, "create", "configmaps a", 403, false).evidence()), None);
    }
}
