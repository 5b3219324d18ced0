//! The paths of a kind.

use serde_json::{Map, Value};

use super::components::Components;
use super::operation::{Action, OperationTarget, capitalized};
use super::parameter;
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
    subresource: Option<&Subresource>,
    name: String,
    components: &mut Components,
) -> OperationTarget<'a> {
    let own = (kind.group.as_str(), kind.version.as_str(), kind.kind.as_str());
    let body = subresource.and_then(|subresource| components.body(subresource));
    OperationTarget {
        kind,
        name,
        body_kind: subresource.and_then(Subresource::body_kind).unwrap_or(own),
        body: body.unwrap_or_else(|| components.kind(kind)),
    }
}

/// Adds a path with those of the actions whose verbs are served there, if there are any.
fn insert(
    path: &str,
    subject: &OperationTarget,
    actions: &[Action],
    served: &[&str],
    components: &mut Components,
    paths: &mut Map<String, Value>,
) {
    let mut item: Map<String, Value> = actions
        .iter()
        .filter(|action| served.contains(&action.verb()))
        .map(|action| (action.method().to_owned(), subject.operation(*action, components)))
        .collect();
    if !item.is_empty() {
        item.insert("parameters".to_owned(), parameter::of_path(path).into());
        paths.insert(path.to_owned(), Value::Object(item));
    }
}
