//! An object as lines of YAML, each with who owns the field that it shows (`metadata.managedFields`): a pure function.

use serde::Serialize;
use serde_json::{Map, Value};

/// A line, and the managers that own its field, as places in the list of managers.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Line {
    pub(crate) text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) owners: Vec<usize>,
}

/// Who owns fields: an entry of `managedFields`.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Manager {
    name: String,
    operation: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    subresource: String,
    time: String,
}

/// How deep an object is shown; kube-apiserver takes none that is deeper than ten thousand, the store none over 127.
const DEEPEST: usize = 200;

/// The managers of an object and its lines. `managedFields` itself is not among these.
pub(crate) fn lines(object: &Value) -> (Vec<Manager>, Vec<Line>) {
    let entries = object["metadata"]["managedFields"].as_array();
    let entries: Vec<&Value> = entries.into_iter().flatten().collect();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let managers = entries.iter().map(|entry| Manager {
        name: text(&entry["manager"]),
        operation: text(&entry["operation"]),
        subresource: text(&entry["subresource"]),
        time: text(&entry["time"]),
    });
    let owned = entries.iter().enumerate().map(|(place, entry)| (place, &entry["fieldsV1"])).collect();
    let mut lines = Vec::new();
    let shown = without_managed_fields(object);
    if let Value::Object(fields) = &shown {
        map(fields, 0, &owned, &mut lines);
    }
    (managers.collect(), lines)
}

/// The lines as one text, for comparing.
pub(crate) fn yaml(object: &Value) -> String {
    let (_, lines) = lines(object);
    lines.into_iter().map(|line| line.text + "\n").collect()
}

fn without_managed_fields(object: &Value) -> Value {
    let mut shown = object.clone();
    if let Some(metadata) = shown.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    shown
}

/// The sets of fields that go on below a place, each with its manager.
type Owned<'a> = Vec<(usize, &'a Value)>;

/// Who owns the place itself: a leaf of a set, or a place that has the dot.
fn owners(owned: &Owned<'_>) -> Vec<usize> {
    let is_own = |fields: &Value| {
        fields.as_object().is_some_and(|fields| fields.is_empty() || fields.contains_key("."))
    };
    let mut found: Vec<usize> =
        owned.iter().filter(|(_, fields)| is_own(fields)).map(|(place, _)| *place).collect();
    found.dedup();
    found
}

/// The sets below a field or an item. Below a leaf all is its owner's.
fn below<'a>(owned: &Owned<'a>, pick: impl Fn(&'a Map<String, Value>) -> Option<&'a Value>) -> Owned<'a> {
    let next = |(place, fields): &(usize, &'a Value)| {
        let set = fields.as_object()?;
        if set.is_empty() { Some((*place, *fields)) } else { pick(set).map(|found| (*place, found)) }
    };
    owned.iter().filter_map(next).collect()
}

fn map(fields: &Map<String, Value>, depth: usize, owned: &Owned<'_>, lines: &mut Vec<Line>) {
    for (name, value) in fields {
        let inside = below(owned, |set| set.get(&format!("f:{name}")));
        entry(&format!("{}{}:", "  ".repeat(depth), scalar(name)), value, depth + 1, &inside, lines);
    }
}

/// A value after what stands before it on its line.
fn entry(head: &str, value: &Value, depth: usize, owned: &Owned<'_>, lines: &mut Vec<Line>) {
    let owners = owners(owned);
    match value {
        Value::Object(fields) if !fields.is_empty() && depth < DEEPEST => {
            lines.push(Line { text: head.to_owned(), owners });
            map(fields, depth, owned, lines);
        }
        Value::Array(items) if !items.is_empty() && depth < DEEPEST => {
            lines.push(Line { text: head.to_owned(), owners });
            for item in items {
                list_item(item, depth - 1, owned, lines);
            }
        }
        Value::String(text) if is_block(text) => {
            let keep = if text.ends_with('\n') { "|" } else { "|-" };
            lines.push(Line { text: format!("{head} {keep}"), owners: owners.clone() });
            for line in text.lines() {
                let indent = if line.is_empty() { String::new() } else { "  ".repeat(depth) };
                lines.push(Line { text: format!("{indent}{line}"), owners: owners.clone() });
            }
        }
        Value::String(text) => lines.push(Line { text: format!("{head} {}", scalar(text)), owners }),
        other => lines.push(Line { text: format!("{head} {other}"), owners }),
    }
}

