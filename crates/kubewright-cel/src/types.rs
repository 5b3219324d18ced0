//! The types of expressions.

use std::fmt;
use std::sync::Arc;

use crate::declaration::DeclType;

/// The static type of an expression, as cel-go's checker knows it.
///
/// Displayed as error messages show it: `list(string)`, `map(string, dyn)`, `optional_type(int)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// Known when the expression runs.
    Dyn,
    /// The same, and no loop goes over it: an attribute of a device.
    Any,
    /// The type of what has an error in it; goes with everything, so that one mistake is reported once.
    Error,
    /// `null`.
    Null,
    /// `true` and `false`.
    Bool,
    /// Signed, 64 bits.
    Int,
    /// Unsigned, 64 bits.
    Uint,
    /// IEEE 754, 64 bits.
    Double,
    /// Unicode text.
    String,
    /// Bytes.
    Bytes,
    /// A point in time.
    Timestamp,
    /// A span of time.
    Duration,
    /// A list of elements of one type.
    List(Arc<Type>),
    /// A map from keys of one type to values of one type.
    Map(Arc<Type>, Arc<Type>),
    /// An optional value.
    Optional(Arc<Type>),
    /// The type of types; with the type that it is of, where that is known.
    Type(Option<Arc<Type>>),
    /// An object with named fields, or one of Kubernetes' own types.
    Object(ObjectType),
    /// A type of which only functions know the inside: `net.IP`, `net.CIDR`.
    Opaque(&'static str),
    /// A type that is not known yet.
    #[doc(hidden)]
    Param(Param),
}

/// The name of a type parameter: of a function's declaration, or a fresh one of the checker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Param {
    /// As declared: `A`, `K`, `V`.
    Declared(char),
    /// Made while checking: `_var3`.
    Fresh(u32),
}

/// An object type: two are the same if they have the same name.
#[derive(Clone, Debug)]
pub struct ObjectType {
    pub(crate) name: Arc<str>,
    pub(crate) fields: Fields,
}

/// What fields an object type has.
#[derive(Clone, Debug)]
pub(crate) enum Fields {
    /// Those of a declaration.
    Declared(DeclType),
    /// None that expressions can reach.
    Hidden,
    /// Any, of any type (`Object{...}` of mutating policies).
    Any,
    /// Those of `JSONPatch{...}`.
    JsonPatch,
}

impl PartialEq for ObjectType {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ObjectType {}

/// The names of Kubernetes' own types.
pub(crate) mod names {
    pub(crate) const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
    pub(crate) const DECISION: &str = "kubernetes.authorization.Decision";
    pub(crate) const GROUP_CHECK: &str = "kubernetes.authorization.GroupCheck";
    pub(crate) const PATH_CHECK: &str = "kubernetes.authorization.PathCheck";
    pub(crate) const RESOURCE_CHECK: &str = "kubernetes.authorization.ResourceCheck";
    pub(crate) const NAMED_FORMAT: &str = "kubernetes.NamedFormat";
    pub(crate) const QUANTITY: &str = "kubernetes.Quantity";
    pub(crate) const SEMVER: &str = "kubernetes.Semver";
    pub(crate) const URL: &str = "kubernetes.URL";
    pub(crate) const CIDR: &str = "net.CIDR";
    pub(crate) const IP: &str = "net.IP";
    pub(crate) const JSON_PATCH: &str = "JSONPatch";
    pub(crate) const OBJECT: &str = "Object";
    pub(crate) const VARIABLES: &str = "kubernetes.variables";
}

impl Type {
    /// A list of `element`s.
    #[must_use]
    pub fn list(element: Type) -> Self {
        Type::List(Arc::new(element))
    }

    /// A map from `key` to `value`.
    #[must_use]
    pub fn map(key: Type, value: Type) -> Self {
        Type::Map(Arc::new(key), Arc::new(value))
    }

    /// An optional `value`.
    #[must_use]
    pub fn optional(value: Type) -> Self {
        Type::Optional(Arc::new(value))
    }

    /// The type of the variable `authorizer`.
    #[must_use]
    pub fn authorizer() -> Self {
        Type::hidden(names::AUTHORIZER)
    }

    /// The type of the variable `authorizer.requestResource`.
    #[must_use]
    pub fn resource_check() -> Self {
        Type::hidden(names::RESOURCE_CHECK)
    }

    /// The type of `JSONPatch{...}`.
    #[must_use]
    pub fn json_patch() -> Self {
        Type::Object(ObjectType { name: names::JSON_PATCH.into(), fields: Fields::JsonPatch })
    }

    /// The type of `Object{...}`.
    #[must_use]
    pub fn apply_configuration() -> Self {
        Type::any_fields(names::OBJECT)
    }

    /// An object type with any fields (`Object.spec`).
    pub(crate) fn any_fields(name: &str) -> Self {
        Type::Object(ObjectType { name: name.into(), fields: Fields::Any })
    }

    /// An object type without fields, of which only functions know the inside.
    pub(crate) fn hidden(name: &'static str) -> Self {
        Type::Object(ObjectType { name: name.into(), fields: Fields::Hidden })
    }

    /// Whether this is `dyn`, or `any`.
    pub(crate) fn is_dyn(&self) -> bool {
        matches!(self, Type::Dyn | Type::Any)
    }

    /// Whether this is `dyn`, or there was an error.
    pub(crate) fn is_dyn_or_error(&self) -> bool {
        matches!(self, Type::Dyn | Type::Any | Type::Error)
    }

    /// The name that a value of the type `type` shows: without parameters.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Type::Dyn => "dyn",
            Type::Any => "any",
            Type::Error => "*error*",
            Type::Null => "null_type",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Timestamp => "google.protobuf.Timestamp",
            Type::Duration => "google.protobuf.Duration",
            Type::List(_) => "list",
            Type::Map(..) => "map",
            Type::Optional(_) => "optional_type",
            Type::Type(_) => "type",
            Type::Object(object) => &object.name,
            Type::Opaque(name) => name,
            Type::Param(_) => "",
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Error => f.write_str("!error!"),
            Type::Null => f.write_str("null"),
            Type::Timestamp => f.write_str("timestamp"),
            Type::Duration => f.write_str("duration"),
            Type::List(element) => write!(f, "list({element})"),
            Type::Map(key, value) => write!(f, "map({key}, {value})"),
            Type::Optional(value) => write!(f, "optional_type({value})"),
            Type::Type(Some(of)) => write!(f, "type({of})"),
            Type::Param(Param::Declared(name)) => write!(f, "{name}"),
            Type::Param(Param::Fresh(number)) => write!(f, "_var{number}"),
            plain => f.write_str(plain.name()),
        }
    }
}
