//! The messages: which number is which field, and what JSON makes of it, as the newest version of Kubernetes says it. A number
//! means the same in all versions: what an older version does not have, its schema drops. The fields of a message are read
//! when the message is first used.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{LazyLock, OnceLock};

use kubewright_spec::Version;

/// The version whose fields are known here.
const NEWEST: Version = Version::V1_37;

static MESSAGES: LazyLock<BTreeMap<&'static str, Message>> = LazyLock::new(|| {
    let names = kubewright_spec::types(NEWEST);
    names.map(|name| (name, Message { name, fields: OnceLock::new(), members: OnceLock::new() })).collect()
});

/// A message: the fields of a type.
pub struct Message {
    /// `apps/v1.Deployment`.
    name: &'static str,
    fields: OnceLock<Box<[Field]>>,
    members: OnceLock<Box<[Member]>>,
}

/// A field as JSON knows it: a member of an object.
pub(super) struct Member {
    /// The numbers of the messages that it is inside of, outermost first, whose members are those of the object.
    pub(super) inside: Box<[u32]>,
    pub(super) field: &'static Field,
}

/// A field of a message.
#[derive(Debug)]
pub struct Field {
    /// Its number on the wire.
    pub number: u32,
    /// As JSON names it.
    pub name: &'static str,
    /// What it is.
    pub form: Form,
}

/// What a field is in JSON.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// A member that is one value.
    One {
        /// What it holds.
        of: Type,
        /// Whether JSON has a zero of a scalar: where it is a pointer in Go or is not left out when it is empty.
        keeps_zero: bool,
    },
    /// A member that is a list.
    List(Type),
    /// A member that is a map from text.
    Map(Type),
    /// The fields of the message are fields of the message around it.
    Inlined(&'static Message),
}

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub enum Type {
    /// Text.
    Text,
    /// True or false.
    Bool,
    /// A number of 32 bits.
    Int32,
    /// A number of 64 bits.
    Int64,
    /// A number with a fraction.
    Double,
    /// Base64 in JSON.
    Bytes,
    /// `metav1.Time`: a message of seconds and nanoseconds, RFC 3339 in JSON.
    Time,
    /// `metav1.MicroTime`.
    MicroTime,
    /// `resource.Quantity`: a message around its text.
    Quantity,
    /// `intstr.IntOrString`: a message of which kind it is, the number and the text.
    IntOrString,
    /// JSON as bytes in a message: `RawExtension`, `FieldsV1`, and `JSON` of schemas.
    Json,
    /// A message around a list of texts, which is a plain list in JSON: the `ExtraValue` of reviews.
    Texts,
    /// `JSONSchemaPropsOr…`: a schema or what [`Other`] says.
    SchemaOr(Other),
    /// An object.
    Message(&'static Message),
}

/// What may stand in place of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    /// True or false.
    Bool,
    /// A list of schemas.
    Schemas,
    /// A list of texts.
    Texts,
}

