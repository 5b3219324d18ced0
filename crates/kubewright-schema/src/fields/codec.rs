//! `FieldsV1`: a set as JSON (`sigs.k8s.io/structured-merge-diff/v6/fieldpath`, `serialize.go`).

use serde_json::{Map, Value};

use super::element::Element;
use super::set::Set;

/// What says that the field around it is in the set, too.
const SELF: &str = ".";

impl Set {
    /// Reads `FieldsV1`. Steps of unknown kinds are passed over.
    ///
    /// # Errors
    /// It is no object, or a step is malformed.
    pub fn decode(value: &Value) -> Result<Self, String> {
        match value {
            Value::Null => Ok(Self::default()),
            Value::Object(map) => Ok(read(map)?.0),
            _ => Err("fields are not an object".to_owned()),
        }
    }

    /// As `FieldsV1`.
    #[must_use]
    pub fn encode(&self) -> Value {
        let step = |step: &super::set::Step| {
            let mut below = step.below.encode();
            if let (true, false, Value::Object(map)) = (step.member, step.below.is_empty(), &mut below) {
                map.insert(SELF.to_owned(), Value::Object(Map::new()));
            }
            (step.element.to_text(), below)
        };
        Value::Object(self.steps().iter().map(step).collect())
    }
}

/// The set below a step, and whether the step itself is in the set: it says so, or nothing is below it.
fn read(map: &Map<String, Value>) -> Result<(Set, bool), String> {
    let mut set = Set::default();
    let mut member = false;
    let mut steps = Vec::with_capacity(map.len());
    for (text, below) in map {
        if text == SELF {
            member = true;
        } else if let Some(element) = Element::parse(text)? {
            steps.push((element, text, below));
        }
    }
    // Numbers have another order than their texts.
    steps.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    for (element, text, below) in steps {
        let (below, is_member) = match below {
            Value::Object(map) => read(map)?,
            Value::Null => (Set::default(), true),
            _ => return Err(format!("fields of {text:?} are not an object")),
        };
        set.add(element, is_member, below);
    }
    let member = member || set.is_empty();
    Ok((set, member))
}
