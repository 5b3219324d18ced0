//! DefaultTolerationSeconds: a pod stays five minutes on a node that is lost
//! (`k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds`). ExtendedResourceToleration: a pod that asks for a
//! device stands the taint of the nodes that have it (`.../extendedresourcetoleration`). And how tolerations are merged
//! (`pkg/util/tolerations`).

use std::collections::BTreeSet;

use kubewright_kinds::rules::resources::is_extended;
use kubewright_meta::object;
use serde_json::{Value, json};

const TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
const SECONDS: u64 = 300;

/// Adds the tolerations that a pod has nothing in the place of.
pub(super) fn mutate(pod: &mut Value) {
    let given = pod["spec"]["tolerations"].as_array().map_or(&[][..], Vec::as_slice);
    let says =
        |field: &Value, meant: &str| field.as_str().is_none_or(|text| text.is_empty() || text == meant);
    let stands =
        |taint: &str| given.iter().any(|one| says(&one["key"], taint) && says(&one["effect"], "NoExecute"));
    let missing: Vec<Value> = TAINTS
        .into_iter()
        .filter(|taint| !stands(taint))
        .map(|taint| json!({"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS}))
        .collect();
    if missing.is_empty() {
        return;
    }
    let list = object::member_mut(pod, "spec").entry("tolerations").or_insert(Value::Null);
    match list {
        Value::Array(list) => list.extend(missing),
        other => *other = Value::Array(missing),
    }
}

/// Adds a toleration for each extended resource that a container asks for; one of the same key, effect and operator is
/// replaced.
pub(super) fn stand_resources(pod: &mut Value) {
    let containers =
        ["containers", "initContainers"].into_iter().flat_map(|list| pod["spec"][list].as_array());
    let requests =
        containers.flatten().filter_map(|container| container["resources"]["requests"].as_object());
    let resources: BTreeSet<String> =
        requests.flat_map(serde_json::Map::keys).filter(|name| is_extended(name)).cloned().collect();
    for resource in resources {
        let toleration = json!({"key": resource, "operator": "Exists", "effect": "NoSchedule"});
        let list = object::member_mut(pod, "spec").entry("tolerations").or_insert_with(|| json!([]));
        if list.is_null() {
            *list = json!([]);
        }
        let Value::Array(list) = list else { continue };
        let same = |one: &&mut Value| {
            ["key", "operator", "effect"].iter().all(|field| one[*field] == toleration[*field])
                && one["value"].as_str().unwrap_or_default().is_empty()
        };
        match list.iter_mut().find(same) {
            Some(one) => *one = toleration,
            None => list.push(toleration),
        }
    }
}

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
    use super::*;

    fn keys(pod: &Value) -> Vec<&str> {
        pod["spec"]["tolerations"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|one| one["key"].as_str())
            .collect()
    }

    #[test]
    fn only_what_nothing_stands_for_is_added_and_once() {
        let mut pod = json!({"spec": {"tolerations": [{"key": TAINTS[0], "operator": "Exists"}]}});
        mutate(&mut pod);
        assert_eq!(keys(&pod), TAINTS);
        let once = pod.clone();
        mutate(&mut pod);
        assert_eq!(pod, once);
        let mut all = json!({"spec": {"tolerations": [{"operator": "Exists"}]}});
        mutate(&mut all);
        assert_eq!(all["spec"]["tolerations"].as_array().map(Vec::len), Some(1));
        let mut other = json!({"spec": {"tolerations": [{"operator": "Exists", "effect": "NoSchedule"}]}});
        mutate(&mut other);
        assert_eq!(keys(&other), TAINTS);
    }

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
