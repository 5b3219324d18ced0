//! Structs from a structural schema (`apiextensions.k8s.io/v1`).

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{Error, names};

/// How deep a schema may be.
const DEPTH: usize = 24;
/// How many structs one kind may have.
const STRUCTS: usize = 4096;

/// The structs of a kind, in the order in which they are named.
#[derive(Debug, Default)]
pub(super) struct Structs {
    written: Vec<String>,
    names: BTreeSet<String>,
    int_or_string: bool,
    maps: bool,
}

impl Structs {
    /// Adds a struct of a schema with properties, and all that are parts of it.
    pub(super) fn add(&mut self, name: &str, schema: &Value) -> Result<(), Error> {
        self.names.insert(name.to_owned());
        self.structure(name, schema, 0)
    }

    /// All of them in one file; `attribute` is that of the first.
    pub(super) fn text(&self, attribute: &str) -> String {
        let mut text = String::new();
        if self.maps {
            text += "use std::collections::BTreeMap;\n\n";
        }
        if self.int_or_string {
            text += "use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;\n";
        }
        text += "use kube::CustomResource;\nuse serde::{Deserialize, Serialize};\n";
        let others = "#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]\n";
        for (index, one) in self.written.iter().enumerate() {
            text += "\n";
            text += &one.replace("#[struct]\n", if index == 0 { attribute } else { others });
        }
        text
    }

    fn structure(&mut self, name: &str, schema: &Value, depth: usize) -> Result<(), Error> {
        if depth > DEPTH || self.written.len() >= STRUCTS {
            return Err(Error::Refused(format!("its schema is too large at {name}")));
        }
        let place = self.written.len();
        self.written.push(String::new());
        let required: BTreeSet<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut fields = String::new();
        let mut taken = BTreeSet::new();
        for (field, of) in schema["properties"].as_object().into_iter().flatten() {
            let mut ident = names::field(field);
            while !taken.insert(ident.clone()) {
                ident.push('_');
            }
            let type_ = self.type_of(&format!("{name}{}", names::camel(field)), of, depth)?;
            fields += &documentation(of, "    ");
            let optional = !required.contains(field.as_str()) || of["nullable"] == true;
            let mut serde = Vec::new();
            if ident != *field {
                serde.push(format!("rename = {field:?}"));
            }
            if optional {
                serde.push("default".to_owned());
                serde.push("skip_serializing_if = \"Option::is_none\"".to_owned());
            }
            fields += &attribute(&serde);
            let type_ = if optional { format!("Option<{type_}>") } else { type_ };
            fields += &format!("    pub {ident}: {type_},\n");
        }
        let body = if fields.is_empty() { " {}\n".to_owned() } else { format!(" {{\n{fields}}}\n") };
        self.written[place] = format!("{}#[struct]\npub struct {name}{body}", documentation(schema, ""));
        Ok(())
    }

    /// The type of a field, whose structs begin with `name`.
    fn type_of(&mut self, name: &str, schema: &Value, depth: usize) -> Result<String, Error> {
        if schema["x-kubernetes-int-or-string"] == true {
            self.int_or_string = true;
            return Ok("IntOrString".to_owned());
        }
        let open = ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"];
        if open.iter().any(|open| schema[*open] == true) {
            return Ok("serde_json::Value".to_owned());
        }
        Ok(
            match (schema["type"].as_str().unwrap_or_default(), schema["format"].as_str().unwrap_or_default())
            {
                ("string", _) => "String".to_owned(),
                ("boolean", _) => "bool".to_owned(),
                ("integer", "int32") => "i32".to_owned(),
                ("integer", _) => "i64".to_owned(),
                ("number", _) => "f64".to_owned(),
                ("array", _) => {
                    let item = self.type_of(&format!("{name}Item"), &schema["items"], depth + 1)?;
                    format!("Vec<{item}>")
                }
                ("object", _) if schema["properties"].is_object() => {
                    let mut unique = name.to_owned();
                    while !self.names.insert(unique.clone()) {
                        unique.push('2');
                    }
                    self.structure(&unique, schema, depth + 1)?;
                    unique
                }
                ("object", _) if schema["additionalProperties"].is_object() => {
                    self.maps = true;
                    let value =
                        self.type_of(&format!("{name}Value"), &schema["additionalProperties"], depth + 1)?;
                    format!("BTreeMap<String, {value}>")
                }
                _ => "serde_json::Value".to_owned(),
            },
        )
    }
}

/// An attribute of a field, as rustfmt writes it.
fn attribute(parts: &[String]) -> String {
    if parts.is_empty() {
        return String::new();
    }
    let line = parts.join(", ");
    // rustfmt's `attr_fn_like_width`.
    if line.len() <= 70 {
        return format!("    #[serde({line})]\n");
    }
    format!("    #[serde(\n        {}\n    )]\n", parts.join(",\n        "))
}

/// The description of a schema, and the values that it allows.
fn documentation(schema: &Value, indent: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in schema["description"].as_str().unwrap_or_default().lines() {
        lines.push(line.trim_end().replace('\t', "    "));
    }
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<String> = values.iter().map(ToString::to_string).collect();
        lines.push(format!("One of {}.", values.join(", ")));
    }
    lines.iter().map(|line| format!("{indent}/// {line}").trim_end().to_owned() + "\n").collect()
}
