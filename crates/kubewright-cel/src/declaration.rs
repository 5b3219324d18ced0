//! What a schema says about a value: the type that expressions see, how JSON becomes a value of it, and how large it can get.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::escaping::escape;
use crate::limits::MAX_REQUEST_SIZE_BYTES;
use crate::types::{Fields, ObjectType, Type};

/// What is declared about a value (k8s.io/apiserver/pkg/cel/types.go, `DeclType`); cheap to clone.
///
/// Made from a schema by the functions below, which follow `SchemaDeclType` (k8s.io/apiserver/pkg/cel/common/schemas.go) where
/// they estimate sizes. What a schema hides from expressions (no type, or unknown fields are preserved) is [`DeclType::hidden`].
#[derive(Clone, Debug)]
pub struct DeclType(Arc<Declared>);

#[derive(Clone, Debug)]
struct Declared {
    shape: Shape,
    /// Bytes of a string, items of a list, entries of a map, at most.
    max_elements: u64,
    /// Bytes of a key of a map, at most.
    max_key: u64,
    /// Bytes of JSON, at least.
    min_size: u64,
    nullable: bool,
}

/// The forms of a declaration.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// JSON as it comes.
    Dyn,
    /// A value of any type, which no loop goes over: an attribute of a device.
    Any,
    /// `x-kubernetes-int-or-string`.
    IntOrString,
    /// Not reachable by expressions; only compared, as JSON.
    Hidden,
    Bool,
    Int,
    Double,
    String,
    /// A string with `format: byte`.
    Bytes,
    /// A string with `format: date`.
    Date,
    /// A string with `format: date-time`.
    DateTime,
    /// A string with `format: duration`.
    Duration,
    List(DeclType, ListKind),
    Map(DeclType),
    Object(ObjectDecl),
    /// Not from a schema: the value is handed in as it is.
    Of(Type),
}

/// The fields of an object.
#[derive(Clone, Debug)]
pub(crate) struct ObjectDecl {
    pub(crate) name: Arc<str>,
    /// By the name that the field has in JSON.
    pub(crate) fields: Arc<BTreeMap<String, DeclField>>,
}

/// How the items of a list belong together (`x-kubernetes-list-type`): decides how lists compare and what `+` does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// In order, as they are.
    Atomic,
    /// Each once, in any order.
    Set,
    /// Each known by these keys, in any order.
    Map(Arc<[String]>),
}

/// A field of an object.
#[derive(Clone, Debug)]
pub struct DeclField {
    name: String,
    escaped: Option<String>,
    declaration: DeclType,
    required: bool,
}

impl DeclField {
    /// The field `name` (as in JSON). `required` says that it is always written out: required by the schema and without default.
    #[must_use]
    pub fn new(name: &str, declaration: DeclType, required: bool) -> Self {
        let escaped = escape(name).map(std::borrow::Cow::into_owned);
        Self { name: name.to_owned(), escaped, declaration, required }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The name in expressions, if they can reach it.
    pub(crate) fn escaped(&self) -> Option<&str> {
        self.escaped.as_deref()
    }

    pub(crate) fn declaration(&self) -> &DeclType {
        &self.declaration
    }
}

impl DeclType {
    fn of_shape(shape: Shape, max_elements: u64, min_size: u64) -> Self {
        Self(Arc::new(Declared { shape, max_elements, max_key: 0, min_size, nullable: false }))
    }

    /// Any JSON, typed when the expression runs.
    #[must_use]
    pub fn dynamic() -> Self {
        Self::of_shape(Shape::Dyn, 0, 1)
    }

    /// A value of any type, with at most so many bytes or items; no loop goes over it.
    pub(crate) fn any(max_elements: u64) -> Self {
        Self::of_shape(Shape::Any, max_elements, 1)
    }

    /// A text with at most so many bytes.
    pub(crate) fn text(max_bytes: u64) -> Self {
        Self::of_shape(Shape::String, max_bytes, 2)
    }

    /// A boolean that counts as one element where costs are estimated.
    pub(crate) fn counted_boolean() -> Self {
        Self::of_shape(Shape::Bool, 1, 4)
    }

    /// The same map, with keys of at most so many bytes.
    pub(crate) fn with_keys(self, max_key: u64) -> Self {
        Self(Arc::new(Declared { max_key, ..Arc::unwrap_or_clone(self.0) }))
    }

    /// A value that does not come from a schema, such as `authorizer`: whatever is bound must be of `type`.
    #[must_use]
    pub fn of(r#type: Type) -> Self {
        match r#type {
            Type::Dyn => Self::dynamic(),
            other => Self::of_shape(Shape::Of(other), 0, 1),
        }
    }

