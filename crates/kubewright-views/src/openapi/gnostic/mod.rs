//! OpenAPI documents as protobuf: the messages of gnostic, made of the JSON of the same document, as kube-apiserver does
//! (`ToProtoBinary` in `k8s.io/kube-openapi/pkg/handler`, `ToV3ProtoBinary` in `handler3`).
//!
//! What its messages leave open (extensions, defaults and examples) stands in them as text in YAML; JSON is YAML.

mod table;

use kubewright_codec::json::is_zero;
use kubewright_codec::protobuf::encode::{delimited, double, integer, text, whole};
use serde_json::{Map, Value};

use table::{Field, Fields, From, Message, Type};

/// A version of OpenAPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenApi {
    /// Swagger 2.0.
    V2,
    /// 3.0.
    V3,
}

/// The bytes of a document of that version. What its messages do not know of is left out.
#[must_use]
pub fn encode(version: OpenApi, document: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    let root = match version {
        OpenApi::V2 => "2.Document",
        OpenApi::V3 => "3.Document",
    };
    if let Some(root) = Message::named(root) {
        message(root, document, &mut out);
    }
    out
}

/// Appends the fields of a message.
fn message(of: &Message, value: &Value, out: &mut Vec<u8>) {
    match of.fields() {
        Fields::All(fields) => fields.iter().for_each(|field| self::field(field, fields, value, out)),
        Fields::OneOf(cases) => {
            if let Some(case) = cases.iter().find(|case| case.when.holds(value)) {
                self::value(case.number, case.of, value, out);
            }
        }
    }
}

/// Appends a field; `all`: those of its message.
fn field(field: &Field, all: &[Field], value: &Value, out: &mut Vec<u8>) {
    let number = field.number;
    match field.from {
        From::Member(name, of) => {
            if let Some(member) = value.get(name).filter(|member| is_said(of, member)) {
                self::value(number, of, member, out);
            }
        }
        From::List(name, of) => items(value.get(name)).for_each(|item| self::value(number, of, item, out)),
        From::Itself(of) => items(Some(value)).for_each(|item| self::value(number, of, item, out)),
        From::Members(prefix, of) => {
            let members = value.as_object().into_iter().flat_map(Map::iter);
            for (name, member) in members.filter(|(name, _)| is_among(prefix, name, all)) {
                delimited(number, out, |out| {
                    text(1, name, out);
                    self::value(2, of, member, out);
                });
            }
        }
    }
}

/// Whether a member is one of its message: a scalar that is zero cannot be told from one that is not there. (One of which
/// a message is made, such as a default, can.)
fn is_said(of: Type, member: &Value) -> bool {
    match of {
        Type::Any => true,
        Type::Message(_) => !member.is_null(),
        Type::Text | Type::Bool | Type::Int64 | Type::Double => !member.is_null() && !is_zero(member),
    }
}

/// What is in a list; something else is as good as a list of it.
fn items(value: Option<&Value>) -> std::slice::Iter<'_, Value> {
    match value {
        None => [].iter(),
        Some(Value::Array(list)) => list.iter(),
        Some(other) => std::slice::from_ref(other).iter(),
    }
}

/// Whether a member is one of those that begin with `prefix`; if that is empty, of those that no other field has.
fn is_among(prefix: &str, name: &str, all: &[Field]) -> bool {
    let is_of_another = |field: &Field| match field.from {
        From::Member(other, _) | From::List(other, _) => other == name,
        From::Members(other, _) => !other.is_empty() && name.starts_with(other),
        From::Itself(_) => false,
    };
    name.starts_with(prefix) && (!prefix.is_empty() || !all.iter().any(is_of_another))
}

/// One value as the field of that number; one of another type is as good as zero.
fn value(number: u32, of: Type, value: &Value, out: &mut Vec<u8>) {
    match of {
        Type::Text => text(number, value.as_str().unwrap_or_default(), out),
        Type::Bool => integer(number, value.as_bool().unwrap_or_default().into(), out),
        Type::Int64 => integer(number, whole(value), out),
        Type::Double => double(number, value.as_f64().unwrap_or_default(), out),
        Type::Any => delimited(number, out, |out| text(2, &yaml(value), out)),
        Type::Message(of) => delimited(number, out, |out| message(of, value, out)),
    }
}

/// JSON that is YAML, too, which has no control characters in texts as they are.
fn yaml(value: &Value) -> String {
    let mut text = String::new();
    for char in value.to_string().chars() {
        match char {
            '\u{7f}'..='\u{9f}' | '\u{feff}' => text += &format!("\\u{:04x}", u32::from(char)),
            char => text.push(char),
        }
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests;
