//! The part of jq that kwok's own stages use as selectors: paths, iteration, `select` with a comparison, pipes
//! (`pkg/utils/expression` of kwok, which has all of gojq).

use serde_json::Value;

/// A compiled expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Query(Vec<Filter>);

#[derive(Clone, Debug, PartialEq)]
enum Filter {
    Field(String),
    Index(usize),
    Each,
    Select { path: Vec<Filter>, equals: bool, value: Value },
}

/// The longest expression that is read.
const LONGEST: usize = 4096;

impl Query {
    /// Reads an expression.
    ///
    /// # Errors
    /// What it uses that is not known here.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err("the expression is too long".into());
        }
        let mut rest = text.trim();
        let mut steps = Vec::new();
        loop {
            rest = term(rest, &mut steps)?.trim_start();
            match rest.strip_prefix('|') {
                Some(after) => rest = after.trim_start(),
                None if rest.is_empty() => return Ok(Self(steps)),
                None => return Err(format!("not supported: {rest:?} in {text:?}")),
            }
        }
    }

    /// All results for `value`. What is not there, or not of the kind that a step wants, gives `null` or nothing.
    pub(super) fn run<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        run(&self.0, value)
    }
}

fn run<'a>(steps: &[Filter], value: &'a Value) -> Vec<&'a Value> {
    let mut values = vec![value];
    for step in steps {
        values = values.into_iter().flat_map(|value| apply(step, value)).collect();
    }
    values
}

fn apply<'a>(step: &Filter, value: &'a Value) -> Vec<&'a Value> {
    match step {
        Filter::Field(name) => vec![value.get(name).unwrap_or(&Value::Null)],
        Filter::Index(index) => vec![value.get(index).unwrap_or(&Value::Null)],
        Filter::Each => match value {
            Value::Array(all) => all.iter().collect(),
            Value::Object(all) => all.values().collect(),
            _ => Vec::new(),
        },
        Filter::Select { path, equals, value: wanted } => {
            let holds = run(path, value).iter().any(|found| (*found == wanted) == *equals);
            if holds { vec![value] } else { Vec::new() }
        }
    }
}

/// Reads one term of a pipe; gives what is left.
fn term<'a>(text: &'a str, steps: &mut Vec<Filter>) -> Result<&'a str, String> {
    if let Some(rest) = text.strip_prefix("select") {
        let rest = rest.trim_start().strip_prefix('(').ok_or("select needs a condition in parentheses")?;
        let mut path = Vec::new();
        let rest = self::path(rest.trim_start(), &mut path)?.trim_start();
        let (equals, rest) = match (rest.strip_prefix("=="), rest.strip_prefix("!=")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => return Err(format!("a select compares by == or !=, not {rest:?}")),
        };
        let end = rest.find(')').ok_or("select has no end")?;
        let literal = rest[..end].trim();
        let value = serde_json::from_str(literal).map_err(|_| format!("{literal:?} is no value"))?;
        steps.push(Filter::Select { path, equals, value });
        return Ok(&rest[end + 1..]);
    }
    path(text, steps)
}

/// Reads a path such as `.a.b[0].["c"].[]`; gives what is left.
fn path<'a>(text: &'a str, steps: &mut Vec<Filter>) -> Result<&'a str, String> {
    let mut rest = text.strip_prefix('.').ok_or_else(|| format!("a path begins with a dot, not {text:?}"))?;
    let mut is_after_dot = true;
    loop {
        if let Some(inner) = rest.strip_prefix('[') {
            let end = closing(inner).ok_or("a bracket has no end")?;
            steps.push(bracket(inner[..end].trim())?);
            rest = &inner[end + 1..];
        } else if is_after_dot && let Some(name) = name(rest) {
            steps.push(Filter::Field(name.to_owned()));
            rest = &rest[name.len()..];
        } else {
            return Ok(rest);
        }
        is_after_dot = false;
        if let Some(after) = rest.strip_prefix('.') {
            rest = after;
            is_after_dot = true;
        }
    }
}

fn name(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    (end > 0 && !text.starts_with(|c: char| c.is_ascii_digit())).then(|| &text[..end])
}

/// Where the bracket ends, not in a string.
fn closing(text: &str) -> Option<usize> {
    let mut in_string = false;
    let mut escaped = false;
    for (index, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            ']' if !in_string => return Some(index),
            _ => {}
        }
    }
    None
}

fn bracket(inner: &str) -> Result<Filter, String> {
    if inner.is_empty() {
        return Ok(Filter::Each);
    }
    match serde_json::from_str(inner) {
        Ok(Value::String(name)) => Ok(Filter::Field(name)),
        Ok(Value::Number(index)) => index
            .as_u64()
            .and_then(|index| usize::try_from(index).ok())
            .map(Filter::Index)
            .ok_or_else(|| format!("not supported: [{inner}]")),
        _ => Err(format!("not supported: [{inner}]")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn results(text: &str) -> Vec<Value> {
        let pod = json!({
            "metadata": {"annotations": {"a.b/c": "5s"}, "ownerReferences": [{"kind": "Job"}]},
            "status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": "True"}, {"type": "Initialized", "status": "False"}]},
        });
        Query::parse(text).expect("an expression").run(&pod).into_iter().cloned().collect()
    }

    #[test]
    fn what_kwoks_stages_select_by_is_read() {
        assert_eq!(results(".status.phase"), [json!("Running")]);
        assert_eq!(results(".metadata.deletionTimestamp"), [Value::Null]);
        assert_eq!(results(".metadata.ownerReferences.[].kind"), [json!("Job")]);
        assert_eq!(results(".metadata.ownerReferences[].kind"), [json!("Job")]);
        assert_eq!(results(".metadata.annotations[\"a.b/c\"]"), [json!("5s")]);
        assert_eq!(
            results(".status.conditions.[] | select( .type == \"Ready\" ) | .status"),
            [json!("True")]
        );
        assert_eq!(results(".status.conditions[1].status"), [json!("False")]);
        assert_eq!(results(".status.initContainerStatuses.[].state"), Vec::<Value>::new());
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for text in ["", "status", ".a // .b", ".a | length", ".a[", ".a[1:2]", "select(.a > 1)", ".a + 1"] {
            assert!(Query::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[.a-c\\[\\]\"|= ()select\\\\ä0-9]{0,40}") {
            if let Ok(query) = Query::parse(&text) {
                let _ = query.run(&json!({"a": [{"b": 1}]}));
            }
        }
    }
}
