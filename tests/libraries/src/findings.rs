//! What differs, folded by how.

use std::collections::BTreeMap;

use serde_json::Value;

/// How two answers differ.
#[derive(Clone, Debug)]
pub(crate) struct Difference {
    /// What Go says where they do.
    pub(crate) go: Value,
    /// What we say there.
    pub(crate) ours: Value,
    /// The same without what is of the case alone.
    pub(crate) sort: String,
}

/// A case whose answers differ.
#[derive(Clone, Debug)]
pub(crate) struct Example {
    pub(crate) case: Value,
    pub(crate) difference: Difference,
}

/// All that differs of a subject.
#[derive(Default)]
pub(crate) struct Findings(BTreeMap<String, Cases>);

/// Cases that differ alike.
#[derive(Default)]
pub(crate) struct Cases {
    pub(crate) count: usize,
    /// The shortest ones.
    pub(crate) examples: Vec<Example>,
}

/// How many cases of a sort are kept.
const KEPT: usize = 5;

impl Findings {
    /// Adds a case.
    pub(crate) fn add(&mut self, found: Example) {
        let cases = self.0.entry(found.difference.sort.clone()).or_default();
        cases.count += 1;
        cases.examples.push(found);
        cases.examples.sort_by_cached_key(|found| found.case.to_string().len());
        cases.examples.truncate(KEPT);
    }

    /// How many cases differ.
    pub(crate) fn count(&self) -> usize {
        self.0.values().map(|cases| cases.count).sum()
    }

    /// In how many ways.
    pub(crate) fn sorts(&self) -> usize {
        self.0.len()
    }

    /// The most frequent first.
    pub(crate) fn sorted(&self) -> Vec<(&str, &Cases)> {
        let mut all: Vec<_> = self.0.iter().map(|(sort, cases)| (sort.as_str(), cases)).collect();
        all.sort_by_key(|(_, cases)| std::cmp::Reverse(cases.count));
        all
    }
}

/// Where two answers differ first, if they do; of lists of texts, what only one of them has.
pub(crate) fn difference(go: &Value, ours: &Value) -> Option<Difference> {
    difference_at(go, ours, "")
}

fn difference_at(go: &Value, ours: &Value, at: &str) -> Option<Difference> {
    if go == ours {
        return None;
    }
    let found = |go: Value, ours: Value| {
        let sort = format!("{at}: {} | {}", blurred(&go), blurred(&ours));
        Some(Difference { go, ours, sort })
    };
    let is_text = |items: &[Value]| items.iter().all(Value::is_string);
    match (go, ours) {
        (Value::Object(theirs), Value::Object(mine)) if theirs.keys().eq(mine.keys()) => {
            theirs.iter().zip(mine.values()).find_map(|((key, one), other)| difference_at(one, other, key))
        }
        (Value::Array(theirs), Value::Array(mine)) if is_text(theirs) && is_text(mine) => {
            let only = |these: &[Value], those: &[Value]| -> Value {
                these.iter().filter(|item| !those.contains(item)).cloned().collect()
            };
            found(only(theirs, mine), only(mine, theirs))
        }
        (Value::Array(theirs), Value::Array(mine)) if theirs.len() == mine.len() => {
            theirs.iter().zip(mine).find_map(|(one, other)| difference_at(one, other, at))
        }
        _ => found(go.clone(), ours.clone()),
    }
}

/// A value without what is of the case alone: what is in quotes or braces, digits, and where in an object an error is.
fn blurred(value: &Value) -> String {
    match value {
        Value::String(text) => blurred_text(text),
        Value::Array(items) => {
            let mut all: Vec<String> = items.iter().map(blurred).collect();
            all.dedup();
            all.join("; ")
        }
        other => blurred_text(&other.to_string()),
    }
}

fn blurred_text(text: &str) -> String {
    // Of the path of a field its last step is enough.
    let text = match text.split_once(": ") {
        Some((path, _)) if !path.contains(' ') => &text[path.rfind('.').map_or(0, |at| at + 1)..],
        _ => text,
    };
    let (mut out, mut quoted, mut depth) = (String::new(), false, 0_usize);
    for character in text.chars() {
        match character {
            '"' | '`' | '\'' => quoted = !quoted,
            _ if quoted => {}
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            digit if digit.is_ascii_digit() => {
                if !out.ends_with('0') {
                    out.push('0');
                }
            }
            '\n' => break,
            other => out.push(other),
        }
        if out.len() > 160 {
            break;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_of_texts_differ_by_what_only_one_of_them_has() {
        let found =
            difference(&json!({"errors": ["a", "b"]}), &json!({"errors": ["b", "c"]})).expect("they differ");
        assert_eq!((found.go, found.ours), (json!(["a"]), json!(["c"])));
    }

    #[test]
    fn what_differs_alike_is_folded() {
        let sort = |text: &str| {
            difference(&json!({"error": text}), &json!({"error": "none"})).expect("they differ").sort
        };
        assert_eq!(sort("spec.a[12]: \"a\" is wrong"), sort("spec.a[3]: \"bc\" is wrong"));
    }
}
