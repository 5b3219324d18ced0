//! Structs from a structural schema (`apiextensions.k8s.io/v1`). What a type of Rust says of itself (types, fields, which must
//! be there) is said by it; what is left is said by attributes, so that the schema of the types is the one they were made of.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::literal::{documentation, literal};
use crate::{Error, names};

/// How deep a schema may be.
const DEPTH: usize = 24;
/// How many structs one kind may have.
const STRUCTS: usize = 4096;

/// What lets fields through that a schema does not have.
const OPEN: &str = "x-kubernetes-preserve-unknown-fields";
/// What is a whole object of some kind.
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// The structs of a kind, in the order in which they are named.
#[derive(Debug, Default)]
pub(super) struct Structs {
    written: Vec<String>,
    names: BTreeSet<String>,
    int_or_string: bool,
    maps: bool,
}

/// A type, and what of its schema it does not say by itself.
struct Type {
    text: String,
    rest: Map<String, Value>,
}

impl Type {
    /// A type that says these keywords of its schema.
    fn new(text: impl Into<String>, schema: &Value, said: &[&str]) -> Self {
        let mut rest = sayable(schema);
        rest.retain(|keyword, _| keyword != "description" && !said.contains(&keyword.as_str()));
        Self { text: text.into(), rest }
    }

    /// A collection of it. What its elements do not say by themselves is said with the collection, as all of `keyword`.
    fn collected(self, collection: impl FnOnce(&str) -> String, schema: &Value, keyword: &str) -> Self {
        let elements = &schema[keyword];
        let text = if elements["nullable"] == true { format!("Option<{}>", self.text) } else { self.text };
        let said: &[&str] = if self.rest.is_empty() { &["type", keyword] } else { &["type"] };
        Self::new(collection(&text), schema, said)
    }
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
        text +=
            "use kube::CustomResource;\nuse schemars::JsonSchema;\nuse serde::{Deserialize, Serialize};\n";
        let others = "#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]\n";
        for (index, one) in self.written.iter().enumerate() {
            text += "\n";
            text += &one.replacen("#[struct]\n", if index == 0 { attribute } else { others }, 1);
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
            let ident = unique(&mut taken, names::field(field), '_');
            let type_ = self.type_of(&format!("{name}{}", names::camel(field)), of, depth)?;
            fields += &documentation(of, "    ");
            fields += &declared(field, &ident, type_, required.contains(field.as_str()), of);
        }
        if schema[OPEN] == true {
            self.maps = true;
            let ident = unique(&mut taken, "other_fields".to_owned(), '_');
            fields += "    /// Fields that the schema does not have.\n    #[serde(flatten)]\n";
            fields += &format!("    pub {ident}: BTreeMap<String, serde_json::Value>,\n");
        }
        let said = ["type", "properties", "required", "default", "nullable", OPEN];
        let rest = extended(&Type::new("", schema, &said).rest, "");
        let body = if fields.is_empty() { " {}\n".to_owned() } else { format!(" {{\n{fields}}}\n") };
        self.written[place] =
            format!("{}#[struct]\n{rest}pub struct {name}{body}", documentation(schema, ""));
        Ok(())
    }

    /// The type of a field, whose structs begin with `name`.
    fn type_of(&mut self, name: &str, schema: &Value, depth: usize) -> Result<Type, Error> {
        if schema[INT_OR_STRING] == true {
            self.int_or_string = true;
            return Ok(Type::new("IntOrString", schema, &[INT_OR_STRING, "anyOf", "type"]));
        }
        let has_properties = schema["properties"].as_object().is_some_and(|fields| !fields.is_empty());
        if !has_properties && [OPEN, EMBEDDED].iter().any(|open| schema[*open] == true) {
            return Ok(Type::new("serde_json::Value", schema, &[]));
        }
        let format = schema["format"].as_str().unwrap_or_default();
        Ok(match schema["type"].as_str().unwrap_or_default() {
            "string" => Type::new("String", schema, &["type"]),
            "boolean" => Type::new("bool", schema, &["type"]),
            "integer" if format == "int32" => Type::new("i32", schema, &["type", "format"]),
            "integer" if format == "int64" => Type::new("i64", schema, &["type", "format"]),
            "integer" => Type::new("i64", schema, &["type"]),
            "number" if format == "double" => Type::new("f64", schema, &["type", "format"]),
            "number" => Type::new("f64", schema, &["type"]),
            "array" => {
                let item = self.type_of(&format!("{name}Item"), &schema["items"], depth + 1)?;
                item.collected(|item| format!("Vec<{item}>"), schema, "items")
            }
            "object" if schema["properties"].is_object() => {
                let name = unique(&mut self.names, name.to_owned(), '2');
                self.structure(&name, schema, depth + 1)?;
                let mut type_ = Type::new(name, schema, &[]);
                type_.rest.retain(|keyword, _| keyword == "default" || keyword == "nullable");
                type_
            }
            "object" if schema["additionalProperties"].is_object() => {
                self.maps = true;
                let values = &schema["additionalProperties"];
                let value = self.type_of(&format!("{name}Value"), values, depth + 1)?;
                value.collected(|value| format!("BTreeMap<String, {value}>"), schema, "additionalProperties")
            }
            _ => Type::new("serde_json::Value", schema, &[]),
        })
    }
}

