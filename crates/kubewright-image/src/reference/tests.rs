//! What `github.com/distribution/reference` says of the same texts is in `conformance.json`: for each the canonical and the
//! familiar form, registry and repository, or the error.

use proptest::prelude::*;

use super::*;

fn parsed(text: &str) -> Reference {
    Reference::parse(text).expect(text)
}

#[test]
fn what_the_library_of_docker_says_is_said_here() {
    let table: Vec<Vec<String>> = serde_json::from_str(include_str!("conformance.json")).expect("a table");
    assert!(table.len() > 600);
    for row in table {
        let told = match Reference::parse(&row[0]) {
            Ok(found) => vec![
                row[0].clone(),
                found.to_string(),
                found.familiar(),
                found.domain().to_owned(),
                found.repository().to_owned(),
            ],
            Err(error) => vec![row[0].clone(), error.to_string()],
        };
        assert_eq!(told, row);
    }
}

#[test]
fn what_is_left_out_is_added() {
    let busybox = parsed("busybox");
    assert_eq!(busybox.to_string(), "docker.io/library/busybox:latest");
    assert_eq!((busybox.familiar(), busybox.familiar_name()), ("busybox:latest".into(), "busybox".into()));
    assert_eq!(busybox.name(), "docker.io/library/busybox");
    for same in ["docker.io/busybox", "index.docker.io/library/busybox", "library/busybox:latest"] {
        assert_eq!(parsed(same), busybox, "{same}");
    }
    for other in ["busybox:1", "localhost/busybox", "docker.io:443/busybox", "library/busybox/busybox"] {
        assert_ne!(parsed(other), busybox, "{other}");
    }
}

#[test]
fn a_digest_needs_no_tag_and_takes_none_away() {
    let digest = format!("sha256:{}", "0".repeat(64));
    let by_digest = parsed(&format!("busybox@{digest}"));
    assert_eq!((by_digest.tag(), by_digest.digest()), (None, Some(digest.as_str())));
    let both = parsed(&format!("busybox:1@{digest}"));
    assert_eq!((both.tag(), both.digest()), (Some("1"), Some(digest.as_str())));
    assert_eq!(both.to_string(), format!("docker.io/library/busybox:1@{digest}"));
}

#[test]
fn the_name_of_a_reference_is_its_json() {
    let json = serde_json::to_string(&parsed("busybox")).expect("JSON");
    assert_eq!(json, r#""docker.io/library/busybox:latest""#);
    assert_eq!(serde_json::from_str::<Reference>(&json).expect("a reference"), parsed("busybox"));
    assert!(serde_json::from_str::<Reference>(r#""Busybox""#).is_err());
}

/// Texts of the grammar, and some that are nearly of it.
fn references() -> impl Strategy<Value = String> {
    let domain = "((localhost|[a-z]{1,3}\\.[A-Za-z]{2}|\\[::1\\])(:[0-9]{2,4})?/)?";
    let path = "[a-z0-9]{1,4}([._-]{0,2}[a-z0-9]{1,2})?(/[a-z0-9]{1,3}){0,2}";
    let suffix = "(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,5})?(@sha256:[0-9a-f]{64})?";
    (domain, path, suffix).prop_map(|(domain, path, suffix)| domain + &path + &suffix)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_forms_read_as_what_they_are_the_forms_of(text in references()) {
        if let Ok(reference) = Reference::parse(&text) {
            prop_assert_eq!(&parsed(&reference.to_string()), &reference);
            prop_assert_eq!(&parsed(&reference.familiar()), &reference);
            prop_assert!(reference.tag().is_some() || reference.digest().is_some());
            prop_assert!(text.len() <= reference.to_string().len());
        }
    }

    #[test]
    fn no_text_is_too_strange(text in ".{0,300}") {
        let _ = Reference::parse(&text);
    }

    #[test]
    fn texts_of_the_grammar_are_references(text in "[a-z]{1,9}(/[a-z0-9]{1,9}){0,3}(:[a-z][a-z0-9.]{0,5})?") {
        prop_assert!(Reference::parse(&text).is_ok());
    }
}
