//! The tokens of an expression (the lexer rules of cel-go's CEL.g4), and ANTLR's way of going on after what is none.

use std::sync::Arc;

use super::ast::Offset;
use super::grammar::Kind;
use crate::error::Issue;

/// A token: its kind and where it is, in code points.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) start: Offset,
    pub(crate) end: Offset,
}

/// The text of an expression by code points, with its lines.
pub(crate) struct Source {
    pub(crate) text: Arc<str>,
    characters: Vec<char>,
    /// The offsets at which lines begin.
    lines: Vec<Offset>,
}

impl Source {
    pub(crate) fn new(text: &str) -> Self {
        let characters: Vec<char> = text.chars().collect();
        let ends = characters.iter().enumerate().filter(|(_, character)| **character == '\n');
        let lines = std::iter::once(0).chain(ends.map(|(index, _)| offset(index + 1))).collect();
        Self { text: text.into(), characters, lines }
    }

    pub(crate) fn len(&self) -> usize {
        self.characters.len()
    }

    /// An issue at an offset.
    pub(crate) fn issue(&self, at: Offset, message: impl Into<String>) -> Issue {
        if self.characters.is_empty() {
            return Issue { line: 1, column: -1, message: message.into() };
        }
        let line = self.lines.partition_point(|start| *start <= at);
        let column = at - self.lines.get(line.wrapping_sub(1)).copied().unwrap_or(0);
        Issue { line: i64::try_from(line).unwrap_or(-1), column: i64::from(column), message: message.into() }
    }

    /// The text from `start` up to `end`.
    pub(crate) fn slice(&self, start: Offset, end: Offset) -> String {
        let end = (end as usize).min(self.characters.len());
        self.characters.get(start as usize..end).unwrap_or_default().iter().collect()
    }

    fn at(&self, index: usize) -> Option<char> {
        self.characters.get(index).copied()
    }
}

fn offset(index: usize) -> Offset {
    Offset::try_from(index).unwrap_or(Offset::MAX)
}

/// What the lexer found at a place.
enum Found {
    /// A token or a gap, up to here.
    Until(usize, Option<Kind>),
    /// Nothing; the character at this index is the one that did not fit.
    Nothing(usize),
}

/// What is no token, and where.
pub(crate) type Unknown = (std::ops::Range<Offset>, Issue);

/// Splits an expression into tokens, of which the last is the end of the text; and what is none.
pub(crate) fn tokens(source: &Source) -> (Vec<Token>, Vec<Unknown>) {
    let mut tokens = Vec::new();
    let mut unknown = Vec::new();
    let mut index = 0;
    while let Some(first) = source.at(index) {
        match next(source, index, first) {
            Found::Until(end, kind) => {
                tokens.extend(kind.map(|kind| Token { kind, start: offset(index), end: offset(end) }));
                index = end;
            }
            Found::Nothing(failed) => {
                let text = source.slice(offset(index), offset(failed + 1));
                let message = format!("Syntax error: token recognition error at: '{text}'");
                unknown.push((
                    offset(index)..offset((failed + 1).min(source.len())),
                    source.issue(offset(index), message),
                ));
                index = failed + 1;
            }
        }
    }
    let end = offset(source.len());
    tokens.push(Token { kind: Kind::Eof, start: end, end });
    (tokens, unknown)
}

/// White space as error messages show it.
pub(crate) fn escape_white_space(text: &str) -> String {
    text.replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
}

fn next(source: &Source, index: usize, first: char) -> Found {
    let second = source.at(index + 1);
    if let (Some((kind, length)), false) =
        (operator(first, second), first == '.' && second.is_some_and(is_digit))
    {
        return Found::Until(index + length, Some(kind));
    }
    match first {
        '\t' | ' ' | '\r' | '\n' | '\u{c}' => Found::Until(index + 1, None),
        '/' => match second {
            Some('/') => Found::Until(line_end(source, index), None),
            _ => Found::Until(index + 1, Some(Kind::Slash)),
        },
        '=' | '&' | '|' => Found::Nothing(index + 1),
        '0'..='9' | '.' => number(source, index),
        '"' | '\'' => match string(source, index, false) {
            Ok(end) => Found::Until(end, Some(Kind::String)),
            Err(failed) => Found::Nothing(failed),
        },
        '`' => escaped_identifier(source, index),
        'a'..='z' | 'A'..='Z' | '_' => word(source, index),
        _ => Found::Nothing(index),
    }
}

fn operator(first: char, second: Option<char>) -> Option<(Kind, usize)> {
    Some(match (first, second) {
        ('=', Some('=')) => (Kind::Equals, 2),
        ('!', Some('=')) => (Kind::NotEquals, 2),
        ('<', Some('=')) => (Kind::LessEquals, 2),
        ('>', Some('=')) => (Kind::GreaterEquals, 2),
        ('&', Some('&')) => (Kind::And, 2),
        ('|', Some('|')) => (Kind::Or, 2),
        ('<', _) => (Kind::Less, 1),
        ('>', _) => (Kind::Greater, 1),
        ('[', _) => (Kind::LeftBracket, 1),
        (']', _) => (Kind::RightBracket, 1),
        ('{', _) => (Kind::LeftBrace, 1),
        ('}', _) => (Kind::RightBrace, 1),
        ('(', _) => (Kind::LeftParen, 1),
        (')', _) => (Kind::RightParen, 1),
        ('.', _) => (Kind::Dot, 1),
        (',', _) => (Kind::Comma, 1),
        ('-', _) => (Kind::Minus, 1),
        ('!', _) => (Kind::Exclamation, 1),
        ('?', _) => (Kind::Question, 1),
        (':', _) => (Kind::Colon, 1),
        ('+', _) => (Kind::Plus, 1),
        ('*', _) => (Kind::Star, 1),
        ('%', _) => (Kind::Percent, 1),
        _ => return None,
    })
}

