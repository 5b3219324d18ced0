//! Namespaces that end, and API servers behind this one that do not answer.

use std::collections::BTreeMap;

use crate::cause::Cause;
use crate::causes::Around;
use crate::causes::services::unserved;
use crate::object::Object;
use crate::picture::Picture;
use crate::report::Finding;
use crate::text::{few, one_line};

pub(super) fn namespace(around: &Around<'_>) -> Vec<Finding> {
    let Around { picture, object, .. } = *around;
    if !object.is_deleting() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for kind in ["NamespaceDeletionDiscoveryFailure", "NamespaceDeletionGroupVersionParsingFailure"] {
        if let Some(condition) = object.condition_is(kind, "True") {
            let message = format!(
                "its controller cannot find out which kinds there are: {}",
                one_line(condition.message)
            );
            let next =
                "mend or delete the APIService that is not available: kubectl get apiservices | grep False";
            found.push(Finding::new(Cause::DiscoveryFailed, message, next).evidence(condition.line()));
            let broken =
                picture.all("apiregistration.k8s.io", "APIService").filter(|one| is_unavailable(one));
            found.extend(broken.map(|one| unavailable(picture, one)));
        }
    }
    let left = left(picture, object);
    let held: Vec<String> =
        left.iter().flat_map(|one| one.finalizers().map(|name| format!("{} ({name})", one.id()))).collect();
    if !held.is_empty() {
        let message = format!("finalizers hold {} of its objects: {}", held.len(), few(&held));
        let next = "the operators of these finalizers have to take them: see the objects below; was an operator removed before its objects?";
        let condition = object.condition("NamespaceFinalizersRemaining").map(|one| one.line());
        found.push(Finding::new(Cause::NamespaceFinalizer, message, next).all(condition));
    }
    if !left.is_empty() && held.is_empty() || left.is_empty() && found.is_empty() {
        found.push(content(object, &left));
    }
    found
}

fn content(object: &Object, left: &[&Object]) -> Finding {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for one in left {
        *counts.entry(one.kind()).or_default() += 1;
    }
    let counts: Vec<String> = counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let condition = object
        .condition("NamespaceContentRemaining")
        .or_else(|| object.condition("NamespaceDeletionContentFailure"));
    let (message, next) = if counts.is_empty() {
        let finalizers: Vec<String> =
            object.list("/spec/finalizers").filter_map(|one| one.as_str().map(str::to_owned)).collect();
        let text = format!("nothing that was read is left in it; its finalizers are {}", few(&finalizers));
        (text, "the namespace controller takes them: is it running?")
    } else {
        (
            format!("it still has {}", few(&counts)),
            "they are being deleted: see those below, and whether the namespace controller runs",
        )
    };
    Finding::new(Cause::NamespaceContent, message, next).all(condition.map(|one| one.line()))
}

/// What is left in a namespace that ends, what is held by finalizers first.
pub(super) fn left<'a>(picture: &'a Picture, namespace: &'a Object) -> Vec<&'a Object> {
    if !namespace.is_deleting() {
        return Vec::new();
    }
    let stays = |one: &&Object| {
        one.namespace() == namespace.name() && !matches!(one.kind(), "Event" | "Endpoints" | "EndpointSlice")
    };
    let mut found: Vec<&Object> = picture.objects.iter().filter(stays).collect();
    found.sort_by_key(|one| one.finalizers().next().is_none());
    found
}

fn is_unavailable(service: &Object) -> bool {
    service.condition("Available").is_some_and(|one| one.status != "True")
}

pub(super) fn api_service(around: &Around<'_>) -> Vec<Finding> {
    let Around { picture, object, .. } = *around;
    if is_unavailable(object) { vec![unavailable(picture, object)] } else { Vec::new() }
}

fn unavailable(picture: &Picture, object: &Object) -> Finding {
    let condition = object.condition("Available");
    let said = condition.map(|one| one_line(one.message)).unwrap_or_default();
    let why = unserved(picture, object.at("/spec/service")).unwrap_or(said);
    let message = format!("apiservice {} is not available: {why}", object.name());
    let next = format!(
        "mend the service behind it, or if that is gone for good: kubectl delete apiservice {}",
        object.name()
    );
    Finding::new(Cause::ApiServiceUnavailable, message, next).all(condition.map(|one| one.line()))
}
