//! Items of lists that cannot stand beside what is applied: whose they were, they become the applier's, so that its next apply, which does
//! not name them, takes them away.
//!
//! An item of a list that is a map is known by its key. Somebody who changes the key of an item, as the number of a Service's port, makes it
//! another item; to apply the first one again adds it beside that, and the API server refuses both together, as they have one name.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::take_over::{self, unite};
use crate::{Cached, Context, Error, Key, cache::Applier};

/// Why the API server refuses an item because of another one (`k8s.io/apimachinery/pkg/apis/meta/v1/types.go`): it has what only one may
/// have, or lacks what only one alone may lack.
const DUPLICATE: &str = "FieldValueDuplicate";
const REQUIRED: &str = "FieldValueRequired";

/// Part of the path of a field: its name, and whether an item of it is meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    name: String,
    is_list: bool,
}

/// A list of which an item is refused because of another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Full {
    /// The path to the list.
    list: Vec<Part>,
    /// The field of an item that only one may have so; without it no other item can be there.
    unique: Option<String>,
}

/// Gives the applier the items of others by which `error` refuses what is wanted; whether there are any, so that it is worth another try.
pub(super) async fn make_room<K: Cached>(
    context: &Context,
    kind: &K::DynamicType,
    key: &Key,
    applier: &Applier,
    wanted: &Value,
    error: &Error,
) -> Result<bool, Error> {
    let full = full(error);
    if full.is_empty() {
        return Ok(false);
    }
    let object = take_over::stored::<K>(context, kind, key).await?;
    let Some(entries) = with_room(&object, applier, wanted, &full) else { return Ok(false) };
    take_over::set_managed_fields::<K>(context, kind, key, applier, &object, &entries).await?;
    tracing::debug!(controller = %context.controller(), kind = %K::kind(kind), %key, "made room for what is applied");
    Ok(true)
}

/// The lists that an error is about.
fn full(error: &Error) -> BTreeSet<Full> {
    let status = error.status().filter(|status| status.code == 422);
    let causes = status.and_then(|status| status.details.as_ref()).into_iter().flat_map(|all| &all.causes);
    causes.filter_map(|cause| Full::of(&cause.reason, &cause.field)).collect()
}

impl Full {
    /// `spec.ports[1].name` is about the list `spec.ports`. Whose the references to owners and the like are is no matter of room.
    fn of(reason: &str, field: &str) -> Option<Self> {
        let part = |text: &str| match text.split_once('[') {
            None => Some(Part { name: text.to_owned(), is_list: false }),
            Some((name, number)) => {
                number.strip_suffix(']')?.parse::<usize>().ok()?;
                Some(Part { name: name.to_owned(), is_list: true })
            }
        };
        let mut list = field.split('.').map(part).collect::<Option<Vec<Part>>>()?;
        let last = list.iter().rposition(|part| part.is_list)?;
        let below = list.split_off(last + 1);
        let unique = match (reason, below.as_slice()) {
            (DUPLICATE, [field]) => Some(field.name.clone()),
            (DUPLICATE, []) | (REQUIRED, _) => None,
            _ => return None,
        };
        (list[0].name != "metadata").then_some(Self { list, unique })
    }

    /// Whether an item that is there cannot stand beside those that are wanted.
    fn is_in_the_way(&self, item: &Value, wanted: &[Value]) -> bool {
        self.unique.as_ref().is_none_or(|unique| {
            let value = &item[unique];
            !value.is_null() && wanted.iter().any(|wanted| wanted[unique] == *value)
        })
    }

    /// Takes what is in the way out of fields (`FieldsV1`) of an object, and gives it as fields.
    fn take(&self, fields: &mut Value, object: &Value, wanted: &Value) -> Option<Value> {
        self.take_at(&self.list, fields, object, wanted)
    }

    fn take_at(&self, path: &[Part], fields: &mut Value, object: &Value, wanted: &Value) -> Option<Value> {
        let (part, rest) = path.split_first()?;
        let name = format!("f:{}", part.name);
        let (object, wanted) = (&object[&part.name], &wanted[&part.name]);
        let all = fields.as_object_mut()?;
        let below = all.get_mut(&name)?;
        let taken = match part.is_list {
            false => self.take_at(rest, below, object, wanted)?,
            true => self.take_items(rest, below.as_object_mut()?, object.as_array()?, wanted.as_array()?)?,
        };
        // A field with nothing below it would be one that is owned as a whole.
        if below.as_object().is_some_and(Map::is_empty) {
            all.remove(&name);
        }
        Some(Map::from_iter([(name, taken)]).into())
    }

    fn take_items(
        &self,
        rest: &[Part],
        fields: &mut Map<String, Value>,
        items: &[Value],
        wanted: &[Value],
    ) -> Option<Value> {
        let keys: Vec<String> = fields.keys().filter(|key| key.starts_with("k:")).cloned().collect();
        let mut taken = Map::new();
        for key in keys {
            let Some(item) = items.iter().find(|item| has_key(item, &key)) else { continue };
            let part = match (wanted.iter().find(|item| has_key(item, &key)), rest) {
                (None, []) if self.is_in_the_way(item, wanted) => fields.remove(&key),
                (Some(wanted), [_, ..]) => {
                    fields.get_mut(&key).and_then(|below| self.take_at(rest, below, item, wanted))
                }
                _ => None,
            };
            if fields.get(&key).and_then(Value::as_object).is_some_and(Map::is_empty) {
                fields.remove(&key);
            }
            taken.extend(part.map(|part| (key, part)));
        }
        (!taken.is_empty()).then(|| taken.into())
    }
}

