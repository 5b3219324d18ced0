//! The rules of names, as far as schemas and definitions ask for them.

use kubewright_meta::text;

/// Why the text is no DNS subdomain (RFC 1123).
pub fn subdomain(text: &str) -> Option<String> {
    joined(&text::subdomain(text))
}

/// Why the text is no DNS label (RFC 1035).
pub fn label_1035(text: &str) -> Option<String> {
    joined(&text::label_1035(text))
}

fn joined(errors: &[String]) -> Option<String> {
    (!errors.is_empty()).then(|| errors.join(","))
}
