//! Random objects, for tests: what a message may hold, by the table.

use serde_json::{Map, Value, json};

use super::table::{Field, Form, Message, Other, Type};

/// Makes an object of a message out of random bytes; when they are used up, what is left is absent.
pub(super) struct Maker<'a> {
    bytes: std::slice::Iter<'a, u8>,
}

impl<'a> Maker<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes: bytes.iter() }
    }

    fn byte(&mut self) -> u8 {
        self.bytes.next().copied().unwrap_or_default()
    }

    /// An object as Go writes it: without zeros of fields that leave them out. Messages in it have `depth` levels.
    pub(super) fn object(&mut self, message: &Message, depth: usize) -> Map<String, Value> {
        let mut object = Map::new();
        for field in message.fields() {
            let of = match field.form {
                Form::Inlined(inner) => {
                    object.extend(self.object(inner, depth));
                    continue;
                }
                Form::One { of, .. } | Form::List(of) | Form::Map(of) => of,
            };
            let too_deep = depth == 0 && matches!(of, Type::Message(_) | Type::SchemaOr(_));
            if !too_deep && !self.byte().is_multiple_of(3) {
                self.field(field, &mut object, depth);
            }
        }
        object
    }

    fn field(&mut self, field: &Field, object: &mut Map<String, Value>, depth: usize) {
        let count = 1 + usize::from(self.byte() % 2);
        let value = match field.form {
            Form::Inlined(_) => return,
            Form::One { of, keeps_zero } => {
                let value = self.value(of, depth);
                let zero = [json!(""), json!(0), json!(0.0), json!(false)].contains(&value);
                if zero && !keeps_zero {
                    return;
                }
                value
            }
            Form::List(of) => (0..count).map(|_| self.value(of, depth)).collect(),
            Form::Map(of) => (0..count).map(|index| (format!("k{index}"), self.value(of, depth))).collect(),
        };
        object.insert(field.name.to_owned(), value);
    }

    fn value(&mut self, kind: Type, depth: usize) -> Value {
        let number = i64::from(self.byte()) - 100;
        match kind {
            Type::Text if number == -100 => json!(""),
            Type::Text => json!(format!("t{number}é")),
            Type::Bool => json!(number > 0),
            Type::Int32 => json!(number * 16_843_009 / 2),
            Type::Int64 => json!(number * 1_000_000_007),
            Type::Double => [json!(number), json!(number as f64 + 0.5)][usize::from(number > 0)].clone(),
            Type::Bytes => json!(["", "AA==", "aGV5"][usize::from(self.byte() % 3)]),
            Type::Time => json!(format!("2{:03}-01-02T03:04:05Z", number + 100)),
            Type::MicroTime => json!(format!("1{:03}-01-02T03:04:05.{:06}Z", number + 100, number + 100)),
            Type::Quantity => json!(format!("{number}Mi")),
            Type::IntOrString if number > 0 => json!(format!("{number}%")),
            Type::IntOrString => json!(number),
            Type::Json => json!({"a": [number, null], "b": {}}),
            Type::Texts => (0..self.byte() % 3).map(|index| json!(format!("i{index}"))).collect(),
            Type::SchemaOr(other) => self.schema_or(other, number, depth),
            Type::Message(inner) => Value::Object(self.object(inner, depth - 1)),
        }
    }

    fn schema_or(&mut self, other: Other, number: i64, depth: usize) -> Value {
        let schema = Message::named("apiextensions/v1.JSONSchemaProps").unwrap();
        match other {
            _ if number > 0 => Value::Object(self.object(schema, depth - 1)),
            Other::Bool => json!(number < -50),
            Other::Schemas => json!([self.object(schema, depth - 1)]),
            Other::Texts => json!(["a", ""]),
        }
    }
}
