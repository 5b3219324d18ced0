//! The values of expressions.

pub(crate) mod equality;
mod json;
mod list;
mod map;
mod opaque;
mod text;
mod time;
pub(crate) mod weight;

use std::sync::Arc;

use serde_json::Value as Json;

use crate::authorizer::{Authorizer, ResourceAttributes};
use crate::declaration::DeclType;
use crate::error::EvaluationError;
use crate::types::{Type, names};

pub(crate) use self::list::Items;
pub use self::list::List;
pub use self::map::{Key, Map};
pub use self::opaque::{AuthorizerCheck, Opaque};
pub use self::text::Text;
pub(crate) use self::time::Civil;
pub use self::time::{Duration, Timestamp};

/// A value; it borrows from the JSON that was bound, and is cheap to clone.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A floating-point number.
    Double(f64),
    /// Text.
    String(Text<'a>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A point in time.
    Timestamp(Timestamp),
    /// A span of time.
    Duration(Duration),
    /// A list.
    List(List<'a>),
    /// A map, or an object of a schema.
    Map(Map<'a>),
    /// What `Object{...}` or `JSONPatch{...}` made.
    Object(Arc<Object<'a>>),
    /// An optional value.
    Optional(Option<Arc<Value<'a>>>),
    /// A type.
    Type(Arc<Type>),
    /// A value of one of Kubernetes' own types.
    Opaque(Opaque<'a>),
    /// What a schema hides from expressions: known only for being equal to another or not.
    Hidden(&'a Json),
}

/// What `Object{...}` or `JSONPatch{...}` made.
#[derive(Clone, Debug)]
pub struct Object<'a> {
    /// The name of the type: `Object.spec`, `JSONPatch`.
    pub type_name: Arc<str>,
    /// The fields that were set, by name (as in JSON).
    pub fields: Vec<(Arc<str>, Value<'a>)>,
    /// How much there is in it.
    pub(crate) weight: u64,
}

impl<'a> Value<'a> {
    /// The JSON as what it was declared to be, as custom resources are seen: fields that the schema does not have cannot be
    /// reached, strings with a format become what the format says.
    ///
    /// JSON that does not fit its declaration is an error for the expression that comes across it.
    ///
    /// Source: `UnstructuredToVal` in k8s.io/apiserver/pkg/cel/common/valuesunstructured.go.
    ///
    /// # Errors
    ///
    /// If the JSON itself does not fit. What is below it is looked at when an expression does.
    pub fn declared(json: &'a Json, declaration: &'a DeclType) -> Result<Self, EvaluationError> {
        json::declared(json, declaration)
    }

    /// The JSON as it is, as admission sees objects: whole numbers are `int`, other numbers `double`, objects are maps.
    #[must_use]
    pub fn dynamic(json: &'a Json) -> Self {
        json::dynamic(json)
    }

    /// The value of the variable `authorizer`.
    #[must_use]
    pub fn authorizer(authorizer: &'a dyn Authorizer) -> Self {
        Value::Opaque(Opaque::Authorizer(AuthorizerCheck::new(authorizer)))
    }

    /// The value of the variable `authorizer.requestResource`: a check on the resource that is requested.
    #[must_use]
    pub fn request_resource(authorizer: &'a dyn Authorizer, resource: ResourceAttributes) -> Self {
        Value::Opaque(Opaque::ResourceCheck(AuthorizerCheck::new(authorizer), Arc::new(resource)))
    }

    /// An optional value.
    #[must_use]
    pub fn optional(value: Option<Value<'a>>) -> Self {
        Value::Optional(value.map(Arc::new))
    }

    /// The value as JSON: what a message, a patch or a parameter is made from.
    ///
    /// # Errors
    ///
    /// If there is no JSON for it, or for something in it: types, optionals, Kubernetes' own types.
    pub fn to_json(&self) -> Result<Json, EvaluationError> {
        json::to_json(self)
    }

    /// The value without what a schema says of it. cel-go forgets that about what stands in an optional that is named.
    pub(crate) fn without_declaration(&self) -> Self {
        match self {
            Value::Map(Map::Declared(entries, _)) => Value::Map(Map::Dynamic(entries)),
            Value::List(List { items: Items::Json(items, Some(_)), .. }) => {
                Value::List(List { items: Items::Json(items, None), kind: None })
            }
            other => other.clone(),
        }
    }

    /// The boolean that it is.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    /// The text that it is.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The type, as `type(value)` gives it: without parameters.
    #[must_use]
    pub fn runtime_type(&self) -> Type {
        match self {
            Value::Null => Type::Null,
            Value::Bool(_) => Type::Bool,
            Value::Int(_) => Type::Int,
            Value::Uint(_) => Type::Uint,
            Value::Double(_) => Type::Double,
            Value::String(_) => Type::String,
            Value::Bytes(_) => Type::Bytes,
            Value::Timestamp(_) => Type::Timestamp,
            Value::Duration(_) => Type::Duration,
            Value::List(_) => Type::list(Type::Dyn),
            Value::Map(_) => Type::map(Type::Dyn, Type::Dyn),
            Value::Object(object) if *object.type_name == *names::JSON_PATCH => Type::json_patch(),
            Value::Object(object) => Type::any_fields(&object.type_name),
            Value::Optional(_) => Type::optional(Type::Dyn),
            Value::Type(_) => Type::Type(None),
            Value::Opaque(opaque) => opaque.runtime_type(),
            Value::Hidden(_) => Type::Dyn,
        }
    }
}

/// Whether a value is the empty or zero value of its type.
pub(crate) fn is_zero(value: &Value<'_>) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(truth) => !truth,
        Value::Int(number) => *number == 0,
        Value::Uint(number) => *number == 0,
        Value::Double(number) => *number == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::Duration(span) => span.0 == 0,
        Value::List(List { kind: None, items }) => match items {
            Items::Json(items, None) => items.is_empty(),
            Items::Values(values, _) => values.is_empty(),
            Items::Json(_, Some(_)) => false,
        },
        Value::Map(map @ (Map::Dynamic(_) | Map::Values(..) | Map::OrEmpty(..))) => map.is_empty(),
        Value::Object(object) => object.fields.is_empty(),
        Value::Optional(value) => value.is_none(),
        _ => false,
    }
}
