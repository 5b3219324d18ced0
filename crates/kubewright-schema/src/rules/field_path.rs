//! Paths such as `.spec['a'].b`, which name a field of a schema
//! (`apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go`, `ValidFieldPath`).

use std::sync::LazyLock;

use super::super::node::{Additional, Node};

/// What is said of fields of which only that there may be some, or none, is said.
static NOTHING: LazyLock<Node> = LazyLock::new(Node::default);

/// What a path names.
pub struct Found<'a> {
    /// The path as messages write it: `spec.a[key]`.
    pub path: String,
    /// The schema that it ends at.
    pub node: &'a Node,
}

/// Follows a path. `brackets`: `['...']` may name a field, too.
pub fn follow<'a>(text: &str, root: &'a Node, brackets: bool) -> Result<Found<'a>, String> {
    const END: &str = "unexpected end of JSON path";
    let mut found = Found { path: String::new(), node: root };
    let mut tokens = Tokens(text);
    while let Some(token) = tokens.next() {
        match token {
            "[" if !brackets => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let quoted = tokens.next().ok_or(END)?;
                let inner = quoted.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
                let inner = inner.ok_or_else(|| format!("expected single quoted string but got {quoted}"))?;
                let name = unescaped(inner).map_err(|why| format!("invalid string literal: {why}"))?;
                found.step(&name)?;
                match tokens.next().ok_or(END)? {
                    "]" => {}
                    other => return Err(format!("expected ] but got {other}")),
                }
            }
            "." => {
                let name = tokens.next().ok_or(END)?;
                found.step(name)?;
            }
            other => return Err(format!("expected [ or . but got: {other}")),
        }
    }
    Ok(found)
}

impl Found<'_> {
    fn step(&mut self, name: &str) -> Result<(), String> {
        const NONE: &str = "does not refer to a valid field";
        if !self.node.properties.is_empty() {
            if !self.path.is_empty() {
                self.path.push('.');
            }
            self.path.push_str(name);
            self.node = self.node.properties.get(name).ok_or(NONE)?;
        } else if let Additional::Of(values) = &self.node.additional {
            self.path.push_str(&format!("[{name}]"));
            self.node = values;
        } else if let Additional::Any | Additional::Never = &self.node.additional {
            // Whatever they may be, they are said to be there or not.
            self.path.push_str(&format!("[{name}]"));
            self.node = &NOTHING;
        } else {
            return Err(NONE.to_owned());
        }
        Ok(())
    }
}

/// Delimiters (`.`, `[`, `]`), texts in single quotes, and what stands between them.
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let first = self.0.chars().next()?;
        let length = match first {
            '.' | '[' | ']' => 1,
            '\'' => {
                let bytes = self.0.as_bytes();
                (1..bytes.len())
                    .find(|at| bytes[*at] == b'\'' && bytes[at - 1] != b'\\')
                    .map_or(bytes.len(), |at| at + 1)
            }
            _ => self.0.find(['.', '[', ']']).unwrap_or(self.0.len()),
        };
        let (token, rest) = self.0.split_at(length);
        self.0 = rest;
        Some(token)
    }
}

fn unescaped(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(one) = rest.next() {
        if one != '\\' {
            out.push(one);
            continue;
        }
        out.push(match rest.next() {
            Some('a') => '\x07',
            Some('b') => '\x08',
            Some('f') => '\x0c',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\x0b',
            Some(plain @ ('\'' | '\\')) => plain,
            Some(other) => return Err(format!("invalid escape char \\{other}")),
            None => '\\',
        });
    }
    Ok(out)
}
