//! Patches as kubectl writes them: directives of strategic merge patches, and operations of JSON patches that name two places.

use rand::RngExt;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};

use super::Making;
use crate::conversation::Ask;

/// A place in an object, as the names and numbers that lead there.
type Way = Vec<Value>;

impl Making<'_> {
    /// A strategic merge patch with a directive.
    pub(super) fn directive(&mut self, at: usize) {
        let object = self.known[at].object.clone();
        let mut places = Vec::new();
        collect(&object, &mut Vec::new(), &mut places);
        places.retain(|(way, value)| {
            !way.is_empty() && (value.is_object() || value.is_array()) && way.iter().all(Value::is_string)
        });
        let Some((way, value)) = places.choose(&mut self.rng).cloned() else { return };
        let (key, front) = match way.split_last() {
            Some((last, front)) => (last.as_str().unwrap_or_default().to_owned(), front.to_vec()),
            None => return,
        };
        let members = match &value {
            Value::Array(items) => self.of_list(&key, items),
            _ => self.of_map(&key, &value),
        };
        let mut body = front.iter().rev().fold(members, |inner, step| {
            let mut members = Map::new();
            members.insert(step.as_str().unwrap_or_default().to_owned(), inner);
            Value::Object(members)
        });
        if self.rng.random_bool(0.15) {
            body["metadata"]["$deleteFromPrimitiveList/finalizers"] = json!(["example.com/hold", "none"]);
        }
        if self.rng.random_bool(0.05) {
            body["$patch"] = json!(["replace", "delete", "merge", "bad"].choose(&mut self.rng));
        }
        let ask = Ask::new("patch/directive", "PATCH", &self.known[at].place.clone())
            .body(body)
            .header("Content-Type", "application/strategic-merge-patch+json");
        let ask = self.with_options(ask, at);
        self.asks.push(ask);
    }

    fn of_map(&mut self, key: &str, value: &Value) -> Value {
        let names: Vec<String> = value.as_object().into_iter().flat_map(Map::keys).cloned().collect();
        let some: Map<String, Value> = names
            .iter()
            .filter(|_| self.rng.random_bool(0.5))
            .map(|name| (name.clone(), value[name.as_str()].clone()))
            .collect();
        let mut inner = some.clone();
        match self.rng.random_range(0..6) {
            0 => drop(inner.insert("$patch".into(), json!("replace"))),
            1 => drop(inner.insert("$patch".into(), json!("delete"))),
            2 => drop(inner.insert("$patch".into(), json!("merge"))),
            3 => drop(inner.insert("$patch".into(), json!("bad"))),
            4 => drop(inner.insert("$retainKeys".into(), json!(some.keys().collect::<Vec<_>>()))),
            _ => {
                drop(
                    inner.insert("$retainKeys".into(), json!(names.first().into_iter().collect::<Vec<_>>())),
                );
            }
        }
        member(key, Value::Object(inner))
    }

    fn of_list(&mut self, key: &str, items: &[Value]) -> Value {
        const KEYS: &[&str] =
            &["name", "containerPort", "port", "ip", "mountPath", "devicePath", "type", "uid", "topologyKey"];
        let merge_key =
            items.first().and_then(|item| KEYS.iter().find(|key| item.get(**key).is_some())).copied();
        // A broken object may have another value among its items.
        let merge_key = merge_key.filter(|_| items.iter().all(Value::is_object));
        let Some(merge_key) = merge_key else { return self.of_plain_list(key, items) };
        let named = |item: &Value| json!({merge_key: item[merge_key]});
        let last = items.last().cloned().unwrap_or_default();
        let mut other = last.clone();
        other[merge_key] = if last[merge_key].is_number() { json!(4242) } else { json!("other") };
        let mut order: Vec<Value> = items.iter().map(named).collect();
        match self.rng.random_range(0..8) {
            0 => member(key, json!([other, {"$patch": "replace"}])),
            1 => member(key, json!([{"$patch": "delete", merge_key: last[merge_key]}])),
            2 => member(key, json!([{"$patch": "delete", merge_key: "nowhere"}, other])),
            3 => member(
                key,
                json!([{"$patch": *["bad", "merge"].choose(&mut self.rng).unwrap_or(&"bad"), merge_key: last[merge_key]}]),
            ),
            4 => member(key, json!([{"image": "without-a-key"}])),
            5 | 6 => {
                order.push(named(&other));
                order.reverse();
                if self.rng.random_bool(0.2) {
                    order.pop();
                }
                let mut members = Map::new();
                members.insert(key.to_owned(), json!([other]));
                members.insert(format!("$setElementOrder/{key}"), Value::Array(order));
                Value::Object(members)
            }
            _ => {
                order.reverse();
                member(&format!("$setElementOrder/{key}"), Value::Array(order))
            }
        }
    }

    fn of_plain_list(&mut self, key: &str, items: &[Value]) -> Value {
        let first = items.first().cloned().unwrap_or_else(|| json!("x"));
        match self.rng.random_range(0..4) {
            0 => member(&format!("$deleteFromPrimitiveList/{key}"), json!([first])),
            1 => member(&format!("$setElementOrder/{key}"), json!(items.iter().rev().collect::<Vec<_>>())),
            2 => {
                let mut members = Map::new();
                members.insert(key.to_owned(), json!([first]));
                members.insert(format!("$setElementOrder/{key}"), json!([first]));
                Value::Object(members)
            }
            _ => member(key, json!([first])),
        }
    }

    /// A JSON patch whose operations move, copy and test.
    pub(super) fn operations(&mut self, at: usize) {
        let object = self.known[at].object.clone();
        let mut places = Vec::new();
        collect(&object, &mut Vec::new(), &mut places);
        let mut list = Vec::new();
        for _ in 0..self.rng.random_range(1..4) {
            let (Some((from, value)), Some((to, _))) =
                (places.choose(&mut self.rng).cloned(), places.choose(&mut self.rng).cloned())
            else {
                return;
            };
            let (from, mut to) = (pointer(&from), pointer(&to));
            if self.rng.random_bool(0.3) {
                to = format!(
                    "{to}/{}",
                    ["-", "0", "7", "new", "01", "-1"].choose(&mut self.rng).unwrap_or(&"-")
                );
            }
            list.push(match self.rng.random_range(0..8) {
                0 | 1 => json!({"op": "test", "path": from, "value": value}),
                2 => json!({"op": "test", "path": from, "value": "something else"}),
                3 => json!({"op": "move", "from": from, "path": to}),
                4 => json!({"op": "copy", "from": from, "path": to}),
                5 => json!({"op": "add", "path": "/metadata/labels/j~1k", "value": "v"}),
                6 => json!({"op": "replace", "path": to, "value": value}),
                _ => json!({"op": *["add", "remove", "bad", "test"].choose(&mut self.rng).unwrap_or(&"bad"), "path": to}),
            });
        }
        let ask = Ask::new("patch/operations", "PATCH", &self.known[at].place.clone())
            .body(Value::Array(list))
            .header("Content-Type", "application/json-patch+json");
        let ask = self.with_options(ask, at);
        self.asks.push(ask);
    }

    /// Several managers who apply parts of one object, take them away, and give them up.
    pub(super) fn managers(&mut self, at: usize) {
        let place = self.known[at].place.clone();
        for _ in 0..self.rng.random_range(2..=4) {
            let manager = *["m1", "m2", "m3"].choose(&mut self.rng).unwrap_or(&"m1");
            let mut object = self.known[at].object.clone();
            let status = object.get("status").is_some() && self.rng.random_bool(0.4)
                || place.resource.subresources.iter().any(|name| name == "status")
                    && self.rng.random_bool(0.25);
            if status {
                let kept = object["status"].clone();
                object = json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": {"name": object["metadata"]["name"]}});
                object["status"] =
                    if kept.is_object() && self.rng.random_bool(0.4) { kept } else { json!({}) };
                object["status"]["conditions"] = self.conditions();
            } else {
                thin(&mut self.rng, &mut object, 0);
                if self.rng.random_bool(0.3) {
                    let edits = self.edits(at, 0.1);
                    edits.iter().for_each(|edit| edit.apply(&mut object));
                }
            }
            let mut ask = Ask::new("patch/apply/managers", "PATCH", &place)
                .body(object)
                .header("Content-Type", "application/apply-patch+yaml")
                .query("fieldManager", manager);
            if status {
                ask = ask.subresource("status");
            }
            if self.rng.random_bool(0.4) {
                ask = ask.query(
                    "force",
                    *["true", "true", "false", "maybe"].choose(&mut self.rng).unwrap_or(&"true"),
                );
            }
            if self.rng.random_bool(0.15) {
                ask = ask.query(
                    "fieldValidation",
                    *["Strict", "Warn", "Ignore"].choose(&mut self.rng).unwrap_or(&"Warn"),
                );
            }
            if self.known[at].dry || self.rng.random_bool(0.08) {
                ask = ask.query("dryRun", "All");
            }
            self.asks.push(ask);
            if self.rng.random_bool(0.25) {
                self.put(at);
            }
        }
    }

    fn conditions(&mut self) -> Value {
        let mut list = Vec::new();
        for _ in 0..self.rng.random_range(0..3) {
            let mut condition = json!({
                "type": (["Ready", "Available", "Progressing", "example.com/Fine", ""].choose(&mut self.rng)),
                "status": (["True", "False", "Unknown", "Maybe"].choose(&mut self.rng)),
            });
            if self.rng.random_bool(0.7) {
                condition["lastTransitionTime"] = json!("2026-01-01T00:00:00Z");
                condition["reason"] = json!(["Because", "", "bad reason"].choose(&mut self.rng));
                condition["message"] = json!("m");
            }
            if self.rng.random_bool(0.2) {
                condition["observedGeneration"] = json!([1, 0, -1].choose(&mut self.rng));
            }
            list.push(condition);
        }
        Value::Array(list)
    }
}

