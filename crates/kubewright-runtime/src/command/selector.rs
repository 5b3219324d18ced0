//! Selectors of labels as kubectl's `-l` has them, read as the requirements of a `LabelSelector`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;

/// Reads `a=b,c!=d,e in (f,g),h notin (i),j,!k`; an empty text asks for nothing. `!=` and `notin` hold for what has no such label.
///
/// # Errors
/// Which part cannot be read. Whether keys and values may be those of labels is the API server's to say.
pub(super) fn parse(text: &str) -> Result<Vec<LabelSelectorRequirement>, String> {
    parts(text).map(requirement).collect()
}

/// The parts between the commas that are in no parentheses.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    let split = text.split(move |letter| {
        inside = (inside || letter == '(') && letter != ')';
        letter == ',' && !inside
    });
    split.map(str::trim).filter(|_| !text.trim().is_empty())
}

fn requirement(part: &str) -> Result<LabelSelectorRequirement, String> {
    let odd = || {
        format!("{part:?} is no requirement: write `a=b`, `a!=b`, `a in (b,c)`, `a notin (b)`, `a` or `!a`")
    };
    let (key, operator, values) = if let Some((key, value)) = part.split_once("!=") {
        (key, "NotIn", vec![value])
    } else if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        (key, "In", vec![value])
    } else if let Some(set) = part.strip_suffix(')') {
        let (head, values) = set.split_once('(').ok_or_else(odd)?;
        let (key, operator) = head.trim_end().rsplit_once(' ').ok_or_else(odd)?;
        let operator = match operator {
            "in" => "In",
            "notin" => "NotIn",
            _ => return Err(odd()),
        };
        (key, operator, values.split(',').collect())
    } else if let Some(key) = part.strip_prefix('!') {
        (key, "DoesNotExist", Vec::new())
    } else {
        (part, "Exists", Vec::new())
    };
    let (key, values): (_, Vec<String>) =
        (key.trim(), values.into_iter().map(|value| value.trim().to_owned()).collect());
    let strange = |text: &str| text.contains([' ', '(', ')', '!', '=', ',']);
    if key.is_empty() || strange(key) || values.iter().any(|value| strange(value)) {
        return Err(odd());
    }
    let values = (!values.is_empty()).then_some(values);
    Ok(LabelSelectorRequirement { key: key.to_owned(), operator: operator.to_owned(), values })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<String>, String> {
        let describe = |one: LabelSelectorRequirement| {
            format!("{} {} {}", one.key, one.operator, one.values.unwrap_or_default().join("|"))
        };
        parse(text).map(|all| all.into_iter().map(describe).collect())
    }

    #[test]
    fn selectors_are_read_as_kubectl_reads_them() {
        assert_eq!(read(" "), Ok(Vec::new()));
        assert_eq!(
            read("a=b, c==d,e!=f,g in (h, i),example.com/j notin (k),l,!m,n="),
            Ok([
                "a In b",
                "c In d",
                "e NotIn f",
                "g In h|i",
                "example.com/j NotIn k",
                "l Exists ",
                "m DoesNotExist ",
                "n In "
            ]
            .map(str::to_owned)
            .to_vec())
        );
    }

    #[test]
    fn what_is_no_selector_is_told() {
        for (text, part) in [
            ("a=b,", ""),
            ("a b", "a b"),
            ("a of (b)", "a of (b)"),
            ("in (b)", "in (b)"),
            ("a=b=c", "a=b=c"),
            ("x,!", "!"),
        ] {
            let message = read(text).expect_err(text);
            assert!(message.starts_with(&format!("{part:?} is no requirement")), "{message}");
        }
    }
}
