//! The `openAPIV3Schema` of a CustomResourceDefinition as schema nodes.
//!
//! It was validated before (room `definition` of `kubewright-kinds`); what is malformed nevertheless is left out.

use std::sync::Arc;

use kubewright_meta::cost;
use serde_json::Value;

use super::format;
use super::node::{Additional, Bounds, ListType, Logic, MapType, Merge, Node, Reason, Rule, Type};
use super::pattern::Pattern;
use super::prune;

/// Which formats schemas have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Formats {
    /// Those that are known for their type: objects are held against these (`StripUnsupportedFormatsPostProcess`).
    Known,
    /// All that are named.
    All,
}

/// The node of a schema, and all below it.
pub fn node(schema: &Value) -> Node {
    build(schema, Formats::Known)
}

/// As [`node`], with formats that nobody knows: defaults are held against these.
pub fn node_with_all_formats(schema: &Value) -> Node {
    build(schema, Formats::All)
}

fn build(schema: &Value, formats: Formats) -> Node {
    cost::step();
    let flag = |key: &str| schema.get(key) == Some(&Value::Bool(true));
    let text = |key: &str| schema.get(key).and_then(Value::as_str);
    let kind = text("type").and_then(Type::parse);
    let int_or_string = flag("x-kubernetes-int-or-string");
    let is_known = |format: &&str| format::is_known(kind.filter(|_| !int_or_string), format);
    let format = text("format").filter(|format| formats == Formats::All || is_known(format));
    let node = Node {
        kind,
        format: format.map(Into::into),
        nullable: flag("nullable"),
        int_or_string,
        preserve_unknown_fields: flag("x-kubernetes-preserve-unknown-fields"),
        embedded_resource: flag("x-kubernetes-embedded-resource"),
        properties: schema
            .get("properties")
            .and_then(Value::as_object)
            .map(|all| {
                all.iter().map(|(name, one)| (name.as_str().into(), Arc::new(build(one, formats)))).collect()
            })
            .unwrap_or_default(),
        additional: additional(schema.get("additionalProperties"), formats),
        items: schema.get("items").map(|items| Arc::new(build(items, formats))),
        required: texts(schema, "required"),
        enumeration: list(schema, "enum").cloned().collect(),
        merge: merge(schema),
        bounds: bounds(schema),
        logic: logic(schema, formats),
        rules: list(schema, "x-kubernetes-validations").map(rule).collect(),
        ..Node::default()
    };
    match schema.get("default").filter(|default| !default.is_null()) {
        None => node,
        Some(default) => Node { default: Some(pruned(&node, default.clone())), ..node },
    }
}

/// What is set of a default: what the schema does not know was told when it was validated, but for the values of maps
/// (`apiextensions-apiserver/pkg/apiserver/schema/defaulting/prune.go`).
fn pruned(node: &Node, mut default: Value) -> Value {
    prune::value(node, &mut default);
    // Metadata that does not decode is left as it is.
    let _ = prune::embedded_at(node, &mut default, "");
    default
}

fn rule(rule: &Value) -> Rule {
    let text = |key: &str| rule.get(key).and_then(Value::as_str).unwrap_or_default();
    Rule {
        rule: text("rule").into(),
        message: text("message").into(),
        message_expression: text("messageExpression").into(),
        reason: Reason::parse(text("reason")),
        field_path: text("fieldPath").into(),
        optional_old_self: rule.get("optionalOldSelf").and_then(Value::as_bool),
    }
}

fn additional(schema: Option<&Value>, formats: Formats) -> Additional {
    match schema {
        None => Additional::Unsaid,
        Some(Value::Bool(false)) => Additional::Never,
        Some(values @ Value::Object(_)) => Additional::Of(Arc::new(build(values, formats))),
        Some(_) => Additional::Any,
    }
}

fn merge(schema: &Value) -> Option<Box<Merge>> {
    let text = |key: &str| schema.get(key).and_then(Value::as_str);
    let merge = Merge {
        list: text("x-kubernetes-list-type").and_then(ListType::parse),
        keys: texts(schema, "x-kubernetes-list-map-keys"),
        map: text("x-kubernetes-map-type").and_then(MapType::parse),
        ..Merge::default()
    };
    (merge != Merge::default()).then(|| Box::new(merge))
}

fn bounds(schema: &Value) -> Option<Box<Bounds>> {
    const KEYS: [&str; 12] = [
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
    ];
    if !KEYS.iter().any(|key| schema.get(key).is_some()) {
        return None;
    }
    let number = |key: &str| schema.get(key).and_then(Value::as_number).cloned();
    let count = |key: &str| schema.get(key).and_then(Value::as_i64);
    let flag = |key: &str| schema.get(key) == Some(&Value::Bool(true));
    Some(Box::new(Bounds {
        minimum: number("minimum"),
        exclusive_minimum: flag("exclusiveMinimum"),
        maximum: number("maximum"),
        exclusive_maximum: flag("exclusiveMaximum"),
        multiple_of: number("multipleOf"),
        min_length: count("minLength"),
        max_length: count("maxLength"),
        pattern: schema
            .get("pattern")
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
            .map(Pattern::new),
        min_items: count("minItems"),
        max_items: count("maxItems"),
        min_properties: count("minProperties"),
        max_properties: count("maxProperties"),
    }))
}

fn logic(schema: &Value, formats: Formats) -> Option<Box<Logic>> {
    let one = |schema: &Value| build(schema, formats);
    let all = |key: &str| list(schema, key).map(one).collect::<Vec<_>>();
    let logic = Logic {
        all_of: all("allOf"),
        any_of: all("anyOf"),
        one_of: all("oneOf"),
        not: schema.get("not").filter(|not| not.is_object()).map(one),
    };
    let said = !logic.all_of.is_empty()
        || !logic.any_of.is_empty()
        || !logic.one_of.is_empty()
        || logic.not.is_some();
    said.then(|| Box::new(logic))
}

fn list<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    schema.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn texts(schema: &Value, key: &str) -> Box<[Box<str>]> {
    list(schema, key).filter_map(Value::as_str).map(Into::into).collect()
}