    /// A value that expressions cannot reach, but that counts where the object around it is compared.
    #[must_use]
    pub fn hidden() -> Self {
        Self::of_shape(Shape::Hidden, 0, 1)
    }

    /// `x-kubernetes-int-or-string`, with the schema's `maxLength`.
    #[must_use]
    pub fn int_or_string(max_length: Option<u64>) -> Self {
        Self::of_shape(Shape::IntOrString, string_bytes(max_length), 1)
    }

    /// A boolean.
    #[must_use]
    pub fn boolean() -> Self {
        Self::of_shape(Shape::Bool, 0, 4)
    }

    /// An integer.
    #[must_use]
    pub fn integer() -> Self {
        Self::of_shape(Shape::Int, 0, 1)
    }

    /// A number.
    #[must_use]
    pub fn number() -> Self {
        Self::of_shape(Shape::Double, 0, 1)
    }

    /// A string, with the schema's `maxLength` in code points.
    #[must_use]
    pub fn string(max_length: Option<u64>) -> Self {
        Self::of_shape(Shape::String, string_bytes(max_length), 2)
    }

    /// A string without `maxLength`, of which the schema lists the values (`enum`): the longest has `longest` bytes.
    #[must_use]
    pub fn string_enum(longest: u64) -> Self {
        Self::of_shape(Shape::String, longest, 2)
    }

    /// A string with `format: byte`, with the schema's `maxLength`.
    #[must_use]
    pub fn bytes(max_length: Option<u64>) -> Self {
        Self::of_shape(Shape::Bytes, max_length.unwrap_or(MAX_REQUEST_SIZE_BYTES - 2), 2)
    }

    /// A string with `format: duration`.
    #[must_use]
    pub fn duration() -> Self {
        Self::of_shape(Shape::Duration, 32, 3)
    }

    /// A string with `format: date`.
    #[must_use]
    pub fn date() -> Self {
        Self::of_shape(Shape::Date, 12, 12)
    }

    /// A string with `format: date-time`.
    #[must_use]
    pub fn date_time() -> Self {
        Self::of_shape(Shape::DateTime, 32, 21)
    }

    /// An array of `items`, with the schema's `maxItems`.
    #[must_use]
    pub fn list(items: DeclType, kind: ListKind, max_items: Option<u64>) -> Self {
        let most = max_items.unwrap_or_else(|| (MAX_REQUEST_SIZE_BYTES - 2) / (items.0.min_size + 1));
        Self::of_shape(Shape::List(items, kind), most, 2)
    }

    /// An object with `additionalProperties`, with the schema's `maxProperties`.
    #[must_use]
    pub fn map(values: DeclType, max_properties: Option<u64>) -> Self {
        let most = max_properties.unwrap_or_else(|| (MAX_REQUEST_SIZE_BYTES - 2) / (values.0.min_size + 6));
        Self::of_shape(Shape::Map(values), most, 2)
    }

    /// An object with `properties`; see [`DeclType::named`] for its name.
    #[must_use]
    pub fn object(fields: impl IntoIterator<Item = DeclField>) -> Self {
        let fields: BTreeMap<String, DeclField> =
            fields.into_iter().map(|field| (field.name.clone(), field)).collect();
        let written = fields.values().filter(|field| field.required && field.declaration.is_exposed());
        let min_size =
            2 + written.map(|field| field.name.len() as u64 + field.declaration.0.min_size + 4).sum::<u64>();
        Self::of_shape(
            Shape::Object(ObjectDecl { name: "object".into(), fields: Arc::new(fields) }),
            0,
            min_size,
        )
    }

    /// The same, but `null` is a value of it (`nullable: true`).
    #[must_use]
    pub fn nullable(self) -> Self {
        Self(Arc::new(Declared { nullable: true, ..Arc::unwrap_or_clone(self.0) }))
    }

    /// The same with `name` for this object type, and names for the unnamed object types in it: `name.field`,
    /// `name.field.@idx` for the items of a list, `name.field.@elem` for the values of a map.
    ///
    /// Types with the same name count as the same type: a name must not be given to two different objects of one environment.
    #[must_use]
    pub fn named(&self, name: &str) -> Self {
        let shape = match &self.0.shape {
            Shape::Object(object) => {
                let name = if &*object.name == "object" { name.into() } else { Arc::clone(&object.name) };
                let fields = object.fields.iter().map(|(key, field)| {
                    let inner = format!("{name}.{}", field.escaped().unwrap_or(key));
                    (key.clone(), DeclField { declaration: field.declaration.named(&inner), ..field.clone() })
                });
                let fields = Arc::new(fields.collect());
                Shape::Object(ObjectDecl { name, fields })
            }
            Shape::List(items, kind) => Shape::List(items.named(&format!("{name}.@idx")), kind.clone()),
            Shape::Map(values) => Shape::Map(values.named(&format!("{name}.@elem"))),
            _ => return self.clone(),
        };
        Self(Arc::new(Declared { shape, ..*self.0 }))
    }

