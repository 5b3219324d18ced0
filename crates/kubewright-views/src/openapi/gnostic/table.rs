//! The table of messages, `messages.txt`: which member of a JSON document is which field. The lines of a message are read
//! when it is first used.

use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use serde_json::Value;

const TABLE: &str = include_str!("messages.txt");

static MESSAGES: LazyLock<BTreeMap<&'static str, Message>> = LazyLock::new(|| {
    let sections = TABLE.split("\n[").skip(1).filter_map(|section| section.split_once(']'));
    let read = sections.map(|(name, rest)| {
        let (first, lines) = rest.split_once('\n').unwrap_or((rest, ""));
        (name, Message { name, is_one_of: first == " one of", lines, fields: OnceLock::new() })
    });
    read.collect()
});

/// A message.
pub(super) struct Message {
    /// `2.Schema`.
    name: &'static str,
    is_one_of: bool,
    lines: &'static str,
    fields: OnceLock<Fields>,
}

/// What a message has.
pub(super) enum Fields {
    /// These, as far as they are there.
    All(Box<[Field]>),
    /// The first whose condition holds.
    OneOf(Box<[Case]>),
}

/// A field: its number, and where in the JSON it is.
pub(super) struct Field {
    pub(super) number: u32,
    pub(super) from: From,
}

/// Where in the JSON a field is.
pub(super) enum From {
    /// One member.
    Member(&'static str, Type),
    /// A member that is a list, each of whose items is the field once more.
    List(&'static str, Type),
    /// The value itself, or each of its items if it is a list.
    Itself(Type),
    /// All members that begin so, each with its name; `""`: all those that no other field has.
    Members(&'static str, Type),
}

/// One of the fields of which a message has one.
pub(super) struct Case {
    pub(super) number: u32,
    pub(super) when: When,
    pub(super) of: Type,
}

/// When a message has a field of which it has one.
pub(super) enum When {
    Always,
    /// It has a member of this name.
    Has(&'static str),
    /// This member has this value.
    Is(&'static str, &'static str),
    Bool,
    Number,
    Text,
}

/// What a field holds.
#[derive(Clone, Copy)]
pub(super) enum Type {
    Text,
    Bool,
    Int64,
    Double,
    /// Anything, as text in YAML.
    Any,
    Message(&'static Message),
}

impl When {
    /// Whether it is so of a value.
    pub(super) fn holds(&self, value: &Value) -> bool {
        match self {
            Self::Always => true,
            Self::Has(member) => value.get(member).is_some(),
            Self::Is(member, text) => value.get(member).is_some_and(|value| value == text),
            Self::Bool => value.is_boolean(),
            Self::Number => value.is_number(),
            Self::Text => value.is_string(),
        }
    }
}

impl Message {
    /// The message of that name, such as `2.Document`.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        MESSAGES.get(name)
    }

    pub(super) fn fields(&self) -> &Fields {
        self.fields.get_or_init(|| {
            let lines = self.lines.lines().map(|line| line.split(' ').collect::<Vec<_>>());
            match self.is_one_of {
                true => Fields::OneOf(lines.filter_map(|words| self.case(&words)).collect()),
                false => Fields::All(lines.filter_map(|words| self.field(&words)).collect()),
            }
        })
    }

    /// The field that a line stands for. A test has all lines understood.
    fn field(&self, words: &[&'static str]) -> Option<Field> {
        let &[number, member, kind] = words else { return None };
        let (of_list, of_members) = (kind.strip_prefix("[]"), kind.strip_prefix("{}"));
        let of = self.kind(of_list.or(of_members).unwrap_or(kind))?;
        let from = match member {
            "." => From::Itself(of),
            "*" => From::Members("", of),
            prefix if of_members.is_some() => From::Members(prefix, of),
            member if of_list.is_some() => From::List(member, of),
            member => From::Member(member, of),
        };
        Some(Field { number: number.parse().ok()?, from })
    }

    fn case(&self, words: &[&'static str]) -> Option<Case> {
        let &[number, condition, kind] = words else { return None };
        let when = match condition {
            "*" => When::Always,
            "bool" => When::Bool,
            "number" => When::Number,
            "string" => When::Text,
            condition => match condition.split_once('=') {
                Some((member, value)) => When::Is(member, value),
                None => When::Has(condition),
            },
        };
        Some(Case { number: number.parse().ok()?, when, of: self.kind(kind)? })
    }

    fn kind(&self, name: &str) -> Option<Type> {
        Some(match name {
            "string" => Type::Text,
            "bool" => Type::Bool,
            "int64" => Type::Int64,
            "double" => Type::Double,
            "any" => Type::Any,
            name => {
                let (version, _) = self.name.split_once('.')?;
                Type::Message(Self::named(&format!("{version}.{name}"))?)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_understood() {
        assert!(MESSAGES.len() > 60);
        for message in MESSAGES.values() {
            let read = match message.fields() {
                Fields::All(fields) => fields.len(),
                Fields::OneOf(cases) => cases.len(),
            };
            assert_eq!(read, message.lines.lines().count(), "{}", message.name);
        }
    }
}
