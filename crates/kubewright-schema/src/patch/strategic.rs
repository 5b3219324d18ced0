//! Strategic merge patches (`k8s.io/apimachinery/pkg/util/strategicpatch`): merge patches that know which lists are
//! merged item by item, and that carry directives (`$patch`, `$retainKeys`, `$setElementOrder/..`,
//! `$deleteFromPrimitiveList/..`). Only built-in kinds have them: their schemas say how each field is merged.

use std::collections::BTreeSet;
use std::mem::discriminant;

use kubewright_meta::cost;
use serde_json::{Map, Value};

use super::lists::{self, MergeList};
use crate::node::Coding;
use crate::{Merge, Node};

/// Says that an object replaces, or deletes, what it would be merged with.
pub(super) const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const ORDER: &str = "$setElementOrder";

/// Why a patch cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The patch is not of the right form.
    #[error("invalid patch format of {0}")]
    Format(&'static str),
    /// A list of lists would have to be merged.
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// What the patch asks for cannot be done with this object.
    #[error("{0}")]
    Impossible(String),
}

/// Merges a patch into an object whose schema is `node`.
///
/// # Errors
/// A directive that makes no sense, or a list that cannot be merged.
pub fn apply(
    object: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    node: &Node,
) -> Result<(), Failure> {
    merge(object, patch, Some(node))
}

/// Merges a patch into an object; `node` is absent where the schema says nothing.
pub(super) fn merge(
    target: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    node: Option<&Node>,
) -> Result<(), Failure> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        *target = match directive.as_str() {
            Some("replace") => without(patch, DIRECTIVE),
            Some("delete") => Map::new(),
            _ => return Err(unknown_directive(directive, patch)),
        };
        return Ok(());
    }
    retain_keys(target, patch)?;
    let ordered = merge_ordered_lists(target, patch, node)?;
    for (key, value) in patch {
        cost::step();
        if key == RETAIN_KEYS || key.starts_with(ORDER) || ordered.contains(key.as_str()) {
            continue;
        }
        if key.starts_with(DELETE_FROM) {
            let field = directive_field(key, DELETE_FROM, "primitive list")?;
            delete_from(target, field, value, node)?;
        } else {
            merge_field(target, key, value, node)?;
        }
    }
    Ok(())
}

fn merge_field(
    target: &mut Map<String, Value>,
    key: &str,
    value: &Value,
    node: Option<&Node>,
) -> Result<(), Failure> {
    if value.is_null() {
        target.remove(key);
        return Ok(());
    }
    let strategy = Strategy::of(node, key);
    let nested = matches!(
        (target.get(key), value),
        (Some(Value::Object(_)), Value::Object(_)) | (Some(Value::Array(_)), Value::Array(_))
    );
    if let Some(raw) = node.filter(|node| node.coding == Coding::Raw && nested) {
        let name = raw.name.as_deref().and_then(|name| name.rsplit('.').next()).unwrap_or("RawExtension");
        let why = format!("unable to find api field in struct {name} for the json field {key:?}");
        return Err(Failure::Impossible(why));
    }
    match (target.get_mut(key), value) {
        (Some(Value::Object(_)), Value::Object(_)) if strategy.replaces() => {
            target.insert(key.to_owned(), value.clone());
        }
        (Some(Value::Object(old)), Value::Object(new)) => merge(old, new, strategy.node())?,
        (Some(Value::Array(old)), Value::Array(new)) => *old = strategy.merge_lists(old, new)?,
        _ => match without_directives(value) {
            Some(value) => {
                target.insert(key.to_owned(), value);
            }
            None => {
                target.remove(key);
            }
        },
    }
    Ok(())
}

/// How a field is merged.
struct Strategy<'a> {
    field: Option<&'a Node>,
}

impl<'a> Strategy<'a> {
    fn of(node: Option<&'a Node>, field: &str) -> Self {
        Self { field: node.and_then(|node| node.field(field)).map(AsRef::as_ref) }
    }

