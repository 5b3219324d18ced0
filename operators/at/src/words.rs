//! A command line taken apart, as a shell does it.

/// The words of `command`: between blanks, with quotes and backslashes as in POSIX's shell (2.2 Quoting). Nothing is
/// expanded: no variables, no patterns, no comments; `;` and `|` are letters.
///
/// # Errors
/// What is missing, for people.
pub fn words(command: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = command.chars();
    while let Some(next) = rest.next() {
        match next {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next() {
                        Some('\'') => break,
                        Some(letter) => word.push(letter),
                        None => return Err("a single quote is not closed".to_owned()),
                    }
                }
            }
            '"' => double_quoted(&mut rest, word.get_or_insert_default())?,
            '\\' => match rest.next() {
                Some('\n') => {}
                Some(letter) => word.get_or_insert_default().push(letter),
                None => return Err("nothing follows the last backslash".to_owned()),
            },
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    Ok(words)
}

/// What stands between double quotes: a backslash is one unless it stands before what it protects.
fn double_quoted(rest: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), String> {
    let unclosed = || "a double quote is not closed".to_owned();
    loop {
        match rest.next().ok_or_else(unclosed)? {
            '"' => return Ok(()),
            '\\' => match rest.next().ok_or_else(unclosed)? {
                '\n' => {}
                letter @ ('"' | '\\' | '$' | '`') => word.push(letter),
                letter => word.extend(['\\', letter]),
            },
            letter => word.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// AT-20: not the five words that splitting at blanks gives.
    #[test]
    fn at_20_quotes_hold_words_together() {
        let read = |command: &str| words(command).expect("words");
        assert_eq!(read("sh -c 'echo  A B'"), ["sh", "-c", "echo  A B"]);
        assert_eq!(read("echo YAY"), ["echo", "YAY"]);
        assert_eq!(
            read("  a\t\"b \\\" \\x\" c\\ d '' e'f'\"g\"\\\nh "),
            ["a", "b \" \\x", "c d", "", "efgh"]
        );
        assert_eq!(read("echo #1 $HOME ; true"), ["echo", "#1", "$HOME", ";", "true"]);
        assert_eq!(read(" "), [""; 0]);
    }

    #[test]
    fn what_is_not_closed_is_told() {
        assert_eq!(words("echo 'a"), Err("a single quote is not closed".to_owned()));
        assert_eq!(words("echo \"a"), Err("a double quote is not closed".to_owned()));
        assert_eq!(words("echo \"a\\"), Err("a double quote is not closed".to_owned()));
        assert_eq!(words("echo a\\"), Err("nothing follows the last backslash".to_owned()));
    }

    proptest! {
        #[test]
        fn any_words_come_back_from_their_quotes(wanted in prop::collection::vec("[ -~\n\té]{0,8}", 0..5)) {
            let quoted: Vec<String> = wanted.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect();
            prop_assert_eq!(words(&quoted.join(" ")), Ok(wanted));
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,60}") {
            let _ = words(&text);
        }
    }
}
