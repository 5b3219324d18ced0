//! The command lines of kube-apiserver and etcd: pure, driven by a table of the flags that they have.
//!
//! All ways to write a flag are taken, whichever of the two programs is meant, because their callers mix them up:
//! `--name=value`, `--name value`, `-name value` and a bare `--name` for a switch. What is not in the table is accepted, and
//! told ([`Flags::unknown`]): a suite that passes a flag of another version is not to fail for it.

mod tables;
mod value;

use std::{collections::BTreeMap, ffi::OsString, time::Duration};

pub(super) use tables::{ETCD, KUBE_APISERVER, Table};
pub(super) use value::{Type, switch};

/// Flags as they were given.
#[derive(Debug, Default)]
pub(super) struct Flags {
    values: BTreeMap<String, Vec<String>>,
    unknown: Vec<String>,
}

/// Why a command line is refused, in the words of pflag (`errors.go`), which kube-apiserver reads its flags with.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FlagError {
    #[error("flag needs an argument: --{0}")]
    NoValue(String),
    #[error("invalid argument {value:?} for \"--{name}\" flag: {why}")]
    Value { name: String, value: String, why: String },
    #[error("{program:?} does not take any arguments, got [{argument:?}]")]
    Argument { program: &'static str, argument: String },
    #[error("{0:?} is not UTF-8")]
    NotText(OsString),
}

impl Flags {
    /// Reads a command line without its first word.
    ///
    /// # Errors
    /// [`FlagError`]: a value is not of the flag's type, or something is no flag.
    pub(super) fn parse(
        table: &Table,
        arguments: impl IntoIterator<Item = OsString>,
    ) -> Result<Self, FlagError> {
        let arguments: Vec<String> = arguments
            .into_iter()
            .map(|argument| argument.into_string().map_err(FlagError::NotText))
            .collect::<Result<_, _>>()?;
        let mut flags = Self::default();
        let mut rest = arguments.as_slice();
        while let Some((argument, after)) = rest.split_first() {
            rest = flags.take(table, argument, after)?;
        }
        Ok(flags)
    }

    /// Takes a flag, and its value from the arguments `after` it if that stands there. Gives what comes next.
    fn take<'a>(
        &mut self,
        table: &Table,
        argument: &str,
        after: &'a [String],
    ) -> Result<&'a [String], FlagError> {
        let positional = || FlagError::Argument { program: table.program, argument: argument.to_owned() };
        let flag = argument.strip_prefix('-').ok_or_else(positional)?;
        let flag = flag.strip_prefix('-').unwrap_or(flag);
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (flag, None),
        };
        // pflag's short form with its value attached: `-v2`.
        let (name, value) = match (argument.strip_prefix("-v"), value) {
            (Some(level), None) if is_number(level) => ("v", Some(level)),
            _ => (name, value),
        };
        if name.is_empty() {
            return Err(positional());
        }
        // As k8s.io/component-base's WordSepNormalizeFunc.
        let name = name.replace('_', "-");
        let known = table.type_of(&name);
        let next = after.first().filter(|next| match known {
            Some(kind) => kind != Type::Switch,
            None => !next.starts_with('-'),
        });
        let (value, rest) = match (value, next) {
            (Some(value), _) => (value.to_owned(), after),
            (None, Some(next)) => (next.clone(), &after[1..]),
            (None, None) if known.is_some_and(|kind| kind != Type::Switch) => {
                return Err(FlagError::NoValue(name));
            }
            (None, None) => ("true".to_owned(), after),
        };
        match known {
            Some(kind) => {
                kind.check(&value).map_err(|why| FlagError::Value {
                    name: name.clone(),
                    value: value.clone(),
                    why,
                })?;
                self.values.entry(name).or_default().push(value);
            }
            None if self.unknown.contains(&name) => {}
            None => self.unknown.push(name),
        }
        Ok(rest)
    }

    /// The names of those that the table does not have, each once.
    pub(super) fn unknown(&self) -> &[String] {
        &self.unknown
    }

    /// Every value of a flag, in the order given.
    pub(super) fn all(&self, name: &str) -> &[String] {
        self.values.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// The value of a flag that has one: the last that was given.
    pub(super) fn last(&self, name: &str) -> Option<&str> {
        self.all(name).last().map(String::as_str)
    }

    /// The value of a flag unless that is empty, which means the same as none.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.last(name).filter(|value| !value.is_empty())
    }

    /// The parts of a flag whose values are lists with commas between; `None` when it was not given at all.
    pub(super) fn list(&self, name: &str) -> Option<Vec<&str>> {
        let values = self.values.get(name)?;
        let parts = values.iter().flat_map(|value| value.split(','));
        Some(parts.map(str::trim).filter(|part| !part.is_empty()).collect())
    }

    /// Whether a switch is on; `None` when it was not given.
    pub(super) fn switch(&self, name: &str) -> Option<bool> {
        self.last(name).and_then(value::switch)
    }

    /// The length of time of a flag whose type is that.
    pub(super) fn duration(&self, name: &str) -> Option<Duration> {
        self.last(name).and_then(value::duration)
    }

    /// The number of a flag whose type is that (which the parser has checked).
    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.last(name).and_then(value::integer)
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests;