    fn node(&self) -> Option<&'a Node> {
        self.field.map(Node::target)
    }

    fn merging(&self) -> Option<&'a Merge> {
        self.field.and_then(|field| field.merge.as_deref())
    }

    /// Whether `x-kubernetes-patch-strategy` has that word.
    fn has(&self, word: &str) -> bool {
        let strategy = self.merging().and_then(|merge| merge.patch_strategy.as_deref());
        strategy.is_some_and(|strategy| strategy.split(',').any(|one| one == word))
    }

    fn replaces(&self) -> bool {
        self.has("replace")
    }

    fn merge_key(&self) -> Option<&'a str> {
        self.merging().and_then(|merge| merge.patch_key.as_deref())
    }

    fn list(&self) -> MergeList<'a> {
        MergeList { key: self.merge_key(), items: self.node().and_then(|node| node.items.as_deref()) }
    }

    fn merge_lists(&self, old: &[Value], new: &[Value]) -> Result<Vec<Value>, Failure> {
        if self.has("merge") { self.list().merge(old, new) } else { Ok(new.to_vec()) }
    }
}

/// `$retainKeys` lists all fields that stay; the patch may have no others.
fn retain_keys(target: &mut Map<String, Value>, patch: &Map<String, Value>) -> Result<(), Failure> {
    let Some(retained) = patch.get(RETAIN_KEYS) else { return Ok(()) };
    let retained = retained.as_array().ok_or(Failure::Format("retainKeys"))?;
    let retained: BTreeSet<&str> = retained.iter().filter_map(Value::as_str).collect();
    let allowed = |key: &String| retained.contains(key.as_str());
    let is_directive =
        |key: &str| key == RETAIN_KEYS || key.starts_with(ORDER) || key.starts_with(DELETE_FROM);
    if patch.iter().any(|(key, value)| !value.is_null() && !is_directive(key) && !allowed(key)) {
        return Err(Failure::Format("retainKeys"));
    }
    target.retain(|key, _| allowed(key));
    Ok(())
}

/// Merges the lists for which the patch says an order (`$setElementOrder/<field>`). Returns these fields.
fn merge_ordered_lists<'a>(
    target: &mut Map<String, Value>,
    patch: &'a Map<String, Value>,
    node: Option<&Node>,
) -> Result<BTreeSet<&'a str>, Failure> {
    let mut done = BTreeSet::new();
    for (directive, order) in patch.iter().filter(|(key, _)| key.starts_with(ORDER)) {
        let field = directive_field(directive, ORDER, "setElementOrder list")?;
        let order = list(order)?;
        let old = target.get(field).map(list).transpose()?;
        let new = patch.get(field).map(list).transpose()?;
        let strategy = Strategy::of(node, field);
        strategy.list().check_order(new.unwrap_or_default(), order)?;
        let merged = match (old, new) {
            (None, None) => continue,
            (Some(old), None) => old.to_vec(),
            (None, Some(new)) => new.iter().filter_map(without_directives).collect(),
            (Some(old), Some(new)) => strategy.merge_lists(old, new)?,
        };
        lists::element_type(old.unwrap_or_default(), new.unwrap_or_default())?;
        let merged = strategy.list().ordered(merged, order, old.unwrap_or_default())?;
        target.insert(field.to_owned(), Value::Array(merged));
        done.insert(field);
    }
    Ok(done)
}

fn list(value: &Value) -> Result<&[Value], Failure> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| lists::wrong_type("[]interface {}", value))
}

/// A value as text: two are the same when these are.
pub(super) fn text(value: &Value) -> String {
    cost::step();
    value.to_string()
}

/// `$deleteFromPrimitiveList/<field>` takes scalars out of a list.
fn delete_from(
    target: &mut Map<String, Value>,
    field: &str,
    values: &Value,
    node: Option<&Node>,
) -> Result<(), Failure> {
    match (target.get_mut(field), values) {
        (_, Value::Null) => {
            target.remove(field);
        }
        (Some(Value::Array(items)), Value::Array(named)) => {
            *items = Strategy::of(node, field).list().without(items, named)?;
        }
        _ => {}
    }
    Ok(())
}

