use proptest::prelude::*;
use serde_json::json;

use super::*;

fn read(text: &str) -> Value {
    decode(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}")).value
}

fn wrong(text: &str) -> String {
    decode(text.as_bytes()).expect_err(text)
}

#[test]
fn scalars_are_those_of_yaml_1_1() {
    for (text, value) in [
        ("yes", json!(true)),
        ("off", json!(false)),
        ("y", json!(true)),
        ("'yes'", json!("yes")),
        ("~", Value::Null),
        ("", Value::Null),
        ("010", json!(8)),
        ("0x1F", json!(31)),
        ("0b11", json!(3)),
        ("1_000", json!(1000)),
        ("+7", json!(7)),
        ("-0x10", json!(-16)),
        ("1.0", json!(1)),
        ("1e3", json!(1000)),
        (".5", json!(0.5)),
        ("1.5e", json!("1.5e")),
        ("-", Value::Null),
        ("18446744073709551615", json!(u64::MAX)),
        ("2020-01-01", json!("2020-01-01")),
        ("1:30", json!("1:30")),
        ("!!str 1", json!("1")),
        ("!!float 1", json!(1)),
        ("!!binary YQ==", json!("a")),
        ("!custom 1", json!("1")),
    ] {
        let text = if text == "-" { "null" } else { text };
        assert_eq!(read(text), value, "{text}");
    }
    assert_eq!(wrong("!!int x"), "yaml: cannot decode !!str `x` as a !!int");
    assert_eq!(wrong("{a: .inf}"), "json: unsupported value: +Inf");
}

#[test]
fn keys_become_text() {
    assert_eq!(
        read("{1: a, true: b, 1.5: c, no: d}"),
        json!({"1": "a", "true": "b", "1.5": "c", "false": "d"})
    );
    assert_eq!(wrong("{? [a] : b}"), "yaml: invalid map key: []interface {}{\"a\"}");
}

#[test]
fn keys_that_are_set_twice_are_told_with_their_line() {
    let parsed =
        decode(b"metadata:\n  name: b\n  name: c\n  labels:\n    a: b\n    a: c\n").expect("it decodes");
    assert_eq!(parsed.value, json!({"metadata": {"name": "c", "labels": {"a": "c"}}}));
    assert_eq!(
        parsed.repeated,
        ["line 3: key \"name\" already set in map", "line 6: key \"a\" already set in map"]
    );
}

#[test]
fn only_the_first_document_counts() {
    assert_eq!(read("---\na: 1\n---\nb: [\n"), json!({"a": 1}));
}

#[test]
fn aliases_and_merges_are_resolved() {
    assert_eq!(read("a: &x {b: 1}\nc: *x\n"), json!({"a": {"b": 1}, "c": {"b": 1}}));
    assert_eq!(read("a:\n  <<: {b: 1, c: 2}\n  c: 3\n"), json!({"a": {"b": 1, "c": 3}}));
    assert_eq!(wrong("a: *x"), "yaml: unknown anchor 'x' referenced");
    assert_eq!(wrong("&a [*a]"), "yaml: anchor 'a' value contains itself");
    assert_eq!(wrong("<<: 1"), "yaml: map merge requires map or sequence of maps as the value");
}

/// Asked of kube-apiserver v1.36.3.
#[test]
fn mistakes_are_told_in_the_words_of_go() {
    for (text, told) in [
        ("a: [b", "yaml: line 1: did not find expected ',' or ']'"),
        ("a: b: c", "yaml: mapping values are not allowed in this context"),
        ("metadata: {name: @b}", "yaml: found character that cannot start any token"),
        ("a:\n\tb: 1", "yaml: line 2: found character that cannot start any token"),
        ("metadata:\n  name: b\n data: x", "yaml: line 2: did not find expected key"),
        ("\"unterminated", "yaml: found unexpected end of stream"),
    ] {
        assert_eq!(wrong(text), told, "{text}");
    }
}

#[test]
fn a_document_cannot_blow_itself_up() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let before = format!("*a{}", level - 1);
        bomb.push_str(&format!("a{level}: &a{level} [{}]\n", vec![before; 10].join(", ")));
    }
    assert_eq!(wrong(&bomb), "yaml: document contains excessive aliasing");
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), vec!["*a"; 90].join(", "));
    assert_eq!(wrong(&long), "yaml: document contains excessive aliasing");
}

#[test]
fn deep_nesting_is_refused() {
    assert!(wrong(&"[".repeat(50_000)).contains("max depth"));
    assert!(wrong(&"- ".repeat(50_000)).contains("max depth"));
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(decode(nested(LEVELS).as_bytes()).is_ok());
    assert!(wrong(&nested(LEVELS + 1)).contains("max depth"));
    let chain = (1..100).fold("a0: &a0 [[[[x]]]]\n".to_owned(), |text, at| {
        format!("{text}a{at}: &a{at} [[[*a{}]]]\n", at - 1)
    });
    assert!(wrong(&chain).contains("max depth"));
}

proptest! {
    #[test]
    fn json_is_yaml(text in "[a-z]{1,5}", number in any::<i32>()) {
        let value = json!({"a": [text, number, null, true], "b": {"c": {}}});
        prop_assert_eq!(read(&value.to_string()), value);
    }

    #[test]
    fn any_text_has_an_answer(text in r#"[\[\]{}:,"'a\-&*!|>#%@ \n\t?~<.0]{0,40}"#) {
        let _ = decode(text.as_bytes());
    }
}
