//! Label selectors: the language of the query parameter and the object form
//! (`k8s.io/apimachinery/pkg/labels/selector.go`, `LabelSelectorAsSelector` of `apis/meta/v1`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Value, json};

use super::parse;
use crate::FieldError;
use crate::text;

/// Which labels an object must have. All requirements must hold; without any, all objects are selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector(Selection);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Selection {
    Nothing,
    /// Sorted by key.
    All(Vec<Requirement>),
}

impl Default for Selection {
    fn default() -> Self {
        Self::All(Vec::new())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Requirement {
    key: String,
    condition: Condition,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Condition {
    Is(String),
    IsNot(String),
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Exists,
    Absent,
    Above(i64),
    Below(i64),
}

impl Requirement {
    fn expression(&self) -> Option<Value> {
        let key = &self.key;
        Some(match &self.condition {
            Condition::Is(value) => json!({"key": key, "operator": "In", "values": [value]}),
            Condition::IsNot(value) => json!({"key": key, "operator": "NotIn", "values": [value]}),
            Condition::In(values) => json!({"key": key, "operator": "In", "values": values}),
            Condition::NotIn(values) => json!({"key": key, "operator": "NotIn", "values": values}),
            Condition::Exists => json!({"key": key, "operator": "Exists"}),
            Condition::Absent => json!({"key": key, "operator": "DoesNotExist"}),
            Condition::Above(_) | Condition::Below(_) => return None,
        })
    }
}

impl LabelSelector {
    /// The selector that selects no object.
    #[must_use]
    pub fn nothing() -> Self {
        Self(Selection::Nothing)
    }

    /// The conditions as a LabelSelector's `matchExpressions` says them; one that it cannot say is left out.
    pub fn requirements(&self) -> Vec<Value> {
        let Selection::All(requirements) = &self.0 else { return Vec::new() };
        requirements.iter().filter_map(Requirement::expression).collect()
    }

    /// Reads the text form: `a=b,c!=d,e in (x,y),f notin (z),g,!h,i>1,j<2`. Empty text selects everything.
    ///
    /// # Errors
    /// What is wrong with the text, in Kubernetes' words.
    pub fn parse(text: &str) -> Result<Self, String> {
        parse::requirements(text).map(Self::of)
    }

    /// Reads the object form (`matchLabels`, `matchExpressions`). Null selects nothing, an empty object everything.
    ///
    /// # Errors
    /// What is wrong with the object, in Kubernetes' words.
    pub fn from_object(selector: &Value) -> Result<Self, String> {
        if selector.is_null() {
            return Ok(Self::nothing());
        }
        let mut requirements = Vec::new();
        for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
            requirements.push(Requirement::new(key, "=", &[value.as_str().unwrap_or_default()])?);
        }
        for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
            let operator = match expression["operator"].as_str().unwrap_or_default() {
                "In" => "in",
                "NotIn" => "notin",
                "Exists" => "",
                "DoesNotExist" => "!",
                other => return Err(format!("{other:?} is not a valid label selector operator")),
            };
            let values: Vec<&str> =
                expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let key = expression["key"].as_str().unwrap_or_default();
            requirements.push(Requirement::new(key, operator, &values)?);
        }
        Ok(Self::of(requirements))
    }

    fn of(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|one, other| one.key.cmp(&other.key));
        Self(Selection::All(requirements))
    }

    /// Whether all objects are selected, whatever their labels.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        matches!(&self.0, Selection::All(requirements) if requirements.is_empty())
    }

    /// Whether an object with these labels is selected.
    #[must_use]
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches_by(|key| labels.get(key).map(String::as_str))
    }

    /// Whether an object whose labels `label` tells is selected.
    pub fn matches_by<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        match &self.0 {
            Selection::Nothing => false,
            Selection::All(requirements) => requirements.iter().all(|one| one.holds(label(&one.key))),
        }
    }
}