/// The field of a directive such as `$setElementOrder/containers`.
fn directive_field<'a>(key: &'a str, directive: &str, name: &'static str) -> Result<&'a str, Failure> {
    match key.split_once('/') {
        Some((start, field)) if start == directive => Ok(field),
        _ => Err(Failure::Format(name)),
    }
}

fn without(members: &Map<String, Value>, key: &str) -> Map<String, Value> {
    members
        .iter()
        .filter(|(name, _)| *name != key)
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// A patch as merging leaves it, which messages quote: what is new in the object, or of another type there, has lost its nulls;
/// directives that were followed are gone, and lists that were merged in a given order with them.
pub(super) fn left(patch: &Map<String, Value>, object: &Value, node: Option<&Node>) -> Value {
    if patch.contains_key(DIRECTIVE) {
        return Value::Object(without(patch, DIRECTIVE));
    }
    let is_ordered = |key: &str| patch.contains_key(&format!("{ORDER}/{key}"));
    let kept =
        patch.iter().filter(|(key, _)| *key != RETAIN_KEYS && !key.starts_with(ORDER) && !is_ordered(key));
    let members = kept.map(|(key, value)| {
        let value = match (object.get(key), value) {
            (Some(Value::Object(_)), Value::Object(inner)) if !Strategy::of(node, key).replaces() => {
                left(inner, &object[key], Strategy::of(node, key).node())
            }
            (Some(there), value) if discriminant(there) == discriminant(value) => value.clone(),
            (_, value) => without_inner_directives(&super::merge::without_nulls(value)),
        };
        (key.clone(), value)
    });
    Value::Object(members.collect())
}

/// What is left of a value that the object has got anew: Go takes what carries a `$patch` out of the maps in it, and makes new lists of
/// lists, of which the patch has those that stand in a map (`removeDirectives`).
fn without_inner_directives(value: &Value) -> Value {
    match value {
        Value::Object(members) if !members.contains_key(DIRECTIVE) => {
            let kept = members.iter().filter_map(|(key, member)| {
                let member = match member {
                    Value::Object(inner) if inner.contains_key(DIRECTIVE) => return None,
                    Value::Array(_) => without_directives(member)?,
                    member => without_inner_directives(member),
                };
                Some((key.clone(), member))
            });
            Value::Object(kept.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_inner_directives).collect()),
        as_it_is => as_it_is.clone(),
    }
}

/// A value of a patch as it stands in the object that gets it anew: objects that carry a `$patch` are left out (none,
/// when the value is one itself), and so are members that are null.
fn without_directives(value: &Value) -> Option<Value> {
    match value {
        Value::Object(members) if members.contains_key(DIRECTIVE) => None,
        Value::Object(members) => Some(Value::Object(
            members
                .iter()
                .filter(|(_, member)| !member.is_null())
                .filter_map(|(key, member)| Some((key.clone(), without_directives(member)?)))
                .collect(),
        )),
        Value::Array(items) => Some(Value::Array(items.iter().filter_map(without_directives).collect())),
        scalar => Some(scalar.clone()),
    }
}

/// The failure of a `$patch` that is unknown.
pub(super) fn unknown_directive(directive: &Value, patch: &Map<String, Value>) -> Failure {
    let members = lists::go_text(&Value::Object(patch.clone()));
    Failure::Impossible(format!("unknown patch type: {} in map: {members}", lists::go_text(directive)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// A schema of fields, each told as `{"strategy": .., "key": .., "fields": {..}}`; where there is a merge key, the
    /// fields are those of the items.
    fn schema(fields: &Value) -> Node {
        let mut node = Node::default();
        for (name, told) in fields.as_object().into_iter().flatten() {
            let text = |part: &str| told[part].as_str().map(Into::into);
            let mut field = schema(&told["fields"]);
            if told.get("key").is_some() {
                field = Node { items: Some(Arc::new(field)), ..Node::default() };
            }
            field.merge = Some(Box::new(Merge {
                patch_strategy: text("strategy"),
                patch_key: text("key"),
                ..Merge::default()
            }));
            node.properties.insert(name.as_str().into(), Arc::new(field));
        }
        node
    }

    fn pod_spec() -> Node {
        let environment = json!({"strategy": "merge", "key": "name"});
        schema(&json!({
            "containers": {"strategy": "merge", "key": "name", "fields": {"env": environment}},
            "volumes": {"strategy": "merge,retainKeys", "key": "name"},
            "finalizers": {"strategy": "merge"},
            "strategy": {"strategy": "retainKeys"},
            "selector": {"strategy": "replace"},
        }))
    }

    fn merged(object: Value, patch: Value) -> Result<Value, Failure> {
        let (Value::Object(mut object), Value::Object(patch)) = (object, patch) else { panic!("objects") };
        apply(&mut object, &patch, &pod_spec()).map(|()| Value::Object(object))
    }

    fn names(list: &Value) -> String {
        list.as_array().expect("a list").iter().filter_map(|item| item["name"].as_str()).collect()
    }

    #[test]
    fn objects_of_a_list_are_merged_by_their_key() {
        let object = json!({"containers": [
            {"name": "a", "args": ["x"], "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
            {"name": "b"},
        ]});
        let patch = json!({"containers": [
            {"name": "a", "args": ["y"], "env": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}]},
        ]});
        let expected = json!({"containers": [
            {"name": "a", "args": ["y"], "env": [
                {"name": "A", "value": "1"},
                {"name": "B", "value": "3"},
                {"name": "C", "value": "4"},
            ]},
            {"name": "b"},
        ]});
        assert_eq!(merged(object, patch), Ok(expected));
    }

    #[test]
    fn new_objects_come_before_those_that_the_patch_does_not_name() {
        let object = json!({"containers": [{"name": "a"}, {"name": "b"}]});
        let result = merged(object, json!({"containers": [{"name": "c"}]})).expect("mergeable");
        assert_eq!(names(&result["containers"]), "cab");
    }

    #[test]
    fn an_order_is_kept() {
        let object = json!({"containers": [{"name": "a"}, {"name": "b"}]});
        let order = json!([{"name": "c"}, {"name": "b"}, {"name": "d"}]);
        let patch =
            json!({"$setElementOrder/containers": order, "containers": [{"name": "c"}, {"name": "d"}]});
        let result = merged(object.clone(), patch).expect("mergeable");
        assert_eq!(names(&result["containers"]), "cabd");
        let result =
            merged(object.clone(), json!({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}));
        assert_eq!(names(&result.expect("mergeable")["containers"]), "ba");
        let patch =
            json!({"$setElementOrder/containers": order, "containers": [{"name": "d"}, {"name": "c"}]});
        let why = "The order in patch list:\n[map[name:d] map[name:c]]\n doesn't match $setElementOrder list:\n[map[name:c] map[name:b] map[name:d]]\n";
        assert_eq!(merged(object, patch), Err(Failure::Impossible(why.to_owned())));
    }

    #[test]
    fn directives_delete_and_replace() {
        let object =
            json!({"containers": [{"name": "a", "image": "x"}, {"name": "b"}], "selector": {"a": "b"}});
        let delete = json!({"containers": [{"name": "b", "$patch": "delete"}]});
        let result = merged(object.clone(), delete).expect("mergeable");
        assert_eq!(names(&result["containers"]), "a");
        let replace = json!({"containers": [{"$patch": "replace"}, {"name": "only"}]});
        let result = merged(object.clone(), replace).expect("mergeable");
        assert_eq!(names(&result["containers"]), "only");
        let replace = json!({"strategy": {"$patch": "replace", "type": "Recreate"}, "selector": {"c": "d"}});
        let before =
            json!({"strategy": {"rollingUpdate": {}, "type": "RollingUpdate"}, "selector": {"a": "b"}});
        let after = json!({"strategy": {"type": "Recreate"}, "selector": {"c": "d"}});
        assert_eq!(merged(before.clone(), replace), Ok(after));
        let result = merged(before, json!({"strategy": {"$patch": "delete"}})).expect("mergeable");
        assert_eq!(result["strategy"], json!({}));
        assert_eq!(
            merged(object, json!({"containers": [{"name": "a", "$patch": "frob"}]})),
            Err(Failure::Impossible("unknown patch type: frob in map: map[$patch:frob name:a]".to_owned()))
        );
        assert_eq!(merged(json!({}), json!({"strategy": {"$patch": "frob"}})), Ok(json!({})));
    }

    #[test]
    fn retained_keys_are_all_that_stay() {
        let object = json!({"volumes": [{"name": "v", "emptyDir": {}}]});
        let patch = |keys: Value| json!({"volumes": [{"name": "v", "$retainKeys": keys, "configMap": {"name": "c"}}]});
        let expected = json!({"volumes": [{"name": "v", "configMap": {"name": "c"}}]});
        assert_eq!(merged(object.clone(), patch(json!(["name", "configMap"]))), Ok(expected));
        assert_eq!(merged(object, patch(json!(["name"]))), Err(Failure::Format("retainKeys")));
    }

    #[test]
    fn lists_of_scalars_are_sets() {
        let object = json!({"finalizers": ["a", "b"]});
        let result = |patch: Value| merged(object.clone(), patch).expect("mergeable")["finalizers"].clone();
        assert_eq!(result(json!({"finalizers": ["c", "a"]})), json!(["c", "a", "b"]));
        assert_eq!(result(json!({"$deleteFromPrimitiveList/finalizers": ["b"]})), json!(["a"]));
        let class = super::super::super::Schema::built_in("io.k8s.api.resource.v1.DeviceClassSpec");
        let mut spec = json!({"config": [{"opaque": {"driver": "a"}}]});
        let patch = json!({"$deleteFromPrimitiveList/config": [{"opaque": {"driver": "a"}}]});
        let (Value::Object(target), Value::Object(patch)) = (&mut spec, &patch) else { panic!("objects") };
        let failed = apply(target, patch, class.root()).expect_err("no list of scalars");
        assert_eq!(failed.to_string(), "cannot merge lists without merge key for struct");
        assert_eq!(
            result(json!({"$setElementOrder/finalizers": ["c", "a"], "finalizers": ["c"]})),
            json!(["c", "a", "b"])
        );
        assert_eq!(result(json!({"finalizers": null})), Value::Null);
    }

    #[test]
    fn an_order_is_searched_as_far_as_an_item_needs() {
        let result = |order: Value| {
            let patch = json!({"$setElementOrder/containers": order});
            merged(json!({"containers": [{"name": "a"}]}), patch)
        };
        let why = |text: &str| Err(Failure::Impossible(text.to_owned()));
        assert_eq!(result(json!([1.5])), why("value for key 0 is not a map"));
        assert_eq!(result(json!([{"name": "b"}, 1.5])), why("value for key 1 is not a map"));
        let is_met = result(json!([{"name": "a"}, 1.5]));
        assert_eq!(is_met, why("expected a map[string]interface {}, but received a float64"));
    }

    #[test]
    fn an_object_without_its_key_cannot_be_merged() {
        let patch = json!({"containers": [{"image": "x"}]});
        let why = "map: map[image:x] does not contain declared merge key: name";
        assert_eq!(
            merged(json!({"containers": [{"name": "a"}]}), patch),
            Err(Failure::Impossible(why.to_owned()))
        );
        let order = json!({"$setElementOrder/containers": [{"image": "x"}]});
        assert_eq!(
            merged(json!({"containers": [{"name": "a"}]}), order.clone()),
            Err(Failure::Impossible(why.to_owned()))
        );
        // What is there is looked at first.
        assert_eq!(
            merged(json!({"containers": [{}]}), order),
            Err(Failure::Impossible("map: map[] does not contain declared merge key: name".to_owned()))
        );
        let patch = json!({"containers": [["x"]]});
        assert_eq!(merged(json!({"containers": []}), patch), Err(Failure::ListOfLists));
    }

    #[test]
    fn what_the_schema_does_not_know_is_merged_as_by_a_merge_patch() {
        let object = json!({"labels": {"a": "b", "c": "d"}, "list": [1, 2]});
        let patch = json!({"labels": {"a": null, "e": "f"}, "list": [3], "new": {"x": null, "y": 1}});
        let expected = json!({"labels": {"c": "d", "e": "f"}, "list": [3], "new": {"y": 1}});
        assert_eq!(merged(object, patch), Ok(expected));
    }

    proptest! {
        /// The names that a patch names stand in its order, the others in theirs, and none is lost.
        #[test]
        fn merging_keeps_all_objects_and_both_orders(
            old in prop::collection::btree_set("[a-h]", 0..8),
            old_order in prop::collection::vec(any::<u32>(), 8),
            new in prop::collection::btree_set("[a-h]", 0..8),
            new_order in prop::collection::vec(any::<u32>(), 8),
        ) {
            let shuffled = |set: BTreeSet<String>, order: Vec<u32>| {
                let mut named: Vec<_> = order.into_iter().zip(set).collect();
                named.sort();
                named.into_iter().map(|(_, name)| name).collect::<Vec<String>>()
            };
            let (old, new) = (shuffled(old, old_order), shuffled(new, new_order));
            let list = |names: &[String]| names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>();
            let result = merged(json!({"containers": list(&old)}), json!({"containers": list(&new)}))
                .expect("mergeable");
            let all = names(&result["containers"]);
            let among = |those: &[String]| -> String {
                all.chars().filter(|name| those.contains(&name.to_string())).collect()
            };
            let others: Vec<String> = old.iter().filter(|name| !new.contains(name)).cloned().collect();
            prop_assert_eq!(among(&new), new.concat());
            prop_assert_eq!(among(&others), others.concat());
            prop_assert_eq!(all.len(), new.len() + others.len());
        }
    }

    #[test]
    fn a_quoted_patch_has_lost_the_directives_that_were_followed() {
        let schema =
            schema(&json!({"list": {"strategy": "merge", "key": "name"}, "whole": {"strategy": "replace"}}));
        let object = json!({"map": {"a": 1}, "list": [{"name": "a"}], "whole": {}, "text": "x"});
        let quoted = |patch: Value| left(patch.as_object().unwrap(), &object, Some(&schema));
        assert_eq!(
            quoted(
                json!({"map": {"$retainKeys": ["b"], "b": null}, "new": {"$retainKeys": ["c"], "c": null}})
            ),
            json!({"map": {"b": null}, "new": {"$retainKeys": ["c"]}})
        );
        assert_eq!(
            quoted(
                json!({"text": {"a": {"$patch": "replace"}, "b": [{"$patch": "delete"}, 1]}, "new": {"$patch": "delete"}})
            ),
            json!({"text": {"b": [1]}, "new": {"$patch": "delete"}})
        );
        assert_eq!(
            quoted(json!({"$patch": "replace", "map": {"$retainKeys": []}})),
            json!({"map": {"$retainKeys": []}})
        );
        assert_eq!(
            quoted(json!({"$setElementOrder/list": [{"name": "a"}], "list": [{"name": "a"}]})),
            json!({})
        );
        assert_eq!(
            quoted(json!({"whole": {"$retainKeys": ["a"]}})),
            json!({"whole": {"$retainKeys": ["a"]}})
        );
        assert_eq!(quoted(json!({"text": {"a": null}})), json!({"text": {}}));
    }
}
