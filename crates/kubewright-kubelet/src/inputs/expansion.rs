//! References to variables in texts: `$(NAME)` (`third_party/forked/golang/expansion`).

/// Replaces each `$(NAME)` by what `value` gives for it, and leaves it as it is where that is nothing. `$$` is a `$`; a
/// reference that is not closed is no reference.
pub(super) fn expand(text: &str, mut value: impl FnMut(&str) -> Option<String>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        expanded.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            expanded.push('$');
            rest = after;
        } else if let Some((name, after)) = rest.strip_prefix('(').and_then(|opened| opened.split_once(')')) {
            match value(name) {
                Some(value) => expanded.push_str(&value),
                None => expanded.extend(["$(", name, ")"]),
            }
            rest = after;
        } else {
            expanded.push('$');
        }
    }
    expanded.push_str(rest);
    expanded
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn with(variables: &[(&str, &str)], text: &str) -> String {
        let variables: BTreeMap<_, _> = variables.iter().copied().collect();
        expand(text, |name| variables.get(name).map(|value| (*value).to_owned()))
    }

    /// The table of `expand_test.go`: what Kubernetes promises of its own function.
    #[test]
    fn it_expands_as_kubernetes_does() {
        let variables =
            [("VAR_A", "A"), ("VAR_B", "B"), ("VAR_C", "C"), ("VAR_REF", "$(VAR_A)"), ("VAR_EMPTY", "")];
        for (text, expected) in [
            ("$(VAR_A)", "A"),
            ("___$(VAR_B)___", "___B___"),
            ("$(VAR_A)-1", "A-1"),
            ("$(VAR_A)_$(VAR_B)", "A_B"),
            ("$$(VAR_B)_$(VAR_A)", "$(VAR_B)_A"),
            ("$$(VAR_A)_$$(VAR_B)", "$(VAR_A)_$(VAR_B)"),
            ("f000-$$VAR_A", "f000-$VAR_A"),
            ("foo\\$(VAR_C)bar", "foo\\Cbar"),
            ("foo\\\\$$$(VAR_C)bar", "foo\\\\$Cbar"),
            ("$(VAR_REF)", "$(VAR_A)"),
            ("%%$(VAR_REF)--$(VAR_REF)%%", "%%$(VAR_A)--$(VAR_A)%%"),
            ("foo$(VAR_EMPTY)bar", "foobar"),
            ("foo$(VAR_Awhoops!", "foo$(VAR_Awhoops!"),
            ("f00__(VAR_A)__", "f00__(VAR_A)__"),
            ("$?_boo_$!", "$?_boo_$!"),
            ("$VAR_A", "$VAR_A"),
            ("$(VAR_DNE)", "$(VAR_DNE)"),
            ("$$$$$$(BIG_MONEY)", "$$$(BIG_MONEY)"),
            ("$$$$$$(VAR_A)", "$$$(VAR_A)"),
            ("$$$$$$$(GOOD_ODDS)", "$$$$(GOOD_ODDS)"),
            ("$$$$$$$(VAR_A)", "$$$A"),
            ("$VAR_A)", "$VAR_A)"),
            ("${VAR_A}", "${VAR_A}"),
            ("$(VAR_B)_______$(A", "B_______$(A"),
            ("$(VAR_C)_______$(", "C_______$("),
            ("$(VAR_A)foobarzab$", "Afoobarzab$"),
            ("foo-\\$(VAR_A", "foo-\\$(VAR_A"),
            ("--$($($($($--", "--$($($($($--"),
            ("$($($($($--foo$(", "$($($($($--foo$("),
            ("foo0--$($($($(", "foo0--$($($($("),
            ("$(foo$$var)", "$(foo$$var)"),
        ] {
            assert_eq!(with(&variables, text), expected, "{text}");
        }
    }

    /// A second way to say the same: byte by byte, as a grammar would.
    fn model(text: &[char], out: &mut String) {
        match text {
            [] => {}
            ['$', '$', rest @ ..] => {
                out.push('$');
                model(rest, out);
            }
            ['$', '(', rest @ ..] if rest.contains(&')') => {
                let end = rest.iter().position(|letter| *letter == ')').unwrap_or_default();
                let name: String = rest[..end].iter().collect();
                match name.as_str() {
                    "A" => out.push_str("value"),
                    "AB" => out.push_str("$(A)"),
                    "" => out.push_str("nameless"),
                    _ => out.push_str(&format!("$({name})")),
                }
                model(&rest[end + 1..], out);
            }
            [letter, rest @ ..] => {
                out.push(*letter);
                model(rest, out);
            }
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_the_grammar(text in "[$()ABü]{0,24}") {
            let mut expected = String::new();
            model(&text.chars().collect::<Vec<_>>(), &mut expected);
            prop_assert_eq!(with(&[("A", "value"), ("AB", "$(A)"), ("", "nameless")], &text), expected);
        }

        #[test]
        fn a_text_with_doubled_dollars_means_itself(text in "\\PC{0,40}") {
            prop_assert_eq!(with(&[("A", "x")], &text.replace('$', "$$")), text);
        }
    }
}
