//! The part of `k8s.io/client-go/util/jsonpath` that printer columns, scale paths and selectable fields need: fields,
//! wildcards, list indices and slices, filters.

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
    /// The items of a list from one index to before another; negative ones count from its end.
    Slice { from: Option<i64>, to: Option<i64>, step: usize },
    /// One item of a list.
    Item(i64),
    /// The items of a list for which a condition holds.
    Filter(Filter),
}

#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Path,
    /// Without it, the left side must be there.
    compare: Option<(Operator, Operand)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Literal(Value),
    Path(Path),
}

/// How deep filters may stand in filters.
const MAX_NESTED_FILTERS: usize = 8;

impl Path {
    /// Reads a path. A leading `$` or `@` stands for the value itself, and `\` before a dot in a field makes the dot a part
    /// of its name.
    ///
    /// # Errors
    /// What is wrong with the path.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::parse_nested(text, 0)
    }

    fn parse_nested(text: &str, depth: usize) -> Result<Self, String> {
        let mut steps = Vec::new();
        let mut rest = text.trim().trim_start_matches(['$', '@']);
        while let Some(first) = rest.chars().next() {
            rest = if let Some(filter) = rest.strip_prefix("[?(") {
                let (condition, after) = split_filter(filter)?;
                if depth >= MAX_NESTED_FILTERS {
                    return Err("filters are nested too deeply".to_owned());
                }
                steps.push(Step::Filter(Filter::parse(condition, depth + 1)?));
                after
            } else if let Some(index) = rest.strip_prefix('[') {
                let (index, after) = index.split_once(']').ok_or("unterminated array")?;
                steps.extend(bracket(index)?);
                after
            } else if rest.starts_with("..") {
                return Err("recursive descent is not supported".to_owned());
            } else if let Some(field) = rest.strip_prefix('.') {
                let (name, after) = field_name(field);
                steps.push(if name == "*" { Step::All } else { Step::Field(name) });
                after
            } else {
                return Err(format!("unrecognized character in action: {first:?}"));
            };
        }
        Ok(Self(steps))
    }

    /// The values at the path, in order. Empty where the path does not lead anywhere, an index is out of bounds, or
    /// what is compared cannot be.
    #[must_use]
    pub fn find<'a>(&self, root: &'a Value) -> Vec<&'a Value> {
        self.walk(root).unwrap_or_default()
    }

    /// None when a step cannot be made at all, which ends the whole search.
    fn walk<'a>(&self, root: &'a Value) -> Option<Vec<&'a Value>> {
        let mut found = vec![root];
        for step in &self.0 {
            let mut next = Vec::new();
            for value in found {
                step.walk(value, &mut next)?;
            }
            found = next;
        }
        Some(found)
    }

    /// The field names, where the path consists of nothing else.
    #[must_use]
    pub fn fields(&self) -> Option<Vec<&str>> {
        let name = |step: &'_ Step| matches!(step, Step::Field(_));
        self.0.iter().all(name).then(|| {
            self.0
                .iter()
                .filter_map(|step| if let Step::Field(name) = step { Some(name.as_str()) } else { None })
                .collect()
        })
    }
}

impl Step {
    fn walk<'a>(&self, value: &'a Value, found: &mut Vec<&'a Value>) -> Option<()> {
        match (self, value) {
            (Self::Field(name), value) => found.extend(value.get(name.as_str())),
            (Self::All, Value::Object(members)) => found.extend(members.values()),
            (Self::All, Value::Array(items)) => found.extend(items),
            (_, Value::Null) | (Self::All, _) => {}
            (Self::Item(index), Value::Array(items)) => {
                found.push(items.get(from_start(*index, items.len())?)?);
            }
            (Self::Slice { from, to, step }, Value::Array(items)) => {
                let from = from.map_or(Some(0), |index| from_start(index, items.len()))?;
                let to = to.map_or(Some(items.len()), |index| from_start(index, items.len()))?;
                if from != to {
                    found.extend(items.get(from..to).filter(|some| !some.is_empty())?.iter().step_by(*step));
                }
            }
            (Self::Filter(filter), Value::Array(items)) => {
                for item in items {
                    if filter.holds(item)? {
                        found.push(item);
                    }
                }
            }
            _ => return None,
        }
        Some(())
    }
}

