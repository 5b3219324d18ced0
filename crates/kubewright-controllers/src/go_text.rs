//! How Go prints values in the middle of messages.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// A `*LabelSelector` by `%+v` (its generated `String`).
pub(crate) fn label_selector(selector: Option<&LabelSelector>) -> String {
    let Some(selector) = selector else { return "nil".into() };
    let labels = selector.match_labels.iter().flatten();
    let labels: String = labels.map(|(key, value)| format!("{key}: {value},")).collect();
    let expressions = selector.match_expressions.iter().flatten().map(|one| {
        let values = one.values.as_deref().unwrap_or_default().join(" ");
        format!("LabelSelectorRequirement{{Key:{},Operator:{},Values:[{values}],}},", one.key, one.operator)
    });
    let expressions: String = expressions.collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_selector_reads_as_kube_controller_manager_writes_it() {
        assert_eq!(label_selector(None), "nil");
        let selector = json!({"matchLabels": {"queue": "a", "b": "c"},
            "matchExpressions": [{"key": "x", "operator": "In", "values": ["1", "2"]}]});
        let selector: LabelSelector = kubewright_objects::from_value(selector).expect("a selector");
        assert_eq!(
            label_selector(Some(&selector)),
            "&LabelSelector{MatchLabels:map[string]string{b: c,queue: a,},MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:x,Operator:In,Values:[1 2],},},}"
        );
    }
}