/// The managed fields of an object when the applier owns what is in the way of what is wanted; none where nothing is, or nobody owns it.
fn with_room(object: &Value, applier: &Applier, wanted: &Value, full: &BTreeSet<Full>) -> Option<Vec<Value>> {
    let mut entries = object["metadata"]["managedFields"].as_array()?.clone();
    let own = entries.iter().position(|entry| take_over::is_own(entry, applier))?;
    let version = entries[own]["apiVersion"].clone();
    let is_others =
        |entry: &Value| take_over::is_of_part(entry, applier) && !take_over::is_own(entry, applier);
    let mut room = Value::Null;
    for entry in entries.iter_mut().filter(|entry| entry["apiVersion"] == version && is_others(entry)) {
        let taken = full.iter().filter_map(|full| full.take(&mut entry["fieldsV1"], object, wanted));
        taken.for_each(|taken| unite(&mut room, &taken));
    }
    if room.is_null() {
        return None;
    }
    unite(&mut entries[own]["fieldsV1"], &room);
    entries.retain(|entry| entry["fieldsV1"].as_object().is_some_and(|fields| !fields.is_empty()));
    Some(entries)
}

/// Whether an item has a key such as `k:{"port":80,"protocol":"TCP"}`. What it does not say may be the default.
fn has_key(item: &Value, key: &str) -> bool {
    let key = key.strip_prefix("k:").map(serde_json::from_str::<Map<String, Value>>);
    key.is_some_and(|key| {
        key.is_ok_and(|key| key.iter().all(|(name, value)| item[name].is_null() || item[name] == *value))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn web() -> Applier {
        Applier { manager: "web".into(), subresource: None, is_replaced: false }
    }

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    /// The entries after room was made in an object for what is wanted.
    fn room(entries: &[Value], mut object: Value, wanted: &Value, field: &str) -> Option<Vec<Value>> {
        object["metadata"]["managedFields"] = entries.into();
        let full = Full::of(DUPLICATE, field).expect("a list");
        with_room(&object, &web(), wanted, &[full].into())
    }

    #[test]
    fn a_list_is_named_by_what_is_wrong_in_an_item_of_it() {
        let named = |reason, field| {
            let Full { list, unique } = Full::of(reason, field)?;
            let names: Vec<String> = list.into_iter().map(|part| part.name).collect();
            Some(format!("{} {}", names.join("/"), unique.unwrap_or_default()))
        };
        assert_eq!(named(DUPLICATE, "spec.ports[1].name").as_deref(), Some("spec/ports name"));
        assert_eq!(named(REQUIRED, "spec.ports[1].name").as_deref(), Some("spec/ports "));
        assert_eq!(
            named(DUPLICATE, "spec.template.spec.containers[0].ports[1]").as_deref(),
            Some("spec/template/spec/containers/ports ")
        );
        let others = [
            (DUPLICATE, "spec.replicas"),
            (REQUIRED, "metadata.ownerReferences[0].uid"),
            (DUPLICATE, "spec.selector[app]"),
            ("FieldValueInvalid", "spec.ports[0].port"),
        ];
        assert!(others.into_iter().all(|(reason, field)| named(reason, field).is_none()));
    }

    #[test]
    fn an_item_with_a_name_that_is_wanted_becomes_the_appliers_and_others_stay() {
        let port = |port: u16| format!(r#"k:{{"port":{port},"protocol":"TCP"}}"#);
        let ports = |all: &[u16]| -> Value {
            let items: Map<String, Value> =
                all.iter().map(|number| (port(*number), json!({".": {}, "f:port": {}}))).collect();
            json!({"f:spec": {"f:ports": items, "f:type": {}}})
        };
        let alone = |number: u16| json!({"f:spec": {"f:ports": {port(number): {".": {}, "f:port": {}}}, "f:type": {}}});
        let own = || entry("web", "Apply", &json!({"f:spec": {"f:type": {}}}));
        let object = || {
            json!({"spec": {"ports": [
                {"name": "http", "port": 81, "protocol": "TCP"}, {"name": "metrics", "port": 90, "protocol": "TCP"},
            ]}})
        };
        let wanted = json!({"spec": {"ports": [{"name": "http", "port": 80}]}});
        let entries = [own(), entry("kubectl", "Update", &ports(&[81, 90]))];
        let at = "spec.ports[1].name";
        assert_eq!(
            room(&entries, object(), &wanted, at),
            Some(vec![entry("web", "Apply", &alone(81)), entry("kubectl", "Update", &alone(90))])
        );
        let beside = [own(), entry("kubectl", "Update", &ports(&[90]))];
        assert_eq!(room(&beside, object(), &wanted, at), None, "it can stand there");
        assert_eq!(room(&entries[1..], object(), &wanted, at), None, "nothing was applied");
    }

    #[test]
    fn an_item_of_a_list_in_an_item_is_taken_where_the_outer_one_is_wanted() {
        let ports = |port: u16| {
            let port = format!(r#"k:{{"containerPort":{port},"protocol":"TCP"}}"#);
            json!({"f:containers": {r#"k:{"name":"web"}"#: {"f:ports": {port: {".": {}}}}}})
        };
        let with = |container: &str, port: u16| {
            let ports = json!([{"name": "http", "containerPort": port, "protocol": "TCP"}]);
            json!({"containers": [{"name": container, "ports": ports}]})
        };
        let own = entry("web", "Apply", &json!({"f:x": {}}));
        let entries = [own, entry("kubectl", "Update", &ports(81))];
        let at = "containers[0].ports[1].name";
        let mut all = ports(81);
        all["f:x"] = json!({});
        assert_eq!(
            room(&entries, with("web", 81), &with("web", 80), at),
            Some(vec![entry("web", "Apply", &all)]),
            "nothing is left of the other entry"
        );
        assert_eq!(room(&entries, with("web", 81), &with("other", 80), at), None);
    }
}
