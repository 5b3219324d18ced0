//! Names of devices, pools, attributes, and what else is identified.

use kubewright_meta::{FieldError, Problem};
use kubewright_spec::Version;

use super::super::at::At;
use super::super::errors::Errors;
use super::super::pods::volumes::check_driver_name;
use super::super::text;
use super::super::version::since;

const POOL: usize = 253;
const IDENTIFIER: usize = 32;
const DOMAIN: usize = 63;
/// A domain, `/`, and an identifier.
const QUALIFIED: usize = DOMAIN + 1 + IDENTIFIER;

/// The name of a pool: subdomains with `/` between them.
pub(super) fn check_pool(name: &At<'_>, errors: &mut Errors) {
    if !errors.need(name) {
        return;
    }
    if name.text().len() > POOL {
        errors.push(FieldError::too_long(&name.path, POOL));
    }
    for part in name.text().split('/') {
        for message in text::subdomain(part) {
            errors.invalid_as(name, part, message);
        }
    }
}

/// The same where it is declared from v1.37 on (`ResourcePoolName` in `apimachinery/pkg/api/validate`): parts are told by number.
pub(super) fn check_declared_pool(name: &At<'_>, errors: &mut Errors) {
    if !since(Version::V1_37) || name.is_empty() {
        check_pool(name, errors);
        return;
    }
    if name.text().len() > POOL {
        errors.push(FieldError::too_long(&name.path, POOL));
    }
    for (index, part) in name.text().split('/').enumerate() {
        if part.is_empty() {
            errors.invalid(name, format!("segment {index}: must not be empty"));
            continue;
        }
        for message in text::subdomain(part) {
            errors.invalid_as(name, part, format!("segment {index}: {message}"));
        }
    }
}

/// A UID, as Kubernetes writes them.
pub(super) fn check_uid(uid: &At<'_>, errors: &mut Errors) {
    let text = uid.text();
    if since(Version::V1_37) {
        if text.len() != 36 || text != text.to_lowercase() || no_uuid(text).is_some() {
            errors.invalid(uid, "must be a lowercase UUID in 8-4-4-4-12 format");
        }
    } else if let Some(why) = no_uuid(text) {
        errors.invalid(uid, format!("error validating uid: {why}"));
    } else if text.len() != 36 || text != text.to_lowercase() {
        errors.invalid(uid, "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters");
    }
}

/// Why a text is no UUID, in the words of github.com/google/uuid.
fn no_uuid(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let plain = match bytes.len() {
        36 => bytes,
        45 if bytes[..9].eq_ignore_ascii_case(b"urn:uuid:") => &bytes[9..],
        45 => return Some(format!("invalid urn prefix: {:?}", String::from_utf8_lossy(&bytes[..9]))),
        38 if bytes[0] == b'{' && bytes[37] == b'}' => &bytes[1..37],
        38 => return Some("invalid bracketed UUID format".to_owned()),
        32 => bytes,
        other => return Some(format!("invalid UUID length: {other}")),
    };
    let is_good = plain.iter().enumerate().all(|(at, byte)| {
        if plain.len() == 36 && matches!(at, 8 | 13 | 18 | 23) {
            *byte == b'-'
        } else {
            byte.is_ascii_hexdigit()
        }
    });
    (!is_good).then(|| "invalid UUID format".to_owned())
}

/// The name of an attribute or a capacity: an identifier, with a domain and `/` before it or without. More parts are let through, as
/// in Kubernetes.
pub(super) fn check_qualified(at: &At<'_>, name: &str, errors: &mut Errors) {
    let parts: Vec<&str> = name.split('/').collect();
    match parts.as_slice() {
        [id] => check_identifier(at, id, errors),
        [domain, id] => {
            if domain.is_empty() {
                errors.invalid_as(at, "", "the domain must not be empty");
            } else {
                check_driver_name(&At::named(at.path.as_str(), &(*domain).into()), errors);
            }
            if id.is_empty() {
                errors.invalid_as(at, "", "the name must not be empty");
            } else {
                check_identifier(at, id, errors);
            }
        }
        _ => {}
    }
}

/// The same, where there has to be a domain; from v1.37 on this is declared (`ResourceFullyQualifiedName`).
pub(super) fn check_fully_qualified(at: &At<'_>, errors: &mut Errors) {
    match at.text().split('/').collect::<Vec<_>>().as_slice() {
        [domain, id] if since(Version::V1_37) => {
            if domain.is_empty() {
                errors.invalid_as(at, "", "prefix must not be empty");
            } else {
                if domain.len() > DOMAIN {
                    errors.push(FieldError::too_long(&at.path, DOMAIN));
                }
                for message in text::subdomain(domain) {
                    errors.invalid_as(at, *domain, format!("prefix: {message}"));
                }
            }
            if id.is_empty() {
                errors.invalid_as(at, "", "name must not be empty");
            } else {
                check_identifier(at, id, errors);
            }
        }
        _ => check_qualified(at, at.text(), errors),
    }
    if !at.text().contains('/') {
        errors.invalid_text(at, "a fully qualified name must be a domain and a name separated by a slash");
    }
}

fn check_identifier(at: &At<'_>, id: &str, errors: &mut Errors) {
    if id.len() > IDENTIFIER {
        errors.push(FieldError::too_long(&at.path, IDENTIFIER));
    }
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let mut bytes = id.bytes();
    let is_good =
        bytes.next().is_some_and(is_letter) && bytes.all(|byte| is_letter(byte) || byte.is_ascii_digit());
    if !is_good {
        let message = "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'";
        errors.invalid_as(
            at,
            id,
            text::pattern(message, "[A-Za-z_][A-Za-z0-9_]*", &["my_name", "MY_NAME", "MyName"]),
        );
    }
}

/// The value of a map with its path, in which a key that is too long is cut in the middle (`truncateIfTooLong`).
pub(super) fn shortened<'a>(map: &At<'_>, key: &str, value: &At<'a>) -> At<'a> {
    if key.len() <= QUALIFIED {
        return value.clone();
    }
    let rest = QUALIFIED - 3;
    let cut = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    let bytes = key.as_bytes();
    let short = format!("{}...{}", cut(&bytes[..rest.div_ceil(2)]), cut(&bytes[bytes.len() - rest / 2..]));
    At { path: format!("{}[{short}]", map.path), ..value.clone() }
}

/// The name of a driver where the rule for it is declared, from v1.37 on.
pub(super) fn check_declared_driver(driver: &At<'_>, errors: &mut Errors) {
    if !since(Version::V1_37) {
        check_driver_name(driver, errors);
        return;
    }
    if !errors.need(driver) {
        return;
    }
    if !text::subdomain(&driver.text().to_lowercase()).is_empty() {
        let message = "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
        let regex = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
        errors.invalid(driver, text::pattern(message, regex, &["Example.com"]));
    }
    if driver.text().len() > 63 {
        let detail = "may not be more than 63 characters".to_owned();
        errors.push(FieldError { field: driver.path.clone(), problem: Problem::TooLong, detail });
    }
}

/// The name of an object that is a DNS label.
pub(super) fn check_label(name: &At<'_>, errors: &mut Errors) {
    errors.text(name, text::label);
}

/// The name of a class.
pub(super) fn check_class(name: &At<'_>, errors: &mut Errors) {
    errors.need_text(name, text::subdomain);
}

/// The value of a label.
pub(super) fn check_label_value(value: &At<'_>, errors: &mut Errors) {
    errors.text(value, text::label_value);
}
