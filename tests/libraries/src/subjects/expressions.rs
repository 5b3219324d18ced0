//! Expressions in CEL about a variable that may be anything.

use kubewright_cel::limits::PER_CALL_LIMIT;
use kubewright_cel::{Bindings, CompileErrors, DeclType, Environment, Map, Value as Cel};
use kubewright_meta::go;
use serde_json::{Value, json};

use super::rules::{Leaves, grow};
use super::text;
use crate::dice::Dice;

/// What the variable has, by type.
const LEAVES: &Leaves = &[
    ('i', &["object.n", "object.items[0].v", "object.zero"]),
    ('d', &["object.d"]),
    ('s', &["object.s", "object.items[1].name", "object.path"]),
    ('b', &["object.b", "has(object.n)", "has(object.none)", "has(object.m.a)", "'a' in object.m"]),
    ('l', &["object.l"]),
    ('t', &["object.t"]),
    ('m', &["object.m", "object.items[0]"]),
    ('o', &["object.?n", "object.?none", "object.?items[?5]"]),
    ('x', &["object", "object.x", "object.items", "object.none"]),
];

pub(super) fn expression(dice: &mut Dice) -> Value {
    let kind = ['b', 'i', 'd', 's', 'l', 't', 'm', 'o', 'x', 'u', 'T', 'q', 'y', 'b'][dice.below(14)];
    let depth = 1 + dice.below(3);
    let mut expression = grow(dice, kind, depth, LEAVES);
    if dice.chance(5) {
        expression =
            dice.spoiled(&expression, &["(", ")", ".", "?", "'", "[", "]", ",", "!", "-", " ", "x", "0"]);
    }
    let object = json!({
        "n": 3, "zero": 0, "d": 1.5, "s": "Hello, wörld", "path": "/a/b?c=d", "b": true, "l": [3, 1, 2], "t": ["b", "a", "", "b"], "m": {"a": 1, "b": "x"},
        "items": [{"name": "one", "v": 1}, {"name": "two", "v": 2}], "x": [1, "a", null, {"k": [true]}, 2.5],
    });
    json!({"expression": expression, "object": object})
}

pub(super) fn evaluated(case: &Value) -> Value {
    let environment = Environment::new().variable("object", DeclType::dynamic());
    let program = match environment.compile(text(case, "expression")) {
        Ok(program) => program,
        Err(why @ CompileErrors::Issues { .. }) => return json!({"issues": why.to_string()}),
        Err(why @ CompileErrors::Instantiation(_)) => return json!({"program": why.to_string()}),
    };
    let mut bindings = Bindings::new();
    bindings.bind("object", Cel::dynamic(&case["object"]));
    let evaluation = program.evaluate(&bindings, PER_CALL_LIMIT);
    match evaluation.result {
        Ok(value) => {
            json!({"type": program.output_type().to_string(), "value": shown(&value), "cost": evaluation.cost})
        }
        Err(why) => json!({"error": why.to_string()}),
    }
}

/// A value with its type, as the program in Go writes it.
fn shown(value: &Cel<'_>) -> String {
    match value {
        Cel::Null => "null_type null".to_owned(),
        Cel::Bool(truth) => format!("bool {truth}"),
        Cel::Int(number) => format!("int {number}"),
        Cel::Uint(number) => format!("uint {number}"),
        Cel::Double(number) if number.is_infinite() => {
            format!("double {}Inf", if *number > 0.0 { '+' } else { '-' })
        }
        Cel::Double(number) => format!("double {}", go::printed(*number)),
        Cel::String(text) => format!("string {}", Value::from(&**text)),
        Cel::Bytes(bytes) => {
            format!("bytes {}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        }
        Cel::Timestamp(time) => format!("google.protobuf.Timestamp {time}"),
        Cel::Duration(span) => format!("google.protobuf.Duration {span}"),
        Cel::Optional(None) => "optional.none()".to_owned(),
        Cel::Optional(Some(value)) => format!("optional({})", shown(value)),
        Cel::Type(named) => format!("type {}", named.name()),
        Cel::List(list) => {
            let items: Vec<String> = list
                .iter()
                .map(|item| item.map_or_else(|why| why.to_string(), |item| shown(&item)))
                .collect();
            format!("[{}]", items.join(", "))
        }
        Cel::Map(map) => shown_map(map),
        Cel::Opaque(_) | Cel::Object(_) | Cel::Hidden(_) => value.runtime_type().name().to_owned(),
    }
}

fn shown_map(map: &Map<'_>) -> String {
    let entry = |key: &Cel<'_>| match map.get(key) {
        Ok(Some(value)) => format!("{}: {}", shown(key), shown(&value)),
        Ok(None) => String::new(),
        Err(why) => format!("{}: {why}", shown(key)),
    };
    let mut entries: Vec<String> = map.keys().into_iter().map(|key| entry(&key)).collect();
    entries.sort();
    format!("{{{}}}", entries.join(", "))
}
