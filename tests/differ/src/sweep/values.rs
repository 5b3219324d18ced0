//! What is done at a place: ten values and more, out of its schema and of what others have there.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::places::Spot;
use crate::edit::{Change, Edit, Step};
use crate::mutate::{Maker, fits};

/// How many values of recorded objects are set at a place, and how many that its schema allows.
const KNOWN: usize = 6;
const MADE: u64 = 2;

/// The edits of a place, each once, and none that changes nothing.
pub(crate) fn edits(maker: &Maker<'_>, spot: &Spot<'_>) -> Vec<Edit> {
    let mut found: Vec<Edit> = Vec::new();
    let mut add = |path: Vec<Step>, change: Change| {
        let edit = Edit { path, change };
        if !found.contains(&edit) {
            found.push(edit);
        }
    };
    let is_item = matches!(spot.path.last(), Some(Step::Index(_)));
    if spot.value.is_some() {
        add(spot.path.clone(), Change::Remove);
    }
    for value in values(maker, spot) {
        if spot.value != Some(&value) {
            add(spot.path.clone(), Change::Set(value));
        }
    }
    if is_item {
        return found;
    }
    let inside = |step: Step| spot.path.iter().cloned().chain([step]).collect::<Vec<_>>();
    match spot.value {
        Some(Value::Object(members)) if spot.schema["properties"].is_object() => {
            add(inside(Step::Key("unknownField".into())), Change::Set(json!(1)));
            let _ = members;
        }
        Some(Value::Object(_)) => {
            let value = made(maker, &spot.schema["additionalProperties"], spot.field(), 0);
            for key in ["added", "", "Bad Key", "example.com/added", &"k".repeat(64), "a/b/c"] {
                add(inside(Step::Key(key.to_owned())), Change::Set(value.clone()));
            }
        }
        Some(Value::Array(items)) => {
            if let Some(first) = items.first() {
                add(inside(Step::Index(0)), Change::Insert(first.clone()));
                if first.get("name").is_some() {
                    let mut other = first.clone();
                    other["name"] = json!("other");
                    add(inside(Step::Index(items.len())), Change::Insert(other));
                }
                add(spot.path.clone(), Change::Set(Value::Array(vec![first.clone(); 70])));
            }
            for seed in 0..MADE {
                let item = made(maker, &spot.schema["items"], spot.field(), seed);
                add(inside(Step::Index(items.len())), Change::Insert(item));
            }
            add(inside(Step::Index(0)), Change::Insert(Value::Null));
        }
        _ => {}
    }
    found
}

