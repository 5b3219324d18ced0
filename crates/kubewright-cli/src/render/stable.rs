//! Objects as YAML that is the same in each run: in one order, without what the server and the clock give them.

use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Map, Value};

use super::made::Made;

/// What of objects is printed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rendering {
    pub(super) has_status: bool,
    pub(super) has_events: bool,
}

/// An object as it is printed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rendered {
    /// `deployments.apps/web -n shop`.
    pub(super) title: String,
    pub(super) object: Value,
}

/// Metadata that the server gives.
const METADATA: [&str; 7] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "selfLink",
    "deletionGracePeriodSeconds",
];
/// Annotations of built-in controllers.
const ANNOTATIONS: [&str; 2] =
    ["deployment.kubernetes.io/revision", "deprecated.daemonset.template.generation"];
/// What the server allots to Services, ServiceAccounts and claims.
const ALLOTTED: [&str; 7] =
    ["clusterIP", "clusterIPs", "healthCheckNodePort", "nodePort", "volumeName", "nodeName", "ipFamilies"];
/// What stands for a time, and for a uid of an object that is not printed.
const TIME: &str = "<time>";
const UID: &str = "<uid>";

/// The objects that were made, in their order.
pub(super) fn render(made: &[Made], given: &[DynamicObject], rendering: Rendering) -> Vec<Rendered> {
    let is_event = |one: &&Made| one.collection.ends_with("/events");
    let is_given = |one: &&Made| given.iter().any(|given| is_same(given, &one.object));
    let wanted = made
        .iter()
        .filter(|one| rendering.has_events || !is_event(one))
        .filter(|one| rendering.has_status || !is_given(one));
    let mut rendered: Vec<(String, Value)> =
        wanted.map(|one| (one.collection.clone(), without_volatile(&one.object, rendering))).collect();
    rename_generated(&mut rendered);
    let mut all: Vec<Rendered> = rendered
        .into_iter()
        .map(|(collection, object)| Rendered { title: title(&collection, &object), object })
        .collect();
    all.sort_by_cached_key(|one| (text_at(&one.object, "/metadata/namespace"), one.title.clone()));
    all
}

fn is_same(given: &DynamicObject, object: &Value) -> bool {
    let kind = given.types.as_ref().map_or("", |types| &*types.kind);
    let group = given
        .types
        .as_ref()
        .and_then(|types| types.api_version.split_once('/'))
        .map_or("", |(group, _)| group);
    let other = object["apiVersion"]
        .as_str()
        .and_then(|version| version.split_once('/'))
        .map_or("", |(group, _)| group);
    let namespace = given.metadata.namespace.as_deref().unwrap_or("default");
    object["kind"] == kind
        && group == other
        && object["metadata"]["name"] == *given.name_any()
        && object["metadata"]["namespace"].as_str().is_none_or(|place| place == namespace)
}

fn text_at(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// `deployments.apps/web -n shop`.
fn title(collection: &str, object: &Value) -> String {
    let (group, plural) = collection.split_once('/').unwrap_or(("", collection));
    let kind = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
    let (name, namespace) = (text_at(object, "/metadata/name"), text_at(object, "/metadata/namespace"));
    let place = if namespace.is_empty() { String::new() } else { format!(" -n {namespace}") };
    format!("{kind}/{name}{place}")
}

/// An object without what differs from run to run.
fn without_volatile(object: &Value, rendering: Rendering) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        METADATA.iter().for_each(|field| drop(metadata.remove(*field)));
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            ANNOTATIONS.iter().for_each(|name| drop(annotations.remove(*name)));
        }
        if metadata.get("annotations").and_then(Value::as_object).is_some_and(Map::is_empty) {
            metadata.remove("annotations");
        }
        for owner in metadata.get_mut("ownerReferences").and_then(Value::as_array_mut).into_iter().flatten() {
            owner.as_object_mut().map(|owner| owner.remove("uid"));
        }
    }
    match object["kind"].as_str() {
        Some("Service") => without_allotted(&mut object["spec"]),
        Some("PersistentVolumeClaim" | "Pod") => drop(object["spec"].as_object_mut().map(|spec| {
            spec.remove("volumeName");
            spec.remove("nodeName");
        })),
        _ => {}
    }
    if !rendering.has_status && object.get("status").is_some() {
        object.as_object_mut().map(|object| object.remove("status"));
    }
    same_words(&mut object);
    object
}

fn without_allotted(spec: &mut Value) {
    if spec["clusterIP"] == "None" {
        // Somebody wanted it so.
        return;
    }
    if let Some(spec) = spec.as_object_mut() {
        ALLOTTED.iter().for_each(|field| drop(spec.remove(*field)));
    }
    for port in spec["ports"].as_array_mut().into_iter().flatten() {
        port.as_object_mut().map(|port| port.remove("nodePort"));
    }
}