/// A field of a struct.
fn declared(field: &str, ident: &str, mut type_: Type, required: bool, schema: &Value) -> String {
    let nullable = schema["nullable"] == true;
    let mut serde = Vec::new();
    if ident != field {
        serde.push(format!("rename = {field:?}"));
    }
    if !required {
        serde.push("default".to_owned());
        serde.push("skip_serializing_if = \"Option::is_none\"".to_owned());
        if type_.text != "serde_json::Value" {
            // kube says it of all that may be left out.
            type_.rest.remove("nullable");
        }
    }
    let schemars = if required && nullable { "    #[schemars(required)]\n" } else { "" };
    let text = if !required || nullable { format!("Option<{}>", type_.text) } else { type_.text };
    let (serde, extended) = (attribute(&serde), extended(&type_.rest, "    "));
    format!("{serde}{schemars}{extended}    pub {ident}: {text},\n")
}

/// A name that is not taken yet, which it is then.
fn unique(taken: &mut BTreeSet<String>, mut name: String, mark: char) -> String {
    while !taken.insert(name.clone()) {
        name.push(mark);
    }
    name
}

/// The keywords of a schema that an attribute can say, those below it too. kube's derive takes apart what is in `anyOf` and
/// `oneOf`, as enums of Rust become those; what is not left as it is by that is left out.
fn sayable(schema: &Value) -> Map<String, Value> {
    let mut kept = Map::new();
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        let value = match (keyword.as_str(), value) {
            ("anyOf" | "oneOf", Value::Array(branches)) => {
                if !branches.iter().all(is_left_alone) {
                    continue;
                }
                value.clone()
            }
            ("properties", Value::Object(fields)) => Value::Object(
                fields.iter().map(|(name, of)| (name.clone(), Value::Object(sayable(of)))).collect(),
            ),
            ("items" | "additionalProperties", Value::Object(_)) => Value::Object(sayable(value)),
            _ => value.clone(),
        };
        kept.insert(keyword.clone(), value);
    }
    kept
}

/// Whether kube's derive leaves a branch of `anyOf` or `oneOf` as it is.
fn is_left_alone(branch: &Value) -> bool {
    let left = ["required", "not", "pattern", "minimum", "maximum", "minLength", "maxLength"];
    branch.as_object().is_some_and(|branch| {
        !branch.is_empty() && branch.keys().all(|keyword| left.contains(&keyword.as_str()))
    })
}

/// Attributes that say what a type does not, one in a line.
fn extended(rest: &Map<String, Value>, indent: &str) -> String {
    let line = |(keyword, value): (&String, &Value)| {
        format!("{indent}#[schemars(extend({keyword:?} = {}))]\n", literal(value))
    };
    rest.iter().map(line).collect()
}

/// An attribute of a field.
fn attribute(parts: &[String]) -> String {
    if parts.is_empty() {
        return String::new();
    }
    format!("    #[serde({})]\n", parts.join(", "))
}
