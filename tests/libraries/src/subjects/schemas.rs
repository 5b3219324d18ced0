//! Schemas of definitions, and objects of theirs.

use kubewright_schema::{Candidate, Extent, Schema};
use kubewright_spec::Version;
use serde_json::{Map, Value, json};

use super::rules::{Leaves, grow};
use super::values;
use crate::dice::Dice;

/// The version that the libraries in Go are of.
pub(super) const VERSION: Version = Version::V1_36;

/// What a schema is made of.
#[derive(Clone, Copy)]
struct Plan {
    depth: usize,
    /// Rules in it, of a hundred schemas.
    rules: u32,
}

const NAMES: &[&str] = &["a", "b", "c", "name", "x-y", "list", "namespace", "é"];
const FORMATS: &[&str] = &[
    "int32",
    "int64",
    "float",
    "double",
    "date",
    "date-time",
    "duration",
    "byte",
    "uuid",
    "ipv4",
    "cidr",
    "email",
    "uri",
    "hostname",
    "mac",
    "password",
    "unknown",
    "k8s-short-name",
    "k8s-long-name",
    "quantity",
];

/// A schema of a whole object.
pub(super) fn schema(dice: &mut Dice) -> Value {
    let plan = Plan { depth: 3, rules: if dice.chance(50) { 35 } else { 0 } };
    let mut properties = Map::new();
    properties.insert("spec".into(), typed(dice, "object", plan));
    if dice.chance(50) {
        properties.insert("status".into(), any(dice, Plan { depth: 2, ..plan }));
    }
    if dice.chance(10) {
        let name = json!({"type": "string", "maxLength": 5});
        properties.insert("metadata".into(), json!({"type": "object", "properties": {"name": name}}));
    }
    let mut made = json!({"type": "object", "properties": properties});
    if dice.chance(plan.rules) {
        made["x-kubernetes-validations"] = rules(dice, "object", &made);
    }
    made
}

fn any(dice: &mut Dice, plan: Plan) -> Value {
    const TYPES: &[&str] = &[
        "string",
        "string",
        "integer",
        "number",
        "boolean",
        "object",
        "object",
        "array",
        "array",
        "int-or-string",
        "anything",
    ];
    let scalars = &TYPES[..5];
    let kind = dice.one(if plan.depth == 0 { scalars } else { TYPES });
    typed(dice, kind, plan)
}

fn typed(dice: &mut Dice, kind: &str, plan: Plan) -> Value {
    let mut made = Map::new();
    match kind {
        "int-or-string" => drop(made.insert("x-kubernetes-int-or-string".into(), true.into())),
        "anything" => drop(made.insert("x-kubernetes-preserve-unknown-fields".into(), true.into())),
        _ => drop(made.insert("type".into(), kind.into())),
    }
    let below = Plan { depth: plan.depth.saturating_sub(1), ..plan };
    match kind {
        "object" => members(dice, below, &mut made),
        "array" => items(dice, below, &mut made),
        _ => {}
    }
    bounds(dice, kind, &mut made);
    if dice.chance(10) {
        made.insert("nullable".into(), true.into());
    }
    if dice.chance(10) {
        let junctor = dice.word(&["allOf", "anyOf", "oneOf"]);
        let branches = (0..=dice.below(2)).map(|_| validations(dice, kind, &made)).collect();
        made.insert(junctor, branches);
    }
    if dice.chance(4) {
        let not = validations(dice, kind, &made);
        made.insert("not".into(), not);
    }
    if dice.chance(plan.rules) {
        let rules = rules(dice, kind, &Value::Object(made.clone()));
        made.insert("x-kubernetes-validations".into(), rules);
    }
    let mut made = Value::Object(made);
    if plan.depth < 3 && dice.chance(15) {
        let default = value(dice, &made, 5);
        made["default"] = default;
    }
    made
}

fn members(dice: &mut Dice, below: Plan, made: &mut Map<String, Value>) {
    if dice.chance(20) {
        made.insert("additionalProperties".into(), any(dice, below));
    } else {
        let properties: Map<String, Value> =
            (0..=dice.below(4)).map(|_| (dice.word(NAMES), any(dice, below))).collect();
        let required: Vec<Value> =
            properties.keys().filter(|_| dice.chance(20)).map(|name| name.clone().into()).collect();
        if !required.is_empty() {
            made.insert("required".into(), required.into());
        }
        made.insert("properties".into(), properties.into());
        if dice.chance(12) {
            made.insert("x-kubernetes-preserve-unknown-fields".into(), true.into());
        }
        if dice.chance(4) {
            made.insert("x-kubernetes-embedded-resource".into(), true.into());
            made.insert("x-kubernetes-preserve-unknown-fields".into(), true.into());
        }
    }
    if dice.chance(8) {
        made.insert("x-kubernetes-map-type".into(), dice.word(&["atomic", "granular"]).into());
    }
}