fn from_start(index: i64, length: usize) -> Option<usize> {
    let index = if index < 0 { index.checked_add_unsigned(length as u64)? } else { index };
    usize::try_from(index).ok()
}

impl Filter {
    fn parse(text: &str, depth: usize) -> Result<Self, String> {
        let is_operator = |c: char| "!<>=".contains(c);
        let Some(start) = text.find(is_operator) else {
            return Ok(Self { left: Path::parse_nested(text, depth)?, compare: None });
        };
        let (left, rest) = text.split_at(start);
        let (operator, right) = rest.split_at(rest.find(|c| !is_operator(c)).unwrap_or(rest.len()));
        let operator = match operator {
            "==" => Operator::Equal,
            "!=" => Operator::NotEqual,
            "<" => Operator::Less,
            "<=" => Operator::LessOrEqual,
            ">" => Operator::Greater,
            ">=" => Operator::GreaterOrEqual,
            other => return Err(format!("unrecognized filter operator {other}")),
        };
        let left = Path::parse_nested(left, depth)?;
        Ok(Self { left, compare: Some((operator, Operand::parse(right.trim(), depth)?)) })
    }

    fn holds(&self, item: &Value) -> Option<bool> {
        let Some((operator, operand)) = &self.compare else {
            return Some(self.left.walk(item).is_some_and(|found| !found.is_empty()));
        };
        let left = self.left.walk(item)?;
        let right = match operand {
            Operand::Literal(value) => vec![value],
            Operand::Path(path) => path.walk(item)?,
        };
        match (left.as_slice(), right.as_slice()) {
            ([], _) | (_, []) => Some(false),
            ([left], [right]) => operator.holds(left, right),
            _ => None,
        }
    }
}

impl Operand {
    fn parse(text: &str, depth: usize) -> Result<Self, String> {
        let quoted = |quote: char| text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        if let Some(inner) = quoted('"').or_else(|| quoted('\'')) {
            return Ok(Self::Literal(unquoted(inner).into()));
        }
        if text.starts_with(['@', '$', '.']) {
            return Path::parse_nested(text, depth).map(Self::Path);
        }
        match serde_json::from_str(text) {
            Ok(value @ (Value::Bool(_) | Value::Number(_))) => Ok(Self::Literal(value)),
            _ => Err(format!("unrecognized value in filter: {text}")),
        }
    }
}

impl Operator {
    /// None for values that cannot be compared.
    fn holds(self, left: &Value, right: &Value) -> Option<bool> {
        let order = match (left, right) {
            (Value::String(left), Value::String(right)) => left.cmp(right),
            (Value::Bool(left), Value::Bool(right)) if matches!(self, Self::Equal | Self::NotEqual) => {
                left.cmp(right)
            }
            (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
                (Some(left), Some(right)) => left.cmp(&right),
                _ => left.as_f64()?.partial_cmp(&right.as_f64()?)?,
            },
            _ => return None,
        };
        Some(match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        })
    }
}

/// The name at the start of the text, and what comes after it. A backslash takes the next character as it is.
fn field_name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
            ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}' => {
                return (name, &text[at..]);
            }
            _ => name.push(character),
        }
    }
    (name, "")
}

/// The steps of what stands in brackets.
fn bracket(text: &str) -> Result<Vec<Step>, String> {
    if text == "*" {
        return Ok(vec![Step::Slice { from: None, to: None, step: 1 }]);
    }
    if let Some(name) = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        return Path::parse(&format!(".{name}")).map(|path| path.0);
    }
    let wrong = || format!("invalid array index {text}");
    let number = |part: &str| match part {
        "" => Ok(None),
        digits => digits.parse::<i64>().map(Some).map_err(|_| wrong()),
    };
    let parts: Vec<&str> = text.split(':').collect();
    let step = match parts.as_slice() {
        [index] => return Ok(vec![Step::Item(number(index)?.ok_or_else(wrong)?)]),
        [_, _] => 1,
        [_, _, step] => number(step)?.unwrap_or(1),
        _ => return Err(wrong()),
    };
    let step = usize::try_from(step).ok().filter(|step| *step > 0).ok_or("step must be > 0")?;
    Ok(vec![Step::Slice { from: number(parts[0])?, to: number(parts[1])?, step }])
}

