//! How a path is read (`k8s.io/client-go/util/jsonpath/parser.go`).

use serde_json::{Number, Value};

use super::{Filter, Items, Operator, Path, Step, To};

/// How deep filters and unions may stand in each other.
const MAX_NESTED: usize = 8;

/// # Errors
/// What is wrong with the path.
pub(super) fn parse(text: &str) -> Result<Path, String> {
    Parser { rest: text, steps: Vec::new(), depth: 0 }.path()
}

struct Parser<'t> {
    rest: &'t str,
    steps: Vec<Step>,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn path(mut self) -> Result<Path, String> {
        while let Some(first) = self.rest.chars().next() {
            let after = &self.rest[first.len_utf8()..];
            if let Some(filter) = self.rest.strip_prefix("[?(") {
                self.filter(filter)?;
            } else if let Some(below) = self.rest.strip_prefix("..") {
                self.recursive(below)?;
            } else if matches!(first, ' ' | '@' | '$') {
                self.rest = after;
            } else if first == '[' {
                self.array(after)?;
            } else if matches!(first, '"' | '\'') {
                self.quote(first, after)?;
            } else if first == '.' {
                self.field(after);
            } else if matches!(first, '+' | '-') || first.is_numeric() {
                self.number()?;
            } else if first == '_' || first.is_alphabetic() {
                self.word();
            } else if first == '}' && self.depth == 0 {
                // What stands after the end of a path is text, or another path of which nobody asks what it finds.
                break;
            } else if matches!(first, '\r' | '\n' | '}') {
                return Err("unclosed action".to_owned());
            } else {
                return Err(format!("unrecognized character in action: {first:?}"));
            }
        }
        Ok(Path(self.steps))
    }

    fn nested(&self, text: &str) -> Result<Path, String> {
        if self.depth >= MAX_NESTED {
            return Err("the path is nested too deeply".to_owned());
        }
        Parser { rest: text, steps: Vec::new(), depth: self.depth + 1 }.path()
    }

    /// A field, up to what ends a name. A backslash takes the next character as it is.
    fn field(&mut self, text: &'t str) {
        let mut name = String::new();
        let mut characters = text.char_indices();
        let mut end = text.len();
        while let Some((at, character)) = characters.next() {
            if character == '\\' {
                name.extend(characters.next().map(|(_, escaped)| escaped).filter(|escaped| *escaped != '\\'));
            } else if ends_a_name(character) {
                end = at;
                break;
            } else {
                name.push(character);
            }
        }
        let is_all = &text[..end] == "*";
        self.steps.push(if is_all { Step::All } else { Step::Field(name) });
        self.rest = &text[end..];
    }

    fn recursive(&mut self, below: &'t str) -> Result<(), String> {
        if self.steps.last() == Some(&Step::Recursive) {
            return Err("invalid multiple recursive descent".to_owned());
        }
        self.steps.push(Step::Recursive);
        self.rest = below;
        if below.starts_with(|first: char| first == '_' || first.is_alphabetic() || first.is_numeric()) {
            self.field(below);
        }
        Ok(())
    }

    fn word(&mut self) {
        let end = self.rest.find(ends_a_name).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        self.steps.push(match word {
            "true" => Step::Literal(true.into()),
            "false" => Step::Literal(false.into()),
            _ => Step::Unknown,
        });
    }

    fn number(&mut self) -> Result<(), String> {
        let digits = self.rest.strip_prefix(['+', '-']).unwrap_or(self.rest);
        let sign = self.rest.len() - digits.len();
        let end = digits.find(|one: char| one != '.' && !one.is_numeric()).unwrap_or(digits.len());
        let (text, rest) = self.rest.split_at(sign + end);
        self.rest = rest;
        let whole = text.parse::<i64>().ok().map(Value::from);
        let float = || text.parse::<f64>().ok().and_then(Number::from_f64).map(Value::Number);
        let number = whole.or_else(float).ok_or_else(|| format!("cannot parse number {text}"))?;
        self.steps.push(Step::Literal(number));
        Ok(())
    }

    fn quote(&mut self, quote: char, text: &'t str) -> Result<(), String> {
        let mut before = quote;
        let end = text.find(|one| {
            let ends = one == quote && before != '\\';
            before = one;
            ends
        });
        let end = end.filter(|end| !text[..*end].contains('\n')).ok_or("unterminated quoted string")?;
        self.steps.push(Step::Text(unquoted(&text[..end])));
        self.rest = &text[end + 1..];
        Ok(())
    }

    /// What stands in brackets: several of these, a name, or indices.
    fn array(&mut self, text: &'t str) -> Result<(), String> {
        let unterminated = || "unterminated array".to_owned();
        let (inside, rest) = text.split_once(']').ok_or_else(unterminated)?;
        if inside.contains('\n') {
            return Err(unterminated());
        }
        self.rest = rest;
        let inside = if inside == "*" { ":" } else { inside };
        if inside.contains(',') {
            let parts = inside.split(',').map(|part| self.nested(&format!("[{}]", part.trim_matches(' '))));
            let union = parts.collect::<Result<_, _>>()?;
            self.steps.push(Step::Union(union));
            return Ok(());
        }
        let quoted = inside.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
        if let Some(name) = quoted.filter(|name| !name.contains('\'')) {
            let Path(steps) = self.nested(&format!(".{name}"))?;
            self.steps.extend(steps);
            return Ok(());
        }
        self.steps.push(Step::Items(items(inside)?));
        Ok(())
    }

    fn filter(&mut self, text: &'t str) -> Result<(), String> {
        let (condition, rest) = split_filter(text)?;
        self.rest = rest;
        let is_operator = |one: char| "!<>=".contains(one);
        let compared = condition.find(is_operator).filter(|start| *start > 0).and_then(|start| {
            let (left, rest) = condition.split_at(start);
            let end = rest.find(|one| !is_operator(one)).unwrap_or(rest.len());
            // Something must be left to compare with.
            let end = if end == rest.len() { end - 1 } else { end };
            (end > 0).then(|| (left, rest.split_at(end)))
        });
        let Some((left, (operator, right))) = compared else {
            let left = self.nested(condition)?;
            self.steps.push(Step::Filter(Filter { left, compare: None }));
            return Ok(());
        };
        let operator = match operator {
            "==" => Operator::Equal,
            "!=" => Operator::NotEqual,
            "<" => Operator::Less,
            "<=" => Operator::LessOrEqual,
            ">" => Operator::Greater,
            ">=" => Operator::GreaterOrEqual,
            _ => Operator::Unknown,
        };
        let compare = Some((operator, self.nested(right)?));
        self.steps.push(Step::Filter(Filter { left: self.nested(left)?, compare }));
        Ok(())
    }
}