/// Times and uids in texts become the same words in each run.
fn same_words(value: &mut Value) {
    match value {
        Value::String(text) if is_time(text) => TIME.clone_into(text),
        Value::String(text) if is_uid(text) => UID.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(same_words),
        Value::Object(fields) => fields.values_mut().for_each(same_words),
        _ => {}
    }
}

fn is_time(text: &str) -> bool {
    text.len() >= 20 && text.ends_with('Z') && text.parse::<jiff::Timestamp>().is_ok()
}

fn is_uid(text: &str) -> bool {
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    groups == [8, 4, 4, 4, 12] && text.chars().all(|letter| letter == '-' || letter.is_ascii_hexdigit())
}

/// Names that the server made up (`generateName`) become numbers, in the order of what the objects say.
fn rename_generated(objects: &mut [(String, Value)]) {
    let mut by_prefix: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
    for (place, (collection, object)) in objects.iter().enumerate() {
        let prefix = text_at(object, "/metadata/generateName");
        if !prefix.is_empty() && text_at(object, "/metadata/name").starts_with(&prefix) {
            by_prefix.entry((collection.clone(), prefix)).or_default().push(place);
        }
    }
    for ((_, prefix), mut places) in by_prefix {
        places.sort_by_cached_key(|place| {
            let mut object = objects[*place].1.clone();
            object["metadata"]["name"] = Value::Null;
            object.to_string()
        });
        for (number, place) in places.into_iter().enumerate() {
            objects[place].1["metadata"]["name"] = format!("{prefix}{}", number + 1).into();
        }
    }
}

/// One object as YAML.
///
/// # Errors
/// When it cannot be written as such.
pub(super) fn text(one: &Rendered) -> anyhow::Result<String> {
    Ok(serde_saphyr::to_string(&one.object)?.trim_end().to_owned() + "\n")
}

/// All of them, as documents of one text.
///
/// # Errors
/// As [`text`].
pub(super) fn yaml(all: &[Rendered]) -> anyhow::Result<String> {
    let mut whole = String::new();
    for one in all {
        whole += &format!("---\n# {}\n{}", one.title, text(one)?);
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ALL: Rendering = Rendering { has_status: true, has_events: false };

    fn made(collection: &str, object: Value) -> Made {
        Made { collection: collection.to_owned(), object }
    }

    #[test]
    fn what_the_server_and_the_clock_give_is_left_out() {
        let service = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "web", "namespace": "a", "uid": "1", "resourceVersion": "7", "managedFields": [],
                "ownerReferences": [{"kind": "Page", "name": "home", "uid": "2"}]},
            "spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 80, "nodePort": 30000}]},
            "status": {"at": "2026-01-01T00:00:00Z", "of": "0f8fad5b-d9cb-469f-a165-70867728950e"}});
        let all = render(&[made("/services", service)], &[], ALL);
        assert_eq!(
            yaml(&all).expect("YAML"),
            "---\n# services/web -n a\napiVersion: v1\nkind: Service\nmetadata:\n  name: web\n  namespace: a\n  ownerReferences:\n  \
             - kind: Page\n    name: home\nspec:\n  ports:\n  - port: 80\nstatus:\n  at: <time>\n  of: <uid>\n"
        );
    }

    #[test]
    fn generated_names_are_numbers_in_the_order_of_what_they_say() {
        let pod = |name: &str, image: &str| {
            made(
                "/pods",
                json!({"kind": "Pod", "metadata": {"name": name, "generateName": "p-"}, "spec": {"image": image}}),
            )
        };
        let names = |pods: &[Made]| -> Vec<(String, String)> {
            let all = render(pods, &[], ALL);
            all.iter().map(|one| (one.title.clone(), text_at(&one.object, "/spec/image"))).collect()
        };
        let wanted =
            [("pods/p-1", "a"), ("pods/p-2", "b")].map(|(title, image)| (title.to_owned(), image.to_owned()));
        assert_eq!(names(&[pod("p-x7", "b"), pod("p-k2", "a")]), wanted);
        assert_eq!(names(&[pod("p-a1", "a"), pod("p-z9", "b")]), wanted);
    }

    #[test]
    fn what_was_given_and_events_are_printed_where_they_are_wanted() {
        let page = json!({"apiVersion": "web.example.org/v1", "kind": "Page", "metadata": {"name": "home", "namespace": "default"}});
        let given = [crate::access::object(
            json!({"apiVersion": "web.example.org/v1", "kind": "Page", "metadata": {"name": "home"}}),
        )
        .expect("an object")];
        let event =
            json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "default"}});
        let all = [made("web.example.org/pages", page), made("/events", event)];
        let count = |has_status, has_events| render(&all, &given, Rendering { has_status, has_events }).len();
        assert_eq!((count(false, false), count(true, false), count(false, true)), (0, 1, 1));
    }
}
