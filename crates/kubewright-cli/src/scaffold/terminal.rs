//! Questions on a terminal.

use std::io::{self, BufRead, IsTerminal, Write};

use kubewright_scaffold::Ask;

/// Whoever sits at the terminal.
pub(super) struct Terminal;

impl Ask for Terminal {
    fn yes(&mut self, question: &str) -> io::Result<Option<bool>> {
        asked(question, |answer| match answer.to_ascii_lowercase().as_str() {
            "y" | "yes" => Some(true),
            "n" | "no" => Some(false),
            _ => None,
        })
    }

    fn line(&mut self, question: &str) -> io::Result<Option<String>> {
        asked(&format!("{question}:"), |answer| (!answer.is_empty()).then(|| answer.to_owned()))
    }
}

/// Asks until there is an answer.
fn asked<T>(question: &str, answer: impl Fn(&str) -> Option<T>) -> io::Result<Option<T>> {
    let (input, mut output) = (io::stdin(), io::stderr());
    if !input.is_terminal() {
        return Ok(None);
    }
    loop {
        write!(output, "{question} ")?;
        output.flush()?;
        let mut line = String::new();
        if input.lock().read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(answer) = answer(line.trim()) {
            return Ok(Some(answer));
        }
    }
}