fn items(dice: &mut Dice, below: Plan, made: &mut Map<String, Value>) {
    match dice.below(5) {
        0 => {
            made.insert("x-kubernetes-list-type".into(), "map".into());
            let keys = if dice.chance(70) { vec!["name"] } else { vec!["name", "a"] };
            let mut item = json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 10}, "b": any(dice, below)}, "required": keys});
            if keys.len() > 1 {
                item["properties"]["a"] = typed(dice, "integer", Plan { depth: 0, rules: 0 });
                if dice.chance(30) {
                    item["properties"]["a"]["default"] = json!(1);
                    item["required"] = json!(["name"]);
                }
            }
            made.insert("x-kubernetes-list-map-keys".into(), json!(keys));
            made.insert("items".into(), item);
        }
        1 => {
            made.insert("x-kubernetes-list-type".into(), "set".into());
            made.insert("items".into(), any(dice, Plan { depth: 0, ..below }));
        }
        2 => {
            made.insert("x-kubernetes-list-type".into(), "atomic".into());
            made.insert("items".into(), any(dice, below));
        }
        _ => drop(made.insert("items".into(), any(dice, below))),
    }
}

/// What restricts values, beyond their types.
fn bounds(dice: &mut Dice, kind: &str, made: &mut Map<String, Value>) {
    let mut put = |key: &str, value: Value| drop(made.insert(key.to_owned(), value));
    match kind {
        "string" => {
            if dice.chance(40) {
                put("maxLength", json!(dice.below(12)));
            }
            if dice.chance(10) {
                put("minLength", json!(dice.below(3)));
            }
            if dice.chance(10) {
                put("pattern", dice.word(&["^[a-z]+$", "^a", "\\d", "[", "^(a|b)?$"]).into());
            }
            if dice.chance(15) {
                put("format", dice.word(FORMATS).into());
            }
            if dice.chance(10) {
                put("enum", json!(["a", "b", ""]));
            }
        }
        "integer" | "number" => {
            if dice.chance(20) {
                put("minimum", if dice.chance(70) { json!(dice.below(3)) } else { bound(dice) });
            }
            if dice.chance(20) {
                put("maximum", if dice.chance(70) { json!(5) } else { bound(dice) });
            }
            if dice.chance(6) {
                put("exclusiveMinimum", true.into());
            }
            if dice.chance(6) {
                put("multipleOf", if dice.chance(60) { json!(2) } else { bound(dice) });
            }
            if dice.chance(8) {
                put("enum", json!([1, 2, 0]));
            }
            if dice.chance(15) {
                put("format", dice.word(&["int32", "int64", "float", "double", "unknown"]).into());
            }
        }
        "array" => {
            if dice.chance(40) {
                put("maxItems", json!(dice.below(4)));
            }
            if dice.chance(10) {
                put("minItems", json!(1));
            }
        }
        "object" => {
            if dice.chance(20) {
                put("maxProperties", json!(dice.below(4)));
            }
            if dice.chance(8) {
                put("minProperties", json!(1));
            }
        }
        _ => {}
    }
}

/// A number at the end of a range, or none of a type.
fn bound(dice: &mut Dice) -> Value {
    const BOUNDS: &[&str] = &[
        "-2147483648",
        "2147483647",
        "2147483648",
        "-2147483649",
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        "0.5",
        "2.5",
        "-1e20",
        "3.5e38",
        "-1",
        "0",
        "1e-7",
        "9007199254740993",
    ];
    serde_json::from_str(dice.one(BOUNDS)).expect("it is a number")
}

/// What stands in a branch of a junctor: no types.
fn validations(dice: &mut Dice, kind: &str, schema: &Map<String, Value>) -> Value {
    let mut made = Map::new();
    bounds(dice, kind, &mut made);
    if let Some(Value::Object(properties)) = schema.get("properties") {
        let chosen: Vec<_> = properties.iter().filter(|_| dice.chance(50)).collect();
        let some: Map<String, Value> = chosen
            .into_iter()
            .map(|(name, property)| {
                let mut inner = Map::new();
                bounds(dice, property["type"].as_str().unwrap_or_default(), &mut inner);
                (name.clone(), inner.into())
            })
            .collect();
        made.insert("properties".into(), some.into());
        if let Some(name) = properties.keys().next().filter(|_| dice.chance(40)) {
            made.insert("required".into(), json!([name]));
        }
    }
    Value::Object(made)
}