impl Message {
    /// The message of that name, such as `apps/v1.Deployment`.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        MESSAGES.get(name)
    }

    /// All messages, by their names.
    #[cfg(test)]
    pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static Self)> {
        MESSAGES.iter().map(|(name, message)| (*name, message))
    }

    /// Its name, such as `apps/v1.Deployment`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its fields by number.
    pub fn fields(&self) -> &[Field] {
        self.fields.get_or_init(|| {
            let told = kubewright_spec::fields_of(NEWEST, self.name).filter(|field| field.number > 0);
            let mut fields: Vec<Field> = told.filter_map(|field| self.field_of(field)).collect();
            fields.sort_by_key(|field| field.number);
            fields.into()
        })
    }

    /// The field of that number.
    pub(super) fn field(&self, number: u32) -> Option<&Field> {
        let fields = self.fields();
        fields.binary_search_by_key(&number, |field| field.number).ok().map(|index| &fields[index])
    }

    /// The field of that name in JSON, also where it is in a message whose fields are members here.
    pub(super) fn member(&'static self, name: &str) -> Option<&'static Member> {
        let members = self.members.get_or_init(|| {
            let mut members = self.all_members(&[]);
            members.sort_by_key(|member| member.field.name);
            members.into()
        });
        members.binary_search_by_key(&name, |member| member.field.name).ok().map(|index| &members[index])
    }

    fn all_members(&'static self, inside: &[u32]) -> Vec<Member> {
        let members = self.fields().iter().flat_map(|field| match field.form {
            Form::Inlined(inner) => inner.all_members(&[inside, &[field.number]].concat()),
            _ => vec![Member { inside: inside.into(), field }],
        });
        members.collect()
    }

    /// The field that a line of the table stands for. A test has all lines understood.
    fn field_of(&self, told: kubewright_spec::Field) -> Option<Field> {
        let form = if told.name == "." {
            Form::Inlined(self.message(told.of)?)
        } else if let Some(items) = told.of.strip_prefix("[]") {
            Form::List(self.kind(items)?)
        } else if let Some(values) = told.of.strip_prefix("{}") {
            Form::Map(self.kind(values)?)
        } else {
            let of = self.kind(told.of)?;
            // A time that is none is written as a message without contents, whatever it stands for.
            let is_kept = !of.is_time() && (told.is_always_written || !of.is_scalar());
            let keeps_zero = told.is_pointer || is_kept;
            Form::One { of, keeps_zero }
        };
        Some(Field { number: told.number, name: told.name, form })
    }

    fn kind(&self, name: &str) -> Option<Type> {
        Some(match name {
            "string" => Type::Text,
            "bool" => Type::Bool,
            "int32" => Type::Int32,
            "int64" => Type::Int64,
            "double" => Type::Double,
            "bytes" => Type::Bytes,
            "time" => Type::Time,
            "microtime" => Type::MicroTime,
            "quantity" => Type::Quantity,
            "intstr" => Type::IntOrString,
            "json" => Type::Json,
            "strings" => Type::Texts,
            "schema-or-bool" => Type::SchemaOr(Other::Bool),
            "schema-or-list" => Type::SchemaOr(Other::Schemas),
            "schema-or-strings" => Type::SchemaOr(Other::Texts),
            name => Type::Message(self.message(name)?),
        })
    }

    /// The message of that name, of the same package when it says none.
    fn message(&self, name: &str) -> Option<&'static Self> {
        if name.contains('.') {
            return Self::named(name);
        }
        let (package, _) = self.name.split_once('.')?;
        Self::named(&format!("{package}.{name}"))
    }
}

/// Its name: what it holds may hold itself.
impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Type {
    /// Whether it is a time: a message without contents is Go's zero time, which is `null` in JSON.
    pub(super) fn is_time(self) -> bool {
        matches!(self, Self::Time | Self::MicroTime)
    }

    fn is_scalar(self) -> bool {
        matches!(self, Self::Text | Self::Bool | Self::Int32 | Self::Int64 | Self::Double | Self::Bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_understood() {
        assert!(MESSAGES.len() > 400);
        for message in MESSAGES.values() {
            let fields = message.fields();
            let lines =
                kubewright_spec::fields_of(NEWEST, message.name).filter(|field| field.number > 0).count();
            assert_eq!(fields.len(), lines, "{}", message.name);
            assert!(fields.is_sorted_by(|one, next| one.number < next.number), "{}", message.name);
        }
    }

    #[test]
    fn a_pointer_keeps_its_zero_and_a_plain_field_does_not() {
        let keeps = |message: &str, number| {
            let field = Message::named(message).unwrap().field(number).unwrap();
            matches!(field.form, Form::One { keeps_zero: true, .. })
        };
        assert!(keeps("apps/v1.DeploymentSpec", 1), "replicas");
        assert!(!keeps("apps/v1.DeploymentSpec", 5), "minReadySeconds");
        assert!(!keeps("core/v1.PodSpec", 19), "schedulerName");
        assert!(keeps("core/v1.Container", 1), "name");
    }
}