    /// The type that expressions see.
    #[must_use]
    pub fn cel_type(&self) -> Type {
        match &self.0.shape {
            Shape::Dyn | Shape::IntOrString | Shape::Hidden => Type::Dyn,
            Shape::Any => Type::Any,
            Shape::Bool => Type::Bool,
            Shape::Int => Type::Int,
            Shape::Double => Type::Double,
            Shape::String => Type::String,
            Shape::Bytes => Type::Bytes,
            Shape::Date | Shape::DateTime => Type::Timestamp,
            Shape::Duration => Type::Duration,
            Shape::List(items, _) => Type::list(items.cel_type()),
            Shape::Map(values) => Type::map(Type::String, values.cel_type()),
            Shape::Object(object) => Type::Object(ObjectType {
                name: Arc::clone(&object.name),
                fields: Fields::Declared(self.clone()),
            }),
            Shape::Of(r#type) => r#type.clone(),
        }
    }

    /// The fewest bytes that a value takes in JSON; what bounds how often it can occur in a request.
    #[must_use]
    pub fn min_serialized_size(&self) -> u64 {
        self.0.min_size
    }

    /// The most elements that a value has: bytes of a string, items of a list, entries of a map.
    #[must_use]
    pub fn max_elements(&self) -> u64 {
        self.0.max_elements
    }

    /// The most bytes that a key of a map has.
    pub(crate) fn max_key(&self) -> u64 {
        self.0.max_key
    }

    /// What is declared of the field of an object, by its name in JSON, whether expressions can reach it or not.
    #[must_use]
    pub fn of_field(&self, name: &str) -> Option<&Self> {
        let Shape::Object(object) = &self.0.shape else { return None };
        object.fields.get(name).map(|field| &field.declaration)
    }

    /// What is declared of the items of a list, or the values of a map.
    #[must_use]
    pub fn of_elements(&self) -> Option<&Self> {
        match &self.0.shape {
            Shape::List(inner, _) | Shape::Map(inner) => Some(inner),
            _ => None,
        }
    }

    /// Whether expressions can reach a value of this.
    #[must_use]
    pub fn is_exposed(&self) -> bool {
        match &self.0.shape {
            Shape::Hidden => false,
            Shape::List(inner, _) | Shape::Map(inner) => inner.is_exposed(),
            _ => true,
        }
    }

    /// The object type of that name, here or below.
    pub(crate) fn find_object(&self, name: &str) -> Option<Type> {
        match &self.0.shape {
            Shape::Object(object) if *object.name == *name => Some(self.cel_type()),
            Shape::Object(object) => {
                object.fields.values().find_map(|field| field.declaration.find_object(name))
            }
            Shape::List(inner, _) | Shape::Map(inner) => inner.find_object(name),
            _ => None,
        }
    }

    /// The fields of an object.
    pub(crate) fn fields(&self) -> Vec<DeclField> {
        match &self.0.shape {
            Shape::Object(object) => object.fields.values().cloned().collect(),
            _ => Vec::new(),
        }
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.0.shape
    }

    /// Whether it says what a schema says.
    pub(crate) fn is_of_schema(&self) -> bool {
        !matches!(self.0.shape, Shape::Dyn | Shape::Any | Shape::Of(_))
    }

    pub(crate) fn is_nullable(&self) -> bool {
        self.0.nullable
    }

    /// The declaration of the field that expressions call `name` (`namespace` and `__namespace__` are both understood).
    pub(crate) fn field(&self, name: &str) -> Option<&DeclType> {
        let Shape::Object(object) = &self.0.shape else { return None };
        let key = crate::escaping::unescape(name)?;
        let field = object.fields.get(key.as_ref())?;
        let reachable = field.escaped.as_deref() == Some(name) || crate::escaping::is_reserved(name);
        (reachable && field.escaped.is_some() && field.declaration.is_exposed()).then_some(&field.declaration)
    }
}

/// The bytes of a string of `max_length` code points.
fn string_bytes(max_length: Option<u64>) -> u64 {
    max_length.map_or(MAX_REQUEST_SIZE_BYTES - 2, |length| length.saturating_mul(4))
}
