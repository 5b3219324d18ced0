//! Any values.

use serde_json::{Map, Value, json};

use crate::dice::Dice;

/// A value of at most so many levels.
pub(super) fn any(dice: &mut Dice, depth: usize) -> Value {
    match dice.below(if depth == 0 { 7 } else { 10 }) {
        0 => Value::Null,
        1 => dice.chance(50).into(),
        2 => json!(dice.below(4)),
        3 => json!(-1),
        4 => json!(1.5),
        5 | 6 => dice.word(&["", "a", "b", "x/y", "10m", "é"]).into(),
        7 | 8 => {
            let mut members = Map::new();
            for _ in 0..dice.below(4) {
                members.insert(dice.word(&["a", "b", "c", "name", "x.y"]), any(dice, depth - 1));
            }
            Value::Object(members)
        }
        _ => (0..dice.below(3)).map(|_| any(dice, depth - 1)).collect(),
    }
}
