//! From the text of JSON to the bytes of a message, without an object in between: what is stored is text, and is written
//! while it is read. Does what [`super::encode`] does with a value, but that fields come in the order of their names.
//!
//! A message whose fields are members of the one around it comes in pieces, one for each: who reads it merges them.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::encode;
use super::table::{Form, Member, Message, Other, Type};
use crate::json::is_zero;

/// Appends the fields of a message whose JSON is `text`.
///
/// # Errors
/// When it is no JSON of it; what was appended is then nothing whole.
pub(super) fn message(message: &'static Message, text: &[u8], out: &mut Vec<u8>) -> serde_json::Result<()> {
    read(text, Members { message, out })
}

/// Appends the fields of a list of `item`s.
///
/// # Errors
/// As [`message`].
pub(super) fn list(item: &'static Message, text: &[u8], out: &mut Vec<u8>) -> serde_json::Result<()> {
    read(text, List { item, out })
}

fn read<'de>(text: &'de [u8], visitor: impl Visitor<'de, Value = ()>) -> serde_json::Result<()> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    deserializer.deserialize_map(visitor)?;
    deserializer.end()
}

/// The name of a member; only one with escapes is copied.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// The members of a list: its metadata and its items.
struct List<'a> {
    item: &'static Message,
    out: &'a mut Vec<u8>,
}

impl<'de> Visitor<'de> for List<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Name(name)) = map.next_key()? {
            match &*name {
                "metadata" => {
                    let metadata =
                        Message::named("meta/v1.ListMeta").ok_or_else(|| A::Error::custom("no message"))?;
                    map.next_value_seed(One::of(1, Type::Message(metadata), self.out))?;
                }
                "items" => {
                    map.next_value_seed(Items { number: 2, of: Type::Message(self.item), out: self.out })?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// The members of an object that are the fields of a message.
struct Members<'a> {
    message: &'static Message,
    out: &'a mut Vec<u8>,
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Name(name)) = map.next_key()? {
            match self.message.member(&name) {
                Some(member) => within(&member.inside, self.out, member, &mut map)?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// Writes a member in the messages that it is inside of.
fn within<'de, A: MapAccess<'de>>(
    inside: &[u32],
    out: &mut Vec<u8>,
    member: &Member,
    map: &mut A,
) -> Result<(), A::Error> {
    let Some((number, inside)) = inside.split_first() else {
        let number = member.field.number;
        return match member.field.form {
            Form::One { of, keeps_zero } => {
                let null = if of.is_time() && keeps_zero { Null::Zero } else { Null::Absent };
                map.next_value_seed(One { number, of, keeps_zero, null, out })
            }
            Form::List(of) => map.next_value_seed(Items { number, of, out }),
            Form::Map(of) => map.next_value_seed(Entries { number, of, out }),
            Form::Inlined(_) => map.next_value::<IgnoredAny>().map(drop),
        };
    };
    let open = encode::open(*number, out);
    within(inside, out, member, map)?;
    encode::close(open, out);
    Ok(())
}

/// What null is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Null {
    /// The same as nothing: of a field, but for a time that is a pointer.
    Absent,
    /// As good as zero: of an item.
    Zero,
}

/// One value.
struct One<'a> {
    number: u32,
    of: Type,
    keeps_zero: bool,
    null: Null,
    out: &'a mut Vec<u8>,
}

impl<'a> One<'a> {
    /// One that is written whatever it is.
    fn of(number: u32, of: Type, out: &'a mut Vec<u8>) -> Self {
        Self { number, of, keeps_zero: true, null: Null::Zero, out }
    }

    fn scalar(self, value: &Value) {
        if self.keeps_zero || !is_zero(value) {
            encode::value(self.number, self.of, value, self.out);
        }
    }
}

impl<'de> DeserializeSeed<'de> for One<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.of {
            Type::Json => {
                let json = <&RawValue>::deserialize(deserializer)?.get();
                if json != "null" || self.null == Null::Zero {
                    encode::delimited(self.number, self.out, |out| encode::text(1, json, out));
                }
                Ok(())
            }
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for One<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a value of {:?}", self.of)
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        if self.null == Null::Zero {
            self.scalar(&Value::Null);
        }
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.scalar(&Value::Bool(value));
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.scalar(&Value::from(value));
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.scalar(&Value::from(value));
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.scalar(&Value::from(value));
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        if self.keeps_zero || !text.is_empty() {
            encode::from_text(self.number, self.of, text, self.out);
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        match self.of {
            Type::Message(message) => {
                let open = encode::open(self.number, self.out);
                Members { message, out: self.out }.visit_map(map)?;
                encode::close(open, self.out);
                Ok(())
            }
            Type::SchemaOr(other) => {
                let message = schema()?;
                let open = encode::open(self.number, self.out);
                let inner = encode::open(if other == Other::Bool { 2 } else { 1 }, self.out);
                Members { message, out: self.out }.visit_map(map)?;
                encode::close(inner, self.out);
                if other == Other::Bool {
                    encode::integer(1, 1, self.out);
                }
                encode::close(open, self.out);
                Ok(())
            }
            _ => Err(A::Error::custom("an object where none is expected")),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> {
        let (number, of) = match self.of {
            Type::Texts => (1, Type::Text),
            Type::SchemaOr(Other::Texts) => (2, Type::Text),
            Type::SchemaOr(Other::Schemas) => (2, Type::Message(schema()?)),
            _ => return Err(A::Error::custom("a list where none is expected")),
        };
        let open = encode::open(self.number, self.out);
        Items { number, of, out: self.out }.visit_seq(list)?;
        encode::close(open, self.out);
        Ok(())
    }
}

fn schema<E: Error>() -> Result<&'static Message, E> {
    Message::named(encode::SCHEMA).ok_or_else(|| E::custom("no message of schemas"))
}

/// The items of a list, each a field of the same number.
struct Items<'a> {
    number: u32,
    of: Type,
    out: &'a mut Vec<u8>,
}

impl<'de> DeserializeSeed<'de> for Items<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Items<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(One::of(self.number, self.of, self.out))?.is_some() {}
        Ok(())
    }
}

/// The entries of a map, each a message of a key and a value.
struct Entries<'a> {
    number: u32,
    of: Type,
    out: &'a mut Vec<u8>,
}

impl<'de> DeserializeSeed<'de> for Entries<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Entries<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Name(key)) = map.next_key()? {
            let open = encode::open(self.number, self.out);
            encode::text(1, &key, self.out);
            map.next_value_seed(One::of(2, self.of, self.out))?;
            encode::close(open, self.out);
        }
        Ok(())
    }
}
