//! Parts of a definition as messages quote them: the internal structs of kube-apiserver as Go's `encoding/json` writes
//! them, every field in the order of its declaration (`pkg/apis/apiextensions/{types,types_jsonschema}.go`).

use kubewright_meta::go::{float, json};
use serde_json::Value;

use super::part;

/// How a field is written.
#[derive(Clone, Copy)]
enum Form {
    /// Text, empty where there is none.
    Text,
    /// True or false, false where it is not said.
    Flag,
    /// As it is, `null` where it is absent.
    Plain,
    /// A number of type `float64`.
    Float,
    /// A schema.
    Schema,
    /// A list of schemas.
    Schemas,
    /// Schemas by name.
    Named,
    /// A schema, or a list of them.
    SchemaOrList,
    /// A schema, or whether any is allowed.
    SchemaOrBool,
    /// Names, or a schema, by name.
    Dependencies,
    /// Rules.
    Rules,
    /// Description and URL.
    Docs,
}

const SCHEMA: &[(&str, &str, Form)] = &[
    ("ID", "id", Form::Text),
    ("Schema", "$schema", Form::Text),
    ("Ref", "$ref", Form::Plain),
    ("Description", "description", Form::Text),
    ("Type", "type", Form::Text),
    ("Nullable", "nullable", Form::Flag),
    ("Format", "format", Form::Text),
    ("Title", "title", Form::Text),
    ("Default", "default", Form::Plain),
    ("Maximum", "maximum", Form::Float),
    ("ExclusiveMaximum", "exclusiveMaximum", Form::Flag),
    ("Minimum", "minimum", Form::Float),
    ("ExclusiveMinimum", "exclusiveMinimum", Form::Flag),
    ("MaxLength", "maxLength", Form::Plain),
    ("MinLength", "minLength", Form::Plain),
    ("Pattern", "pattern", Form::Text),
    ("MaxItems", "maxItems", Form::Plain),
    ("MinItems", "minItems", Form::Plain),
    ("UniqueItems", "uniqueItems", Form::Flag),
    ("MultipleOf", "multipleOf", Form::Float),
    ("Enum", "enum", Form::Plain),
    ("MaxProperties", "maxProperties", Form::Plain),
    ("MinProperties", "minProperties", Form::Plain),
    ("Required", "required", Form::Plain),
    ("Items", "items", Form::SchemaOrList),
    ("AllOf", "allOf", Form::Schemas),
    ("OneOf", "oneOf", Form::Schemas),
    ("AnyOf", "anyOf", Form::Schemas),
    ("Not", "not", Form::Schema),
    ("Properties", "properties", Form::Named),
    ("AdditionalProperties", "additionalProperties", Form::SchemaOrBool),
    ("PatternProperties", "patternProperties", Form::Named),
    ("Dependencies", "dependencies", Form::Dependencies),
    ("AdditionalItems", "additionalItems", Form::SchemaOrBool),
    ("Definitions", "definitions", Form::Named),
    ("ExternalDocs", "externalDocs", Form::Docs),
    ("Example", "example", Form::Plain),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Form::Plain),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Form::Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", Form::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Form::Plain),
    ("XListType", "x-kubernetes-list-type", Form::Plain),
    ("XMapType", "x-kubernetes-map-type", Form::Plain),
    ("XValidations", "x-kubernetes-validations", Form::Rules),
];

const RULE: &[(&str, &str, Form)] = &[
    ("Rule", "rule", Form::Text),
    ("Message", "message", Form::Text),
    ("MessageExpression", "messageExpression", Form::Text),
    ("Reason", "reason", Form::Plain),
    ("FieldPath", "fieldPath", Form::Text),
    ("OptionalOldSelf", "optionalOldSelf", Form::Plain),
];

const DOCS: &[(&str, &str, Form)] = &[("Description", "description", Form::Text), ("URL", "url", Form::Text)];

const COLUMN: &[(&str, &str, Form)] = &[
    ("Name", "name", Form::Text),
    ("Type", "type", Form::Text),
    ("Format", "format", Form::Text),
    ("Description", "description", Form::Text),
    ("Priority", "priority", Form::Plain),
    ("JSONPath", "jsonPath", Form::Text),
];

const SCALE: &[(&str, &str, Form)] = &[
    ("SpecReplicasPath", "specReplicasPath", Form::Text),
    ("StatusReplicasPath", "statusReplicasPath", Form::Text),
    ("LabelSelectorPath", "labelSelectorPath", Form::Plain),
];

const VERSION: &[(&str, &str, Form)] = &[
    ("Name", "name", Form::Text),
    ("Served", "served", Form::Flag),
    ("Storage", "storage", Form::Flag),
    ("Deprecated", "deprecated", Form::Flag),
    ("DeprecationWarning", "deprecationWarning", Form::Plain),
];

