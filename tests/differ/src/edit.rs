//! Edits: what is done to an object, as data, and as the patches that say the same.

use serde_json::{Map, Value, json};

/// A step on the way into an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Key(String),
    Index(usize),
}

/// What is done at a place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    Set(Value),
    Remove,
    /// Into a list, before the item that is there.
    Insert(Value),
}

/// A change at a place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Edit {
    pub(crate) path: Vec<Step>,
    pub(crate) change: Change,
}

impl Edit {
    /// An edit at a path of keys, with points between them.
    pub(crate) fn at(path: &str, change: Change) -> Self {
        Self { path: path.split('.').map(|key| Step::Key(key.to_owned())).collect(), change }
    }

    /// Does it, where the way there is.
    pub(crate) fn apply(&self, object: &mut Value) {
        let Some((last, way)) = self.path.split_last() else { return };
        let mut at = object;
        for step in way {
            let next = match step {
                Step::Key(key) => {
                    if at.is_null() {
                        *at = json!({});
                    }
                    at.as_object_mut().map(|members| members.entry(key.clone()).or_insert(Value::Null))
                }
                Step::Index(index) => at.get_mut(*index),
            };
            match next {
                Some(next) => at = next,
                None => return,
            }
        }
        match (last, &self.change) {
            (Step::Key(key), Change::Set(value) | Change::Insert(value)) => {
                if at.is_null() {
                    *at = json!({});
                }
                if let Some(members) = at.as_object_mut() {
                    members.insert(key.clone(), value.clone());
                }
            }
            (Step::Key(key), Change::Remove) => {
                if let Some(members) = at.as_object_mut() {
                    members.remove(key);
                }
            }
            (Step::Index(index), change) => {
                let Some(items) = at.as_array_mut() else { return };
                match change {
                    Change::Set(value) if *index < items.len() => items[*index] = value.clone(),
                    Change::Insert(value) if *index <= items.len() => items.insert(*index, value.clone()),
                    Change::Remove if *index < items.len() => drop(items.remove(*index)),
                    _ => {}
                }
            }
        }
    }

    /// The operation of a JSON patch that says the same.
    pub(crate) fn json_patch(&self, replace: bool) -> Value {
        let pointer: String = self
            .path
            .iter()
            .map(|step| match step {
                Step::Key(key) => format!("/{}", key.replace('~', "~0").replace('/', "~1")),
                Step::Index(index) => format!("/{index}"),
            })
            .collect();
        match &self.change {
            Change::Set(value) => {
                json!({"op": if replace { "replace" } else { "add" }, "path": pointer, "value": value})
            }
            Change::Insert(value) => json!({"op": "add", "path": pointer, "value": value}),
            Change::Remove => json!({"op": "remove", "path": pointer}),
        }
    }

    /// The merge patch that says the same of an object: lists are given whole.
    pub(crate) fn merge_patch(&self, object: &Value) -> Value {
        let until = self.path.iter().position(|step| matches!(step, Step::Index(_)));
        let (way, value) = match until {
            None => (
                &self.path[..],
                if let Change::Set(value) | Change::Insert(value) = &self.change {
                    value.clone()
                } else {
                    Value::Null
                },
            ),
            Some(until) => {
                let mut changed = object.clone();
                self.apply(&mut changed);
                let value = self.path[..until].iter().fold(&changed, |at, step| {
                    if let Step::Key(key) = step { &at[key.as_str()] } else { at }
                });
                (&self.path[..until], value.clone())
            }
        };
        nested(way, value)
    }

    /// The strategic merge patch that says the same of an object: items are named by their merge key where they have a usual one.
    pub(crate) fn strategic_patch(&self, object: &Value) -> Value {
        strategic(&self.path, &self.change, object)
    }
}

fn strategic(path: &[Step], change: &Change, at: &Value) -> Value {
    match path {
        [] => match change {
            Change::Set(value) | Change::Insert(value) => value.clone(),
            Change::Remove => Value::Null,
        },
        [Step::Key(key), rest @ ..] => {
            let mut members = Map::new();
            members.insert(key.clone(), strategic(rest, change, &at[key.as_str()]));
            Value::Object(members)
        }
        [Step::Index(index), rest @ ..] => {
            let item = &at[*index];
            let named =
                ["name", "key", "ip", "mountPath", "type", "uid"].iter().find(|key| item[**key].is_string());
            match (named, rest) {
                (Some(key), []) if *change == Change::Remove => {
                    json!([{"$patch": "delete", *key: item[*key]}])
                }
                (_, []) => json!([strategic(rest, change, item)]),
                (named, _) => {
                    let mut inner = strategic(rest, change, item);
                    if let (Some(key), Some(members)) = (named, inner.as_object_mut()) {
                        members.entry((*key).to_owned()).or_insert_with(|| item[*key].clone());
                    }
                    json!([inner])
                }
            }
        }
    }
}

fn nested(way: &[Step], value: Value) -> Value {
    way.iter().rev().fold(value, |inner, step| match step {
        Step::Key(key) => {
            let mut members = Map::new();
            members.insert(key.clone(), inner);
            Value::Object(members)
        }
        Step::Index(_) => inner,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit() -> Edit {
        Edit {
            path: vec![Step::Key("a".into()), Step::Index(0), Step::Key("b".into())],
            change: Change::Set(json!(2)),
        }
    }

    #[test]
    fn an_edit_changes_what_its_path_leads_to() {
        let mut object = json!({"a": [{"name": "x", "b": 1}]});
        edit().apply(&mut object);
        assert_eq!(object, json!({"a": [{"name": "x", "b": 2}]}));
    }

    #[test]
    fn patches_say_the_same_as_the_edit() {
        let object = json!({"a": [{"name": "x", "b": 1}]});
        assert_eq!(edit().json_patch(true), json!({"op": "replace", "path": "/a/0/b", "value": 2}));
        assert_eq!(edit().merge_patch(&object), json!({"a": [{"name": "x", "b": 2}]}));
        assert_eq!(edit().strategic_patch(&object), json!({"a": [{"name": "x", "b": 2}]}));
        let gone = Edit { path: vec![Step::Key("a".into()), Step::Index(0)], change: Change::Remove };
        assert_eq!(gone.strategic_patch(&object), json!({"a": [{"$patch": "delete", "name": "x"}]}));
    }
}
