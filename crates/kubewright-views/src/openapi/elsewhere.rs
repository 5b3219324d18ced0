//! What other API servers say of the versions that they serve, among the documents of this one
//! (`k8s.io/kube-aggregator/pkg/controllers/openapi`, `k8s.io/kube-openapi/pkg/aggregator`).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

const DEFINITIONS: &str = "#/definitions/";

/// The part of an OpenAPI v2 document whose paths begin with `prefix`: these and the definitions that they use.
#[must_use]
pub fn part_of_swagger(document: &Value, prefix: &str) -> Value {
    let paths = document["paths"].as_object();
    let paths: Map<String, Value> = paths
        .into_iter()
        .flatten()
        .filter(|(path, _)| path.starts_with(prefix))
        .map(|(path, item)| (path.clone(), item.clone()))
        .collect();
    let mut used = BTreeSet::new();
    let mut new: Vec<String> = Vec::new();
    paths.values().for_each(|item| references(item, &mut |name| new.push(name.to_owned())));
    let mut definitions = Map::new();
    while let Some(name) = new.pop() {
        if !used.insert(name.clone()) {
            continue;
        }
        if let Some(definition) = document["definitions"].get(&name) {
            references(definition, &mut |name| new.push(name.to_owned()));
            definitions.insert(name, definition.clone());
        }
    }
    json!({"paths": paths, "definitions": definitions})
}

/// Adds parts of other documents to one of OpenAPI v2. A path that is there stays; a definition of a name that is there with
/// another content gets a name of its own.
pub fn add_to_swagger<'a>(document: &mut Value, parts: impl IntoIterator<Item = &'a Value>) {
    for part in parts {
        let there = document["definitions"].as_object();
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        for (name, definition) in part["definitions"].as_object().into_iter().flatten() {
            let is_free = |name: &str| there.is_none_or(|there| !there.contains_key(name));
            if is_free(name) || there.is_some_and(|there| there.get(name) == Some(definition)) {
                continue;
            }
            let mut others = (2_u32..).map(|number| format!("{name}_v{number}"));
            names.extend(others.find(|other| is_free(other)).map(|other| (name.clone(), other)));
        }
        let renamed = |value: &Value| {
            let mut value = value.clone();
            if !names.is_empty() {
                rename(&mut value, &names);
            }
            value
        };
        for (member, own) in [("definitions", true), ("paths", false)] {
            let added = part[member].as_object().into_iter().flatten();
            let added: Vec<_> = added
                .map(|(name, value)| {
                    let name = if own { names.get(name).unwrap_or(name) } else { name };
                    (name.clone(), renamed(value))
                })
                .collect();
            let Some(all) = document[member].as_object_mut() else { continue };
            for (name, value) in added {
                all.entry(name).or_insert(value);
            }
        }
    }
}

/// Adds documents of other API servers to the index of OpenAPI v3: what is there stays.
pub fn add_to_index<'a>(index: &mut Value, documents: impl IntoIterator<Item = (&'a String, &'a Value)>) {
    let Some(paths) = index["paths"].as_object_mut() else { return };
    for (path, item) in documents {
        paths.entry(path.clone()).or_insert_with(|| item.clone());
    }
}

/// The names of definitions that a value refers to.
fn references<'a>(value: &'a Value, found: &mut impl FnMut(&'a str)) {
    match value {
        Value::Object(members) => {
            let reference = members.get("$ref").and_then(Value::as_str);
            if let Some(name) = reference.and_then(|text| text.strip_prefix(DEFINITIONS)) {
                found(name);
            }
            members.values().for_each(|member| references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

fn rename(value: &mut Value, names: &BTreeMap<String, String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                let other = member.as_str().filter(|_| key == "$ref");
                let other = other.and_then(|text| names.get(text.strip_prefix(DEFINITIONS)?));
                match other {
                    Some(other) => *member = format!("{DEFINITIONS}{other}").into(),
                    None => rename(member, names),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, names)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(name: &str) -> Value {
        json!({"$ref": format!("{DEFINITIONS}{name}")})
    }

    #[test]
    fn a_part_has_the_definitions_that_its_paths_use() {
        let document = json!({
            "paths": {"/apis/a/v1/things": {"get": reference("Thing")}, "/apis/b/v1/x": {"get": reference("X")}},
            "definitions": {"Thing": {"items": [reference("Part")]}, "Part": {"self": reference("Part")}, "X": {}}
        });
        let part = part_of_swagger(&document, "/apis/a/v1/");
        let names =
            |member: &str| part[member].as_object().map(|all| all.keys().cloned().collect::<Vec<_>>());
        assert_eq!(names("paths"), Some(vec!["/apis/a/v1/things".to_owned()]));
        assert_eq!(names("definitions"), Some(vec!["Part".to_owned(), "Thing".to_owned()]));
    }

    #[test]
    fn definitions_of_one_name_that_differ_are_both_there() {
        let mut document = json!({
            "paths": {"/x": 1},
            "definitions": {"Same": {"a": 1}, "Other": {"a": 1}, "Other_v2": {}}
        });
        let part = json!({
            "paths": {"/x": 2, "/y": reference("Other")},
            "definitions": {"Same": {"a": 1}, "Other": {"of": reference("Other")}, "New": reference("Other")}
        });
        add_to_swagger(&mut document, [&part]);
        assert_eq!(document["paths"], json!({"/x": 1, "/y": reference("Other_v3")}));
        assert_eq!(document["definitions"]["Other"], json!({"a": 1}));
        assert_eq!(document["definitions"]["Other_v3"], json!({"of": reference("Other_v3")}));
        assert_eq!(document["definitions"]["New"], reference("Other_v3"));
    }
}
