//! The paths of a kind.

use serde_json::{Map, Value};

use super::components::Components;
use super::operation::{Action, OperationTarget, capitalized};
use kubewright_kinds::{Kind, Subresource};

/// Adds the paths of a kind and what can be done there.
pub(super) fn add(kind: &Kind, components: &mut Components, paths: &mut Map<String, Value>) {
    let root = match kind.group.as_str() {
        "" => format!("/api/{}", kind.version),
        group => format!("/apis/{group}/{}", kind.version),
    };
    let (collection, scope) = match kind.namespaced() {
        true => (format!("{root}/namespaces/{{namespace}}/{}", kind.plural), "Namespaced"),
        false => (format!("{root}/{}", kind.plural), ""),
    };
    let subject = subject(kind, None, format!("{scope}{}", kind.kind), components);
    let served = kind.verbs.names();
    insert(&collection, &subject, &Action::OF_COLLECTIONS, served, components, paths);
    if kind.namespaced() {
        let everywhere =
            OperationTarget { name: format!("{}ForAllNamespaces", kind.kind), ..subject.clone() };
        insert(&format!("{root}/{}", kind.plural), &everywhere, &[Action::List], served, components, paths);
    }
    let object = format!("{collection}/{{name}}");
    insert(&object, &subject, &Action::OF_OBJECTS, served, components, paths);
    for subresource in &kind.subresources {
        let name = format!("{scope}{}{}", kind.kind, capitalized(subresource.name()));
        let subject = self::subject(kind, Some(subresource), name, components);
        let path = format!("{object}/{}", subresource.name());
        insert(&path, &subject, &Action::OF_SUBRESOURCES, subresource.verbs(), components, paths);
    }
}

fn subject<'a>(
    kind: &'a Kind,
    subresource: Option<&'a Subresource>,
    name: String,
    components: &mut Components,
) -> OperationTarget<'a> {
    let own = (kind.group.as_str(), kind.version.as_str(), kind.kind.as_str());
    let body = subresource.and_then(|subresource| components.body(subresource));
    // What is done to a part of a custom object is told as done to the object.
    let body_kind = subresource.filter(|_| kind.custom.is_none()).and_then(Subresource::body_kind);
    OperationTarget {
        kind,
        name,
        subresource: subresource.map_or("", Subresource::name),
        body_kind: body_kind.unwrap_or(own),
        body: body.unwrap_or_else(|| components.kind(kind)),
    }
}

/// Adds a path with those of the actions whose verbs are served there, if there are any. The parameters that all of them have
/// are those of the path (`k8s.io/kube-openapi/pkg/builder3`).
fn insert(
    path: &str,
    subject: &OperationTarget<'_>,
    actions: &[Action],
    served: &[&str],
    components: &mut Components,
    paths: &mut Map<String, Value>,
) {
    let version = components.version();
    let served: Vec<(Action, Vec<Value>)> = actions
        .iter()
        .filter(|action| served.contains(&action.verb()))
        .map(|action| (*action, subject.parameters(*action, path, version)))
        .collect();
    let Some((_, first)) = served.first() else { return };
    let is_common = |one: &Value| served.iter().all(|(_, parameters)| parameters.contains(one));
    let common: Vec<Value> = first.iter().filter(|one| is_common(one)).cloned().collect();
    let mut item = Map::new();
    for (action, mut parameters) in served {
        let mut operation = subject.operation(action, components);
        parameters.retain(|one| !common.contains(one));
        if !parameters.is_empty() {
            operation.insert("parameters".to_owned(), parameters.into());
        }
        item.insert(action.method().to_owned(), operation.into());
    }
    item.insert("parameters".to_owned(), common.into());
    paths.insert(path.to_owned(), Value::Object(item));
}
