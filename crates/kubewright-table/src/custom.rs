//! The columns of custom kinds (`registry/customresource/tableconvertor` of `k8s.io/apiextensions-apiserver`).

use jiff::Timestamp;
use kubewright_meta::go;
use kubewright_meta::jsonpath::Path;
use serde_json::{Value, json};

use super::{age, column, value};

/// A column of a custom kind.
#[derive(Clone, Debug)]
pub(super) struct CustomColumn {
    name: String,
    kind: Kind,
    format: String,
    description: String,
    priority: i64,
    path: Path,
}

/// The types of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Integer,
    Number,
    Boolean,
    String,
    Date,
}

impl Kind {
    const ALL: [(&str, Self); 5] = [
        ("integer", Self::Integer),
        ("number", Self::Number),
        ("boolean", Self::Boolean),
        ("string", Self::String),
        ("date", Self::Date),
    ];

    fn parse(name: &str) -> Self {
        Self::ALL.iter().find(|(known, _)| *known == name).map_or(Self::String, |(_, kind)| *kind)
    }

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or("string", |(name, _)| name)
    }
}

/// The columns after the name.
pub(super) fn columns(columns: &[Value]) -> Vec<CustomColumn> {
    if columns.is_empty() {
        let age = json!({
            "name": "Age",
            "type": "date",
            "description": column::CREATION_DESCRIPTION,
            "jsonPath": ".metadata.creationTimestamp",
        });
        return CustomColumn::parse(&age).into_iter().collect();
    }
    columns.iter().map_while(CustomColumn::parse).collect()
}

impl CustomColumn {
    /// An item of `additionalPrinterColumns`; none when its path makes no sense.
    fn parse(item: &Value) -> Option<Self> {
        let text = |pointer: &str| value::text(item, pointer).to_owned();
        let path = text("/jsonPath");
        let description = match text("/description") {
            empty if empty.is_empty() => {
                format!("Custom resource definition column (in JSONPath format): {path}")
            }
            description => description,
        };
        Some(Self {
            name: text("/name"),
            kind: Kind::parse(&text("/type")),
            format: text("/format"),
            description,
            priority: value::number(item, "/priority"),
            path: Path::parse(&path).ok()?,
        })
    }

    pub(super) fn definition(&self) -> Value {
        json!({
            "name": self.name,
            "type": self.kind.name(),
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        })
    }

    /// The first value at the path as the type says; null where it is of another type or there is none.
    pub(super) fn cell(&self, object: &Value, now: Timestamp) -> Value {
        let found = self.path.find(object);
        let Some(value) = found.first() else { return Value::Null };
        match (self.kind, &**value) {
            (Kind::String, value) => shown(value).into(),
            (Kind::Integer, Value::Number(number)) => {
                number.as_i64().or_else(|| number.as_f64().map(|number| number as i64)).into()
            }
            (Kind::Number, value @ Value::Number(_)) | (Kind::Boolean, value @ Value::Bool(_)) => {
                value.clone()
            }
            (Kind::Date, Value::String(time)) => date(time, now).into(),
            _ => Value::Null,
        }
    }
}

fn date(time: &str, now: Timestamp) -> String {
    match time.parse::<Timestamp>() {
        Err(_) if !time.is_empty() && time != "null" => "<invalid>".to_owned(),
        _ => age::ago(time, now),
    }
}

/// A value as Go prints it: what has parts is JSON.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => go::printed(number.as_f64().unwrap_or_default()),
        other => go::json(other),
    }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "literals read better than references to them")]
mod tests {
    use super::*;
    use crate::Columns;

    fn cells(columns: Value, object: Value) -> Vec<Value> {
        let columns = columns.as_array().expect("a list").clone();
        Columns::custom(&columns).cells(&object, "2026-01-01T00:01:00Z".parse().expect("a time"))
    }

    fn cell(kind: &str, value: Value) -> Value {
        let columns = json!([{"name": "A", "type": kind, "jsonPath": ".spec.a"}]);
        cells(columns, json!({"metadata": {"name": "x"}, "spec": {"a": value}})).remove(1)
    }

    #[test]
    fn without_columns_there_are_name_and_age() {
        let definitions = Columns::custom(&[]).definitions();
        let names: Vec<&Value> = definitions.iter().map(|one| &one["name"]).collect();
        assert_eq!(names, ["Name", "Age"]);
        assert_eq!(definitions[0]["format"], "name");
        assert!(
            definitions[0]["description"]
                .as_str()
                .is_some_and(|text| text.starts_with("Name must be unique"))
        );
        assert_eq!(definitions[1]["type"], "date");
        assert!(
            definitions[1]["description"]
                .as_str()
                .is_some_and(|text| text.starts_with("CreationTimestamp is"))
        );
        let object = json!({"metadata": {"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"}});
        assert_eq!(cells(json!([]), object), [json!("x"), json!("60s")]);
    }

    #[test]
    fn the_definition_of_a_column_is_kept() {
        let columns =
            [json!({"name": "A", "type": "integer", "format": "int32", "jsonPath": ".a", "priority": 1})];
        let definition = json!({
            "name": "A",
            "type": "integer",
            "format": "int32",
            "description": "Custom resource definition column (in JSONPath format): .a",
            "priority": 1,
        });
        assert_eq!(Columns::custom(&columns).definitions()[1], definition);
    }

    #[test]
    fn values_are_shown_by_their_type() {
        assert_eq!(cell("string", json!("x")), json!("x"));
        assert_eq!(cell("string", json!(3)), json!("3"));
        assert_eq!(cell("string", json!(1.0)), json!("1"));
        assert_eq!(cell("string", json!(true)), json!("true"));
        assert_eq!(cell("string", json!({"a": [1]})), json!(r#"{"a":[1]}"#));
        assert_eq!(cell("string", Value::Null), json!("<no value>"));
        assert_eq!(cell("integer", json!(3)), json!(3));
        assert_eq!(cell("integer", json!(3.7)), json!(3));
        assert_eq!(cell("integer", json!("3")), Value::Null);
        assert_eq!(cell("number", json!(1.5)), json!(1.5));
        assert_eq!(cell("boolean", json!(false)), json!(false));
        assert_eq!(cell("date", json!("2026-01-01T00:00:30Z")), json!("30s"));
        assert_eq!(cell("date", json!("tomorrow")), json!("<invalid>"));
        assert_eq!(cell("date", json!("")), json!("<unknown>"));
        assert_eq!(cell("date", json!(3)), Value::Null);
    }

    #[test]
    fn what_is_missing_is_null() {
        let columns = json!([{"name": "A", "type": "string", "jsonPath": ".spec.none[0].deeper"}]);
        assert_eq!(cells(columns, json!({"metadata": {"name": "x"}})), [json!("x"), Value::Null]);
    }

    #[test]
    fn a_path_that_makes_no_sense_ends_the_columns() {
        let columns = [
            json!({"name": "A", "type": "string", "jsonPath": ".a"}),
            json!({"name": "B", "type": "string", "jsonPath": ".b["}),
            json!({"name": "C", "type": "string", "jsonPath": ".c"}),
        ];
        assert_eq!(Columns::custom(&columns).definitions().len(), 2);
    }
}
