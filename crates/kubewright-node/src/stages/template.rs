//! The part of Go's `text/template` that kwok's own stages use: fields, variables, `if`, `range`, `with`, pipes and
//! functions, read into a tree. [`super::render`] makes text of it.

/// A template.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Template(pub(super) Vec<Node>);

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Text(String),
    /// Writes a value.
    Write(Pipe),
    /// `$name := pipe`
    Declare(String, Pipe),
    /// `$name = pipe`
    Assign(String, Pipe),
    If {
        branches: Vec<(Pipe, Vec<Node>)>,
        otherwise: Vec<Node>,
    },
    With {
        value: Pipe,
        body: Vec<Node>,
        otherwise: Vec<Node>,
    },
    Range {
        index: Option<String>,
        item: Option<String>,
        over: Pipe,
        body: Vec<Node>,
        otherwise: Vec<Node>,
    },
}

/// Commands, each of which has the result of the one before as its last argument.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pipe(pub(super) Vec<Command>);

/// An operand, or a function with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Command {
    Value(Operand),
    Call(String, Vec<Operand>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    /// `.a.b`, or `.` without fields.
    Dot(Vec<String>),
    /// `$x.a.b`; `$` has no name.
    Variable(String, Vec<String>),
    Literal(serde_json::Value),
    Pipe(Box<Pipe>),
    /// A function without arguments.
    Function(String),
}

/// The largest template that is read, and how deep it may nest.
const LARGEST: usize = 256 * 1024;
const DEEPEST: usize = 64;

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// What is wrong with it, or not known here.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > LARGEST {
            return Err("the template is too large".into());
        }
        let mut parser = Parser { pieces: pieces(text.trim())?.into_iter(), depth: 0 };
        let (nodes, end) = parser.nodes()?;
        match end {
            None => Ok(Self(nodes)),
            Some(action) => Err(format!("{action:?} without a beginning")),
        }
    }
}

enum Piece {
    Text(String),
    Action(String),
}

/// Text and actions in their order; dashes at braces eat the white space next to them.
fn pieces(mut text: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut eats = false;
    while let Some(start) = text.find("{{") {
        let mut before = &text[..start];
        let inner = &text[start + 2..];
        let end = end_of_action(inner).ok_or("an action has no end")?;
        let (mut action, after) = (&inner[..end], &inner[end + 2..]);
        if eats {
            before = before.trim_start();
        }
        if let Some(rest) = action.strip_prefix('-').filter(|rest| rest.starts_with(char::is_whitespace)) {
            before = before.trim_end();
            action = rest;
        }
        eats = action.ends_with('-') && action[..action.len() - 1].ends_with(char::is_whitespace);
        if eats {
            action = &action[..action.len() - 1];
        }
        pieces.push(Piece::Text(before.to_owned()));
        let action = action.trim();
        if !(action.starts_with("/*") && action.ends_with("*/")) {
            pieces.push(Piece::Action(action.to_owned()));
        }
        text = after;
    }
    pieces.push(Piece::Text(if eats { text.trim_start() } else { text }.to_owned()));
    Ok(pieces)
}

/// Where the braces close, not in a string.
fn end_of_action(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut quote = None;
    let mut index = 0;
    while index < bytes.len() {
        match (quote, bytes[index]) {
            (Some(b'"'), b'\\') => index += 1,
            (Some(open), byte) if open == byte => quote = None,
            (None, byte @ (b'"' | b'`')) => quote = Some(byte),
            (None, b'}') if bytes.get(index + 1) == Some(&b'}') => return Some(index),
            _ => {}
        }
        index += 1;
    }
    None
}

struct Parser {
    pieces: std::vec::IntoIter<Piece>,
    depth: usize,
}

