//! Steps of a field's path, their order, and their text in `FieldsV1` (`f:`, `k:`, `v:`, `i:`) and in messages
//! (`sigs.k8s.io/structured-merge-diff/v6/fieldpath`, `PathElement`).

use std::cmp::Ordering;
use std::fmt::{self, Display, Write};

use serde_json::{Map, Value};

/// One step from an object or a list to something in it.
#[derive(Clone, Debug)]
pub enum Element {
    /// A member of an object.
    Field(Box<str>),
    /// The item of a list that has these values in its key fields, which are sorted by name.
    Key(Box<[(Box<str>, Value)]>),
    /// The item of a set.
    Value(Value),
    /// The item at a place of a list. No entry of today has one; they are kept where clients send them.
    Index(i64),
}

impl Element {
    /// The member of that name.
    #[must_use]
    pub fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// Its name, where it is a member of an object.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Field(name) => Some(name),
            _ => None,
        }
    }

    /// Reads the text of `FieldsV1`.
    ///
    /// # Errors
    /// The text is malformed. `Ok(None)` is a kind of step that is not known, to be passed over.
    pub fn parse(text: &str) -> Result<Option<Self>, String> {
        let Some((kind, rest)) = text.split_at_checked(2) else {
            return Err("key must be 2 characters long:".to_owned());
        };
        let json = || serde_json::from_str(rest).map_err(|error| error.to_string());
        Ok(Some(match kind {
            "f:" => Self::field(rest),
            "v:" => Self::Value(json()?),
            "k:" => match json()? {
                Value::Object(fields) => {
                    Self::Key(fields.into_iter().map(|(name, value)| (name.into(), value)).collect())
                }
                _ => return Err(format!("not the keys of an item: {rest}")),
            },
            "i:" => Self::Index(rest.parse().map_err(|_| format!("not a place in a list: {rest}"))?),
            other if other.ends_with(':') => return Ok(None),
            _ => return Err(format!("missing colon: {text}")),
        }))
    }

    /// Its text in `FieldsV1`.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(fields) => {
                let fields: Map<String, Value> =
                    fields.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
                format!("k:{}", Value::Object(fields))
            }
            Self::Value(value) => format!("v:{value}"),
            Self::Index(index) => format!("i:{index}"),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(one), Self::Field(other)) => one.cmp(other),
            (Self::Key(one), Self::Key(other)) => {
                let pairs = one.iter().zip(other.iter());
                let different = pairs
                    .map(|((name, value), (other, others))| {
                        name.cmp(other).then_with(|| compare(value, others))
                    })
                    .find(|order| order.is_ne());
                different.unwrap_or_else(|| one.len().cmp(&other.len()))
            }
            (Self::Value(one), Self::Value(other)) => compare(one, other),
            (Self::Index(one), Self::Index(other)) => one.cmp(other),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Element {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Element {}

/// As messages have it: `.spec`, `[name="a"]`, `[="a"]`, `[0]`.
impl Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                f.write_char('[')?;
                for (at, (name, value)) in fields.iter().enumerate() {
                    let comma = if at == 0 { "" } else { "," };
                    write!(f, "{comma}{name}={}", shown(value))?;
                }
                f.write_char(']')
            }
            Self::Value(value) => write!(f, "[={}]", shown(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// The order of values: numbers, texts, truth values, lists, objects, null; 1 and 1.0 are the same.
#[must_use]
pub(super) fn compare(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => match (one.as_i64(), other.as_i64()) {
            (Some(one), Some(other)) => one.cmp(&other),
            _ => one.as_f64().unwrap_or_default().total_cmp(&other.as_f64().unwrap_or_default()),
        },
        (Value::String(one), Value::String(other)) => one.cmp(other),
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        (Value::Array(one), Value::Array(other)) => {
            let different =
                one.iter().zip(other).map(|(one, other)| compare(one, other)).find(|order| order.is_ne());
            different.unwrap_or_else(|| one.len().cmp(&other.len()))
        }
        (Value::Object(one), Value::Object(other)) => {
            let pairs = one.iter().zip(other);
            let different = pairs
                .map(|((name, value), (other, others))| name.cmp(other).then_with(|| compare(value, others)))
                .find(|order| order.is_ne());
            different.unwrap_or_else(|| one.len().cmp(&other.len()))
        }
        _ => rank(one).cmp(&rank(other)),
    }
}

/// Whether two values are the same, numbers by what they are worth.
#[must_use]
pub(super) fn same(one: &Value, other: &Value) -> bool {
    one == other || compare(one, other).is_eq()
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(number) if number.is_f64() => 0,
        Value::Number(_) => 1,
        Value::String(_) => 2,
        Value::Bool(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
        Value::Null => 6,
    }
}

/// A value as messages have it.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(",")),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| format!("{name}={}", shown(value))).collect()
        }
        scalar => scalar.to_string(),
    }
}
