//! Named formats (k8s.io/apiserver/pkg/cel/library/format.go), with the messages of k8s.io/apimachinery's
//! pkg/util/validation.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kubewright_meta::text::{self, is_dns_label, is_dns_subdomain};

use super::{Implementation, url};
use crate::error::EvaluationError;
use crate::value::{Opaque, Timestamp, Value};

type Outcome<'a> = Result<Value<'a>, EvaluationError>;

/// A format that text can be validated against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedFormat(Format);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Label { prefix: bool },
    Subdomain { prefix: bool },
    Label1035 { prefix: bool },
    QualifiedName,
    LabelValue,
    Uri,
    Uuid,
    Byte,
    Date,
    DateTime,
}

const FORMATS: [(&str, &str, Format); 13] = [
    ("dns1123Label", "format.dns1123Label", Format::Label { prefix: false }),
    ("dns1123LabelPrefix", "format.dns1123LabelPrefix", Format::Label { prefix: true }),
    ("dns1123Subdomain", "format.dns1123Subdomain", Format::Subdomain { prefix: false }),
    ("dns1123SubdomainPrefix", "format.dns1123SubdomainPrefix", Format::Subdomain { prefix: true }),
    ("dns1035Label", "format.dns1035Label", Format::Label1035 { prefix: false }),
    ("dns1035LabelPrefix", "format.dns1035LabelPrefix", Format::Label1035 { prefix: true }),
    ("qualifiedName", "format.qualifiedName", Format::QualifiedName),
    ("labelValue", "format.labelValue", Format::LabelValue),
    ("uri", "format.uri", Format::Uri),
    ("uuid", "format.uuid", Format::Uuid),
    ("byte", "format.byte", Format::Byte),
    ("date", "format.date", Format::Date),
    ("datetime", "format.datetime", Format::DateTime),
];

pub(super) fn find(overload: &str) -> Option<Implementation> {
    Some(match overload {
        "format.dns1123Label" => |_| Ok(made(Format::Label { prefix: false })),
        "format.dns1123LabelPrefix" => |_| Ok(made(Format::Label { prefix: true })),
        "format.dns1123Subdomain" => |_| Ok(made(Format::Subdomain { prefix: false })),
        "format.dns1123SubdomainPrefix" => |_| Ok(made(Format::Subdomain { prefix: true })),
        "format.dns1035Label" => |_| Ok(made(Format::Label1035 { prefix: false })),
        "format.dns1035LabelPrefix" => |_| Ok(made(Format::Label1035 { prefix: true })),
        "format.qualifiedName" => |_| Ok(made(Format::QualifiedName)),
        "format.labelValue" => |_| Ok(made(Format::LabelValue)),
        "format.uri" => |_| Ok(made(Format::Uri)),
        "format.uuid" => |_| Ok(made(Format::Uuid)),
        "format.byte" => |_| Ok(made(Format::Byte)),
        "format.date" => |_| Ok(made(Format::Date)),
        "format.datetime" => |_| Ok(made(Format::DateTime)),
        "format-named" => named,
        "format-validate" => validate,
        _ => return None,
    })
}

fn made<'a>(format: Format) -> Value<'a> {
    Value::Opaque(Opaque::Format(NamedFormat(format)))
}

fn named<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::String(name)] = args else { return Err(EvaluationError::no_such_overload()) };
    let known = FORMATS.iter().find(|(known, ..)| *known == &**name);
    Ok(Value::optional(known.map(|(.., format)| made(*format))))
}

fn validate<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::Opaque(Opaque::Format(format)), Value::String(text)] = args else {
        return Err(EvaluationError::no_such_overload());
    };
    let issues: Vec<Value<'a>> = format.issues(text).into_iter().map(Value::from).collect();
    Ok(Value::optional((!issues.is_empty()).then(|| issues.into())))
}

impl NamedFormat {
    /// The length of the pattern that validating costs as much as.
    pub(crate) fn pattern_size(self) -> u64 {
        match self.0 {
            Format::Label { .. } | Format::Label1035 { .. } => 30,
            Format::Subdomain { .. } | Format::QualifiedName => 60,
            Format::LabelValue => 40,
            Format::Uri => 1_103,
            Format::Uuid => 70,
            Format::Byte => 84,
            Format::Date | Format::DateTime => 71,
        }
    }

    /// What is wrong with a text.
    fn issues(self, text: &str) -> Vec<String> {
        let unless = |valid: bool, issue: &str| if valid { Vec::new() } else { vec![issue.to_owned()] };
        match self.0 {
            Format::Label { prefix } => text::label(&masked(text, prefix)),
            Format::Subdomain { prefix } => text::subdomain(&masked(text, prefix)),
            Format::Label1035 { prefix } => text::label_1035(&masked(text, prefix)),
            Format::QualifiedName => in_characters(text::label_key(text)),
            Format::LabelValue => in_characters(text::label_value(text)),
            Format::Uri => url::parse_request_uri(text).err().into_iter().collect(),
            Format::Uuid => unless(is_uuid(text), "does not match the UUID format"),
            Format::Byte => unless(STANDARD.decode(text).is_ok(), "invalid base64"),
            Format::Date => unless(Timestamp::parse_date(text).is_some(), "invalid date"),
            Format::DateTime => {
                unless(Timestamp::parse_lenient(text).is_some() && !text.is_empty(), "invalid datetime")
            }
        }
    }
}

/// A prefix that ends with `-` is looked at as if something followed.
fn masked(text: &str, prefix: bool) -> String {
    match text.strip_suffix('-') {
        Some(rest) if prefix && text.len() > 1 => format!("{rest}a"),
        _ => text.to_owned(),
    }
}

/// Whether it is the name of a namespace.
pub(super) fn is_label(text: &str) -> bool {
    is_dns_label(text)
}

/// Whether it is the name of a service account.
pub(super) fn is_subdomain(text: &str) -> bool {
    is_dns_subdomain(text)
}

/// In the words of the library of expressions, which counts characters where the rules of labels count bytes.
fn in_characters(issues: Vec<String>) -> Vec<String> {
    issues.into_iter().map(|issue| issue.replace(" bytes", " characters")).collect()
}

fn is_uuid(text: &str) -> bool {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'-').collect();
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    digits.len() == 32
        && digits.iter().all(u8::is_ascii_hexdigit)
        && (groups == [8, 4, 4, 4, 12] || groups == [32])
}
