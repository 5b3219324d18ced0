//! The one type for what a value may look like: a node of a structural schema.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use kubewright_spec::Version;
use serde_json::{Number, Value};

use super::built_in;
use super::pattern::Pattern;

/// What a value may look like: a node of a structural schema, of built-in and custom kinds alike.
///
/// A node of a built-in kind may be a reference to a type that others use too; [`Node::target`] follows it. What a field
/// says about itself (default, list type, merge key) stands on the referring node.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// The type that it refers to.
    pub reference: Option<Reference>,
    /// How its value is read.
    pub coding: Coding,
    /// Left out when it is Go's zero value: scalar fields of built-in types that are no pointers.
    pub(crate) omits_zero: bool,
    /// Stays, although it is a map without entries, until it is written: something tells it from none before.
    pub(crate) is_told_from_none: bool,
    /// The fields that Go writes even when nobody gave them a value, and what it writes then: built-in types only.
    pub shown: Box<[(Box<str>, Value)]>,
    /// The name of the type that it stands for, such as `io.k8s.api.apps.v1.DeploymentSpec`: built-in types only.
    pub name: Option<Box<str>>,
    /// The name of its type in Go, where that is no struct and has one: fields of built-in types only.
    pub(crate) named: Option<&'static str>,
    /// The types in Go that it is inlined by, where its object has it by others: fields of built-in types only.
    pub(crate) inlined: Option<Box<str>>,
    /// The JSON type; absent where any value goes, or where [`Node::int_or_string`] says what does.
    pub kind: Option<Type>,
    /// The format, such as `int32` or `date-time`.
    pub format: Option<Box<str>>,
    /// `null` is a value of its own here.
    pub nullable: bool,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown_fields: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded_resource: bool,
    /// The named fields of an object.
    pub properties: BTreeMap<Box<str>, Arc<Node>>,
    /// The other fields of an object.
    pub additional: Additional,
    /// The elements of a list.
    pub items: Option<Arc<Node>>,
    /// The fields that must be there. Built-in types: those that Go writes even when they are empty.
    pub required: Box<[Box<str>]>,
    /// The value of a field that was left out.
    pub default: Option<Value>,
    /// The values that are allowed; all where it is empty.
    pub enumeration: Box<[Value]>,
    /// How lists and maps are merged.
    pub merge: Option<Box<Merge>>,
    /// Bounds of numbers, lengths and sizes, and the pattern.
    pub bounds: Option<Box<Bounds>>,
    /// `allOf`, `anyOf`, `oneOf`, `not`.
    pub logic: Option<Box<Logic>>,
    /// `x-kubernetes-validations`.
    pub rules: Box<[Rule]>,
}

/// A rule that values follow, in CEL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// What must be true.
    pub rule: Box<str>,
    /// What is told when it is not.
    pub message: Box<str>,
    /// What makes the message instead.
    pub message_expression: Box<str>,
    /// The reason that is told.
    pub reason: Option<Reason>,
    /// The field that it is told of.
    pub field_path: Box<str>,
    /// Whether `oldSelf` is optional, so that the rule is checked on new values too.
    pub optional_old_self: Option<bool>,
}

/// Why a rule says that a value is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// `FieldValueInvalid`.
    Invalid,
    /// `FieldValueForbidden`.
    Forbidden,
    /// `FieldValueRequired`.
    Required,
    /// `FieldValueDuplicate`.
    Duplicate,
}

impl Reason {
    /// The reason of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "FieldValueInvalid" => Self::Invalid,
            "FieldValueForbidden" => Self::Forbidden,
            "FieldValueRequired" => Self::Required,
            "FieldValueDuplicate" => Self::Duplicate,
            _ => return None,
        })
    }
}

/// How Go reads a value of a built-in type that has a decoder of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coding {
    /// It has none: the JSON type says it all.
    #[default]
    Plain,
    /// Kept as it came: `RawExtension`, `JSON`, `FieldsV1`.
    Raw,
    /// `resource.Quantity`: text or number, written in canonical form.
    Quantity,
    /// `intstr.IntOrString`.
    IntOrString,
    /// `metav1.Time`: RFC 3339, written in seconds of UTC.
    Time,
    /// `metav1.MicroTime`: RFC 3339 with six decimals.
    MicroTime,
    /// A schema, or else what `Other` says: the `JSONSchemaPropsOr...` types. The schema is the node's `items`.
    SchemaOr(Other),
}

impl Coding {
    /// Whether it is that of a time.
    pub(crate) fn is_time(self) -> bool {
        matches!(self, Self::Time | Self::MicroTime)
    }
}

/// What may stand in place of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    /// `true` or `false`.
    Bool,
    /// A list of schemas.
    Schemas,
    /// A list of texts.
    Texts,
}

/// The types of JSON, with integers apart from other numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// An object or a map.
    Object,
    /// A list.
    Array,
    /// Text.
    String,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// True or false.
    Boolean,
}

impl Type {
    /// The type of that name in a schema.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            _ => return None,
        })
    }

    /// Its name in a schema.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

/// `additionalProperties`.
#[derive(Clone, Debug, Default)]
pub enum Additional {
    /// Nothing is said about them: they are unknown fields.
    #[default]
    Unsaid,
    /// `true`: any value goes.
    Any,
    /// `false`: none goes.
    Never,
    /// Every value is of this schema: the object is a map.
    Of(Arc<Node>),
}

