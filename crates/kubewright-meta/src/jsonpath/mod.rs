//! Paths into values as printer columns, scale paths and selectable fields have them: what stands in one pair of braces of
//! `k8s.io/client-go/util/jsonpath`, without `range` and `end`.

mod parser;

use std::borrow::Cow;

use serde_json::Value;

/// A path into a value, such as `.status.conditions[?(@.type=="Ready")].status`.
#[derive(Clone, Debug, PartialEq)]
pub struct Path(Vec<Step>);

#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// A field of an object, by name.
    Field(String),
    /// All fields of an object, all items of a list.
    All,
    /// All that is in a value and has parts, the value itself first.
    Recursive,
    /// Items of a list.
    Items(Items),
    /// What each of these finds, one after the other.
    Union(Vec<Path>),
    /// The items of a list for which a condition holds.
    Filter(Filter),
    /// A text, in the place of all that was found.
    Text(String),
    /// A number or a truth, in the place of each value that was found.
    Literal(Value),
    /// A word that nobody knows: whoever looks for it finds nothing.
    Unknown,
}

/// The items of a list from one index to before another; negative ones count from its end.
#[derive(Clone, Debug, PartialEq)]
struct Items {
    from: Option<i64>,
    to: To,
    step: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum To {
    /// The end of the list.
    End,
    Index(i64),
    /// One item only.
    Next,
}

#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Path,
    /// Without it, the left side must be there.
    compare: Option<(Operator, Path)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// What nobody knows: whoever compares by it finds nothing.
    Unknown,
}

/// How many values one step may find, and a filter may look at: steps that repeat what they find multiply.
const MOST: usize = 100_000;

type Found<'a> = Vec<Cow<'a, Value>>;

/// A step that cannot be made ends the search. Whether there is something, which a filter asks, it leaves to what was found till then.
type Search<'a> = Result<Found<'a>, Found<'a>>;

impl Path {
    /// Reads a path. A leading `$` or `@` stands for the value itself, and `\` before a dot in a field makes the dot a part
    /// of its name.
    ///
    /// # Errors
    /// What is wrong with the path.
    pub fn parse(text: &str) -> Result<Self, String> {
        parser::parse(text)
    }

    /// The values at the path, in order. Empty where the path does not lead anywhere, an index is out of bounds, or
    /// what is compared cannot be.
    #[must_use]
    pub fn find<'a>(&self, root: &'a Value) -> Vec<Cow<'a, Value>> {
        self.search(vec![Cow::Borrowed(root)]).unwrap_or_default()
    }

    fn search<'a>(&self, mut found: Found<'a>) -> Search<'a> {
        for step in &self.0 {
            found = bounded(step.search(found)?)?;
        }
        Ok(found)
    }

    /// The field names, where the path consists of nothing else.
    #[must_use]
    pub fn fields(&self) -> Option<Vec<&str>> {
        let names = self.0.iter().map(|step| match step {
            Step::Field(name) => Some(name.as_str()),
            _ => None,
        });
        names.collect()
    }
}

impl Step {
    fn search<'a>(&self, input: Found<'a>) -> Search<'a> {
        let mut found = Vec::new();
        match self {
            Self::Text(text) => found.push(Cow::Owned(text.as_str().into())),
            Self::Unknown => return Err(input),
            Self::Union(paths) => {
                for path in paths {
                    match path.search(input.clone()) {
                        Ok(more) => found.extend(more),
                        Err(_) => return Err(input),
                    }
                    found = bounded(found)?;
                }
            }
            Self::Literal(value) => found.extend(input.iter().map(|_| Cow::Owned(value.clone()))),
            Self::Field(name) => {
                let field = |value: &Cow<'a, Value>| match value {
                    Cow::Borrowed(value) => value.get(name.as_str()).map(Cow::Borrowed),
                    Cow::Owned(_) => None,
                };
                found.extend(input.iter().filter_map(field));
            }
            Self::All => {
                for value in &input {
                    found.extend(parts(value));
                    found = bounded(found)?;
                }
            }
            Self::Recursive => {
                for value in input {
                    descend(value, &mut found);
                }
            }
            Self::Items(items) => {
                for value in &input {
                    match list(value) {
                        Some(list) => match items.of(list) {
                            Some(Picked::All(picked)) => found.extend(picked),
                            // No items at all end the step.
                            Some(Picked::None) => return Ok(found),
                            None => return Err(input),
                        },
                        None if value.is_null() => {}
                        None => return Err(input),
                    }
                    found = bounded(found)?;
                }
            }
            Self::Filter(filter) => {
                let mut looked_at = 0;
                for value in &input {
                    let Some(list) = list(value) else { return Err(input) };
                    looked_at += list.len();
                    if looked_at > MOST {
                        return Err(Vec::new());
                    }
                    for item in list {
                        match filter.holds(item) {
                            Ok(true) => found.push(Cow::Borrowed(item)),
                            Ok(false) => {}
                            Err(Mistake::NotOne) => return Err(input),
                            Err(Mistake::Incomparable) => return Err(found),
                        }
                    }
                }
            }
        }
        Ok(found)
    }
}