fn member(key: &str, value: Value) -> Value {
    let mut members = Map::new();
    members.insert(key.to_owned(), value);
    Value::Object(members)
}

fn collect(value: &Value, way: &mut Way, into: &mut Vec<(Way, Value)>) {
    if !way.is_empty() {
        into.push((way.clone(), value.clone()));
    }
    match value {
        Value::Object(members) => {
            for (name, inner) in members {
                way.push(json!(name));
                collect(inner, way, into);
                way.pop();
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                way.push(json!(index));
                collect(inner, way, into);
                way.pop();
            }
        }
        _ => {}
    }
}

fn pointer(way: &Way) -> String {
    way.iter()
        .map(|step| match step {
            Value::String(name) => format!("/{}", name.replace('~', "~0").replace('/', "~1")),
            other => format!("/{other}"),
        })
        .collect()
}

/// Leaves out members and items, but for what says which they are.
fn thin(rng: &mut ChaCha8Rng, value: &mut Value, depth: usize) {
    const KEPT: &[&str] =
        &["apiVersion", "kind", "metadata", "name", "key", "type", "containerPort", "port", "protocol"];
    match value {
        Value::Object(members) => {
            let names: Vec<String> = members.keys().cloned().collect();
            for name in names {
                if KEPT.contains(&name.as_str()) && (depth != 0 || name != "type") {
                    continue;
                }
                if rng.random_bool(0.3) {
                    members.remove(&name);
                } else if let Some(inner) = members.get_mut(&name) {
                    thin(rng, inner, depth + 1);
                }
            }
        }
        Value::Array(items) => {
            items.retain(|_| rng.random_bool(0.8));
            items.iter_mut().for_each(|item| thin(rng, item, depth + 1));
        }
        _ => {}
    }
}
