//! The rules of names (`k8s.io/apimachinery/pkg/util/validation`), as far as schemas and definitions ask for them.

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

/// Why the text is no DNS subdomain (RFC 1123).
pub(super) fn subdomain(text: &str) -> Option<String> {
    let part = |part: &str| is_label(part, |one| one.is_ascii_lowercase() || one.is_ascii_digit());
    join(text, 253, text.split('.').all(part), SUBDOMAIN)
}

/// Why the text is no DNS label (RFC 1035).
pub(super) fn label_1035(text: &str) -> Option<String> {
    join(text, 63, is_label(text, |one| one.is_ascii_lowercase()), LABEL_1035)
}

fn is_label(text: &str, starts: fn(u8) -> bool) -> bool {
    let plain = |one: u8| one.is_ascii_lowercase() || one.is_ascii_digit();
    text.bytes().next().is_some_and(starts)
        && text.bytes().last().is_some_and(plain)
        && text.bytes().all(|one| plain(one) || one == b'-')
}

fn join(text: &str, limit: usize, well_formed: bool, rule: &str) -> Option<String> {
    let long = (text.len() > limit).then(|| format!("must be no more than {limit} characters"));
    let malformed = (!well_formed).then(|| rule.to_owned());
    match (long, malformed) {
        (Some(long), Some(malformed)) => Some(format!("{long},{malformed}")),
        (long, malformed) => long.or(malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_their_rfc() {
        for right in ["a", "a-1", "1", "example.com"] {
            assert_eq!(subdomain(right), None, "{right}");
        }
        for wrong in ["", "A", "-a", "a-", "a..b", "a_b", ".a"] {
            assert!(subdomain(wrong).is_some(), "{wrong}");
        }
        assert!(label_1035("a-1").is_none() && label_1035("1a").is_some() && label_1035("a.b").is_some());
        assert!(label_1035(&"a".repeat(64)).is_some_and(|why| why == "must be no more than 63 characters"));
    }
}