fn bounded(found: Found<'_>) -> Search<'_> {
    if found.len() > MOST { Err(Vec::new()) } else { Ok(found) }
}

fn list<'a>(value: &Cow<'a, Value>) -> Option<&'a [Value]> {
    if let Cow::Borrowed(Value::Array(items)) = value { Some(items) } else { None }
}

/// The fields of an object, the items of a list, the bytes of a text.
fn parts<'a>(value: &Cow<'a, Value>) -> Vec<Cow<'a, Value>> {
    match value {
        Cow::Borrowed(Value::Object(members)) => members.values().map(Cow::Borrowed).collect(),
        Cow::Borrowed(Value::Array(items)) => items.iter().map(Cow::Borrowed).collect(),
        text => text.as_str().unwrap_or_default().bytes().map(|byte| Cow::Owned(byte.into())).collect(),
    }
}

/// Adds a value that has parts, and all of its parts that have some.
fn descend<'a>(value: Cow<'a, Value>, found: &mut Found<'a>) {
    let parts = parts(&value);
    if parts.is_empty() || found.len() > MOST {
        return;
    }
    let is_text = value.is_string();
    found.push(value);
    if !is_text {
        for part in parts {
            descend(part, found);
        }
    }
}

enum Picked<'a> {
    All(Vec<Cow<'a, Value>>),
    None,
}

impl Items {
    /// The items of a list. `None` where an index is out of bounds.
    fn of<'a>(&self, list: &'a [Value]) -> Option<Picked<'a>> {
        let length = i64::try_from(list.len()).ok()?;
        let first = self.from.unwrap_or(0);
        let from = if first < 0 { first.checked_add(length)? } else { first };
        let to = match self.to {
            To::End => length,
            To::Index(index) if index < 0 => index.checked_add(length)?,
            To::Index(index) => index,
            To::Next if first < 0 => first.checked_add(1)?.checked_add(length)?,
            To::Next => first.checked_add(1)?,
        };
        if from == to {
            return Some(Picked::None);
        }
        let items = list.get(usize::try_from(from).ok()?..usize::try_from(to).ok()?)?;
        let step = usize::try_from(self.step.unwrap_or(1)).ok().filter(|step| *step > 0)?;
        Some(Picked::All(items.iter().step_by(step).map(Cow::Borrowed).collect()))
    }
}

/// Why a filter cannot say whether it holds.
enum Mistake {
    /// A side is not one value, or cannot be found.
    NotOne,
    /// The sides cannot be compared.
    Incomparable,
}

impl Filter {
    fn holds(&self, item: &Value) -> Result<bool, Mistake> {
        let item = || vec![Cow::Borrowed(item)];
        let left = self.left.search(item());
        let Some((operator, right)) = &self.compare else {
            let (Ok(found) | Err(found)) = left;
            return Ok(!found.is_empty());
        };
        let one = |found: Search<'_>| match found.map_err(|_| Mistake::NotOne)?.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(one.clone().into_owned())),
            _ => Err(Mistake::NotOne),
        };
        let Some(left) = one(left)? else { return Ok(false) };
        let Some(right) = one(right.search(item()))? else { return Ok(false) };
        operator.holds(&left, &right).ok_or(Mistake::Incomparable)
    }
}

impl Operator {
    /// None for values that cannot be compared (`k8s.io/client-go/third_party/forked/golang/template/funcs.go`): neither are a whole number
    /// and one with a fraction.
    fn holds(self, left: &Value, right: &Value) -> Option<bool> {
        let order = match (left, right) {
            (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
            (Value::Bool(left), Value::Bool(right)) if matches!(self, Self::Equal | Self::NotEqual) => {
                Some(left.cmp(right))
            }
            (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
                (Some(left), Some(right)) => Some(left.cmp(&right)),
                (None, None) => left.as_f64()?.partial_cmp(&right.as_f64()?),
                _ => return None,
            },
            _ => return None,
        };
        Some(match self {
            Self::Equal => order.is_some_and(std::cmp::Ordering::is_eq),
            Self::NotEqual => order.is_none_or(std::cmp::Ordering::is_ne),
            Self::Less => order.is_some_and(std::cmp::Ordering::is_lt),
            Self::LessOrEqual => order.is_some_and(std::cmp::Ordering::is_le),
            Self::Greater => order.is_some_and(std::cmp::Ordering::is_gt),
            Self::GreaterOrEqual => order.is_some_and(std::cmp::Ordering::is_ge),
            Self::Unknown => return None,
        })
    }
}

#[cfg(test)]
mod tests;
