//! What texts must look like: `k8s.io/apimachinery/pkg/util/validation` and `api/validate/content`.
//!
//! Every function returns what is wrong, one sentence each, and nothing for a good text.

use std::net::{IpAddr, Ipv4Addr};

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const KEY_WORDS: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

/// The words for a text that breaks a regular expression.
pub fn pattern(message: &str, regex: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{message} (regex used for validation is '{regex}')");
    }
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{message} (e.g. {}regex used for validation is '{regex}')", examples.join(" or "))
}

/// The words for a text that is too long for a name.
pub fn too_long(limit: usize) -> String {
    format!("must be no more than {limit} characters")
}

fn lower_or_digit(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    matches!((bytes.first(), bytes.last()), (Some(&first), Some(&last)) if lower_or_digit(first) && lower_or_digit(last))
        && bytes.iter().all(|&byte| lower_or_digit(byte) || byte == b'-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

/// Whether it is a DNS label (RFC 1123) of at most 63 characters.
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && is_label(text)
}

/// Whether it is a DNS subdomain (RFC 1123) of at most 253 characters.
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && is_subdomain(text)
}

fn is_label_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    matches!((bytes.first(), bytes.last()), (Some(first), Some(last)) if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric())
        && bytes.iter().all(|&byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// A DNS label (RFC 1123).
pub fn label(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > 63 {
        errors.push(too_long(63));
    }
    if !is_label(text) {
        errors.push(if is_subdomain(text) {
            "must not contain dots".to_owned()
        } else {
            let words = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
            pattern(words, LABEL, &["my-name", "123-abc"])
        });
    }
    errors
}

/// A DNS label that starts with a letter (RFC 1035).
pub fn label_1035(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > 63 {
        errors.push(too_long(63));
    }
    if !is_label(text) || !text.starts_with(|first: char| first.is_ascii_lowercase()) {
        let words = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character";
        errors.push(pattern(words, LABEL_1035, &["my-name", "abc-123"]));
    }
    errors
}

/// A DNS subdomain (RFC 1123).
pub fn subdomain(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > 253 {
        errors.push(too_long(253));
    }
    if !is_subdomain(text) {
        let words = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
        errors.push(pattern(words, SUBDOMAIN, &["example.com"]));
    }
    errors
}

/// A DNS subdomain in which `_` is a letter (`IsDNS1123SubdomainWithUnderscore`).
pub fn subdomain_with_underscore(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > 253 {
        errors.push(too_long(253));
    }
    let is_part = |part: &str| {
        let start = part.strip_prefix('_').unwrap_or(part).as_bytes();
        matches!((start.first(), start.last()), (Some(&first), Some(&last)) if lower_or_digit(first) && lower_or_digit(last))
            && start.iter().all(|&byte| lower_or_digit(byte) || matches!(byte, b'-' | b'_'))
    };
    if !text.split('.').all(is_part) {
        let words = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character";
        let regex = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*";
        errors.push(pattern(words, regex, &["example.com"]));
    }
    errors
}

/// A DNS subdomain below a `*.`.
pub fn wildcard_subdomain(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > 253 {
        errors.push(too_long(253));
    }
    if !text.strip_prefix("*.").is_some_and(is_subdomain) {
        let words = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character";
        errors.push(pattern(words, &format!(r"\*\.{SUBDOMAIN}"), &["*.example.com"]));
    }
    errors
}

/// A name that fits in one segment of a path.
pub fn path_segment(text: &str) -> Vec<String> {
    if text == "." || text == ".." {
        return vec![format!("may not be '{text}'")];
    }
    path_segment_prefix(text)
}

/// The start of a name that fits in one segment of a path.
pub fn path_segment_prefix(text: &str) -> Vec<String> {
    ['/', '%']
        .iter()
        .filter(|bad| text.contains(**bad))
        .map(|bad| format!("may not contain '{bad}'"))
        .collect()
}

/// A label's key: a name, with a subdomain and `/` before it or without ("qualified name").
pub fn label_key(text: &str) -> Vec<String> {
    let words =
        |start: &str| pattern(&format!("{start} {KEY_WORDS}"), LABEL_KEY, &["MyName", "my.name", "123-abc"]);
    let mut errors = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((_, name)) if name.contains('/') => {
            let prefix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("{} {prefix}", words("a valid label key"))];
        }
        Some(("", name)) => {
            errors.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            errors.extend(subdomain(prefix).into_iter().map(|message| {
                // The rules of labels count bytes, in words too.
                format!("prefix part {}", message.replace("253 characters", "253 bytes"))
            }));
            name
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        errors.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_label_name(name) {
        errors.push(words("name part"));
    }
    errors
}

/// A label's value.
pub fn label_value(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > 63 {
        errors.push("must be no more than 63 bytes".to_owned());
    }
    if !text.is_empty() && !is_label_name(text) {
        let words = format!("a valid label must be an empty string or {}", &KEY_WORDS["must ".len()..]);
        errors.push(pattern(&words, &format!("({LABEL_KEY})?"), &["MyValue", "my_value", "12345"]));
    }
    errors
}

/// The name of a port (an IANA service name).
pub fn port_name(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > 15 {
        errors.push(too_long(15));
    }
    if text.is_empty() || !text.bytes().all(|byte| lower_or_digit(byte) || byte == b'-') {
        errors.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        errors.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        errors.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        errors.push("must not begin or end with a hyphen".to_owned());
    }
    errors
}

/// The name of an environment variable.
pub fn env_name(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.is_empty() {
        errors.push("environment variable name must be non-empty".to_owned());
    }
    if text.bytes().any(|byte| !(b' '..=b'~').contains(&byte) || byte == b'=') {
        let words = "a valid environment variable name must consist only of printable ASCII characters other than '='";
        errors.push(words.to_owned());
    }
    errors
}

/// A key of a ConfigMap or Secret.
pub fn config_key(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > 253 {
        errors.push(too_long(253));
    }
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    {
        let words = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
        errors.push(pattern(words, "[-._a-zA-Z0-9]+", &["key.name", "KEY_NAME", "key-name"]));
    }
    match text {
        "." | ".." => errors.push(format!("must not be '{text}'")),
        _ if text.starts_with("..") => errors.push("must not start with '..'".to_owned()),
        _ => {}
    }
    errors
}

/// The name of an HTTP header.
pub fn header_name(text: &str) -> Vec<String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Vec::new();
    }
    let words = "a valid HTTP header must consist of alphanumeric characters or '-'";
    vec![pattern(words, "[-A-Za-z0-9]+", &["X-Header-Name"])]
}

