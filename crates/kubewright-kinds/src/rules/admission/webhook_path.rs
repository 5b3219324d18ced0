//! The path under which a Service is asked by who calls webhooks (`k8s.io/apiserver/pkg/util/webhook/validation.go`,
//! `ValidateWebhookService`).

use kubewright_meta::{FieldError, text};

/// What is wrong with the path of a Service; `at` names the field.
pub(crate) fn errors(at: &str, path: &str) -> Vec<FieldError> {
    mistakes(path).into_iter().map(|why| FieldError::invalid(at, path, why)).collect()
}

fn mistakes(path: &str) -> Vec<String> {
    match path {
        "" | "/" => return Vec::new(),
        "//" => return vec!["segment[0] may not be empty".to_owned()],
        _ => {}
    }
    let mut mistakes = Vec::new();
    if !path.starts_with('/') {
        mistakes.push("must start with a '/'".to_owned());
    }
    // The first byte is no part of it, whatever it is: the rest of its character is.
    let inner = &path.as_bytes()[1..];
    let inner = String::from_utf8_lossy(inner.strip_suffix(b"/").unwrap_or(inner));
    for (index, segment) in inner.split('/').enumerate() {
        if segment.is_empty() {
            mistakes.push(format!("segment[{index}] may not be empty"));
        } else {
            mistakes
                .extend(text::subdomain(segment).into_iter().map(|why| format!("segment[{index}]: {why}")));
        }
    }
    mistakes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_made_of_names() {
        for good in ["", "/", "/a", "/a/", "/a.b/c-d"] {
            assert!(mistakes(good).is_empty(), "{good}");
        }
        assert_eq!(mistakes("//"), ["segment[0] may not be empty"]);
        assert_eq!(mistakes("/a//b"), ["segment[1] may not be empty"]);
        assert_eq!(mistakes("x//y").len(), 3);
        assert!(mistakes("/A")[0].starts_with("segment[0]: a lowercase RFC 1123 subdomain"));
    }

    #[test]
    fn the_rest_of_a_first_character_is_a_segment() {
        let of_one_byte = mistakes("x");
        assert_eq!(of_one_byte[1], "segment[0] may not be empty");
        let of_more = mistakes("é");
        assert!(of_more[1].starts_with("segment[0]: a lowercase RFC 1123 subdomain"), "{of_more:?}");
    }
}