/// How a list or map is merged by server-side apply (`x-kubernetes-list-type` and its kin) and by a strategic merge patch
/// (`x-kubernetes-patch-strategy` and its kin).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merge {
    /// `x-kubernetes-list-type`.
    pub list: Option<ListType>,
    /// `x-kubernetes-list-map-keys`.
    pub keys: Box<[Box<str>]>,
    /// `x-kubernetes-map-type`.
    pub map: Option<MapType>,
    /// `x-kubernetes-patch-strategy`, such as `merge` or `merge,retainKeys`.
    pub patch_strategy: Option<Box<str>>,
    /// `x-kubernetes-patch-merge-key`.
    pub patch_key: Option<Box<str>>,
}

/// `x-kubernetes-list-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// One value as a whole.
    Atomic,
    /// A set of scalars.
    Set,
    /// Objects, told apart by their keys.
    Map,
}

impl ListType {
    /// The list type of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "atomic" => Self::Atomic,
            "set" => Self::Set,
            "map" => Self::Map,
            _ => return None,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Atomic => "atomic",
            Self::Set => "set",
            Self::Map => "map",
        }
    }
}

/// `x-kubernetes-map-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapType {
    /// One value as a whole.
    Atomic,
    /// Field by field, which is the rule where nothing is said.
    Granular,
}

impl MapType {
    /// The map type of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "atomic" => Self::Atomic,
            "granular" => Self::Granular,
            _ => return None,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Atomic => "atomic",
            Self::Granular => "granular",
        }
    }
}

/// Bounds of a value.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    /// Least number.
    pub minimum: Option<Number>,
    /// The least number itself is not allowed.
    pub exclusive_minimum: bool,
    /// Greatest number.
    pub maximum: Option<Number>,
    /// The greatest number itself is not allowed.
    pub exclusive_maximum: bool,
    /// The number is a multiple of this one.
    pub multiple_of: Option<Number>,
    /// Fewest characters.
    pub min_length: Option<i64>,
    /// Most characters.
    pub max_length: Option<i64>,
    /// What the text must match.
    pub pattern: Option<Pattern>,
    /// Fewest elements.
    pub min_items: Option<i64>,
    /// Most elements.
    pub max_items: Option<i64>,
    /// Fewest fields.
    pub min_properties: Option<i64>,
    /// Most fields.
    pub max_properties: Option<i64>,
}

/// Combinations of schemas.
#[derive(Clone, Debug, Default)]
pub struct Logic {
    /// All must hold.
    pub all_of: Vec<Node>,
    /// One at least must hold.
    pub any_of: Vec<Node>,
    /// Exactly one must hold.
    pub one_of: Vec<Node>,
    /// It must not hold.
    pub not: Option<Node>,
}

/// A reference to a built-in type, followed at first use and then kept, so that types are shared and may be recursive.
#[derive(Clone)]
pub struct Reference {
    /// The name of the type.
    pub name: Box<str>,
    version: Version,
    found: OnceLock<Arc<Node>>,
}

impl Reference {
    /// A reference to the type of that name, as the version has it.
    pub fn to(version: Version, name: &str) -> Self {
        Self { name: name.into(), version, found: OnceLock::new() }
    }
}

impl std::fmt::Debug for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Reference").field(&self.name).finish()
    }
}

impl Node {
    /// The node itself, or the type that it refers to.
    #[must_use]
    pub fn target(&self) -> &Self {
        match &self.reference {
            None => self,
            Some(reference) => {
                reference.found.get_or_init(|| built_in::named(reference.version, &reference.name))
            }
        }
    }

    /// The schema of a field: a named one, or that of the values of a map.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Arc<Self>> {
        let target = self.target();
        target.properties.get(name).or(match &target.additional {
            Additional::Of(values) => Some(values),
            Additional::Unsaid | Additional::Any | Additional::Never => None,
        })
    }

    /// Whether this node or one below it is such; references are not followed.
    pub fn any(&self, is: &dyn Fn(&Self) -> bool) -> bool {
        let values = match &self.additional {
            Additional::Of(values) => Some(values),
            Additional::Unsaid | Additional::Any | Additional::Never => None,
        };
        let logic = self.logic.iter().flat_map(|logic| {
            logic.all_of.iter().chain(&logic.any_of).chain(&logic.one_of).chain(&logic.not)
        });
        let below = self.properties.values().chain(&self.items).chain(values).map(AsRef::as_ref);
        is(self) || below.chain(logic).any(|below| below.any(is))
    }

    /// How its list is merged by server-side apply.
    #[must_use]
    pub fn list_type(&self) -> Option<ListType> {
        self.merge.as_ref().and_then(|merge| merge.list)
    }

    /// The fields that tell the elements of its list apart.
    #[must_use]
    pub fn list_map_keys(&self) -> &[Box<str>] {
        self.merge.as_ref().map_or(&[], |merge| &merge.keys)
    }

    /// How its object is merged by server-side apply: what the field says, or else what its type says.
    #[must_use]
    pub fn map_type(&self) -> Option<MapType> {
        let said = |node: &Self| node.merge.as_ref().and_then(|merge| merge.map);
        said(self).or_else(|| said(self.target()))
    }

    /// The strategy of a strategic merge patch, and the key of the elements of its list.
    #[must_use]
    pub fn patch(&self) -> (Option<&str>, Option<&str>) {
        self.merge
            .as_ref()
            .map_or((None, None), |merge| (merge.patch_strategy.as_deref(), merge.patch_key.as_deref()))
    }
}