/// What rules may begin with where `self` has a type.
fn leaves(kind: &str) -> &'static Leaves {
    match kind {
        "string" => &[('s', &["self", "oldSelf"]), ('x', &["self"])],
        "integer" => &[('i', &["self", "oldSelf"]), ('x', &["self"])],
        "number" => &[('d', &["self", "oldSelf"]), ('x', &["self"])],
        "boolean" => &[('b', &["self", "oldSelf"]), ('x', &["self"])],
        "array" => &[
            ('i', &["size(self)", "self.size()"]),
            ('x', &["self", "self[0]"]),
            (
                'b',
                &[
                    "self.all(v, v == v)",
                    "self == oldSelf",
                    "self.exists(v, v == self[0])",
                    "oldSelf.all(v, v in self)",
                    "self.all(v, v.name == 'a' || has(v.b))",
                ],
            ),
        ],
        "object" => &[
            ('s', &["self.name", "self.a", "self.b", "self.metadata.name", "self.kind"]),
            ('i', &["self.a", "self.b", "size(self)", "self.spec.a"]),
            (
                'b',
                &[
                    "has(self.a)",
                    "has(self.b)",
                    "has(self.name)",
                    "self.c == oldSelf.c",
                    "self == oldSelf",
                    "has(self.spec)",
                    "self.all(k, k != 'a')",
                    "has(self.x__dash__y)",
                    "has(self.__namespace__)",
                    "'a' in self",
                ],
            ),
            ('x', &["self.a", "self.c", "self", "self.list"]),
            ('o', &["self.?a", "self.?b"]),
        ],
        _ => &[
            ('x', &["self", "oldSelf"]),
            ('b', &["type(self) == int", "type(self) == string", "string(self) == 'a'"]),
        ],
    }
}

fn rules(dice: &mut Dice, kind: &str, schema: &Value) -> Value {
    let one = |dice: &mut Dice| {
        let depth = dice.below(3);
        let mut rule = json!({"rule": grow(dice, 'b', depth, leaves(kind))});
        if dice.chance(30) {
            rule["message"] = dice.word(&["wrong", "", " ", "two\nlines", "é"]).into();
        }
        if dice.chance(20) {
            rule["messageExpression"] = grow(dice, 's', 1, leaves(kind)).into();
        }
        if dice.chance(20) {
            rule["reason"] = dice
                .word(&[
                    "FieldValueRequired",
                    "FieldValueForbidden",
                    "FieldValueInvalid",
                    "FieldValueDuplicate",
                    "Other",
                ])
                .into();
        }
        if dice.chance(20) {
            let names: Vec<&str> = schema["properties"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, _)| name.as_str())
                .collect();
            let name = if names.is_empty() { "a" } else { dice.one(&names) };
            rule["fieldPath"] = dice
                .word(&[
                    &format!(".{name}"),
                    &format!("['{name}']"),
                    ".none",
                    &format!(".{name}.a"),
                    ".x-y",
                    "",
                    ".list[0]",
                ])
                .into();
        }
        if dice.chance(10) {
            rule["optionalOldSelf"] = dice.chance(80).into();
        }
        rule
    };
    (0..=dice.below(2)).map(|_| one(dice)).collect()
}

/// A value of a schema; of a hundred places so many have something else.
pub(super) fn value(dice: &mut Dice, schema: &Value, wrong: u32) -> Value {
    if dice.chance(wrong) {
        return values::any(dice, 2);
    }
    if schema["nullable"] == true && dice.chance(20) {
        return Value::Null;
    }
    if let Some(values) = schema["enum"].as_array().filter(|_| dice.chance(80)) {
        return values[dice.below(values.len())].clone();
    }
    match schema["type"].as_str() {
        Some("string") => match schema["format"].as_str() {
            Some("date") => dice.word(&["2024-02-29", "2024-1-1", "x"]).into(),
            Some("date-time") => {
                dice.word(&["2024-02-29T10:00:00Z", "2024-02-29T10:00:00.5+01:00", "x"]).into()
            }
            Some("duration") => dice.word(&["1h", "90s", "1 day", "-1s", "x"]).into(),
            Some("byte") => dice.word(&["YQ==", "", "YQ", "!"]).into(),
            _ => dice
                .word(&["", "a", "b", "abc", "é", "0", "10m", "aé", "1.2.3.4", "a-long-word-that-is-long"])
                .into(),
        },
        Some("integer") => {
            [json!(0), json!(1), json!(2), json!(-1), json!(5), json!(3_000_000_000_i64), json!(4)]
                [dice.below(7)]
            .clone()
        }
        Some("number") => [json!(0), json!(1), json!(0.5), json!(-1.5), json!(2.5), json!(1e20), json!(3)]
            [dice.below(7)]
        .clone(),
        Some("boolean") => dice.chance(50).into(),
        Some("array") => {
            let mut items: Vec<Value> =
                (0..dice.below(4)).map(|_| value(dice, &schema["items"], wrong)).collect();
            if let Some(first) = items.first().cloned().filter(|_| dice.chance(10)) {
                items.push(first);
            }
            items.into()
        }
        Some("object") => of_object(dice, schema, wrong),
        _ if schema["x-kubernetes-int-or-string"] == true => {
            [json!(1), json!("a"), json!("10%"), json!(0)][dice.below(4)].clone()
        }
        _ => values::any(dice, 2),
    }
}