fn ends_a_name(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

/// `from:to:step`, each of which may be absent; one index alone is one item.
fn items(text: &str) -> Result<Items, String> {
    let wrong = || format!("invalid array index {text}");
    let parts: Vec<&str> = text.split(':').collect();
    let is_index =
        |part: &&str| part.strip_prefix('-').unwrap_or(part).bytes().all(|one| one.is_ascii_digit());
    if parts.len() > 3 || !parts.iter().all(is_index) {
        return Err(wrong());
    }
    let index = |at: usize| match parts.get(at).copied().unwrap_or_default() {
        "" => Ok(None),
        digits => digits.parse().map(Some).map_err(|_| format!("array index {digits} is not a number")),
    };
    let to = match index(1)? {
        Some(index) => To::Index(index),
        None if parts.len() > 1 => To::End,
        None => To::Next,
    };
    Ok(Items { from: index(0)?, to, step: index(2)? })
}

/// A filter's condition, up to the `)]` that is not in its first quotes, and what comes after it.
fn split_filter(text: &str) -> Result<(&str, &str), String> {
    let (mut quote, mut ends, mut before) = (None, false, '(');
    for (at, character) in text.char_indices() {
        match character {
            '\n' => break,
            '"' | '\'' if quote.is_none() => quote = Some(character),
            '"' | '\'' if before != '\\' && quote == Some(character) => ends = true,
            ')' if quote.is_some() == ends => {
                let after = text[at + 1..].strip_prefix(']').ok_or("unclosed array expect ]")?;
                return Ok((&text[..at], after));
            }
            _ => {}
        }
        before = character;
    }
    Err("unterminated filter".to_owned())
}

fn unquoted(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        plain.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    plain
}
