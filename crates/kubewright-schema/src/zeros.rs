//! How Go writes the zero values of Kubernetes' types, which schemas do not tell: a field that is no pointer is left out when it
//! is zero (`omitempty`), or written although nobody gave it.

use kubewright_spec::{Field, Version, fields_of};
use serde_json::{Map, Value, json};

/// How the zero values of one type's fields are written.
#[derive(Default)]
pub(super) struct Zeros {
    fields: Vec<Field>,
    /// The types that fields are inlined by, each after a dot: of as many fields.
    inlined: Vec<String>,
}

impl Zeros {
    /// Those of the type of that name in OpenAPI documents.
    pub(crate) fn of(version: Version, name: &str) -> Self {
        let mut zeros = Self::default();
        if let Some(name) = go_name(name) {
            zeros.collect(version, &name, "");
        }
        zeros
    }

    /// The names of all fields, in their order in Go.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.fields.iter().map(|field| field.name).collect()
    }

    /// The scalar fields that are left out when they are zero, and the times that are none then.
    pub(crate) fn dropped(&self) -> impl Iterator<Item = &'static str> {
        let dropped = |field: &&Field| {
            let is_time = matches!(field.of, "time" | "microtime");
            !field.is_pointer && (is_time || !field.is_always_written && is_scalar(field.of))
        };
        self.fields.iter().filter(dropped).map(|field| field.name)
    }

    /// The fields of types that are inlined, and the names of these in Go: `RuleWithOperations.Rule`.
    pub(crate) fn inlined(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = self.fields.iter().zip(&self.inlined);
        all.filter_map(|(field, by)| Some((field.name, by.strip_prefix('.')?)))
    }

    /// Whether the type has a field of that name on the wire. That it does not say there what it is makes it one with a `TypeMeta`.
    pub(crate) fn has(&self, field: &str) -> bool {
        self.fields.iter().any(|one| one.name == field)
    }

    /// The fields of a type, with those of the types that are inlined in it.
    fn collect(&mut self, version: Version, name: &str, by: &str) {
        let (package, _) = name.split_once('.').unwrap_or_default();
        for field in fields_of(version, name) {
            if field.name != "." {
                self.fields.push(field);
                self.inlined.push(by.to_owned());
                continue;
            }
            let (home, short) = field.of.rsplit_once('.').unwrap_or((package, field.of));
            self.collect(version, &format!("{home}.{short}"), &format!("{by}.{short}"));
        }
    }

    /// The fields whose types have names of their own in Go, and these.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.fields.iter().filter_map(|field| Some((field.name, field.named?)))
    }

    /// The fields that are always there, and what stands in them when nobody gave them a value. An empty object has
    /// such fields of its own.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let shown = self.fields.iter().filter(|field| field.is_always_written);
        shown.map(|field| (field.name, if field.is_pointer { Value::Null } else { zero(field.of) }))
    }
}

impl Zeros {
    /// Tells of the properties of a type what stands in them, and in members of lists and maps, when nobody gave them a value
    /// (`k8s.io/kube-openapi/pkg/generators`): the zero of a text, number or truth that is always written, and an empty object.
    pub(crate) fn document(&self, properties: &mut Map<String, Value>) {
        for field in &self.fields {
            let Some(Value::Object(schema)) = properties.get_mut(field.name) else { continue };
            document_members(schema, field.of);
            if field.is_always_written && !field.is_pointer {
                record(schema, field.of);
            }
        }
    }
}

fn document_members(schema: &mut Map<String, Value>, of: &str) {
    let members =
        ["items", "additionalProperties"].into_iter().zip([of.strip_prefix("[]"), of.strip_prefix("{}")]);
    for (key, member) in members {
        if let (Some(Value::Object(inner)), Some(member)) = (schema.get_mut(key), member) {
            document_members(inner, member);
            record(inner, member);
        }
    }
}