/// A schema.
pub(super) fn schema(schema: &Value) -> String {
    object(SCHEMA, schema)
}

/// A rule.
pub(super) fn rule(rule: &Value) -> String {
    object(RULE, rule)
}

/// What of a version stands in it, and not in the definition because all versions have the same.
#[derive(Clone, Copy)]
pub(super) struct Own {
    pub(super) schema: bool,
    pub(super) subresources: bool,
    pub(super) columns: bool,
    pub(super) selectable: bool,
}

/// A version.
pub(super) fn version(version: &Value, own: Own) -> String {
    let given = |key: &str, own: bool| part(version, key).filter(|_| own);
    let schema = given("schema", own.schema).map(|of| {
        format!("{{\"OpenAPIV3Schema\":{}}}", part(of, "openAPIV3Schema").map_or_else(null, schema))
    });
    let subresources = given("subresources", own.subresources).map(|all| {
        let status = part(all, "status").map_or_else(null, |_| "{}".to_owned());
        let scale = part(all, "scale").map_or_else(null, |scale| object(SCALE, scale));
        format!("{{\"Status\":{status},\"Scale\":{scale}}}")
    });
    let each = |key: &str, own: bool, write: &dyn Fn(&Value) -> String| {
        given(key, own).and_then(Value::as_array).map(|all| list(all.iter().map(write)))
    };
    let columns = each("additionalPrinterColumns", own.columns, &|column| {
        let mut column = column.clone();
        if let Some(fields) = column.as_object_mut() {
            fields.entry("priority").or_insert_with(|| 0.into());
        }
        object(COLUMN, &column)
    });
    let selectable = each("selectableFields", own.selectable, &|field| {
        object(&[("JSONPath", "jsonPath", Form::Text)], field)
    });
    let head = object(VERSION, version);
    format!(
        "{},\"Schema\":{},\"Subresources\":{},\"AdditionalPrinterColumns\":{},\"SelectableFields\":{}}}",
        head.trim_end_matches('}'),
        schema.unwrap_or_else(null),
        subresources.unwrap_or_else(null),
        columns.unwrap_or_else(null),
        selectable.unwrap_or_else(null)
    )
}

/// A list of what is written already.
pub(super) fn list(all: impl Iterator<Item = String>) -> String {
    format!("[{}]", all.collect::<Vec<_>>().join(","))
}

fn null() -> String {
    "null".to_owned()
}

fn object(form: &[(&str, &str, Form)], value: &Value) -> String {
    let fields =
        form.iter().map(|(name, key, form)| format!("\"{name}\":{}", field(*form, part(value, key))));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

fn field(form: Form, value: Option<&Value>) -> String {
    let Some(value) = value else {
        return match form {
            Form::Text => "\"\"".to_owned(),
            Form::Flag => "false".to_owned(),
            _ => null(),
        };
    };
    let each = |write: &dyn Fn(&Value) -> String| {
        value.as_array().map_or_else(null, |all| list(all.iter().map(write)))
    };
    match form {
        Form::Text | Form::Flag | Form::Plain => json(value),
        Form::Float => value.as_f64().map_or_else(null, float),
        Form::Schema => schema(value),
        Form::Schemas => each(&schema),
        Form::Rules => each(&rule),
        Form::Docs => object(DOCS, value),
        Form::Named => named(value, &schema),
        Form::SchemaOrList => {
            let one = if value.is_object() { schema(value) } else { null() };
            format!("{{\"Schema\":{one},\"JSONSchemas\":{}}}", each(&schema))
        }
        Form::SchemaOrBool => {
            let one = if value.is_object() { schema(value) } else { null() };
            format!("{{\"Allows\":{},\"Schema\":{one}}}", value != &Value::Bool(false))
        }
        Form::Dependencies => named(value, &|one| {
            let of = if one.is_object() { schema(one) } else { null() };
            let names = if one.is_array() { json(one) } else { null() };
            format!("{{\"Schema\":{of},\"Property\":{names}}}")
        }),
    }
}

fn named(value: &Value, write: &dyn Fn(&Value) -> String) -> String {
    value.as_object().map_or_else(null, |all| {
        let parts = all.iter().map(|(name, one)| format!("{}:{}", json(&name.as_str().into()), write(one)));
        format!("{{{}}}", parts.collect::<Vec<_>>().join(","))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_and_maps_without_entries_are_not_null() {
        let written = schema(&json!({"allOf": [], "properties": {}, "items": []}));
        for part in ["\"AllOf\":[]", "\"AnyOf\":null", "\"Properties\":{}", "\"JSONSchemas\":[]"] {
            assert!(written.contains(part), "{part} in {written}");
        }
    }
}
