//! The columns of definitions.

use jiff::Timestamp;
use kubewright_table::Columns;
use serde_json::{Value, json};

use super::values;
use crate::dice::Dice;

pub(super) fn table(dice: &mut Dice) -> Value {
    const STEPS: &[&str] = &[
        ".spec",
        ".status",
        ".a",
        ".list",
        "[0]",
        "[1]",
        "[-1]",
        "[*]",
        "..a",
        "[?(@.a==\"x\")]",
        "[?(@.type==\"Ready\")]",
        ".conditions",
        ".type",
        ".status",
        "[0:1]",
        "[::2]",
        "['a']",
        "[0,1]",
        "[?(@.n>1)]",
        "[?(@.a)]",
        ".x\\.y",
        "[?(@.a!='x')]",
        "[1:]",
        "[0:0]",
        "['a','b']",
        ".n",
        ".name",
        "[",
        "]",
        ".",
        "[?(@.b==true)]",
        "[?(@.n<=2)]",
        "}",
        "[?(1==1)]",
        "[-2:]",
        "['a",
    ];
    const TYPES: &[&str] = &["string", "string", "integer", "number", "boolean", "date"];
    let start = dice.word(&[
        "",
        "",
        ".spec",
        ".status.conditions",
        ".spec.list",
        "$",
        "@",
        ".metadata.creationTimestamp",
    ]);
    let path = start + &dice.text(4, STEPS);
    let item = json!({"a": dice.word(&["x", "y"]), "b": dice.chance(50), "n": dice.below(4), "type": dice.word(&["Ready", "Other"]), "status": dice.word(&["True", "False"])});
    let object = json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "w", "creationTimestamp": "2001-02-03T04:05:06Z"},
        "spec": {"a": values::any(dice, 2), "list": [item.clone(), values::any(dice, 2), 1.5, 1e21], "n": values::any(dice, 1), "x.y": "dotted", "name": "s"},
        "status": {"conditions": [item, {"type": "Ready", "status": "True", "a": 1}], "a": values::any(dice, 1)},
    });
    json!({"columns": [{"name": "C", "type": dice.word(TYPES), "jsonPath": path}], "object": object})
}

pub(super) fn printed(case: &Value) -> Value {
    let columns = case["columns"].as_array().map_or(&[][..], Vec::as_slice);
    json!({"cells": Columns::custom(columns).cells(&case["object"], Timestamp::now())})
}
