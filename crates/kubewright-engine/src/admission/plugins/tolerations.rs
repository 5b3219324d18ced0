//! How tolerations are merged (`k8s.io/kubernetes/pkg/util/tolerations`).

use serde_json::Value;

/// Both lists as one, without those that others cover.
pub(super) fn merged(first: &[Value], second: &[Value]) -> Vec<Value> {
    let all: Vec<&Value> = first.iter().chain(second).collect();
    let mut merged: Vec<Value> = Vec::new();
    for (at, one) in all.iter().enumerate() {
        let covered = merged.iter().any(|other| covers(other, one))
            || all[at + 1..].iter().any(|other| one != other && covers(other, one));
        if !covered {
            merged.push((*one).clone());
        }
    }
    merged
}

/// Whether `wide` stands all that `narrow` stands.
fn covers(wide: &Value, narrow: &Value) -> bool {
    fn text<'a>(toleration: &'a Value, field: &str) -> &'a str {
        toleration[field].as_str().unwrap_or_default()
    }
    if wide == narrow {
        return true;
    }
    let all_keys = text(wide, "key").is_empty() && text(wide, "operator") == "Exists";
    let all_effects = text(wide, "effect").is_empty();
    if (text(narrow, "key") != text(wide, "key") && !all_keys)
        || (text(narrow, "effect") != text(wide, "effect") && !all_effects)
    {
        return false;
    }
    if text(wide, "effect") == "NoExecute"
        && let Some(seconds) = wide["tolerationSeconds"].as_i64()
        && narrow["tolerationSeconds"].as_i64().is_none_or(|asked| asked > seconds)
    {
        return false;
    }
    match text(wide, "operator") {
        "" | "Equal" => text(narrow, "operator") == "Equal" && text(narrow, "value") == text(wide, "value"),
        "Exists" => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn merging_leaves_out_what_another_covers() {
        let of = |first: &[&Value], second: &[&Value]| {
            let owned = |list: &[&Value]| list.iter().map(|one| (*one).clone()).collect::<Vec<_>>();
            merged(&owned(first), &owned(second))
        };
        let narrow = json!({"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"});
        let wide = json!({"key": "k", "operator": "Exists"});
        let other = json!({"key": "l", "operator": "Exists"});
        assert_eq!(of(&[&narrow], &[&wide, &other]), [wide.clone(), other]);
        assert_eq!(of(&[&wide], &[&narrow]), vec![wide.clone()]);
        assert_eq!(of(&[&wide], &[&wide]), vec![wide.clone()]);
        let short = json!({"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5});
        let long = json!({"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9});
        assert_eq!(of(&[&short], &[&long]), vec![long.clone()]);
    }
}
