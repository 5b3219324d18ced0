//! What stays as it was sent until owners are told of a write: quantities, and maps without entries, in lists that are one value. Go
//! compares such lists as they are in memory, where a quantity that was written otherwise is another one, and an empty map is not none
//! (`sigs.k8s.io/structured-merge-diff/v6/value`, `listReflect.EqualsUsing`). Times keep parts of seconds longer, wherever they are, until
//! they are written: a part of a second is a change of what is wanted, too.

use std::collections::BTreeSet;

use kubewright_meta::cost;
use kubewright_meta::quantity::canonical_text;
use serde_json::Value;

use super::empties::is_empty;
use super::node::{Additional, ListType, Node};
use crate::Coding;

/// Whether a list is one value: all but those whose items have keys.
pub(crate) fn is_one_value(list: &Node) -> bool {
    list.list_type() != Some(ListType::Map)
}

/// Whether a type has any of these.
pub(crate) fn may_be_in(root: &Node) -> bool {
    let mut seen = BTreeSet::new();
    let mut left = vec![(root.target(), false)];
    while let Some((node, in_list)) = left.pop() {
        let is_either = node.coding == Coding::Quantity || matches!(node.additional, Additional::Of(_));
        if in_list && is_either {
            return true;
        }
        if !seen.insert((std::ptr::from_ref(node) as usize, in_list)) {
            continue;
        }
        let values = match &node.additional {
            Additional::Of(values) => Some(values),
            _ => None,
        };
        left.extend(node.properties.values().chain(values).map(|below| (below.target(), in_list)));
        left.extend(node.items.iter().map(|item| (item.target(), in_list || is_one_value(node))));
    }
    false
}

/// Writes quantities in canonical form, and leaves out the maps unless the type `keeps_maps`.
pub(crate) fn settle(node: &Node, value: &mut Value, in_list: bool, keeps_maps: bool) {
    cost::step();
    let node = node.target();
    match value {
        Value::String(text) if in_list && node.coding == Coding::Quantity => {
            // Decoding has read it.
            if let Ok(canonical) = canonical_text(text) {
                *text = canonical;
            }
        }
        Value::Array(items) => {
            if let Some(item) = &node.items {
                items
                    .iter_mut()
                    .for_each(|value| settle(item, value, in_list || is_one_value(node), keeps_maps));
            }
        }
        Value::Object(members) => match &node.additional {
            Additional::Of(values) => {
                members.values_mut().for_each(|value| settle(values, value, in_list, keeps_maps));
            }
            _ => members.retain(|name, value| {
                let Some(field) = node.properties.get(name.as_str()) else { return true };
                settle(field, value, in_list, keeps_maps);
                keeps_maps || !in_list || !value.is_object() || !is_empty(field, value)
            }),
        },
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Maker, Schema};
    use super::*;

    #[test]
    fn quantities_in_a_list_that_is_one_value_stay_as_sent_until_they_are_settled() {
        let schema = Schema::built_in("io.k8s.api.core.v1.LimitRange");
        let range =
            |cpu: &str| json!({"metadata": {}, "spec": {"limits": [{"type": "Pod", "max": {"cpu": cpu}}]}});
        let mut sent = range("1.5");
        schema.decode_made(&mut sent, Maker::Client).expect("a range");
        assert_eq!(sent, range("1.5"));
        schema.decode_made(&mut sent, Maker::Merge).expect("a range");
        assert_eq!(sent, range("1.5"));
        schema.settle(&mut sent);
        assert_eq!(sent, range("1500m"));
        schema.decode(&mut sent).expect("a range");
        assert_eq!(sent, range("1500m"));
    }

    #[test]
    fn maps_without_entries_in_a_list_that_is_one_value_stay_until_they_are_settled() {
        let schema = Schema::built_in("io.k8s.api.rbac.v1.ClusterRole");
        let selected = |selector: Value| json!({"metadata": {}, "aggregationRule": {"clusterRoleSelectors": [selector]}, "rules": null});
        let mut sent = selected(json!({"matchLabels": {}}));
        schema.decode_made(&mut sent, Maker::Client).expect("a role");
        assert_eq!(sent, selected(json!({"matchLabels": {}})));
        schema.settle(&mut sent);
        assert_eq!(sent, selected(json!({})));
    }

    #[test]
    fn quantities_of_items_that_have_keys_are_read_at_once() {
        let schema = Schema::built_in("io.k8s.api.core.v1.Pod");
        let pod = |cpu: &str| {
            let container = json!({"name": "c", "resources": {"limits": {"cpu": cpu}}});
            json!({"metadata": {}, "spec": {"containers": [container]}})
        };
        let mut sent = pod("1.5");
        schema.decode_made(&mut sent, Maker::Client).expect("a pod");
        assert_eq!(sent["spec"]["containers"][0]["resources"]["limits"]["cpu"], "1500m");
    }

    #[test]
    fn times_have_parts_of_seconds_until_they_are_written() {
        let schema = Schema::built_in("io.k8s.api.core.v1.Node");
        let taint = |time: &str| json!({"key": "a", "effect": "NoExecute", "timeAdded": time});
        let node = |time: &str| json!({"metadata": {}, "spec": {"taints": [taint(time)]}, "status": {"nodeInfo": {}}});
        let mut sent = node("2026-01-01T00:00:00.5Z");
        schema.decode_made(&mut sent, Maker::Client).expect("a node");
        schema.settle(&mut sent);
        assert_eq!(sent["spec"]["taints"][0]["timeAdded"], "2026-01-01T00:00:00.5Z");
        schema.leave_out(&mut sent, crate::Encoding::Json);
        assert_eq!(sent["spec"], node("2026-01-01T00:00:00Z")["spec"]);
    }

    #[test]
    fn types_without_any_are_not_gone_through() {
        let are = |of: &str| may_be_in(Schema::built_in(format!("io.k8s.api.{of}")).root());
        assert!(
            are("core.v1.LimitRange")
                && are("apps.v1.StatefulSet")
                && are("autoscaling.v2.HorizontalPodAutoscaler")
        );
        assert!(!are("core.v1.ConfigMap") && !are("core.v1.Service") && !are("core.v1.Node"));
    }
}
