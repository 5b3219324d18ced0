//! What is compared: how a case is made, and what we say of it. `go/` has what Go says.

mod built_in;
mod definitions;
mod expressions;
mod owners;
mod patches;
mod rules;
mod scalars;
mod schemas;
mod tables;
mod texts;
mod values;

use serde_json::Value;

use crate::dice::Dice;
use crate::{Judgement, findings};

/// Something that is compared.
pub(crate) struct Subject {
    /// Its name, which Go knows, too.
    pub(crate) name: &'static str,
    /// Makes a case.
    pub(crate) make: fn(&mut Dice) -> Value,
    /// What we say of a case.
    pub(crate) answer: fn(&Value) -> Value,
}

/// All of them.
pub(crate) const SUBJECTS: &[Subject] = &[
    Subject { name: "quantity", make: scalars::quantity, answer: scalars::quantity_of },
    Subject { name: "duration", make: scalars::duration, answer: scalars::duration_of },
    Subject { name: "time", make: scalars::time, answer: scalars::time_of },
    Subject { name: "name", make: scalars::name, answer: scalars::name_of },
    Subject { name: "selector", make: scalars::selector, answer: scalars::selector_of },
    Subject { name: "cron", make: scalars::cron, answer: scalars::cron_of },
    Subject { name: "pattern", make: scalars::pattern, answer: scalars::pattern_of },
    Subject { name: "format", make: scalars::format, answer: scalars::format_of },
    Subject { name: "json", make: texts::json, answer: texts::json_of },
    Subject { name: "yaml", make: texts::yaml, answer: texts::yaml_of },
    Subject { name: "json-patch", make: patches::operations, answer: patches::operated },
    Subject { name: "strategic", make: patches::strategic, answer: patches::merged },
    Subject { name: "owners", make: owners::writes, answer: owners::owned },
    Subject { name: "table", make: tables::table, answer: tables::printed },
    Subject { name: "expression", make: expressions::expression, answer: expressions::evaluated },
    Subject { name: "object", make: schemas::object, answer: schemas::judged },
    Subject { name: "built-in", make: built_in::write, answer: built_in::judged },
    Subject { name: "definition", make: definitions::definition, answer: definitions::judged },
];

impl Subject {
    /// Compares what Go says of a case with what we say. Lists of texts have no order: Go makes many of them of maps.
    pub(crate) fn judge(&self, case: &Value, theirs: &Value) -> Judgement {
        if theirs.get("none").is_some() {
            return Judgement::LeftOut;
        }
        let (theirs, ours) = (sorted(theirs.clone()), sorted((self.answer)(case)));
        findings::difference(&theirs, &ours).map_or(Judgement::Same, Judgement::Differs)
    }
}

/// An answer whose lists of complaints are in order, and whose numbers without a fraction are whole ones.
fn sorted(mut answer: Value) -> Value {
    make_whole(&mut answer);
    for key in ["errors", "warnings", "unknown"] {
        if let Some(list) = answer.get_mut(key).and_then(Value::as_array_mut) {
            for complaint in &mut *list {
                if let Value::String(text) = complaint {
                    nameless(text);
                }
            }
            list.sort_by_key(Value::to_string);
        }
    }
    answer
}

/// A text without the numbers that the type of an expression's `self` is named by.
fn nameless(text: &mut String) {
    const NAME: &str = "selfType";
    let mut from = 0;
    while let Some(at) = text[from..].find(NAME).map(|at| from + at + NAME.len()) {
        let digits = text[at..].bytes().take_while(u8::is_ascii_digit).count();
        text.replace_range(at..at + digits, "");
        from = at;
    }
}

/// Go writes `1.0` as `1`, and has no whole numbers beyond 64 bits.
fn make_whole(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(double) = number.as_f64().filter(|_| number.as_i64().is_none()) {
                let is_whole = double.fract() == 0.0 && double.abs() < 1e15;
                *value = if is_whole { Value::from(double as i64) } else { Value::from(double) };
            }
        }
        Value::Array(items) => items.iter_mut().for_each(make_whole),
        Value::Object(members) => members.values_mut().for_each(make_whole),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// A member of a case that is a text.
fn text<'a>(case: &'a Value, key: &str) -> &'a str {
    case[key].as_str().unwrap_or_default()
}

/// The texts of a member of a case.
fn texts<'a>(case: &'a Value, key: &str) -> impl Iterator<Item = &'a str> {
    case[key].as_array().into_iter().flatten().filter_map(Value::as_str)
}
