//! The words of an action, and the pipes that they make.

use serde_json::{Number, Value};

use super::template::{Command, Operand, Pipe};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A name, a path, a variable or a number.
    Word(String),
    Text(String),
    Open,
    Close,
    Bar,
}

/// The words of an action.
///
/// # Errors
/// A string that does not end, or a character that is not known.
pub(super) fn read(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        match c {
            _ if c.is_whitespace() => rest = &rest[c.len_utf8()..],
            '(' | ')' | '|' => {
                tokens.push(match c {
                    '(' => Token::Open,
                    ')' => Token::Close,
                    _ => Token::Bar,
                });
                rest = &rest[1..];
            }
            '`' => {
                let end = rest[1..].find('`').ok_or("a string has no end")?;
                tokens.push(Token::Text(rest[1..=end].to_owned()));
                rest = &rest[end + 2..];
            }
            '"' => {
                let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<String>();
                let text = stream.next().and_then(Result::ok).ok_or("a string has no end")?;
                rest = &rest[stream.byte_offset()..];
                tokens.push(Token::Text(text));
            }
            _ if c.is_alphanumeric() || matches!(c, '.' | '$' | '_' | '-' | '+') => {
                let is_part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '$' | '_' | '-' | '+');
                let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                tokens.push(Token::Word(rest[..end].to_owned()));
                rest = &rest[end..];
            }
            _ => return Err(format!("not supported: {c:?} in {text:?}")),
        }
    }
    Ok(tokens)
}

/// The pipe that these words make.
///
/// # Errors
/// What does not belong there.
pub(super) fn pipe(tokens: &[Token]) -> Result<Pipe, String> {
    let mut reader = Reader { tokens, depth: 0 };
    let pipe = reader.pipe()?;
    if reader.tokens.is_empty() { Ok(pipe) } else { Err("a parenthesis has no beginning".into()) }
}

const DEEPEST: usize = 64;

struct Reader<'a> {
    tokens: &'a [Token],
    depth: usize,
}

impl Reader<'_> {
    fn pipe(&mut self) -> Result<Pipe, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("too many parentheses".into());
        }
        let mut commands = vec![self.command()?];
        while self.tokens.first() == Some(&Token::Bar) {
            self.tokens = &self.tokens[1..];
            commands.push(self.command()?);
        }
        self.depth -= 1;
        Ok(Pipe(commands))
    }

    fn command(&mut self) -> Result<Command, String> {
        let mut operands = Vec::new();
        while let Some(token) = self.tokens.first() {
            let operand = match token {
                Token::Bar | Token::Close => break,
                Token::Open => {
                    self.tokens = &self.tokens[1..];
                    let inner = self.pipe()?;
                    if self.tokens.first() != Some(&Token::Close) {
                        return Err("a parenthesis has no end".into());
                    }
                    Operand::Pipe(Box::new(inner))
                }
                Token::Text(text) => Operand::Literal(Value::String(text.clone())),
                Token::Word(word) => operand(word)?,
            };
            self.tokens = &self.tokens[1..];
            operands.push(operand);
        }
        let mut operands = operands.into_iter();
        match operands.next() {
            None => Err("an action says nothing".into()),
            Some(Operand::Function(name)) => Ok(Command::Call(name, operands.collect())),
            Some(value) if operands.len() == 0 => Ok(Command::Value(value)),
            Some(_) => Err("only a function has arguments".into()),
        }
    }
}

fn operand(word: &str) -> Result<Operand, String> {
    let fields = |path: &str| -> Result<Vec<String>, String> {
        let names: Vec<String> = path.split('.').skip(1).map(str::to_owned).collect();
        match names.as_slice() {
            [only] if only.is_empty() => Ok(Vec::new()),
            all if all.iter().any(String::is_empty) => Err(format!("{word:?} is no path")),
            _ => Ok(names),
        }
    };
    if let Some(variable) = word.strip_prefix('$') {
        let end = variable.find('.').unwrap_or(variable.len());
        return Ok(Operand::Variable(variable[..end].to_owned(), fields(&variable[end..])?));
    }
    if word.starts_with('.') {
        return Ok(Operand::Dot(fields(word)?));
    }
    match word {
        "true" => return Ok(Operand::Literal(Value::Bool(true))),
        "false" => return Ok(Operand::Literal(Value::Bool(false))),
        "nil" => return Ok(Operand::Literal(Value::Null)),
        _ => {}
    }
    if word.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+')) {
        let number: Result<Number, _> = serde_json::from_str(word.trim_start_matches('+'));
        return number
            .map(|number| Operand::Literal(Value::Number(number)))
            .map_err(|_| format!("{word:?} is no number"));
    }
    Ok(Operand::Function(word.to_owned()))
}