impl Requirement {
    /// A requirement with one of the operators of the text form (empty: the label exists).
    pub(super) fn new(key: &str, operator: &str, values: &[&str]) -> Result<Self, String> {
        let mut errors = wrong_key("key", key);
        let no_value = "values set must be empty for exists and does not exist";
        let one = || values.first().copied().unwrap_or_default();
        let set = || values.iter().map(ToString::to_string).collect();
        let condition = match operator {
            "=" | "==" => Condition::Is(one().to_owned()),
            "!=" => Condition::IsNot(one().to_owned()),
            "in" => Condition::In(set()),
            "notin" => Condition::NotIn(set()),
            ">" => Condition::Above(number(one(), &mut errors)),
            "<" => Condition::Below(number(one(), &mut errors)),
            "!" => Condition::Absent,
            _ => Condition::Exists,
        };
        match condition {
            Condition::In(_) | Condition::NotIn(_) if values.is_empty() => {
                let why = "for 'in', 'notin' operators, values set can't be empty";
                errors.push(FieldError::invalid("values", Value::Array(Vec::new()), why));
            }
            Condition::Exists | Condition::Absent if !values.is_empty() => {
                errors.push(FieldError::invalid("values", values.to_vec(), no_value));
            }
            _ => {}
        }
        for (index, value) in values.iter().enumerate() {
            let problems = text::label_value(value);
            if !problems.is_empty() {
                errors.push(FieldError::invalid(
                    format!("values[{index}][{key}]"),
                    *value,
                    problems.join("; "),
                ));
            }
        }
        if errors.is_empty() { Ok(Self { key: key.to_owned(), condition }) } else { Err(joined(&errors)) }
    }

    fn holds(&self, label: Option<&str>) -> bool {
        let compared = |holds: fn(i64, i64) -> bool, limit: i64| {
            label.and_then(|text| text.parse().ok()).is_some_and(|number| holds(number, limit))
        };
        match &self.condition {
            Condition::Is(value) => label == Some(value.as_str()),
            Condition::IsNot(value) => label != Some(value.as_str()),
            Condition::In(values) => label.is_some_and(|label| values.contains(label)),
            Condition::NotIn(values) => label.is_none_or(|label| !values.contains(label)),
            Condition::Exists => label.is_some(),
            Condition::Absent => label.is_none(),
            Condition::Above(limit) => compared(|number, limit| number > limit, *limit),
            Condition::Below(limit) => compared(|number, limit| number < limit, *limit),
        }
    }
}

/// The number that a label is compared with.
fn number(text: &str, errors: &mut Vec<FieldError>) -> i64 {
    text.parse().unwrap_or_else(|_| {
        let why = "for 'Gt', 'Lt' operators, the value must be an integer";
        errors.push(FieldError::invalid("values[0]", text, why));
        0
    })
}

/// What is wrong with a key.
pub(super) fn wrong_key(path: &str, key: &str) -> Vec<FieldError> {
    let problems = text::label_key(key);
    if problems.is_empty() { Vec::new() } else { vec![FieldError::invalid(path, key, problems.join("; "))] }
}