fn is_digit(character: char) -> bool {
    character.is_ascii_digit()
}

/// The index behind all characters from `index` on that are of a kind.
fn run(source: &Source, mut index: usize, of_kind: impl Fn(char) -> bool) -> usize {
    while source.at(index).is_some_and(&of_kind) {
        index += 1;
    }
    index
}

fn line_end(source: &Source, index: usize) -> usize {
    run(source, index, |character| character != '\n')
}

fn number(source: &Source, start: usize) -> Found {
    let is_hex = |character: char| character.is_ascii_hexdigit();
    if source.at(start) == Some('0')
        && source.at(start + 1) == Some('x')
        && source.at(start + 2).is_some_and(is_hex)
    {
        return whole(source, run(source, start + 2, is_hex));
    }
    let digits = run(source, start, is_digit);
    let mut end = digits;
    if source.at(end) == Some('.') && source.at(end + 1).is_some_and(is_digit) {
        end = run(source, end + 1, is_digit);
    }
    if let Some('e' | 'E') = source.at(end) {
        let sign = usize::from(matches!(source.at(end + 1), Some('+' | '-')));
        if source.at(end + 1 + sign).is_some_and(is_digit) {
            end = run(source, end + 1 + sign, is_digit);
        }
    }
    if end > digits { Found::Until(end, Some(Kind::Float)) } else { whole(source, digits) }
}

/// The end of a whole number, which an `u` makes unsigned.
fn whole(source: &Source, end: usize) -> Found {
    match source.at(end) {
        Some('u' | 'U') => Found::Until(end + 1, Some(Kind::Uint)),
        _ => Found::Until(end, Some(Kind::Int)),
    }
}

fn escaped_identifier(source: &Source, start: usize) -> Found {
    let inside = |character: char| character.is_ascii_alphanumeric() || "_.-/ ".contains(character);
    let end = run(source, start + 1, inside);
    if end > start + 1 && source.at(end) == Some('`') {
        Found::Until(end + 1, Some(Kind::EscapedIdentifier))
    } else {
        Found::Nothing(end)
    }
}

/// A word, unless it is the prefix of a string.
fn word(source: &Source, start: usize) -> Found {
    let first = source.at(start);
    let second = source.at(start + 1);
    let is_quote = |character| matches!(character, Some('"' | '\''));
    let (quote, raw, bytes) = match first {
        Some('b' | 'B') if matches!(second, Some('r' | 'R')) => (start + 2, true, true),
        Some('b' | 'B') => (start + 1, false, true),
        Some('r' | 'R') => (start + 1, true, false),
        _ => (start, false, false),
    };
    if quote > start
        && is_quote(source.at(quote))
        && let Ok(end) = string(source, quote, raw)
    {
        return Found::Until(end, Some(if bytes { Kind::Bytes } else { Kind::String }));
    }
    let end = run(source, start, |character| character.is_ascii_alphanumeric() || character == '_');
    let kind = match source.slice(offset(start), offset(end)).as_str() {
        "in" => Kind::In,
        "true" => Kind::True,
        "false" => Kind::False,
        "null" => Kind::Null,
        _ => Kind::Identifier,
    };
    Found::Until(end, Some(kind))
}

/// The end of the string that begins with the quote at `start`, or the index of what does not fit.
fn string(source: &Source, start: usize, raw: bool) -> Result<usize, usize> {
    let quote = source.at(start).unwrap_or('"');
    let is_quote = |index: usize| source.at(index) == Some(quote);
    if is_quote(start + 1) && is_quote(start + 2) {
        // Not closed, three quotes are an empty string and the start of another.
        return Ok(long_string(source, start + 3, quote, raw).unwrap_or(start + 2));
    }
    let mut index = start + 1;
    loop {
        match source.at(index) {
            Some(character) if character == quote => return Ok(index + 1),
            None | Some('\n' | '\r') => return Err(index),
            Some('\\') if !raw => index = escape_sequence(source, index)?,
            Some(_) => index += 1,
        }
    }
}

/// The end of a string in three quotes.
fn long_string(source: &Source, mut index: usize, quote: char, raw: bool) -> Option<usize> {
    loop {
        match source.at(index)? {
            '\\' if !raw => index = escape_sequence(source, index).ok()?,
            character if character == quote && (1..3).all(|next| source.at(index + next) == Some(quote)) => {
                return Some(index + 3);
            }
            _ => index += 1,
        }
    }
}

/// The index behind the escape sequence at `index`, or that of what does not fit.
fn escape_sequence(source: &Source, index: usize) -> Result<usize, usize> {
    let digits = |count: usize, fits: fn(char) -> bool| {
        let end = (0..count).find(|digit| !source.at(index + 2 + digit).is_some_and(fits));
        end.map_or(Ok(index + 2 + count), |digit| Err(index + 2 + digit))
    };
    let is_hex = |character: char| character.is_ascii_hexdigit();
    match source.at(index + 1) {
        Some('a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '"' | '\'' | '\\' | '?' | '`') => Ok(index + 2),
        Some('0'..='3') => digits(2, |character| ('0'..='7').contains(&character)),
        Some('x' | 'X') => digits(2, is_hex),
        Some('u') => digits(4, is_hex),
        Some('U') => digits(8, is_hex),
        _ => Err(index + 1),
    }
}
