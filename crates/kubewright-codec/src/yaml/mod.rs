//! YAML bodies, read as `sigs.k8s.io/yaml` reads them: the first document, YAML 1.1 scalars (`yes` is true), the last of
//! equal keys wins and strict validation hears of it.
//!
//! Memory is bounded: nesting ends at [`LEVELS`], and aliases may not blow a document up.

mod mistake;
mod scalar;

use std::collections::BTreeMap;

use granit_parser::{Event, Marker, Parser, Span, StrInput};
use serde_json::{Map, Value};

use super::json::LEVELS;
use scalar::Scalar;

type Result<T> = std::result::Result<T, String>;

/// The most bytes that aliases may add to a document.
const ALIASED_BYTES: usize = 16 << 20;

/// A decoded YAML text.
#[derive(Debug)]
pub struct Parsed {
    /// The value of its first document, whatever its type.
    pub value: Value,
    /// Such as `line 7: key "k" already set in map`, one for each key that was set before.
    pub repeated: Vec<String>,
}

/// Decodes the first document of a text; one without any is null.
///
/// # Errors
/// What is wrong, in the words of `go.yaml.in/yaml/v2` as far as the scanner tells as much.
pub fn decode(bytes: &[u8]) -> Result<Parsed> {
    let text = std::str::from_utf8(bytes).map_err(|_| "yaml: invalid leading UTF-8 octet".to_owned())?;
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: 255,
        block_nesting_limit: 255,
    };
    let mut composer = Composer {
        text,
        events: Parser::new_from_str_with_options(text, options),
        anchors: BTreeMap::new(),
        repeated: Vec::new(),
        nodes: 0,
        aliased: Cost::default(),
    };
    let value = composer.document()?;
    Ok(Parsed { value, repeated: composer.repeated })
}

/// Makes values of the events of a parser.
struct Composer<'a> {
    text: &'a str,
    events: Parser<'a, StrInput<'a>>,
    anchors: BTreeMap<usize, Node>,
    repeated: Vec<String>,
    nodes: usize,
    aliased: Cost,
}

/// A value, and what it costs to repeat it.
#[derive(Clone)]
struct Node {
    value: Scalar,
    cost: Cost,
}

/// How large a value is.
#[derive(Clone, Copy, Default)]
struct Cost {
    nodes: usize,
    bytes: usize,
    levels: usize,
}

impl<'a> Composer<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span)> {
        match self.events.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(mistake::describe(error.kind(), error.marker(), self.text)),
            None => Ok((Event::StreamEnd, Span::empty(Marker::new(0, 1, 0)))),
        }
    }

    fn document(&mut self) -> Result<Value> {
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(Value::Null),
                (event, span) if event.is_node() => {
                    return self.node(event, span, LEVELS)?.value.into_json();
                }
                _ => {}
            }
        }
    }

    /// The node that begins with an event, of at most so many levels.
    fn node(&mut self, event: Event<'a>, span: Span, levels: usize) -> Result<Node> {
        self.nodes += 1;
        let (anchor, node) = match event {
            Event::Alias(of) => return self.alias(of, span, levels),
            Event::Scalar(text, style, anchor, tag) => {
                let bytes = text.len();
                let value = Scalar::resolve(&text, style, tag.as_deref())?;
                (anchor, Node { value, cost: Cost { nodes: 1, bytes, levels: 0 } })
            }
            Event::SequenceStart(_, anchor, _) => (anchor, self.sequence(below(levels)?)?),
            Event::MappingStart(_, anchor, _) => (anchor, self.mapping(below(levels)?)?),
            _ => return Err("yaml: unknown problem parsing YAML content".to_owned()),
        };
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn sequence(&mut self, levels: usize) -> Result<Node> {
        let mut list = Vec::new();
        let mut cost = Cost { nodes: 1, bytes: 0, levels: 1 };
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => {
                    return Ok(Node { value: Scalar::Value(Value::Array(list)), cost });
                }
                (event, span) => {
                    let item = self.node(event, span, levels)?;
                    cost.add(item.cost);
                    list.push(item.value.into_json()?);
                }
            }
        }
    }

    fn mapping(&mut self, levels: usize) -> Result<Node> {
        let mut map = Map::new();
        let mut cost = Cost { nodes: 1, bytes: 0, levels: 1 };
        loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                return Ok(Node { value: Scalar::Value(Value::Object(map)), cost });
            }
            let key = self.node(event, span, levels)?;
            let (event, span) = self.next()?;
            let line = span.start.line();
            let value = self.node(event, span, levels)?;
            cost.add(key.cost);
            cost.add(value.cost);
            if key.value == Scalar::Merge {
                self.merge(&mut map, value.value.into_json()?, line)?;
            } else {
                let shown = key.value.shown();
                self.set(&mut map, key.value.into_key()?, &shown, value.value.into_json()?, line);
            }
        }
    }

    /// The value of `<<`: a map, or a list of maps, whose members become members here.
    fn merge(&mut self, map: &mut Map<String, Value>, value: Value, line: usize) -> Result<()> {
        let maps = match value {
            Value::Array(maps) => maps,
            map => vec![map],
        };
        // The first map of a list has the last word.
        for merged in maps.into_iter().rev() {
            let Value::Object(members) = merged else {
                return Err("yaml: map merge requires map or sequence of maps as the value".to_owned());
            };
            for (key, value) in members {
                let shown = format!("{key:?}");
                self.set(map, key, &shown, value, line);
            }
        }
        Ok(())
    }

    fn set(&mut self, map: &mut Map<String, Value>, key: String, shown: &str, value: Value, line: usize) {
        if map.insert(key, value).is_some() {
            self.repeated.push(format!("line {line}: key {shown} already set in map"));
        }
    }

    fn alias(&mut self, of: usize, span: Span, levels: usize) -> Result<Node> {
        let Some(node) = self.anchors.get(&of) else {
            let name = span.slice(self.text).unwrap_or_default().trim_start_matches('*');
            return Err(format!("yaml: anchor '{name}' value contains itself"));
        };
        self.aliased.add(node.cost);
        self.nodes += node.cost.nodes;
        let many = self.aliased.nodes > 100 && self.nodes > 1000;
        if self.aliased.bytes > ALIASED_BYTES || many && self.aliased.nodes as f64 > allowed(self.nodes) {
            return Err("yaml: document contains excessive aliasing".to_owned());
        }
        if node.cost.levels > levels {
            return Err(mistake::too_deep());
        }
        Ok(node.clone())
    }
}

impl Cost {
    fn add(&mut self, inner: Self) {
        self.nodes += inner.nodes;
        self.bytes += inner.bytes;
        self.levels = self.levels.max(inner.levels + 1);
    }
}

fn below(levels: usize) -> Result<usize> {
    levels.checked_sub(1).ok_or_else(mistake::too_deep)
}

/// How many of so many nodes may come from aliases (`allowedAliasRatio` of `go.yaml.in/yaml/v2`): 99 % of a small
/// document, 10 % of a large one.
fn allowed(nodes: usize) -> f64 {
    const SMALL: f64 = 400_000.0;
    const LARGE: f64 = 4_000_000.0;
    let nodes = nodes as f64;
    let share = ((nodes - SMALL) / (LARGE - SMALL)).clamp(0.0, 1.0);
    nodes * (0.99 - 0.89 * share)
}

#[cfg(test)]
mod tests;
