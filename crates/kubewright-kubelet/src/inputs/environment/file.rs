//! Files of variables that a container wrote for another (`fileKeyRef`; `pkg/kubelet/util/env`): `NAME='value'`, values in
//! single quotes and over several lines where they want, comments after `#`.

/// The value of `key` in the text of such a file: empty where there is none. What stands behind the key is not read.
///
/// # Errors
/// A line before it makes no sense; the message names it.
pub(in super::super) fn value_of(key: &str, text: &str) -> Result<String, String> {
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let line = line.trim_start_matches(BLANK);
        let wrong = |what: &str| format!("invalid environment variable format at line {}: {what}", index + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = line.split_once('=').ok_or_else(|| wrong("missing '='"))?;
        if name.trim_end_matches(BLANK).is_empty() {
            return Err(wrong("empty variable name"));
        }
        if name.ends_with(BLANK) {
            return Err(wrong("whitespace before '=' is not allowed"));
        }
        if value.starts_with(BLANK) {
            if name == key {
                return Ok(String::new());
            }
            continue;
        }
        let opened =
            value.strip_prefix('\'').ok_or_else(|| wrong("value must be enclosed in single quotes"))?;
        let value = quoted(opened, index, &mut lines)?;
        if name == key {
            return Ok(value);
        }
    }
    Ok(String::new())
}

const BLANK: [char; 2] = [' ', '\t'];

/// The value up to the closing quote, which may be lines later.
fn quoted<'a>(
    opened: &'a str,
    start: usize,
    lines: &mut impl Iterator<Item = (usize, &'a str)>,
) -> Result<String, String> {
    let (mut value, mut rest, mut index) = (String::new(), opened, start);
    loop {
        if let Some((end, after)) = rest.split_once('\'') {
            let after = after.trim_start_matches(BLANK);
            if !after.is_empty() && !after.starts_with('#') {
                let line = index + 1;
                return Err(format!(
                    "invalid environment variable format at line {line}: unexpected content after closing quote"
                ));
            }
            value.push_str(end);
            return Ok(value);
        }
        value.extend([rest, "\n"]);
        (index, rest) = lines.next().ok_or_else(|| {
            let line = start + 1;
            format!("invalid environment variable format starting at line {line}: unclosed single quote")
        })?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_as_a_shell_would_set_them() {
        let text = "  A='1'\n\n\t# no\nB='two # words' # yes\nC= 'nothing'\nD='over\n\nlines'\nB='again'\n";
        assert_eq!(value_of("A", text).as_deref(), Ok("1"));
        assert_eq!(value_of("B", text).as_deref(), Ok("two # words"), "the first counts");
        assert_eq!(value_of("C", text).as_deref(), Ok(""));
        assert_eq!(value_of("D", text).as_deref(), Ok("over\n\nlines"));
        assert_eq!(value_of("E", text).as_deref(), Ok(""));
    }

    #[test]
    fn what_makes_no_sense_is_an_error_up_to_the_key() {
        let format = "invalid environment variable format";
        for (text, error) in [
            ("A", format!("{format} at line 1: missing '='")),
            ("\n='x'", format!("{format} at line 2: empty variable name")),
            ("A ='x'", format!("{format} at line 1: whitespace before '=' is not allowed")),
            ("A=x", format!("{format} at line 1: value must be enclosed in single quotes")),
            ("A='x' y", format!("{format} at line 1: unexpected content after closing quote")),
            ("\nA='x\ny", format!("{format} starting at line 2: unclosed single quote")),
        ] {
            assert_eq!(value_of("A", text), Err(error), "{text:?}");
        }
        assert_eq!(value_of("A", "A='1'\nnonsense").as_deref(), Ok("1"));
    }
}
