//! DefaultTolerationSeconds: a pod stays five minutes on a node that is lost
//! (`k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds`).

use kubewright_meta::{ApiError, object};
use serde_json::{Value, json};

use super::{AdmissionPlugin, Plugin, Review};

const TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
const SECONDS: u64 = 300;

/// Gives pods a toleration for each taint of a lost node, for five minutes.
pub(super) struct DefaultTolerationSeconds;

impl AdmissionPlugin for DefaultTolerationSeconds {
    fn name(&self) -> Plugin {
        Plugin::DefaultTolerationSeconds
    }

    fn handles(&self, review: &Review<'_>) -> bool {
        review.is_of_whole()
    }

    fn mutate(&self, _: &Review<'_>, pod: &mut Value) -> Result<(), ApiError> {
        mutate(pod);
        Ok(())
    }
}

/// Adds the tolerations that a pod has nothing in the place of.
fn mutate(pod: &mut Value) {
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
}
