//! Whatever an expression is, it is answered: without a panic, without an overflow of the stack, within its budget.

use kubewright_cel::{
    Bindings, DeclField, DeclType, Environment, EvaluationError, ListKind, Value, limits::PER_CALL_LIMIT,
};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

fn schema() -> DeclType {
    let strings = DeclType::list(DeclType::string(None), ListKind::Atomic, None);
    let inner = DeclType::object([DeclField::new("x", DeclType::integer(), true)]);
    DeclType::object([
        DeclField::new("i", DeclType::integer(), true),
        DeclField::new("s", DeclType::string(Some(10)), true),
        DeclField::new("l", strings, false),
        DeclField::new("o", inner, false),
        DeclField::new("m", DeclType::map(DeclType::integer(), None), false),
        DeclField::new("t", DeclType::date_time(), false),
    ])
    .named("selfType")
}

fn object() -> Json {
    json!({"i": 3, "s": "text", "l": ["a", "b"], "o": {"x": 1}, "m": {"k": 1}, "t": "2024-01-01T00:00:00Z"})
}

/// Compiles and evaluates on the stack of a thread as small as those of tests and workers.
fn answer(expression: &str) -> Result<(), String> {
    let schema = schema();
    let environment = Environment::new()
        .variable("self", schema.clone())
        .variable("object", DeclType::dynamic())
        .patch_types();
    let program = environment.compile(expression).map_err(|error| error.to_string())?;
    let object = object();
    let mut bindings = Bindings::new();
    bindings.bind("self", Value::declared(&object, &schema).map_err(|error| error.to_string())?);
    bindings.bind("object", Value::dynamic(&object));
    let evaluation = program.evaluate(&bindings, PER_CALL_LIMIT);
    if let Ok(value) = &evaluation.result {
        let _ = value.to_json();
    }
    evaluation.result.map(|_| ()).map_err(|error| error.to_string())
}

#[test]
fn nesting_of_any_kind_is_answered_on_a_small_stack() {
    let pairs = [
        ("(", "1", ")"),
        ("[", "1", "]"),
        ("!(", "true", ")"),
        ("-(", "1", ")"),
        ("{1: ", "1", "}"),
        ("optional.of(", "1", ")"),
        ("1 + (", "1", ")"),
        ("(", "1", " + 1)"),
        ("true && (", "true", ")"),
        ("[1].all(x, ", "true", ")"),
        ("[1].map(x, ", "x", ")"),
        ("[1].map(x, x > 0, ", "x", ")"),
        ("[1].exists_one(x, ", "true", ")"),
        ("[1].transformMap(k, v, ", "1", ")"),
        ("[3, 1].sortBy(x, size(", "'a'", "))"),
        ("Object{a: ", "1", "}"),
        ("dyn([", "1", "])[0]"),
        ("true ? (", "1", ") : 2"),
        ("self.l[size(", "'a'", ")].size() + size('')"),
    ];
    for (open, inner, close) in pairs {
        for depth in [10, 60, 100, 124, 249, 250, 1_000, 5_000] {
            let _ = answer(&format!("{}{inner}{}", open.repeat(depth), close.repeat(depth)));
        }
    }
    for (start, link) in [
        ("self", ".o"),
        ("1", " + 1"),
        ("true", " && true"),
        ("true", " || true"),
        ("1", " < 1"),
        ("object", "[0]"),
        ("object", ".?a"),
        ("'a'", ".trim()"),
        ("true", " ? 1 : true"),
        ("optional.of(1)", ".optMap(x, x)"),
        ("[1]", ".map(x, x)"),
        ("[1]", ".filter(x, true)"),
        ("!", "!"),
        ("-", "-"),
        ("a", ".a{"),
    ] {
        for length in [10, 100, 249, 251, 5_000, 20_000] {
            let _ = answer(&format!("{start}{}", link.repeat(length)));
        }
    }
}

#[test]
fn what_takes_too_long_is_cut_off() {
    for expression in [
        "lists.range(1000).map(x, lists.range(1000).map(y, x * y)).size() > 0",
        "lists.range(100000000000).size() > 0",
        "lists.range(2000).all(x, lists.range(2000).all(y, x + y >= 0))",
        "lists.range(100000).map(x, string(x)).join().replace('', 'abcdefghij').size() > 0",
        "lists.range(5000).distinct().size() > 0",
    ] {
        assert_eq!(answer(expression), Err(EvaluationError::CostLimitExceeded.to_string()), "{expression}");
    }
}

