//! How Go writes the zero values of Kubernetes' types, which k8s-openapi's schemas do not tell: a field that is no pointer
//! is left out when it is zero (`omitempty`), or written although nobody gave it. The facts stand in `zeros.txt`; what it
//! says of a type is read when the type is first used.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

const TABLE: &str = include_str!("zeros.txt");
const PREFIX: &str = "io.k8s.";

/// The lines of each type.
static TYPES: LazyLock<BTreeMap<&'static str, &'static str>> =
    LazyLock::new(|| TABLE.split("\n[").skip(1).filter_map(|part| part.split_once("]\n")).collect());

/// How the zero values of one type's fields are written.
#[derive(Default)]
pub(super) struct Zeros {
    lines: &'static str,
}

impl Zeros {
    /// Those of the type of that name.
    pub(crate) fn of(name: &str) -> Self {
        let lines = name.strip_prefix(PREFIX).and_then(|short| TYPES.get(short));
        Self { lines: lines.copied().unwrap_or_default() }
    }

    /// The scalar fields that are left out when they are zero.
    pub(crate) fn dropped(&self) -> impl Iterator<Item = &'static str> {
        self.words("drop ")
    }

    /// The fields that are always there, and what stands in them when nobody gave them a value. An empty object has
    /// such fields of its own.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let parts = self.words("show ").filter_map(|word| word.split_once('='));
        parts.map(|(field, zero)| (field, serde_json::from_str(zero).unwrap_or_default()))
    }

    fn words(&self, start: &str) -> impl Iterator<Item = &'static str> + use<> {
        self.lines.lines().find_map(|line| line.strip_prefix(start)).unwrap_or_default().split_whitespace()
    }
}

/// Whether a scalar is Go's zero value.
pub(crate) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(truth) => !truth,
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_type_knows_which_zeros_it_shows() {
        let container = Zeros::of("io.k8s.api.core.v1.Container");
        assert!(container.dropped().any(|field| field == "stdin"));
        let shown: Vec<_> = container.shown().collect();
        assert_eq!(shown, [("name", json!("")), ("resources", json!({}))]);
    }

    #[test]
    fn nothing_is_known_of_a_type_that_is_not_there() {
        let zeros = Zeros::of("io.k8s.api.core.v1.Nothing");
        assert!(zeros.dropped().next().is_none() && zeros.shown().next().is_none());
    }

    #[test]
    fn every_line_of_the_table_is_understood() {
        for line in TABLE.lines().skip_while(|line| line.starts_with('#')) {
            let (start, rest) = line.split_once(' ').unwrap_or((line, ""));
            let known = match start {
                "drop" => !rest.is_empty(),
                "show" => rest.split(' ').all(|word| {
                    word.split_once('=').is_some_and(|(_, zero)| serde_json::from_str::<Value>(zero).is_ok())
                }),
                title => title.starts_with('[') && title.ends_with(']') && rest.is_empty(),
            };
            assert!(known, "{line}");
        }
    }
}