fn values(maker: &Maker<'_>, spot: &Spot<'_>) -> Vec<Value> {
    let schema = spot.schema;
    let mut values = vec![Value::Null];
    values.extend(
        maker.corpus.values(spot.field()).iter().filter(|known| fits(schema, known)).take(KNOWN).cloned(),
    );
    values.extend(schema["enum"].as_array().into_iter().flatten().cloned());
    values.extend((0..MADE).map(|seed| made(maker, schema, spot.field(), seed)));
    let format = schema["format"].as_str().unwrap_or_default();
    if format == "int-or-string" || schema["x-kubernetes-int-or-string"] == true {
        values.extend([
            json!(0),
            json!(-1),
            json!(65536),
            json!("-1"),
            json!("101%"),
            json!("0%"),
            json!("A_b"),
        ]);
        values.extend([json!(""), json!(true), json!(2_147_483_648_i64)]);
        return values;
    }
    if schema["oneOf"].is_array() {
        values.extend([
            json!("0"),
            json!("-1"),
            json!("1.5"),
            json!("100m"),
            json!("1e21"),
            json!("abc"),
            json!(""),
        ]);
        values.extend([json!(1), json!(0.5), json!(true), json!({})]);
        return values;
    }
    match schema["type"].as_str() {
        Some("string") if format == "date-time" => {
            values.extend(
                ["", "2026-01-01", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00.5+02:00"]
                    .map(|text| json!(text)),
            );
            values.push(json!(7));
        }
        Some("string") if format == "byte" => {
            values.extend(["", "a", "YQ==", "not base64!"].map(|text| json!(text)));
            values.push(json!(7));
        }
        Some("string") => {
            values.extend(
                ["", "a", "Other", "A_b", "-bad.", "x y", "a/b", "example.com/x", "10.0.0.1", "/a/../b", "ü"]
                    .map(|text| json!(text)),
            );
            values.extend([64, 254, 1025].map(|size| json!("a".repeat(size))));
            values.extend([json!(7), json!({})]);
        }
        Some("integer") => {
            values.extend(
                [0_i64, 1, -1, 2, 65_536, 2_147_483_647, 2_147_483_648, 86_401].map(|number| json!(number)),
            );
            values.extend([
                json!(1.5),
                json!("1"),
                json!(9_223_372_036_854_775_807_i64),
                json!(9_223_372_036_854_775_808_u64),
            ]);
        }
        Some("number") => values.extend([json!(0), json!(-1), json!(0.5), json!("1")]),
        Some("boolean") => values.extend([json!(true), json!(false), json!("true"), json!(1)]),
        Some("array") => values.extend([json!([]), json!([null]), json!({}), json!("a")]),
        Some("object") => values.extend([json!({}), json!([]), json!("a"), json!({"": ""})]),
        _ => values.extend([json!({}), json!([]), json!("a"), json!(1)]),
    }
    values
}

/// A value that a schema allows: always the same one.
fn made(maker: &Maker<'_>, schema: &Value, field: &str, seed: u64) -> Value {
    maker.value(&mut ChaCha8Rng::seed_from_u64(seed), schema, field, 3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::Corpus;
    use crate::schema::Served;

    fn of(value: Option<&Value>, schema: &Value) -> Vec<Edit> {
        let (served, corpus) = (Served::default(), Corpus::default());
        let maker = Maker { served: &served, corpus: &corpus };
        edits(&maker, &Spot { path: vec![Step::Key("a".into())], value, schema })
    }

    fn sets(edits: &[Edit], value: &Value) -> bool {
        edits.iter().any(|edit| edit.path.len() == 1 && edit.change == Change::Set(value.clone()))
    }

    #[test]
    fn a_number_is_taken_away_emptied_made_negative_too_great_and_a_text() {
        let edits = of(Some(&json!(1)), &json!({"type": "integer"}));
        assert!(edits.iter().any(|edit| edit.change == Change::Remove));
        for value in [json!(null), json!(0), json!(-1), json!(2_147_483_648_i64), json!("1")] {
            assert!(sets(&edits, &value), "{value}");
        }
        assert!(!sets(&edits, &json!(1)), "what is there already changes nothing");
    }

    #[test]
    fn what_is_not_there_is_not_taken_away() {
        let edits = of(None, &json!({"type": "string"}));
        assert!(edits.iter().all(|edit| edit.change != Change::Remove));
        assert!(sets(&edits, &json!("")) && sets(&edits, &json!("a".repeat(254))));
    }

    #[test]
    fn a_list_gets_an_item_twice_one_more_and_too_many() {
        let items = json!([{"name": "x"}]);
        let edits = of(
            Some(&items),
            &json!({"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}}),
        );
        let inserts = |value: Value| edits.iter().any(|edit| edit.change == Change::Insert(value.clone()));
        assert!(inserts(json!({"name": "x"})) && inserts(json!({"name": "other"})));
        assert!(
            edits
                .iter()
                .any(|edit| matches!(&edit.change, Change::Set(Value::Array(items)) if items.len() == 70))
        );
    }

    #[test]
    fn structs_get_an_unknown_field_and_maps_get_keys_good_and_bad() {
        let keys = |edits: &[Edit]| -> Vec<Step> {
            edits.iter().filter_map(|edit| edit.path.get(1).cloned()).collect()
        };
        let of_struct = of(Some(&json!({})), &json!({"type": "object", "properties": {}}));
        assert_eq!(keys(&of_struct), [Step::Key("unknownField".into())]);
        let of_map =
            of(Some(&json!({})), &json!({"type": "object", "additionalProperties": {"type": "string"}}));
        assert!(keys(&of_map).contains(&Step::Key("Bad Key".into())));
    }

    #[test]
    fn each_edit_is_there_once_and_always_the_same() {
        let schema = json!({"type": "string", "enum": ["a", ""]});
        let edits = of(Some(&json!("b")), &schema);
        assert_eq!(edits, of(Some(&json!("b")), &schema));
        for (at, edit) in edits.iter().enumerate() {
            assert!(!edits[..at].contains(edit), "{edit:?}");
        }
    }
}