/// Tells of a schema what stands in its place. What is a reference has nothing beside it.
fn record(schema: &mut Map<String, Value>, of: &str) {
    let default = match of {
        "intstr" | "quantity" => return,
        of => zero(of),
    };
    if default.is_null() || schema.contains_key("default") {
        return;
    }
    if let Some(reference) = schema.remove("$ref") {
        schema.insert("allOf".to_owned(), json!([{"$ref": reference}]));
    }
    schema.insert("default".to_owned(), default);
}

/// `core/v1.Container` of `io.k8s.api.core.v1.Container`: the last two parts of its package, and its name.
fn go_name(name: &str) -> Option<String> {
    let mut parts = name.rsplitn(4, '.');
    let (kind, version, group) = (parts.next()?, parts.next()?, parts.next()?);
    Some(format!("{group}/{version}.{kind}"))
}

fn is_scalar(of: &str) -> bool {
    matches!(of, "string" | "bool" | "int32" | "int64" | "double" | "bytes")
}

/// What Go writes of a field that nobody set.
fn zero(of: &str) -> Value {
    match of {
        "string" => json!(""),
        "bool" => json!(false),
        "int32" | "int64" | "double" | "uint32" | "intstr" => json!(0),
        "quantity" => json!("0"),
        "bytes" | "time" | "microtime" | "json" | "strings" => Value::Null,
        list_or_map if list_or_map.starts_with("[]") || list_or_map.starts_with("{}") => Value::Null,
        _ => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_knows_which_zeros_it_shows() {
        let container = Zeros::of(Version::DEFAULT, "io.k8s.api.core.v1.Container");
        assert!(container.dropped().any(|field| field == "stdin"));
        let shown: Vec<_> = container.shown().collect();
        assert_eq!(shown, [("name", json!("")), ("resources", json!({}))]);
    }

    #[test]
    fn documents_tell_what_stands_where_nobody_gave_a_value() {
        let mut properties = json!({
            "name": {"type": "string"},
            "image": {"type": "string"},
            "resources": {"$ref": "R"},
            "command": {"type": "array", "items": {"type": "string"}},
            "ports": {"type": "array", "items": {"$ref": "P"}},
        });
        let container = Zeros::of(Version::DEFAULT, "io.k8s.api.core.v1.Container");
        container.document(properties.as_object_mut().expect("an object"));
        let expected = json!({
            "name": {"type": "string", "default": ""},
            "image": {"type": "string"},
            "resources": {"allOf": [{"$ref": "R"}], "default": {}},
            "command": {"type": "array", "items": {"type": "string", "default": ""}},
            "ports": {"type": "array", "items": {"allOf": [{"$ref": "P"}], "default": {}}},
        });
        assert_eq!(properties, expected);
        let mut limits = json!({"limits": {"type": "object", "additionalProperties": {"$ref": "Q"}}});
        let before = limits.clone();
        let resources = Zeros::of(Version::DEFAULT, "io.k8s.api.core.v1.ResourceRequirements");
        resources.document(limits.as_object_mut().expect("an object"));
        assert_eq!(limits, before, "a quantity has no zero");
    }

    #[test]
    fn nothing_is_known_of_a_type_that_is_not_there() {
        let zeros = Zeros::of(Version::DEFAULT, "io.k8s.api.core.v1.Nothing");
        assert!(zeros.dropped().next().is_none() && zeros.shown().next().is_none());
    }

    #[test]
    fn fields_of_an_inlined_type_are_fields_of_the_type() {
        let source = Zeros::of(Version::DEFAULT, "io.k8s.api.core.v1.ConfigMapEnvSource");
        assert_eq!(source.dropped().collect::<Vec<_>>(), ["name"]);
        assert_eq!(source.shown().count(), 0);
    }

    #[test]
    fn a_pointer_without_omitempty_is_written_as_null() {
        let reference = Zeros::of(Version::DEFAULT, "io.k8s.api.core.v1.TypedLocalObjectReference");
        let shown: Vec<_> = reference.shown().collect();
        assert_eq!(shown, [("apiGroup", json!(null)), ("kind", json!("")), ("name", json!(""))]);
    }
}
