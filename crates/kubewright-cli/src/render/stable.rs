//! Objects as YAML that is the same in each run: in one order, without what the server and the clock give them.

use kube::ResourceExt;
use kube::api::DynamicObject;
use kubewright_trial::stable;
use serde_json::Value;

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
    stable::rename_generated(&mut rendered);
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

/// An object as it is in each run. Of owners the name is told alone.
fn without_volatile(object: &Value, rendering: Rendering) -> Value {
    let mut object = stable::without_volatile(object, rendering.has_status, &|_| None);
    let owners = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
    for owner in owners.into_iter().flatten() {
        owner.as_object_mut().map(|owner| owner.remove("uid"));
    }
    object
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
    fn nothing_is_added_to_an_object_without_owners() {
        let page = json!({"kind": "Page", "metadata": {"name": "home"}, "spec": {"size": 1}});
        assert_eq!(render(&[made("/pages", page.clone())], &[], ALL)[0].object, page);
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
        assert_eq!(names(&[pod("p-x7bcd", "b"), pod("p-k2bcd", "a")]), wanted);
        assert_eq!(names(&[pod("p-4bcdf", "a"), pod("p-z9bcd", "b")]), wanted);
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
