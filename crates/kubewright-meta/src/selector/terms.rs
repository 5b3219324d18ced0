//! The text form of field selectors (`k8s.io/apimachinery/pkg/fields/selector.go`): terms, for no kind in particular.

/// One condition: a field has a value, or another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The field, as the selector calls it.
    pub field: String,
    /// Whether it has the value; else it has another one.
    pub equal: bool,
    /// The value.
    pub value: String,
}

/// The conditions of a selector for no kind in particular; `None` when it is none.
pub fn field_terms(text: &str) -> Option<Vec<Term>> {
    let parts = split_terms(text).into_iter().filter(|part| !part.is_empty());
    let term = |part| {
        let (field, equal, value) = split_term(part)?;
        Some(Term { field: field.to_owned(), equal, value: unescape(value).ok()? })
    };
    parts.map(term).collect()
}

/// The terms between the commas; escapes are still in them.
pub fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (index, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

/// Field, operator and value, split at the first operator.
pub fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let at = term.char_indices().map(|(at, _)| at).find(|at| {
        let rest = &term[*at..];
        rest.starts_with("!=") || rest.starts_with('=')
    })?;
    let (field, rest) = term.split_at(at);
    let (equal, value) = match rest.strip_prefix("!=") {
        Some(value) => (false, value),
        None => (true, rest.strip_prefix("==").or(rest.strip_prefix('='))?),
    };
    Some((field, equal, value))
}

/// The value of a term without its escapes.
///
/// # Errors
/// An escape of anything but `\\`, `,` and `=`, or one of these without, in Kubernetes' words.
pub fn unescape(text: &str) -> Result<String, String> {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                other => {
                    let sequence: String = std::iter::once('\\').chain(other).collect();
                    return Err(format!("invalid field selector: invalid escape sequence: {sequence}"));
                }
            },
            ',' | '=' => {
                let number = u32::from(character);
                return Err(format!("invalid field selector: unescaped character in value: {number}"));
            }
            _ => plain.push(character),
        }
    }
    Ok(plain)
}