/// An item: its first line begins with a dash in the place of two spaces.
fn list_item(item: &Value, depth: usize, owned: &Owned<'_>, lines: &mut Vec<Line>) {
    let inside = below(owned, |set| set.iter().find(|(name, _)| names(name, item)).map(|(_, found)| found));
    let dash = format!("{}-", "  ".repeat(depth));
    let from = lines.len();
    match item {
        Value::Object(fields) if !fields.is_empty() && depth < DEEPEST => {
            map(fields, depth + 1, &inside, lines);
            if let Some(first) = lines.get_mut(from) {
                first.text.replace_range(2 * depth..2 * depth + 1, "-");
            }
        }
        Value::Array(items) if !items.is_empty() && depth < DEEPEST => {
            lines.push(Line { text: dash, owners: owners(&inside) });
            for item in items {
                list_item(item, depth + 1, &inside, lines);
            }
        }
        other => entry(&dash, other, depth + 1, &inside, lines),
    }
}

/// Whether a path element (`k:{"name":"web"}` or `v:"x"`) means this item.
fn names(element: &str, item: &Value) -> bool {
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    match element.split_once(':') {
        Some(("v", value)) => read(value).as_ref() == Some(item),
        Some(("k", keys)) => {
            let keys = read(keys).and_then(|keys| keys.as_object().cloned());
            keys.is_some_and(|keys| keys.iter().all(|(name, value)| item.get(name) == Some(value)))
        }
        _ => false,
    }
}

/// Whether a text is written as a block of lines.
fn is_block(text: &str) -> bool {
    let is_plain = |c: char| c == '\n' || c == '\t' || !c.is_control();
    text.trim_end_matches('\n').contains('\n')
        && !text.ends_with("\n\n")
        && !text.starts_with([' ', '\t', '\n'])
        && text.chars().all(is_plain)
}

/// A text on one line: plain where YAML reads it as that text, else quoted as in JSON.
fn scalar(text: &str) -> String {
    const WORDS: [&str; 8] = ["true", "false", "null", "yes", "no", "on", "off", "nan"];
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '_');
    let is_plain = |c: char| c.is_ascii_graphic() && !"\"'#`{}[],&*!|>%@".contains(c) || c == ' ';
    let plain = starts
        && text.chars().all(is_plain)
        && !text.contains(": ")
        && !text.ends_with([':', ' '])
        && !WORDS.contains(&text.to_ascii_lowercase().as_str());
    if plain { text.to_owned() } else { Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment() -> Value {
        json!({
            "metadata": {
                "name": "web",
                "labels": {"app": "web"},
                "managedFields": [
                    {"manager": "kubectl", "operation": "Apply", "time": "t", "fieldsV1": {
                        "f:metadata": {"f:labels": {"f:app": {}}},
                        "f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}}},
                                   "f:whole": {}, "f:set": {"v:\"x\"": {}}}}},
                    {"manager": "scaler", "operation": "Update", "time": "t", "subresource": "scale",
                     "fieldsV1": {"f:spec": {"f:replicas": {}}}},
                ],
            },
            "spec": {
                "containers": [{"name": "a", "image": "nginx"}, {"name": "b"}],
                "replicas": 3,
                "set": ["x", "y"],
                "whole": {"deep": ["1"]},
            },
        })
    }

    #[test]
    fn each_line_has_the_managers_of_its_field() {
        let (managers, lines) = lines(&deployment());
        assert_eq!((&*managers[0].name, &*managers[1].subresource), ("kubectl", "scale"));
        let shown: Vec<String> =
            lines.iter().map(|line| format!("{} {:?}", line.text, line.owners)).collect();
        assert_eq!(
            shown,
            [
                "metadata: []",
                "  labels: []",
                "    app: web [0]",
                "  name: web []",
                "spec: []",
                "  containers: []",
                "  - image: nginx [0]",
                "    name: a []",
                "  - name: b []",
                "  replicas: 3 [1]",
                "  set: []",
                "  - x [0]",
                "  - y []",
                "  whole: [0]",
                "    deep: [0]",
                "    - \"1\" [0]",
            ]
        );
    }

    #[test]
    fn what_yaml_would_read_as_something_else_is_quoted() {
        for text in ["true", "12", "1e3", "a: b", "-x", "<b>", "", "a #b", "No", "x\u{7}"] {
            assert_eq!(scalar(text), Value::from(text).to_string(), "{text}");
        }
        for text in ["web", "nginx:1.2", "a b", "/x/y", "Deployment"] {
            assert_eq!(scalar(text), text);
        }
    }

    #[test]
    fn several_lines_are_a_block() {
        assert_eq!(yaml(&json!({"a": "x\n\ny\n"})), "a: |\n  x\n\n  y\n");
        assert_eq!(yaml(&json!({"a": ["x\ny"]})), "a:\n- |-\n  x\n  y\n");
    }

    #[test]
    fn lists_in_lists_stay_readable() {
        assert_eq!(yaml(&json!({"a": [["x"], {}, []]})), "a:\n-\n  - x\n- {}\n- []\n");
    }
}
