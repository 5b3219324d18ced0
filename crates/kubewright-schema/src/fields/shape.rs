//! How schemas look to field ownership (`k8s.io/kube-openapi/pkg/schemaconv`): scalars, lists that are atomic, sets or
//! maps, and objects that are atomic or not; for any value what it is deduced to be.

use std::sync::LazyLock;

use serde_json::Value;

use super::versions::Version;
use crate::{Additional, Coding, ListType, MapType, Node, Schema, Type, built_in};

static OBJECT_META: LazyLock<Schema> = LazyLock::new(|| Schema::built_in(built_in::OBJECT_META));
static TEXT: LazyLock<Node> = LazyLock::new(|| Node { kind: Some(Type::String), ..Node::default() });

/// What may stand at a place.
#[derive(Clone, Copy, Debug)]
pub enum Shape<'a> {
    /// What a node of a schema says.
    Node {
        /// The node, which may refer to a type.
        node: &'a Node,
        /// A node around it preserves unknown fields.
        preserves: bool,
        /// It is a whole object: `apiVersion`, `kind` and `metadata` are known.
        object: bool,
    },
    /// Anything: objects field by field, lists as a whole.
    Deduced,
    /// Anything, as a whole.
    Untyped,
}

/// The types of scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// A number.
    Numeric,
    /// Text.
    String,
    /// True or false.
    Boolean,
    /// Any of them.
    Untyped,
}

/// A list.
#[derive(Clone, Copy, Debug)]
pub struct List<'a> {
    /// How its items are told apart; atomic lists are one value.
    pub kind: ListKind<'a>,
    /// Its items.
    pub items: Shape<'a>,
}

/// How the items of a list are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind<'a> {
    /// Not at all.
    Atomic,
    /// By their values.
    Set,
    /// By these fields.
    Map(Keys<'a>),
}

/// The key fields of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys<'a> {
    /// Of `x-kubernetes-list-map-keys`.
    Many(&'a [Box<str>]),
    /// Of `x-kubernetes-patch-merge-key`.
    One(&'a str),
}

impl<'a> Keys<'a> {
    /// Their names.
    pub fn names(self) -> impl Iterator<Item = &'a str> {
        let (many, one) = match self {
            Self::Many(names) => (names, None),
            Self::One(name) => (&[] as &[Box<str>], Some(name)),
        };
        many.iter().map(|name| &**name).chain(one)
    }
}

/// An object.
#[derive(Clone, Copy, Debug)]
pub struct Object<'a> {
    /// It is one value as a whole.
    pub atomic: bool,
    /// What stands at fields that have no name of their own in the schema.
    pub rest: Option<Shape<'a>>,
    node: Option<&'a Node>,
    preserves: bool,
    object: bool,
}

/// What a value of a [`Shape`] may be.
#[derive(Clone, Copy, Debug, Default)]
pub struct Forms<'a> {
    /// A scalar.
    pub scalar: Option<Scalar>,
    /// A list.
    pub list: Option<List<'a>>,
    /// An object.
    pub object: Option<Object<'a>>,
}

/// The one form of a value among its [`Forms`]; where several are possible the object comes first, as in
/// `sigs.k8s.io/structured-merge-diff/v6/typed`, `handleAtom`.
#[derive(Clone, Copy, Debug)]
pub enum Form<'a> {
    /// An object.
    Object(Object<'a>),
    /// A scalar.
    Scalar(Scalar),
    /// A list.
    List(List<'a>),
}

impl<'a> Shape<'a> {
    /// A whole object of a version.
    #[must_use]
    pub fn of(version: &'a dyn Version) -> Self {
        Self::Node { node: version.root(), preserves: false, object: version.is_custom() }
    }

    /// What stands at a node.
    fn at(node: &'a Node, preserves: bool) -> Self {
        Self::Node { node, preserves, object: false }
    }

    /// What a value may be here.
    #[must_use]
    pub fn forms(self) -> Forms<'a> {
        match self {
            Self::Node { node, preserves, object } => forms(node, preserves, object),
            Self::Deduced => any(Object::free(Self::Deduced, false)),
            Self::Untyped => any(Object::free(Self::Untyped, true)),
        }
    }

    /// The form of a value here: what it is, where the schema lets it be that.
    #[must_use]
    pub fn form(self, value: Option<&Value>) -> Option<Form<'a>> {
        self.forms().of(value).first()
    }
}

impl<'a> Forms<'a> {
    /// The forms that a value may have: its own, where it has one; else all (null and absent values are like any other).
    #[must_use]
    pub fn of(self, value: Option<&Value>) -> Self {
        match value {
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) if self.scalar.is_some() => {
                Self { scalar: self.scalar, ..Self::default() }
            }
            Some(Value::Array(_)) if self.list.is_some() => Self { list: self.list, ..Self::default() },
            Some(Value::Object(_)) if self.object.is_some() => {
                Self { object: self.object, ..Self::default() }
            }
            _ => self,
        }
    }

    /// The form that counts.
    #[must_use]
    pub fn first(self) -> Option<Form<'a>> {
        let object = self.object.map(Form::Object);
        object.or(self.scalar.map(Form::Scalar)).or(self.list.map(Form::List))
    }

    /// Whether both were made of the same forms of one shape.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.scalar.is_some() == other.scalar.is_some()
            && self.list.is_some() == other.list.is_some()
            && self.object.is_some() == other.object.is_some()
    }
}