/// A filter's condition, up to the `)]` that is not in quotes, and what comes after it.
fn split_filter(text: &str) -> Result<(&str, &str), String> {
    let (mut quote, mut escaped) = (None, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' | '\'' if quote.is_none() => quote = Some(character),
            _ if quote == Some(character) => quote = None,
            ')' if quote.is_none() => {
                let after = text[at + 1..].strip_prefix(']').ok_or("unclosed array expect ]")?;
                return Ok((&text[..at], after));
            }
            _ => {}
        }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(path: &str) -> Value {
        let object = json!({
            "spec": {"a": 1, "list": [{"n": "x", "v": 1}, {"n": "y", "v": 2}, {"n": "z", "v": 3}], "empty": [], "null": null},
            "metadata": {"labels": {"a.b/c": "d"}},
            "status": {"conditions": [
                {"type": "Ready", "status": "True"},
                {"type": "Odd (\"x\")]", "status": "False"},
            ]},
        });
        let path = Path::parse(path).unwrap_or_else(|why| panic!("{path}: {why}"));
        Value::Array(path.find(&object).into_iter().cloned().collect())
    }

    #[test]
    fn every_step_leads_where_it_says() {
        for (path, expected) in [
            (".spec.a", json!([1])),
            ("$.spec.a", json!([1])),
            (".spec['a']", json!([1])),
            (".spec.none.deeper", json!([])),
            (".spec.null", json!([null])),
            (".spec.null[0]", json!([])),
            (r".metadata.labels.a\.b/c", json!(["d"])),
            (r".metadata.labels['a\.b/c']", json!(["d"])),
            (".metadata.labels.*", json!(["d"])),
            (".spec.list[0].n", json!(["x"])),
            (".spec.list[-1].n", json!(["z"])),
            (".spec.list[*].n", json!(["x", "y", "z"])),
            (".spec.list[1:].n", json!(["y", "z"])),
            (".spec.list[0:2].n", json!(["x", "y"])),
            (".spec.list[::2].n", json!(["x", "z"])),
            (".spec.list[9].n", json!([])),
            (".spec.empty[*]", json!([])),
            (".spec.a[0]", json!([])),
            (r#".status.conditions[?(@.type=="Ready")].status"#, json!(["True"])),
            (r#".status.conditions[?(@.type == 'Ready')].status"#, json!(["True"])),
            (r#".status.conditions[?(@.type=="Odd (\"x\")]")].status"#, json!(["False"])),
            (".spec.list[?(@.v>1)].n", json!(["y", "z"])),
            (".spec.list[?(@.v)].n", json!(["x", "y", "z"])),
            (".spec.list[?(@.n==@.n)].v", json!([1, 2, 3])),
            (".spec.list[?(@.n==1)].v", json!([])),
            (".spec.list[?(@.none==1)].v", json!([])),
        ] {
            assert_eq!(found(path), expected, "{path}");
        }
    }

    #[test]
    fn a_path_that_makes_no_sense_is_refused() {
        for path in [
            "spec",
            ".a[",
            ".a[x]",
            ".a[?(@.b",
            ".a[?(@.b==1)",
            ".a[?(@.b=1)]",
            ".a..b",
            ".a[0:1:0]",
            ".a[1:2:3:4]",
        ] {
            assert!(Path::parse(path).is_err(), "{path}");
        }
        let deep = format!("{}@.a{}", ".a[?(@".repeat(50), ")]".repeat(50));
        assert!(Path::parse(&deep).is_err());
    }

    #[test]
    fn a_path_of_fields_tells_them() {
        assert_eq!(Path::parse(".spec.replicas").expect("a path").fields(), Some(vec!["spec", "replicas"]));
        assert_eq!(Path::parse(".spec.list[0]").expect("a path").fields(), None);
    }
}