fn of_object(dice: &mut Dice, schema: &Value, wrong: u32) -> Value {
    let mut made = Map::new();
    if schema["additionalProperties"].is_object() {
        for _ in 0..dice.below(4) {
            made.insert(
                dice.word(&["a", "b", "x/y", ""]),
                value(dice, &schema["additionalProperties"], wrong),
            );
        }
    }
    let required = |name: &str| {
        schema["required"].as_array().is_some_and(|names| names.iter().any(|other| other == name))
    };
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if dice.chance(if required(name) { 92 } else { 65 }) {
            made.insert(name.clone(), value(dice, property, wrong));
        }
    }
    if schema["x-kubernetes-embedded-resource"] == true && dice.chance(80) {
        made.insert("apiVersion".into(), dice.word(&["v1", "apps/v1", "", "a/b/c"]).into());
        made.insert("kind".into(), dice.word(&["Pod", "", "a b"]).into());
        let metadata =
            json!({"name": dice.word(&["a", "A_", ""]), "labels": {"a": values::any(dice, 0)}, "other": 1});
        made.insert("metadata".into(), if dice.chance(70) { metadata } else { values::any(dice, 1) });
    }
    if dice.chance(10) {
        made.insert(dice.word(&["unknown", "a", "zz"]), values::any(dice, 1));
    }
    Value::Object(made)
}

/// A write of an object: a schema, the object, sometimes one before it, sometimes of its status.
pub(super) fn object(dice: &mut Dice) -> Value {
    let schema = schema(dice);
    let whole = |dice: &mut Dice| {
        let mut made = value(dice, &schema, 0);
        made["apiVersion"] = "example.com/v1".into();
        made["kind"] = "Widget".into();
        made["metadata"] = json!({"name": "w", "namespace": "default", "resourceVersion": "1", "uid": "u"});
        for part in ["spec", "status"] {
            if made.get(part).is_some() {
                made[part] = value(dice, &schema["properties"][part], 4);
            }
        }
        made
    };
    let new = whole(dice);
    if dice.chance(50) {
        return json!({"schema": schema, "new": new});
    }
    let old = if dice.chance(70) { nearby(dice, &new) } else { whole(dice) };
    json!({"schema": schema, "new": new, "old": old, "status": dice.chance(25)})
}

/// A value that is the same at most places.
fn nearby(dice: &mut Dice, value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let member = |(key, member): (&String, &Value)| {
                let fixed = matches!(key.as_str(), "apiVersion" | "kind" | "metadata");
                (key.clone(), if fixed { member.clone() } else { nearby(dice, member) })
            };
            Value::Object(members.iter().map(member).collect())
        }
        Value::Array(items) => {
            let mut made: Vec<Value> = items.iter().map(|item| nearby(dice, item)).collect();
            if dice.chance(15) {
                made.reverse();
            }
            if dice.chance(10) {
                made.pop();
            }
            made.into()
        }
        _ if dice.chance(15) => values::any(dice, 1),
        other => other.clone(),
    }
}

pub(super) fn judged(case: &Value) -> Value {
    let schema = Schema::custom(&case["schema"]);
    let read = |object: &Value| {
        let mut object = object.clone();
        let unknown = schema.decode(&mut object)?;
        schema.default(&mut object);
        Ok::<_, String>((object, unknown))
    };
    let (new, unknown) = match read(&case["new"]) {
        Ok(read) => read,
        Err(why) => return json!({"undecodable": why}),
    };
    let old = match case.get("old").filter(|old| !old.is_null()).map(read) {
        Some(Ok((old, _))) => Some(old),
        Some(Err(why)) => return json!({"undecodable": why}),
        None => None,
    };
    let is_status = old.is_some() && case["status"] == true;
    let mut errors = Vec::new();
    let candidate = Candidate {
        object: &new,
        old: old.as_ref(),
        part: if is_status { Extent::Status } else { Extent::Whole },
        version: VERSION,
    };
    errors.extend(schema.value_errors(candidate));
    errors.extend(schema.structure_errors(candidate));
    let (broken, _) = schema.rule_errors(candidate, &errors);
    errors.extend(broken);
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    json!({"unknown": unknown, "object": new, "errors": errors})
}