impl Parser {
    /// Reads up to an `else` or `end`, which is given too.
    fn nodes(&mut self) -> Result<(Vec<Node>, Option<String>), String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("the template nests too deep".into());
        }
        let mut nodes = Vec::new();
        while let Some(piece) = self.pieces.next() {
            let action = match piece {
                Piece::Text(text) => {
                    nodes.push(Node::Text(text));
                    continue;
                }
                Piece::Action(action) => action,
            };
            let (word, rest) = action.split_once(char::is_whitespace).unwrap_or((&action, ""));
            match word {
                "end" | "else" => {
                    self.depth -= 1;
                    return Ok((nodes, Some(action)));
                }
                "if" => nodes.push(self.branches(rest)?),
                "with" => nodes.push(self.with(rest)?),
                "range" => nodes.push(self.range(rest)?),
                "define" | "template" | "block" | "break" | "continue" => {
                    return Err(format!("{word} is not supported"));
                }
                _ => nodes.push(simple(&action)?),
            }
        }
        self.depth -= 1;
        Ok((nodes, None))
    }

    fn branches(&mut self, condition: &str) -> Result<Node, String> {
        let mut branches = Vec::new();
        let mut condition = pipe(condition)?;
        loop {
            let (body, end) = self.nodes()?;
            branches.push((condition, body));
            let end = end.ok_or("an if has no end")?;
            let Some(rest) = end.strip_prefix("else") else {
                return Ok(Node::If { branches, otherwise: Vec::new() });
            };
            match rest.trim().strip_prefix("if") {
                Some(next) => condition = pipe(next)?,
                None => return Ok(Node::If { branches, otherwise: self.last("if")? }),
            }
        }
    }

    fn with(&mut self, value: &str) -> Result<Node, String> {
        let value = pipe(value)?;
        let (body, otherwise) = self.two("with")?;
        Ok(Node::With { value, body, otherwise })
    }

    fn range(&mut self, over: &str) -> Result<Node, String> {
        let (names, over) = match over.split_once(":=") {
            Some((names, over)) => (names.split(',').map(str::trim).collect::<Vec<_>>(), over),
            None => (Vec::new(), over),
        };
        let name = |text: &&str| text.strip_prefix('$').map(str::to_owned).ok_or("a variable begins with $");
        let names = names.iter().map(name).collect::<Result<Vec<_>, _>>()?;
        let (index, item) = match names.as_slice() {
            [] => (None, None),
            [item] => (None, Some(item.clone())),
            [index, item] => (Some(index.clone()), Some(item.clone())),
            _ => return Err("a range has two variables at most".into()),
        };
        let over = pipe(over)?;
        let (body, otherwise) = self.two("range")?;
        Ok(Node::Range { index, item, over, body, otherwise })
    }

    fn two(&mut self, of: &str) -> Result<(Vec<Node>, Vec<Node>), String> {
        let (body, end) = self.nodes()?;
        match end.as_deref() {
            Some("end") => Ok((body, Vec::new())),
            Some("else") => Ok((body, self.last(of)?)),
            Some(other) => Err(format!("{other:?} is not supported")),
            None => Err(format!("a {of} has no end")),
        }
    }

    fn last(&mut self, of: &str) -> Result<Vec<Node>, String> {
        match self.nodes()? {
            (nodes, Some(end)) if end == "end" => Ok(nodes),
            _ => Err(format!("a {of} has no end")),
        }
    }
}

/// A declaration, an assignment, or a value that is written.
fn simple(action: &str) -> Result<Node, String> {
    if action.starts_with('$') {
        let end =
            action.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).unwrap_or(action.len());
        let (name, rest) = (action[1..end].to_owned(), action[end..].trim_start());
        if let Some(value) = rest.strip_prefix(":=") {
            return Ok(Node::Declare(name, pipe(value)?));
        }
        if let Some(value) = rest.strip_prefix('=') {
            return Ok(Node::Assign(name, pipe(value)?));
        }
    }
    Ok(Node::Write(pipe(action)?))
}

fn pipe(text: &str) -> Result<Pipe, String> {
    let tokens = super::tokens::read(text)?;
    super::tokens::pipe(&tokens)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn dashes_eat_white_space() {
        let Template(nodes) = Template::parse("a {{- 1 -}} b{{/* c */}}").expect("a template");
        assert_eq!(nodes[0], Node::Text("a".into()));
        assert_eq!(nodes[2], Node::Text("b".into()));
    }

    #[test]
    fn what_has_no_end_or_is_not_known_is_refused() {
        for text in [
            "{{",
            "{{ if .a }}",
            "{{ end }}",
            "{{ define \"x\" }}{{ end }}",
            "{{ range $a }}",
            "{{ ( .a }}",
            "{{ \"a }}",
        ] {
            assert!(Template::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(\\{\\{ ?-?|-? ?\\}\\}|if|else|end|range|with|\\$x|:=|=|\\.a|\\(|\\)|\\||\"| |ä|1){0,30}") {
            let _ = Template::parse(&text);
        }
    }
}