/// What cel-go charges for a match would allow millions of them.
#[test]
fn patterns_that_an_expression_makes_itself_are_not_compiled_without_end() {
    let large = "lists.range(1000).exists(x, 'a'.matches('^[a-z]{900}' + string(x)))";
    assert_eq!(answer(large), Err(EvaluationError::CostLimitExceeded.to_string()));
    let few = "lists.range(10).exists(x, 'a'.matches('^[a-z]{900}' + string(x)))";
    assert!(answer(few).is_ok(), "{:?}", answer(few));
    let small = "lists.range(1000).exists(x, 'a'.matches('^[a-z]+' + string(x)))";
    assert!(answer(small).is_ok(), "{:?}", answer(small));
    let constant = "lists.range(1000).exists(x, 'a'.matches('^[a-z]{900}'))";
    assert!(answer(constant).is_ok(), "it is compiled once: {:?}", answer(constant));
    let labels =
        r"lists.range(100).all(i, 'a'.matches('^([a-z0-9]{0,61}[.])*[a-z0-9]{1,61}$' + (i < 0 ? 'x' : '')))";
    assert!(answer(labels).is_ok(), "and so is what is made again and again: {:?}", answer(labels));
}

#[test]
fn text_does_not_grow_without_bound() {
    let doubled = "self.s + self.s";
    let mut expression = format!("optional.of({doubled})");
    for _ in 0..6 {
        expression = format!("{expression}.optMap(x, x.replace('', x + x + x + x))");
    }
    let result = answer(&format!("{expression}.hasValue()"));
    assert!(result.is_err(), "{result:?}");
}

#[test]
fn lists_of_the_same_lists_are_not_walked_through_forever() {
    for made in ["[x, x]", "{'a': x, 'b': x}", "Object{a: x, b: x}", "[dyn(x), dyn(x)].map(y, y)"] {
        let mut expression = format!("optional.of({})", "[1, 2]");
        for _ in 0..7 {
            // Eight times the same on each of the levels.
            let eight = format!("[dyn({made})].map(x, dyn({made})).map(x, dyn({made}))[0]");
            expression = format!("optional.of(dyn([{expression}.value()].map(x, {eight})[0]))");
        }
        let result = answer(&format!("{expression}.value() == {expression}.value()"));
        assert_eq!(result, Err("result is too large".to_owned()), "{made}");
    }
}

#[test]
fn macros_that_copy_what_they_stand_on_do_not_grow_without_bound() {
    let chain = ".optMap(x, x)".repeat(60);
    assert!(answer(&format!("optional.of(1){chain}")).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_text_makes_it_panic(expression in "\\PC{0,80}") {
        let _ = answer(&expression);
    }

    #[test]
    fn nothing_that_looks_like_an_expression_makes_it_panic(
        words in proptest::collection::vec(proptest::sample::select(WORDS), 0..24)
    ) {
        let _ = answer(&words.concat());
        let _ = answer(&words.join(" "));
    }
}

const WORDS: &[&str] = &[
    "self",
    ".i",
    ".s",
    ".l",
    ".o",
    ".m",
    ".t",
    ".x",
    "object",
    "1",
    "2u",
    "1.5",
    "'a'",
    "b'a'",
    "true",
    "null",
    "x",
    "k",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ".",
    "?",
    ":",
    "+",
    "-",
    "*",
    "/",
    "%",
    "<",
    "<=",
    "==",
    "!=",
    "&&",
    "||",
    "!",
    " in ",
    ".all(x, ",
    ".exists(x, ",
    ".map(x, ",
    ".filter(x, ",
    ".sortBy(x, ",
    ".all(k, x, ",
    ".transformMap(k, x, ",
    "has(",
    ".?",
    "[?",
    ".optMap(x, ",
    "size(",
    "int(",
    "string(",
    "timestamp(",
    "duration(",
    "quantity('1Gi')",
    "optional.of(",
    ".format([",
    "'%s'",
    ".matches('a')",
    ".split('')",
    ".substring(",
    ".contains('a')",
    "Object{",
    "JSONPatch{op: 'a'}",
    "\\",
    "\"",
    "`",
    "//",
    "\n",
    "é",
    "日",
    "9223372036854775807",
    "-9223372036854775808",
    "type(",
    "dyn(",
    "lists.range(",
];
