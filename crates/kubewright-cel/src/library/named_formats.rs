//! Named formats (k8s.io/apiserver/pkg/cel/library/format.go), with the messages of k8s.io/apimachinery's
//! pkg/util/validation.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

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
            Format::Label { prefix } => label_issues(&masked(text, prefix)),
            Format::Subdomain { prefix } => subdomain_issues(&masked(text, prefix)),
            Format::Label1035 { prefix } => label_1035_issues(&masked(text, prefix)),
            Format::QualifiedName => qualified_name_issues(text),
            Format::LabelValue => label_value_issues(text),
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

fn is_lower_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_dns_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    ends.iter().all(|end| end.is_some_and(|byte| is_lower_alphanumeric(*byte)))
        && bytes.iter().all(|byte| is_lower_alphanumeric(*byte) || *byte == b'-')
}

/// Whether it is the name of a namespace.
pub(super) fn is_label(text: &str) -> bool {
    label_issues(text).is_empty()
}

/// Whether it is the name of a service account.
pub(super) fn is_subdomain(text: &str) -> bool {
    subdomain_issues(text).is_empty()
}

fn too_long(most: usize) -> String {
    format!("must be no more than {most} characters")
}

fn label_issues(text: &str) -> Vec<String> {
    let mut issues = Vec::new();
    if text.len() > 63 {
        issues.push(too_long(63));
    }
    if !is_dns_label(text) {
        let rest = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
                    and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
                    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
        issues.push(if text.split('.').all(is_dns_label) && text.contains('.') {
            "must not contain dots".to_owned()
        } else {
            rest.to_owned()
        });
    }
    issues
}

fn subdomain_issues(text: &str) -> Vec<String> {
    let mut issues = Vec::new();
    if text.len() > 253 {
        issues.push(too_long(253));
    }
    if !text.split('.').all(is_dns_label) {
        issues.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start \
             and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    issues
}

fn label_1035_issues(text: &str) -> Vec<String> {
    let mut issues = Vec::new();
    if text.len() > 63 {
        issues.push(too_long(63));
    }
    if !is_dns_label(text) || !text.starts_with(|first: char| first.is_ascii_lowercase()) {
        issues.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation \
             is '[a-z]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    issues
}

/// Letters, digits, `-`, `_`, `.`, and a letter or digit at both ends.
fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    [bytes.first(), bytes.last()].iter().all(|end| end.is_some_and(u8::is_ascii_alphanumeric))
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

const NAME_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                         alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation \
                         is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

fn qualified_name_issues(text: &str) -> Vec<String> {
    let parts: Vec<&str> = text.split('/').collect();
    let mut issues = Vec::new();
    let name = match parts.as_slice() {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                issues.push("prefix part must be non-empty".to_owned());
            } else {
                issues
                    .extend(subdomain_issues(prefix).into_iter().map(|issue| format!("prefix part {issue}")));
            }
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        issues.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        issues.push(format!("name part {}", too_long(63)));
    }
    if !is_name(name) {
        issues.push(format!("name part {NAME_RULE}"));
    }
    issues
}

fn label_value_issues(text: &str) -> Vec<String> {
    let mut issues = Vec::new();
    if text.len() > 63 {
        issues.push(too_long(63));
    }
    if !text.is_empty() && !is_name(text) {
        issues.push(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start \
             and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
             validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                .to_owned(),
        );
    }
    issues
}

fn is_uuid(text: &str) -> bool {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'-').collect();
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    digits.len() == 32
        && digits.iter().all(u8::is_ascii_hexdigit)
        && (groups == [8, 4, 4, 4, 12] || groups == [32])
}
