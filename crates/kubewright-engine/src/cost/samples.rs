//! Objects of any size: deep, wide and numerous, with schemas that know all that is in them.

use std::sync::Arc;

use kubewright_kinds::{Custom, CustomParts, Kind, Scope};
use kubewright_schema::Schema;
use kubewright_table::Columns;
use serde_json::{Map, Value, json};

/// In which direction an object grows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    /// An object in an object.
    Depth,
    /// A list in an item of a list, which has its items by their keys.
    DepthOfLists,
    /// A value in a map in a map.
    DepthOfMaps,
    /// Many members.
    Width,
    /// Many items, which have keys.
    Number,
    /// Many items in another order, which have keys.
    Shuffled,
    /// Many items that cannot be told apart.
    Anonymous,
    /// Many items that are scalars, each once.
    Set,
}

pub(super) const FORMS: [Form; 8] = [
    Form::Depth,
    Form::DepthOfLists,
    Form::DepthOfMaps,
    Form::Width,
    Form::Number,
    Form::Shuffled,
    Form::Anonymous,
    Form::Set,
];

/// An object, and what it was: they differ where a walk comes last.
pub(super) struct Sample {
    pub(super) old: Value,
    pub(super) new: Value,
    pub(super) schema: Value,
    /// A kind of this schema.
    pub(super) kind: Arc<Kind>,
    /// A schema by which all numbers are wrong.
    pub(super) strict: Schema,
    /// A schema with rules that do not hold for any number.
    pub(super) refusing: Schema,
}

/// What stands at the end of each way.
fn leaf(extra: &Value) -> Value {
    let mut leaf = json!({"type": "integer"});
    for (key, value) in extra.as_object().into_iter().flatten() {
        leaf[key] = value.clone();
    }
    leaf
}

fn rule(rule: &str) -> Value {
    json!({"x-kubernetes-validations": [{"rule": rule}]})
}

impl Sample {
    pub(super) fn of(form: Form, size: usize) -> Self {
        let schema = schema(form, size, &leaf(&rule("self > 0")));
        let parts = CustomParts {
            group: "example.com".into(),
            version: "v1".into(),
            kind: "Thing".into(),
            list_kind: "ThingList".into(),
            plural: "things".into(),
            singular: "thing".into(),
            short_names: Vec::new(),
            categories: Vec::new(),
            scope: Scope::Namespaced,
            subresources: Vec::new(),
            columns: Columns::custom(&[]),
            schema: Schema::custom(&schema),
            custom: Custom::default(),
        };
        Self {
            old: object(form, size, 1),
            new: object(form, size, 2),
            kind: Arc::new(Kind::custom(parts)),
            strict: Schema::custom(&self::schema(form, size, &leaf(&json!({"minimum": 10})))),
            refusing: Schema::custom(&self::schema(form, size, &leaf(&rule("self > 10")))),
            schema,
        }
    }

    /// A definition of this schema, as it is stored.
    pub(super) fn definition(&self, schema: &Value) -> Value {
        let mut definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "things", "kind": "Thing"},
                "versions": [
                    {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}
                ],
            },
        });
        kubewright_kinds::definition::default(&mut definition);
        kubewright_kinds::definition::begin(&mut definition);
        definition
    }
}

fn object(form: Form, size: usize, last: u64) -> Value {
    let number = |at: usize| if at + 1 == size { json!(last) } else { json!(1) };
    let keyed = |at: usize| json!({"name": format!("i{at:04}"), "n": number(at)});
    let spec = match form {
        Form::Depth => (0..size).fold(json!({"z": last}), |inner, _| json!({"a": 1, "y": inner})),
        Form::DepthOfLists => (0..size)
            .fold(json!([]), |inner, at| json!([{"name": "x", "inner": inner, "n": number(size - 1 - at)}])),
        Form::DepthOfMaps => (0..size).fold(json!(last), |inner, _| json!({"k": inner})),
        Form::Width => (0..size).map(|at| (format!("f{at:04}"), number(at))).collect::<Map<_, _>>().into(),
        Form::Number => (0..size).map(keyed).collect(),
        Form::Shuffled if last == 1 => (0..size).map(keyed).collect(),
        Form::Shuffled => (0..size).rev().map(keyed).collect(),
        Form::Anonymous => (0..size).map(number).collect(),
        Form::Set => (0..size)
            .map(|at| json!(if at + 1 == size { size + usize::try_from(last).unwrap_or(0) } else { at + 1 }))
            .collect(),
    };
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "b"}, "spec": spec})
}

fn schema(form: Form, size: usize, leaf: &Value) -> Value {
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    let list = |most: usize, items: Value| {
        json!({"type": "array", "items": items, "maxItems": most, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"]})
    };
    let name = json!({"type": "string"});
    let item = |properties: Value| json!({"type": "object", "required": ["name"], "properties": properties});
    let spec = match form {
        Form::Depth => {
            (0..size).fold(object(json!({"z": leaf})), |inner, _| object(json!({"a": leaf, "y": inner})))
        }
        Form::DepthOfLists => (0..size).fold(list(1, item(json!({"name": name}))), |inner, _| {
            list(1, item(json!({"name": name, "inner": inner, "n": leaf})))
        }),
        Form::DepthOfMaps => (0..size).fold(
            leaf.clone(),
            |inner, _| json!({"type": "object", "maxProperties": 1, "additionalProperties": inner}),
        ),
        Form::Width => {
            object((0..size).map(|at| (format!("f{at:04}"), leaf.clone())).collect::<Map<_, _>>().into())
        }
        Form::Number | Form::Shuffled => list(100, item(json!({"name": name, "n": leaf}))),
        Form::Anonymous => json!({"type": "array", "maxItems": 100, "items": leaf}),
        Form::Set => {
            json!({"type": "array", "maxItems": 100, "items": leaf, "x-kubernetes-list-type": "set"})
        }
    };
    object(json!({"spec": spec}))
}
