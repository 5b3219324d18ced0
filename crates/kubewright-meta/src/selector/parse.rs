//! The text form of label selectors: its words and its grammar.

use std::collections::BTreeSet;

use super::labels::{Requirement, joined, wrong_key};

/// A piece of the text form. The words `in` and `notin` are operators only where one may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Symbol(&'a str),
    End,
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Self::Word(text) | Self::Symbol(text) => text,
            Self::End => "",
        }
    }
}

/// The requirements that a text asks for.
pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, String> {
    Parser { tokens: tokens(text), position: 0 }.selector()
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let is_symbol = |c: char| "=!(),><".contains(c);
    let is_space = |c: char| " \t\r\n".contains(c);
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while let Some(first) = rest.chars().next() {
        let symbol = ["==", "!="].into_iter().find(|symbol| rest.starts_with(symbol)).map(str::len);
        let length = match symbol {
            Some(length) => length,
            None if is_symbol(first) => 1,
            None => rest.find(|c| is_symbol(c) || is_space(c)).unwrap_or(rest.len()),
        };
        let (piece, after) = rest.split_at(length);
        tokens.push(if is_symbol(first) { Token::Symbol(piece) } else { Token::Word(piece) });
        rest = after.trim_start_matches(is_space);
    }
    tokens
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    position: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.position).copied().unwrap_or(Token::End)
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.position += 1;
        token
    }

    fn selector(mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                Token::End => return Ok(requirements),
                Token::Word(_) | Token::Symbol("!") => {}
                Token::Symbol(other) => {
                    return Err(format!("found '{other}', expected: !, identifier, or 'end of string'"));
                }
            }
            let requirement =
                self.requirement().map_err(|why| format!("unable to parse requirement: {why}"))?;
            requirements.push(requirement);
            match self.next() {
                Token::End => return Ok(requirements),
                Token::Symbol(",") => match self.peek() {
                    Token::Word(_) | Token::Symbol("!") => {}
                    other => return Err(format!("found '{}', expected: identifier after ','", other.text())),
                },
                other => return Err(format!("found '{}', expected: ',' or 'end of string'", other.text())),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let absent = self.peek() == Token::Symbol("!");
        if absent {
            self.next();
        }
        let key = self.word()?;
        let errors = wrong_key("<nil>", key);
        if !errors.is_empty() {
            return Err(joined(&errors));
        }
        if absent {
            return Requirement::new(key, "!", &[]);
        }
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Requirement::new(key, "", &[]);
        }
        match self.next().text() {
            operator @ ("in" | "notin") => {
                let values = self.values()?;
                Requirement::new(key, operator, &values.into_iter().collect::<Vec<_>>())
            }
            operator @ ("=" | "==" | "!=" | ">" | "<") => Requirement::new(key, operator, &[self.value()?]),
            other => Err(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt")),
        }
    }

    fn word(&mut self) -> Result<&'a str, String> {
        match self.next() {
            Token::Word(word) => Ok(word),
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }

    fn value(&mut self) -> Result<&'a str, String> {
        match self.peek() {
            Token::End | Token::Symbol(",") => Ok(""),
            _ => self.word(),
        }
    }

    /// A list in parentheses; nothing between two commas is the empty value.
    fn values(&mut self) -> Result<BTreeSet<&'a str>, String> {
        match self.next() {
            Token::Symbol("(") => {}
            other => return Err(format!("found '{}' expected: '('", other.text())),
        }
        let mut values = BTreeSet::new();
        match self.peek() {
            Token::Word(_) | Token::Symbol("," | ")") => {}
            other => return Err(format!("found '{}', expected: ',', ')' or identifier", other.text())),
        }
        loop {
            match self.peek() {
                Token::Word(value) => {
                    self.next();
                    values.insert(value);
                }
                Token::Symbol("," | ")") => {
                    values.insert("");
                }
                other => return Err(format!("found '{}', expected: ',', or identifier", other.text())),
            }
            match self.next() {
                Token::Symbol(",") => {}
                Token::Symbol(")") => return Ok(values),
                other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
            }
        }
    }
}
