//! The shortest case that differs as a longer one does.

use anyhow::Result;
use serde_json::Value;

use crate::Judgement;
use crate::findings::Example;
use crate::go::Go;
use crate::subjects::Subject;

/// How many shorter cases are tried.
const MOST: usize = 3_000;

/// Takes away and shortens what it can. A case whose answers differ in another way is no shorter form of it.
///
/// # Errors
/// Go does not answer.
pub(crate) fn shrink(subject: &Subject, go: &mut Go, found: &Example) -> Result<Example> {
    let mut shortest = found.clone();
    let mut tried = 0;
    loop {
        let mut is_shorter = false;
        let mut at = 0;
        loop {
            let candidates: Vec<Value> = smaller(&shortest.case).skip(at).take(50).collect();
            if candidates.is_empty() || tried > MOST {
                break;
            }
            tried += candidates.len();
            let answers = go.answer(subject.name, &candidates)?;
            let alike = |(case, theirs): (Value, &Value)| match subject.judge(&case, theirs) {
                Judgement::Differs(difference) if difference.sort == found.difference.sort => {
                    Some(Example { case, difference })
                }
                _ => None,
            };
            match candidates.into_iter().zip(&answers).find_map(alike) {
                Some(next) => {
                    shortest = next;
                    is_shorter = true;
                }
                None => at += answers.len(),
            }
        }
        if !is_shorter {
            return Ok(shortest);
        }
    }
}

/// Each value that is a little less than this one: without a member or an item, or with one that is less.
fn smaller(value: &Value) -> Box<dyn Iterator<Item = Value> + '_> {
    match value {
        Value::Object(members) => {
            let without = members.keys().map(|key| {
                let mut rest = members.clone();
                rest.remove(key);
                Value::Object(rest)
            });
            let less = members.iter().flat_map(move |(key, member)| {
                smaller(member).map(move |less| {
                    let mut rest = members.clone();
                    rest.insert(key.clone(), less);
                    Value::Object(rest)
                })
            });
            Box::new(without.chain(less))
        }
        Value::Array(items) => {
            let without = (0..items.len()).map(|at| {
                let mut rest = items.clone();
                rest.remove(at);
                Value::Array(rest)
            });
            let less = items.iter().enumerate().flat_map(move |(at, item)| {
                smaller(item).map(move |less| {
                    let mut rest = items.clone();
                    rest[at] = less;
                    Value::Array(rest)
                })
            });
            Box::new(without.chain(less))
        }
        Value::String(text) => {
            let characters: Vec<char> = text.chars().collect();
            let sizes = [characters.len() / 2, characters.len() / 4, 3, 1];
            let cuts = sizes.into_iter().filter(|size| *size > 0).flat_map(move |size| {
                let characters = characters.clone();
                (0..characters.len().saturating_sub(size - 1)).step_by(size.max(1)).map(move |from| {
                    characters[..from].iter().chain(&characters[from + size..]).collect::<String>().into()
                })
            });
            Box::new(cuts)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Box::new(std::iter::empty()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_less_lacks_a_member_an_item_or_letters() {
        let all: Vec<Value> = smaller(&json!({"a": ["xy"]})).collect();
        for expected in [json!({}), json!({"a": []}), json!({"a": ["x"]}), json!({"a": ["y"]})] {
            assert!(all.contains(&expected), "{expected}: {all:?}");
        }
    }
}
