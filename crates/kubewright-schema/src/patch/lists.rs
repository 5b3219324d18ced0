//! Lists of strategic merge patches: merged item by item, scalars as a set, objects by a merge key.

use std::collections::{BTreeMap, BTreeSet};

use kubewright_meta::cost;
use serde_json::{Map, Value};

use super::strategic::{self, DIRECTIVE, Failure};
use crate::Node;

/// How a list is merged.
pub(super) struct MergeList<'a> {
    /// The field that tells its objects apart; lists of scalars have none.
    pub(super) key: Option<&'a str>,
    /// The schema of its items.
    pub(super) items: Option<&'a Node>,
}

/// Where items stand in a list, by what tells them apart.
#[derive(Default)]
struct Places(BTreeMap<String, usize>);

impl MergeList<'_> {
    /// The old list with the patch's items merged in. New items come before those of the old list that follow them.
    pub(super) fn merge(&self, old: &[Value], patch: &[Value]) -> Result<Vec<Value>, Failure> {
        if old.is_empty() && patch.is_empty() {
            return Ok(Vec::new());
        }
        let objects = element_type(old, patch)? == OBJECT;
        if objects && self.key.is_none() {
            return Err(Failure::Impossible("cannot merge lists without merge key for struct".to_owned()));
        }
        if !objects {
            let mut merged = old.to_vec();
            merged.extend(patch.iter().cloned());
            return self.ordered(self.distinct(merged)?, patch, old);
        }
        let (kept, changes) = self.obey_directives(old, patch)?;
        let merged = self.merge_objects(kept.clone(), &changes)?;
        self.ordered(merged, &changes, &kept)
    }

    /// The list without what a `$deleteFromPrimitiveList` names: scalars. Objects are merged, as no list of them is primitive.
    pub(super) fn without(&self, old: &[Value], named: &[Value]) -> Result<Vec<Value>, Failure> {
        if old.is_empty() && named.is_empty() {
            return Ok(Vec::new());
        }
        if element_type(old, named)? == OBJECT {
            return self.merge(old, named);
        }
        let named: BTreeSet<String> = named.iter().map(strategic::text).collect();
        Ok(old.iter().filter(|item| !named.contains(&strategic::text(item))).cloned().collect())
    }

    /// Carries out the items that have a `$patch`. Returns what is left of both lists.
    fn obey_directives(&self, old: &[Value], patch: &[Value]) -> Result<(Vec<Value>, Vec<Value>), Failure> {
        let mut deleted = BTreeSet::new();
        let (mut changes, mut replace) = (Vec::new(), false);
        for item in patch {
            match item.get(DIRECTIVE) {
                None => changes.push(item.clone()),
                Some(directive) => match directive.as_str() {
                    Some("delete") => {
                        deleted.insert(self.identity(item)?);
                    }
                    Some("replace") => replace = true,
                    Some("merge") => {
                        let why = "merging lists cannot yet be specified in the patch";
                        return Err(Failure::Impossible(why.to_owned()));
                    }
                    _ => return Err(strategic::unknown_directive(directive, members(item)?)),
                },
            }
        }
        if replace {
            return Ok((changes, Vec::new()));
        }
        let stays = |item: &&Value| self.identity(item).map_or(true, |identity| !deleted.contains(&identity));
        Ok((old.iter().filter(stays).cloned().collect(), changes))
    }

    /// Merges each object of the patch into the one with the same key, or appends it.
    fn merge_objects(&self, mut merged: Vec<Value>, patch: &[Value]) -> Result<Vec<Value>, Failure> {
        let mut places = Places::default();
        for (index, item) in merged.iter().enumerate() {
            if let Ok(identity) = self.identity(item) {
                places.0.entry(identity).or_insert(index);
            }
        }
        for item in patch {
            let identity = self.identity(item)?;
            match places.0.get(&identity).and_then(|index| merged.get_mut(*index)) {
                Some(Value::Object(target)) => {
                    strategic::merge(target, members(item)?, self.items.map(Node::target))?;
                }
                _ => {
                    places.0.insert(identity, merged.len());
                    merged.push(item.clone());
                }
            }
        }
        Ok(merged)
    }

    /// Puts a merged list into order: items that stand in `order` as there, the others as in the `old` list; where both
    /// are of the old list, as they stood there, and else those of `order` first.
    pub(super) fn ordered(
        &self,
        merged: Vec<Value>,
        order: &[Value],
        old: &[Value],
    ) -> Result<Vec<Value>, Failure> {
        let identities = merged.iter().map(|item| self.identity(item)).collect::<Result<Vec<_>, _>>()?;
        self.check_sought(&identities, order)?;
        let (order, old) = (self.places(order)?, self.places(old)?);
        let (mut asked, mut others) = (Vec::new(), Vec::new());
        for (item, identity) in merged.into_iter().zip(identities) {
            let place = old.0.get(&identity).copied();
            match order.0.get(&identity) {
                Some(index) => asked.push((*index, place, item)),
                None => others.push((place, item)),
            }
        }
        asked.sort_by_key(|(index, ..)| *index);
        others.sort_by_key(|(place, _)| *place);
        let mut sorted = Vec::with_capacity(asked.len() + others.len());
        let mut others = others.into_iter().peekable();
        for (_, place, item) in asked {
            while let Some((_, before)) =
                others.next_if(|(other, _)| other.is_some() && place.is_some() && *other < place)
            {
                sorted.push(before);
            }
            sorted.push(item);
        }
        sorted.extend(others.map(|(_, item)| item));
        Ok(sorted)
    }

    /// Items are sought in an order from its beginning, and what is no map is an error as soon as it is met (`findMapInSliceBasedOnKeyValue`).
    fn check_sought(&self, identities: &[String], order: &[Value]) -> Result<(), Failure> {
        let Some(key) = self.key else { return Ok(()) };
        let Some(first) = order.iter().position(|item| !item.is_object()) else { return Ok(()) };
        let before: BTreeSet<String> =
            order[..first].iter().filter_map(|item| item.get(key)).map(ToString::to_string).collect();
        if identities.iter().all(|identity| before.contains(identity)) {
            return Ok(());
        }
        Err(Failure::Impossible(format!("value for key {first} is not a map")))
    }

    /// Whether the items of a patch stand in the order that the patch itself asks for.
    pub(super) fn check_order(&self, patch: &[Value], order: &[Value]) -> Result<(), Failure> {
        if patch.is_empty() || order.is_empty() {
            return Ok(());
        }
        let deleted = |item: &&Value| item.get(DIRECTIVE).is_some_and(|directive| directive == "delete");
        let mut wanted = order.iter().peekable();
        for item in patch.iter().filter(|item| !deleted(item)) {
            let found = match item.get(DIRECTIVE) {
                Some(_) => wanted.peek().is_some(),
                None => {
                    let identity = self.identity(item)?;
                    self.skip_to(&identity, &mut wanted)?
                }
            };
            if !found {
                return Err(Failure::Impossible(format!(
                    "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
                    go_list(patch),
                    go_list(order)
                )));
            }
        }
        Ok(())
    }

    /// Goes on in a list until after the item of that identity. False when there is none.
    fn skip_to<'a>(
        &self,
        identity: &str,
        items: &mut impl Iterator<Item = &'a Value>,
    ) -> Result<bool, Failure> {
        for item in items {
            if self.identity(item)? == identity {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn places(&self, items: &[Value]) -> Result<Places, Failure> {
        let mut places = Places::default();
        for (index, item) in items.iter().enumerate() {
            places.0.entry(self.identity(item)?).or_insert(index);
        }
        Ok(places)
    }

    /// The items without those that stand there twice.
    fn distinct(&self, items: Vec<Value>) -> Result<Vec<Value>, Failure> {
        let mut seen = BTreeSet::new();
        let mut distinct = Vec::new();
        for item in items {
            if seen.insert(self.identity(&item)?) {
                distinct.push(item);
            }
        }
        Ok(distinct)
    }

    /// What tells an item from others, as JSON: its merge key's value, or a scalar itself.
    fn identity(&self, item: &Value) -> Result<String, Failure> {
        cost::step();
        let Some(key) = self.key else { return Ok(item.to_string()) };
        match members(item)?.get(key) {
            Some(value) => Ok(value.to_string()),
            None => Err(Failure::Impossible(format!(
                "map: {} does not contain declared merge key: {key}",
                go_text(item)
            ))),
        }
    }
}

fn members(item: &Value) -> Result<&Map<String, Value>, Failure> {
    item.as_object().ok_or_else(|| wrong_type("map[string]interface {}", item))
}

/// The type of the elements of two lists that are to be merged: they must all be of one.
pub(super) fn element_type(old: &[Value], patch: &[Value]) -> Result<&'static str, Failure> {
    let mut types = old.iter().chain(patch).map(go_type);
    let first =
        types.next().ok_or(Failure::Impossible("no elements in any of the given slices".to_owned()))?;
    if first == LIST {
        return Err(Failure::ListOfLists);
    }
    if types.any(|other| other != first) {
        let lists = format!("[{} {}]", go_list(old), go_list(patch));
        return Err(Failure::Impossible(format!("list element types are not identical: {lists}")));
    }
    Ok(first)
}

/// The failure of a value that is of another type than it must be.
pub(super) fn wrong_type(expected: &str, found: &Value) -> Failure {
    Failure::Impossible(format!("expected a {expected}, but received a {}", go_type(found)))
}

const LIST: &str = "[]interface {}";
const OBJECT: &str = "map[string]interface {}";

/// The type that Go's decoder makes of a value.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => LIST,
        Value::Object(_) => OBJECT,
    }
}

/// A value as Go prints it.
pub(super) fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => go_list(items),
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(key, value)| format!("{key}:{}", go_text(value))).collect();
            format!("map[{}]", members.join(" "))
        }
        scalar => scalar.to_string(),
    }
}

fn go_list(items: &[Value]) -> String {
    format!("[{}]", items.iter().map(go_text).collect::<Vec<_>>().join(" "))
}
