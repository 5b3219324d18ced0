//! Reading an object that is not all there.
//!
//! Server-side apply converts such objects: what is left of one when the fields that nobody owns any longer are taken away
//! (`k8s.io/apimachinery/pkg/util/managedfields/internal`, `versionconverter.go`, and `prune` in structured-merge-diff's
//! `merge/update.go`). Go reads them with zeros in the place of what is missing; here it is done the same way.

use serde::{
    Deserializer,
    de::{
        DeserializeOwned, DeserializeSeed, Error as _, IntoDeserializer, MapAccess, SeqAccess, Visitor,
        value::StrDeserializer,
    },
    forward_to_deserialize_any,
};
use serde_json::{Error, Value};

/// `value` as a `T`, with empty values where something is missing that a `T` has to have.
pub(super) fn read<T: DeserializeOwned>(value: &Value) -> Result<T, Error> {
    T::deserialize(Partial(Some(value)))
}

/// A value that may be missing.
#[derive(Clone, Copy)]
struct Partial<'a>(Option<&'a Value>);

/// The members of an object, and those that it should have.
struct Members<'a> {
    present: Option<serde_json::map::Iter<'a>>,
    missing: std::vec::IntoIter<&'static str>,
    next: Option<&'a Value>,
}

struct Elements<'a>(std::slice::Iter<'a, Value>);

/// What is there is read as it is; for what is missing there is an empty value.
macro_rules! or_empty {
    ($($method:ident => $visit:ident($empty:expr))*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self.0 {
                Some(value) => value.$method(visitor),
                None => visitor.$visit($empty),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Partial<'de> {
    type Error = Error;

    or_empty! {
        deserialize_bool => visit_bool(false)
        deserialize_i8 => visit_i8(0)
        deserialize_i16 => visit_i16(0)
        deserialize_i32 => visit_i32(0)
        deserialize_i64 => visit_i64(0)
        deserialize_u8 => visit_u8(0)
        deserialize_u16 => visit_u16(0)
        deserialize_u32 => visit_u32(0)
        deserialize_u64 => visit_u64(0)
        deserialize_f32 => visit_f32(0.0)
        deserialize_f64 => visit_f64(0.0)
        deserialize_str => visit_str("")
        deserialize_string => visit_str("")
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Some(Value::Object(_)) => self.deserialize_map(visitor),
            Some(Value::Array(_)) => self.deserialize_seq(visitor),
            Some(value) => value.deserialize_any(visitor),
            None => visitor.visit_unit(),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            None | Some(Value::Null) => visitor.visit_none(),
            Some(_) => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            None => visitor.visit_seq(Elements([].iter())),
            Some(Value::Array(elements)) => visitor.visit_seq(Elements(elements.iter())),
            Some(other) => other.deserialize_seq(visitor),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_struct("", &[], visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let there = match self.0 {
            None => None,
            Some(Value::Object(there)) => Some(there),
            Some(other) => return Err(Error::custom(format_args!("{other} is no object"))),
        };
        let is_there = |field: &str| there.is_some_and(|there| there.contains_key(field));
        let missing: Vec<_> = fields.iter().copied().filter(|field| !is_there(field)).collect();
        let present = there.map(serde_json::Map::iter);
        visitor.visit_map(Members { present, missing: missing.into_iter(), next: None })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match (self.0, variants.first()) {
            (Some(value), _) => value.deserialize_enum(name, variants, visitor),
            (None, Some(first)) => {
                let first: StrDeserializer<'_, Error> = first.into_deserializer();
                visitor.visit_enum(first)
            }
            (None, None) => Err(Error::custom(format_args!("{name} has no values"))),
        }
    }

    forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

impl<'de> MapAccess<'de> for Members<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let key: &str = match self.present.as_mut().and_then(Iterator::next) {
            Some((key, value)) => {
                self.next = Some(value);
                key
            }
            None => {
                self.next = None;
                let Some(missing) = self.missing.next() else { return Ok(None) };
                missing
            }
        };
        let key: StrDeserializer<'_, Error> = key.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(Partial(self.next.take()))
    }
}

impl<'de> SeqAccess<'de> for Elements<'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        self.0.next().map(|element| seed.deserialize(Partial(Some(element)))).transpose()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Container;
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    struct All {
        text: String,
        number: u32,
        flag: bool,
        list: Vec<Inner>,
        map: BTreeMap<String, Inner>,
        inner: Inner,
        maybe: Option<Inner>,
        mode: Mode,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Inner {
        size: f64,
        container: Container,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Mode {
        Slow,
        Fast,
    }

    #[test]
    fn what_is_missing_is_empty() {
        let nothing = read::<All>(&json!({})).expect("empty values");
        assert_eq!((&*nothing.text, nothing.number, nothing.flag, nothing.inner.size), ("", 0, false, 0.0));
        assert!(nothing.list.is_empty() && nothing.map.is_empty() && nothing.maybe.is_none());
        assert_eq!((nothing.inner.container, nothing.mode), (Container::default(), Mode::Slow));

        let some = json!({"number": 7, "list": [{"size": 2.5}], "map": {"a": {}}, "mode": "fast",
            "inner": {"container": {"name": "c"}}, "unknown": {"a": [null]}});
        let some = read::<All>(&some).expect("what is there");
        assert_eq!((some.number, some.list[0].size, some.map.len(), some.mode), (7, 2.5, 1, Mode::Fast));
        assert_eq!(some.inner.container.name, "c");
    }

    #[test]
    fn what_is_wrong_stays_wrong() {
        for wrong in
            [json!({"number": "7"}), json!({"list": {}}), json!({"inner": 1}), json!({"mode": "x"}), json!(1)]
        {
            assert!(read::<All>(&wrong).is_err(), "{wrong}");
        }
    }
}