/// A share in percent.
pub fn percent(text: &str) -> Vec<String> {
    if text
        .strip_suffix('%')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
    {
        return Vec::new();
    }
    let words = "a valid percent string must be a numeric string followed by an ending '%'";
    vec![pattern(words, "[0-9]+%", &["1%", "93%"])]
}

/// An IP address, IPv4 or IPv6.
pub fn ip(text: &str) -> Vec<String> {
    if text.parse::<IpAddr>().is_ok() {
        return Vec::new();
    }
    vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()]
}

/// An IP address as Kubernetes writes it, as new fields and names have it (`IsValidIP`).
pub fn canonical_ip(text: &str) -> Vec<String> {
    let without_zeros = || {
        let octets = text.split('.').map(|octet| match octet.trim_start_matches('0') {
            "" if !octet.is_empty() => "0",
            digits => digits,
        });
        octets.collect::<Vec<_>>().join(".")
    };
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => {
            vec!["must not be an IPv4-mapped IPv6 address".to_owned()]
        }
        Ok(address) if address.to_string() == text => Vec::new(),
        Ok(address) => vec![format!("must be in canonical form (\"{address}\")")],
        Err(_) if without_zeros().parse::<Ipv4Addr>().is_ok() => vec!["must not have leading 0s".to_owned()],
        Err(_) => ip(text),
    }
}

