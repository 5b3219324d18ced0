//! Combinations of schemas.

use serde_json::Value;

use super::super::node::{Logic, Node};
use super::check::{Checker, Found};

impl Checker<'_> {
    /// Checks a value against `allOf`, `anyOf`, `oneOf` and `not`. Of alternatives that all fail, the best one's failures
    /// are told too. What stood so before counts in none of them (`NewValidatorForField` is asked outside of them alone).
    pub(super) fn logic(&self, logic: &Logic, value: &Value, path: &str) -> Found {
        let mut found = Found::default();
        let check = |node: &Node| self.value(node, value, path, None);
        if !logic.any_of.is_empty() {
            let (valid, told) = best(logic.any_of.iter().map(check), true);
            if valid == 0 {
                found.add(self.without_path(&format!("{path:?} must validate at least one schema (anyOf)")));
            }
            found.merge(told);
        }
        if !logic.one_of.is_empty() {
            let (valid, told) = best(logic.one_of.iter().map(check), false);
            if valid != 1 {
                let count = if valid == 0 {
                    "Found none valid".to_owned()
                } else {
                    format!("Found {valid} valid alternatives")
                };
                let words = format!("{path:?} must validate one and only one schema (oneOf). {count}");
                found.add(self.without_path(&words));
            }
            if valid < 2 {
                found.merge(told);
            }
        }
        if !logic.all_of.is_empty() {
            let mut valid = 0;
            for one in logic.all_of.iter().map(check) {
                valid += usize::from(one.errors.is_empty());
                found.merge(one);
            }
            if valid != logic.all_of.len() {
                let none = if valid == 0 { ". None validated" } else { "" };
                found
                    .add(self.without_path(&format!("{path:?} must validate all the schemas (allOf){none}")));
            }
        }
        if logic.not.as_ref().is_some_and(|not| check(not).errors.is_empty()) {
            found.add(self.without_path(&format!("{path:?} must not validate the schema (not)")));
        }
        found
    }
}

/// How many are valid, and what to tell: the first valid one's findings, or those of the best failure. Where one is
/// enough, the rest is not looked at.
fn best(results: impl Iterator<Item = Found>, one_is_enough: bool) -> (usize, Found) {
    let mut valid = 0;
    let mut told: Option<Found> = None;
    for result in results {
        if result.errors.is_empty() {
            valid += 1;
            if valid == 1 {
                told = Some(result);
            }
            if one_is_enough {
                break;
            }
        } else if valid == 0 && told.as_ref().is_none_or(|best| result.score > best.score) {
            told = Some(result);
        }
    }
    (valid, told.unwrap_or_default())
}