impl<'a> Object<'a> {
    fn free(rest: Shape<'a>, atomic: bool) -> Self {
        Self { atomic, rest: Some(rest), node: None, preserves: false, object: false }
    }

    /// What stands at a field that has a name of its own in the schema.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<Shape<'a>> {
        if self.object {
            match name {
                "apiVersion" | "kind" => return Some(Shape::at(&TEXT, false)),
                "metadata" => return Some(Shape::at(OBJECT_META.root(), false)),
                _ => {}
            }
        }
        self.node?.properties.get(name).map(|node| Shape::at(node, self.preserves))
    }

    /// What stands at a field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Shape<'a>> {
        self.named(name).or(self.rest)
    }

    /// The value of a key field that an item leaves out. Go writes fields of built-in types that are not optional even
    /// when they are empty, and their schemas have that as the default.
    #[must_use]
    pub fn key_default(&self, name: &str) -> Option<Value> {
        let owner = self.node?;
        let field = owner.properties.get(name)?;
        if let Some(default) = &field.default {
            return Some(default.clone());
        }
        let type_name = owner.name.as_deref()?;
        let written = owner.required.iter().any(|required| &**required == name);
        if !written && !type_name.ends_with(".LocalObjectReference") {
            return None;
        }
        match field.target().kind? {
            Type::String => Some("".into()),
            Type::Integer | Type::Number => Some(0.into()),
            Type::Boolean => Some(false.into()),
            Type::Object | Type::Array => None,
        }
    }

    /// Whether it is deduced in all its fields: such objects have no schema that could change.
    #[must_use]
    pub fn is_deduced(&self) -> bool {
        matches!(self.rest, Some(Shape::Deduced))
            && !self.object
            && self.node.is_none_or(|node| node.properties.is_empty())
    }
}

fn any(object: Object<'_>) -> Forms<'_> {
    let list = List { kind: ListKind::Atomic, items: Shape::Untyped };
    Forms { scalar: Some(Scalar::Untyped), list: Some(list), object: Some(object) }
}

fn forms(field: &Node, preserves: bool, object: bool) -> Forms<'_> {
    let node = field.target();
    let preserves = preserves || field.preserve_unknown_fields || node.preserve_unknown_fields;
    let name = node.name.as_deref().unwrap_or_default();
    match node.coding {
        Coding::Raw if name.ends_with(".RawExtension") => return Shape::Untyped.forms(),
        Coding::Raw | Coding::SchemaOr(_) => return any(Object::free(Shape::Deduced, false)),
        // Its schema says what it may be in a way that is not looked at.
        Coding::IntOrString => return Shape::Untyped.forms(),
        Coding::Quantity | Coding::Time | Coding::MicroTime => return scalar(Scalar::Untyped),
        Coding::Plain => {}
    }
    let object = object || node.embedded_resource;
    match node.kind.filter(|_| !node.int_or_string) {
        None => Forms {
            scalar: Some(Scalar::Untyped),
            list: Some(list(field, node, preserves)),
            object: Some(fields(field, node, preserves, object)),
        },
        Some(Type::Object) => {
            Forms { object: Some(fields(field, node, preserves, object)), ..Forms::default() }
        }
        Some(Type::Array) => Forms { list: Some(list(field, node, preserves)), ..Forms::default() },
        Some(Type::Integer | Type::Number) => scalar(Scalar::Numeric),
        Some(Type::Boolean) => scalar(Scalar::Boolean),
        Some(Type::String) => match node.format.as_deref() {
            None | Some("" | "byte") => scalar(Scalar::String),
            Some(_) => scalar(Scalar::Untyped),
        },
    }
}

fn scalar<'a>(scalar: Scalar) -> Forms<'a> {
    Forms { scalar: Some(scalar), ..Forms::default() }
}

fn list<'a>(field: &'a Node, node: &'a Node, preserves: bool) -> List<'a> {
    let items = node.items.as_ref().map_or(Shape::Untyped, |items| Shape::at(items, preserves));
    List { kind: list_kind(field), items }
}

/// What the list type says; where there is none, what the strategy of strategic merge patches says.
fn list_kind(field: &Node) -> ListKind<'_> {
    match (field.list_type(), field.patch()) {
        (Some(ListType::Set), _) => ListKind::Set,
        (Some(ListType::Map), _) => ListKind::Map(Keys::Many(field.list_map_keys())),
        (None, (Some("merge" | "merge,retainKeys"), Some(key))) => ListKind::Map(Keys::One(key)),
        (None, (Some("merge" | "merge,retainKeys"), None)) => ListKind::Set,
        (Some(ListType::Atomic) | None, _) => ListKind::Atomic,
    }
}

fn fields<'a>(field: &'a Node, node: &'a Node, preserves: bool, object: bool) -> Object<'a> {
    let rest = match &node.additional {
        Additional::Of(values) => Some(Shape::at(values, preserves)),
        Additional::Any => Some(Shape::Deduced),
        Additional::Never => None,
        Additional::Unsaid if preserves || (node.properties.is_empty() && !object) => Some(Shape::Deduced),
        Additional::Unsaid => None,
    };
    Object { atomic: field.map_type() == Some(MapType::Atomic), rest, node: Some(node), preserves, object }
}
