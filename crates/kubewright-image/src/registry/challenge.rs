//! What a registry says it wants to be told: `WWW-Authenticate` (RFC 9110, 11.6.1).

use std::collections::BTreeMap;

/// A way to say who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// Name and password in each request.
    Basic,
    /// A token, to be asked for at another place.
    Bearer {
        /// Where.
        realm: String,
        /// For whom.
        service: Option<String>,
        /// For what.
        scope: Option<String>,
    },
}

impl Challenge {
    /// The best of the ways that the headers of an answer offer; `None` where there is none that is known here.
    pub(super) fn best<'a>(headers: impl Iterator<Item = &'a str>) -> Option<Self> {
        let known = headers.filter_map(Self::parse);
        known.max_by_key(|challenge| matches!(challenge, Self::Bearer { .. }))
    }

    /// Reads one header.
    fn parse(header: &str) -> Option<Self> {
        let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let mut parameters = parameters(rest);
        let realm = parameters.remove("realm")?;
        Some(Self::Bearer { realm, service: parameters.remove("service"), scope: parameters.remove("scope") })
    }
}

/// `name=value, name="va\"lue"`, with names in lower case. What cannot be read ends them.
fn parameters(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut rest = text.trim_start();
    while let Some((name, after)) = rest.split_once('=') {
        let (value, after) = match after.trim_start().strip_prefix('"') {
            Some(quoted) => quoted_value(quoted),
            None => {
                let end = after.find(',').unwrap_or(after.len());
                (after[..end].trim().to_owned(), &after[end..])
            }
        };
        found.insert(name.trim().to_ascii_lowercase(), value);
        rest = after.trim_start().trim_start_matches(',').trim_start();
    }
    found
}

/// A value up to its closing quote, and what comes behind it.
fn quoted_value(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.extend(letters.next().map(|(_, letter)| letter)),
            letter => value.push(letter),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_token_is_asked_for_where_the_registry_says() {
        let header = r#"Bearer realm="https://auth.example/token",service="registry.example",scope="repository:a/b:pull,push""#;
        let expected = Challenge::Bearer {
            realm: "https://auth.example/token".to_owned(),
            service: Some("registry.example".to_owned()),
            scope: Some("repository:a/b:pull,push".to_owned()),
        };
        assert_eq!(Challenge::best([header].into_iter()), Some(expected.clone()));
        assert_eq!(Challenge::best([header, "Basic realm=x"].into_iter()), Some(expected));
    }

    #[test]
    fn ways_that_are_not_known_are_passed_over() {
        assert_eq!(Challenge::best(["Negotiate", "basic"].into_iter()), Some(Challenge::Basic));
        assert_eq!(Challenge::best(["Negotiate", "Bearer service=x"].into_iter()), None);
        let odd = Challenge::Bearer { realm: "a\"b".to_owned(), service: Some("x".to_owned()), scope: None };
        assert_eq!(Challenge::best([r#"bearer Realm="a\"b" , service = x"#].into_iter()), Some(odd));
    }

    proptest! {
        #[test]
        fn no_header_is_too_odd(text in ".{0,200}") {
            let _ = Challenge::parse(&format!("Bearer {text}"));
        }
    }
}
