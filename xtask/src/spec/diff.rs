//! What a person has to decide when a version is added: the facts that two versions do not share.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    io::{self, Write},
    path::Path,
};

use anyhow::Result;
use serde_json::Value;

use super::{read_table, table};

/// The tables, and what each is about.
const TABLES: [(&str, &str); 8] = [
    ("resources.txt", "Served resources: kinds, verbs, names"),
    ("fields.txt", "Types and fields"),
    ("definitions.txt", "Schemas: required fields, formats (descriptions are not compared)"),
    ("facts.txt", "Merging, enumerations, defaults"),
    ("tags.txt", "Declarative validation"),
    ("gates.txt", "Feature gates"),
    ("columns.txt", "Columns of tables"),
    ("roles.txt", "Roles and bindings of a new cluster"),
];

/// Prints it.
pub(super) fn print(old: &Path, new: &Path) -> Result<()> {
    let mut out = io::stdout().lock();
    for (name, about) in TABLES {
        let lines = match name {
            "definitions.txt" => {
                differences(&by_field(&read_table(old, name)?), &by_field(&read_table(new, name)?))
            }
            _ => differences(&read_table(old, name)?, &read_table(new, name)?),
        };
        writeln!(out, "\n{about} ({name}): {} differ", lines.len())?;
        for line in lines {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}

/// A line for each field of each type, and one for what it requires.
fn by_field(definitions: &str) -> String {
    let mut text = String::new();
    for line in definitions.lines().filter(|line| !line.starts_with('#')) {
        let (name, schema) = line.split_once(' ').unwrap_or_default();
        let mut schema: Value = serde_json::from_str(schema).unwrap_or_default();
        let fields = schema["properties"].take();
        writeln!(text, "[{name}]\n. {schema}").expect("a String takes it");
        for (field, schema) in fields.as_object().into_iter().flatten() {
            writeln!(text, "{field} {schema}").expect("a String takes it");
        }
    }
    text
}

/// `+` only in the new one, `-` only in the old one, `~` in both and not the same.
fn differences(old: &str, new: &str) -> Vec<String> {
    let (old, new) = (table::facts(old), table::facts(new));
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let told = |name: &String| match (old.get(name), new.get(name)) {
        (Some(old), Some(new)) if alike(old, new) => None,
        (Some(old), Some(new)) => Some(format!("~ {name}: {} -> {}", bare(old), bare(new))),
        (None, Some(new)) => Some(format!("+ {name} {}", bare(new)).trim_end().to_owned()),
        (Some(_), None) => Some(format!("- {name}")),
        (None, None) => None,
    };
    names.into_iter().filter_map(told).collect()
}

fn alike(old: &str, new: &str) -> bool {
    old == new || bare(old) == bare(new)
}

/// A schema without its descriptions; other facts as they are.
fn bare(fact: &str) -> String {
    let Ok(mut schema @ Value::Object(_)) = serde_json::from_str::<Value>(fact) else {
        return fact.to_owned();
    };
    strip(&mut schema);
    schema.to_string()
}

fn strip(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.get("description").is_some_and(Value::is_string) {
                map.remove("description");
            }
            map.values_mut().for_each(strip);
        }
        Value::Array(list) => list.iter_mut().for_each(strip),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_gone_and_changed_is_told_apart() {
        let old = "# one\nA BETA off\nB GA on\nC GA on\n";
        let new = "# two\nA BETA on\nC GA on\nD ALPHA off\n";
        assert_eq!(differences(old, new), ["~ A: BETA off -> BETA on", "- B", "+ D ALPHA off"]);
    }

    #[test]
    fn words_of_a_schema_are_no_difference() {
        let old = r#"T {"description":"old","properties":{"a":{"description":"x","type":"string"}}}"#;
        let new = r#"T {"description":"new","properties":{"a":{"description":"y","type":"string"}}}"#;
        assert!(differences(&by_field(old), &by_field(new)).is_empty());
        let more = new.replace("\"a\"", "\"b\"");
        assert_eq!(
            differences(&by_field(old), &by_field(&more)),
            ["- [T] a", "+ [T] b {\"type\":\"string\"}"]
        );
    }
}