/// A range of IP addresses (an address, `/`, and the length of the prefix).
pub fn cidr(text: &str) -> Vec<String> {
    if parse_cidr(text).is_some() {
        return Vec::new();
    }
    vec!["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)".to_owned()]
}

/// The address and the length of the prefix of a [`cidr`].
pub fn parse_cidr(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    let length: u8 = length.parse().ok().filter(|_| digits)?;
    let limit = if address.is_ipv4() { 32 } else { 128 };
    (length <= limit).then_some((address, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dns_label_has_no_dots_and_at_most_63_characters() {
        assert!(label("a-1").is_empty());
        assert_eq!(label("a.b"), ["must not contain dots"]);
        assert_eq!(label(&"a".repeat(64)), ["must be no more than 63 characters"]);
        for bad in ["", "-a", "a-", "A", "a_b"] {
            assert_eq!(label(bad).len(), 1, "{bad}");
        }
        assert_eq!(label_1035("1a").len(), 1);
        assert!(label_1035("a-1").is_empty() && label_1035("a.b").len() == 1);
        assert_eq!(label_1035(&"a".repeat(64)), ["must be no more than 63 characters"]);
        assert!(is_dns_label("a-1") && !is_dns_label("a.b") && !is_dns_label(&"a".repeat(64)));
    }

    #[test]
    fn a_dns_subdomain_is_labels_with_dots_between_them() {
        for right in ["a", "a-1", "1", "example.com", "my-machine.local"] {
            assert!(subdomain(right).is_empty() && is_dns_subdomain(right), "{right}");
        }
        for wrong in ["", "A", "-a", "a-", "a..b", "a_b", ".a", "a."] {
            assert!(!subdomain(wrong).is_empty() && !is_dns_subdomain(wrong), "{wrong}");
        }
        assert!(!is_dns_subdomain(&"a".repeat(254)));
    }

    #[test]
    fn a_label_key_may_have_one_subdomain_before_it() {
        for good in ["a", "example.com/A_b.c", "A"] {
            assert!(label_key(good).is_empty(), "{good}");
        }
        assert_eq!(label_key("/a"), ["prefix part must be non-empty"]);
        assert_eq!(label_key(""), ["name part must be non-empty".to_owned(), label_key("a b")[0].clone()]);
        assert!(label_key("a/b/c")[0].ends_with("(e.g. 'example.com/MyName')"));
        assert_eq!(label_key(&"a".repeat(64)), ["name part must be no more than 63 bytes"]);
    }

    #[test]
    fn a_port_name_has_a_letter_and_no_double_hyphen() {
        assert!(port_name("http-1").is_empty());
        assert_eq!(port_name("1"), ["must contain at least one letter (a-z)"]);
        assert_eq!(port_name("a--b"), ["must not contain consecutive hyphens"]);
        assert_eq!(port_name("-a"), ["must not begin or end with a hyphen"]);
    }

    #[test]
    fn a_path_segment_has_no_slash_or_percent_sign() {
        assert!(path_segment("system:a_B").is_empty());
        assert_eq!(path_segment(".."), ["may not be '..'"]);
        assert_eq!(path_segment("a/%"), ["may not contain '/'", "may not contain '%'"]);
    }

    #[test]
    fn a_config_key_does_not_climb() {
        assert!(config_key("..a")[0].starts_with("must not start with"));
        assert_eq!(config_key(".."), ["must not be '..'"]);
        assert!(config_key("a.b_C-1").is_empty());
    }

    #[test]
    fn a_cidr_has_a_prefix_that_fits_its_family() {
        assert!(cidr("10.0.0.0/8").is_empty() && cidr("::/0").is_empty());
        for bad in ["x", "10.0.0.0", "10.0.0.0/33", "::/129", "10.0.0.0/+8", "10.0.0.0/"] {
            assert_eq!(cidr(bad).len(), 1, "{bad}");
        }
    }
}
