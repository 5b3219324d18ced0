//! Semantic versions (k8s.io/apiserver/pkg/cel/library/semverlib.go), with the errors of github.com/blang/semver.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::Implementation;
use crate::error::EvaluationError;
use crate::value::{Opaque, Value};

type Outcome<'a> = Result<Value<'a>, EvaluationError>;

/// A version. What stands behind `+` does not count where versions are compared.
#[derive(Clone, Debug)]
pub struct Semver {
    major: u64,
    minor: u64,
    patch: u64,
    prerelease: Vec<Identifier>,
    build: Vec<String>,
}

/// A part of what stands behind `-`; a number comes before a word.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Word(String),
}

pub(super) fn find(overload: &str) -> Option<Implementation> {
    Some(match overload {
        "string_to_semver" | "string_bool_to_semver" => |args| {
            let version = parse(args)?.map_err(EvaluationError::new)?;
            Ok(Value::Opaque(Opaque::Semver(Arc::new(version))))
        },
        "is_semver_string" | "is_semver_string_bool" => |args| Ok(Value::Bool(parse(args)?.is_ok())),
        "semver_major" => |args| number(args, |version| version.major),
        "semver_minor" => |args| number(args, |version| version.minor),
        "semver_patch" => |args| number(args, |version| version.patch),
        "semver_compare_to" => |args| compare(args, |order| Value::Int(order as i64)),
        "semver_is_greater_than" => |args| compare(args, |order| Value::Bool(order.is_gt())),
        "semver_is_less_than" => |args| compare(args, |order| Value::Bool(order.is_lt())),
        _ => return None,
    })
}

fn parse(args: &[Value<'_>]) -> Result<Result<Semver, String>, EvaluationError> {
    match args {
        [Value::String(text)] | [Value::String(text), Value::Bool(false)] => Ok(Semver::parse(text)),
        [Value::String(text), Value::Bool(true)] => Ok(normalize(text).and_then(|text| Semver::parse(&text))),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn number<'a>(args: &[Value<'a>], pick: fn(&Semver) -> u64) -> Outcome<'a> {
    match args {
        [Value::Opaque(Opaque::Semver(version))] => Ok(Value::Int(pick(version) as i64)),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn compare<'a>(args: &[Value<'a>], show: fn(Ordering) -> Value<'a>) -> Outcome<'a> {
    match args {
        [Value::Opaque(Opaque::Semver(left)), Value::Opaque(Opaque::Semver(right))] => {
            Ok(show(left.cmp(right)))
        }
        _ => Err(EvaluationError::no_such_overload()),
    }
}

/// Without `v` and leading zeros, and with the numbers that are left out.
fn normalize(text: &str) -> Result<Cow<'_, str>, String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<Cow<'_, str>> = text.splitn(3, '.').map(Cow::Borrowed).collect();
    for part in &mut parts {
        if part.len() > 1 {
            let trimmed = part.trim_start_matches('0');
            let starts_with_digit = trimmed.starts_with(|first: char| first.is_ascii_digit());
            *part = Cow::Owned(if starts_with_digit { trimmed.to_owned() } else { format!("0{trimmed}") });
        }
    }
    if parts.len() < 3 {
        if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err("short version cannot contain PreRelease/Build meta data".to_owned());
        }
        parts.resize(3, Cow::Borrowed("0"));
    }
    Ok(Cow::Owned(parts.join(".")))
}

impl Semver {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (major, minor) = (component(major, "major")?, component(minor, "minor")?);
        let (rest, build) = match rest.split_once('+') {
            Some((rest, build)) => (rest, Some(build)),
            None => (rest, None),
        };
        let (patch, prerelease) = match rest.split_once('-') {
            Some((patch, prerelease)) => (patch, Some(prerelease)),
            None => (rest, None),
        };
        let patch = component(patch, "patch")?;
        let prerelease = prerelease.into_iter().flat_map(|text| text.split('.')).map(Identifier::parse);
        let prerelease = prerelease.collect::<Result<_, _>>()?;
        let build =
            build.into_iter().flat_map(|text| text.split('.')).map(build_part).collect::<Result<_, _>>()?;
        Ok(Self { major, minor, patch, prerelease, build })
    }
}

fn component(text: &str, name: &str) -> Result<u64, String> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("Invalid character(s) found in {name} number {text:?}"));
    }
    if text.len() > 1 && text.starts_with('0') {
        let name = format!("{}{}", name[..1].to_uppercase(), &name[1..]);
        return Err(format!("{name} number must not contain leading zeroes {text:?}"));
    }
    text.parse().map_err(|_| parse_error(text))
}

fn parse_error(text: &str) -> String {
    let why = if text.is_empty() { "invalid syntax" } else { "value out of range" };
    format!("strconv.ParseUint: parsing {text:?}: {why}")
}

fn build_part(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("Build meta data is empty".to_owned());
    }
    if !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Err(format!("Invalid character(s) found in build meta data {text:?}"));
    }
    Ok(text.to_owned())
}

impl Identifier {
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Prerelease is empty".to_owned());
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            if text.len() > 1 && text.starts_with('0') {
                return Err(format!("Numeric PreRelease version must not contain leading zeroes {text:?}"));
            }
            return text.parse().map(Identifier::Number).map_err(|_| parse_error(text));
        }
        if text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Ok(Identifier::Word(text.to_owned()));
        }
        Err(format!("Invalid character(s) found in prerelease {text:?}"))
    }
}

impl PartialEq for Semver {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Semver {}

impl PartialOrd for Semver {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Semver {
    fn cmp(&self, other: &Self) -> Ordering {
        let numbers = |version: &Self| (version.major, version.minor, version.patch);
        let released = |version: &Self| version.prerelease.is_empty();
        numbers(self)
            .cmp(&numbers(other))
            .then_with(|| released(self).cmp(&released(other)))
            .then_with(|| self.prerelease.cmp(&other.prerelease))
    }
}

impl fmt::Display for Semver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        for (index, part) in self.prerelease.iter().enumerate() {
            f.write_str(if index == 0 { "-" } else { "." })?;
            match part {
                Identifier::Number(number) => number.fmt(f)?,
                Identifier::Word(word) => f.write_str(word)?,
            }
        }
        for (index, part) in self.build.iter().enumerate() {
            write!(f, "{}{part}", if index == 0 { '+' } else { '.' })?;
        }
        Ok(())
    }
}