/// The messages of errors in one.
pub(super) fn joined(errors: &[FieldError]) -> String {
    let messages: Vec<String> = errors.iter().map(ToString::to_string).collect();
    match messages.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

/// The text form, which [`LabelSelector::parse`] reads. A selector of nothing has none: it is written as empty text.
impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Selection::All(requirements) = &self.0 else { return Ok(()) };
        for (index, requirement) in requirements.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let list = |values: &BTreeSet<String>| values.iter().cloned().collect::<Vec<_>>().join(",");
        match &self.condition {
            Condition::Is(value) => write!(f, "{key}={value}"),
            Condition::IsNot(value) => write!(f, "{key}!={value}"),
            Condition::In(values) => write!(f, "{key} in ({})", list(values)),
            Condition::NotIn(values) => write!(f, "{key} notin ({})", list(values)),
            Condition::Exists => f.write_str(key),
            Condition::Absent => write!(f, "!{key}"),
            Condition::Above(limit) => write!(f, "{key}>{limit}"),
            Condition::Below(limit) => write!(f, "{key}<{limit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn selected(selector: &str) -> String {
        let selector = LabelSelector::parse(selector).expect("a selector");
        let objects = [
            ("a", labels(&[("env", "prod"), ("tier", "web"), ("n", "5")])),
            ("b", labels(&[("env", "dev"), ("tier", ""), ("n", "x")])),
            ("c", labels(&[])),
        ];
        objects.iter().filter(|(_, labels)| selector.matches(labels)).map(|(name, _)| *name).collect()
    }

    fn wrong(selector: &str) -> String {
        LabelSelector::parse(selector).expect_err("must be refused")
    }

    #[test]
    fn every_operator_selects_what_it_says() {
        for (selector, expected) in [
            ("", "abc"),
            ("env=prod", "a"),
            ("env==prod", "a"),
            ("env!=prod", "bc"),
            ("env in (prod,dev)", "ab"),
            ("env notin (dev)", "ac"),
            ("tier", "ab"),
            ("!tier", "c"),
            ("tier=", "b"),
            ("tier in (,web)", "ab"),
            ("tier in ()", "b"),
            ("n>4", "a"),
            ("n<4", ""),
            ("env=prod,tier=web", "a"),
            (" env in ( prod , dev ) , ! missing ", "ab"),
            ("in=x", ""),
            ("in in (in),notin notin (notin)", ""),
        ] {
            assert_eq!(selected(selector), expected, "{selector}");
        }
    }

    #[test]
    fn mistakes_are_told_in_the_words_of_kubernetes() {
        for (selector, message) in [
            ("a=b,", "found '', expected: identifier after ','"),
            ("=b", "found '=', expected: !, identifier, or 'end of string'"),
            ("a=b c", "found 'c', expected: ',' or 'end of string'"),
            ("!a=b", "found '=', expected: ',' or 'end of string'"),
            ("!", "unable to parse requirement: found '', expected: identifier"),
            ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
            ("a in b", "unable to parse requirement: found 'b' expected: '('"),
            ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
            ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
            (
                "n>x",
                "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
            ),
        ] {
            assert_eq!(wrong(selector), message, "{selector}");
        }
        assert!(
            wrong("-a")
                .starts_with("unable to parse requirement: <nil>: Invalid value: \"-a\": name part must")
        );
        assert!(wrong("a=-b").starts_with(
            "unable to parse requirement: values[0][a]: Invalid value: \"-b\": a valid label must be"
        ));
    }

    #[test]
    fn the_object_form_says_the_same() {
        let selector = json!({
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "env", "operator": "In", "values": ["prod", "dev"]},
                {"key": "gone", "operator": "DoesNotExist"},
            ],
        });
        let selector = LabelSelector::from_object(&selector).expect("a selector");
        assert_eq!(selector.to_string(), "app=web,env in (dev,prod),!gone");
        assert!(LabelSelector::from_object(&json!({})).expect("a selector").is_everything());
        let nothing = LabelSelector::from_object(&Value::Null).expect("a selector");
        assert!(!nothing.matches(&labels(&[])));
        let bad = json!({"matchExpressions": [{"key": "a", "operator": "In"}]});
        assert_eq!(
            LabelSelector::from_object(&bad),
            Err("values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
                .to_owned())
        );
        let bad = json!({"matchExpressions": [{"key": "a", "operator": "Near"}]});
        assert_eq!(
            LabelSelector::from_object(&bad),
            Err("\"Near\" is not a valid label selector operator".to_owned())
        );
    }

    fn requirement() -> impl Strategy<Value = Requirement> {
        let value = || "[a-z0-9]{0,3}";
        let condition = prop_oneof![
            value().prop_map(Condition::Is),
            value().prop_map(Condition::IsNot),
            prop::collection::btree_set(value(), 1..4).prop_map(Condition::In),
            prop::collection::btree_set(value(), 1..4).prop_map(Condition::NotIn),
            Just(Condition::Exists),
            Just(Condition::Absent),
            (0..1000i64).prop_map(Condition::Above),
            (0..1000i64).prop_map(Condition::Below),
        ];
        ("([a-z]{1,3}/)?[a-z]{1,3}", condition).prop_map(|(key, condition)| Requirement { key, condition })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(requirements in prop::collection::vec(requirement(), 0..4)) {
            let selector = LabelSelector::of(requirements);
            prop_assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector));
        }

        #[test]
        fn any_text_is_read_or_refused(text in r"[a-c!=<>(), in\-é]{0,24}") {
            let _ = LabelSelector::parse(&text);
        }
    }
}
