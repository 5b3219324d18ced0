//! Which nodes a SecurityGroup selects, and which servers they are: pure functions.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node;
use kube::{
    ResourceExt,
    core::{Selector, SelectorExt},
};

use crate::SecurityGroupSpec;

/// `role: X` in a nodeSelector means that this label, with X behind it, is there.
const ROLE: &str = "node-role.kubernetes.io/";

/// Why a selector selects nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nodeLabelSelector: {0}")]
pub struct BadSelector(String);

/// What a spec selects.
#[derive(Clone, Debug)]
pub struct NodeSelector {
    labels: BTreeMap<String, String>,
    expressions: Selector,
}

impl NodeSelector {
    /// What `spec` selects.
    ///
    /// # Errors
    /// When an expression makes no sense, which the schema does not see.
    pub fn of(spec: &SecurityGroupSpec) -> Result<Self, BadSelector> {
        let expressions = match &spec.node_label_selector {
            None => Selector::default(),
            Some(selector) => {
                for expression in selector.match_expressions.iter().flatten() {
                    let values = expression.values.as_ref().map_or(0, Vec::len);
                    if (values == 0) == matches!(expression.operator.as_str(), "In" | "NotIn") {
                        return Err(BadSelector(format!(
                            "{} has {values} values with the operator {}",
                            expression.key, expression.operator
                        )));
                    }
                }
                Selector::try_from(selector.clone()).map_err(|error| BadSelector(error.to_string()))?
            }
        };
        Ok(Self { labels: spec.node_selector.clone(), expressions })
    }

    /// Whether a node with these labels is selected. With no selector at all none is: the schema refuses that.
    #[must_use]
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        if self.labels.is_empty() && self.expressions.selects_all() {
            return false;
        }
        let has = |(key, value): (&String, &String)| match key.as_str() {
            "role" => labels.contains_key(&format!("{ROLE}{value}")),
            _ => labels.get(key) == Some(value),
        };
        self.labels.iter().all(has) && self.expressions.matches(labels)
    }
}

/// The ID of the server that a node is: what the cloud's own controller wrote into `spec.providerID`, or else the machine's
/// own `status.nodeInfo.systemUUID`, in lower case.
///
/// # Errors
/// Why the node is no server of an OpenStack cloud.
pub fn server_id(node: &Node) -> Result<String, String> {
    let provider = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref()).unwrap_or_default();
    let id = if provider.is_empty() {
        let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
        let uuid = info.map_or("", |info| info.system_uuid.as_str());
        if uuid.is_empty() {
            return Err("it has neither spec.providerID nor status.nodeInfo.systemUUID".to_owned());
        }
        uuid
    } else {
        // `openstack:///ID`, or with a region: `openstack://REGION/ID` (cloud-provider-openstack, `instances.go`).
        let id = provider.strip_prefix("openstack://").and_then(|rest| rest.split_once('/'));
        id.ok_or_else(|| format!("its spec.providerID {provider:?} is not of OpenStack"))?.1
    };
    let is_id = id.len() == 36 && id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    if is_id { Ok(id.to_ascii_lowercase()) } else { Err(format!("{id:?} is no ID of a server")) }
}

/// A selected node, and the ID of its server or why it has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectedNode {
    /// The node's name.
    pub name: String,
    /// Its server.
    pub server: Result<String, String>,
}

/// The selected ones of these nodes, in their order.
pub fn select<'a>(selector: &NodeSelector, nodes: impl IntoIterator<Item = &'a Node>) -> Vec<SelectedNode> {
    let selected = nodes.into_iter().filter(|node| selector.matches(node.labels()));
    selected.map(|node| SelectedNode { name: node.name_any(), server: server_id(node) }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const ID: &str = "11111111-2222-3333-4444-55555555abcd";

    fn node(provider: &str, uuid: &str) -> Node {
        kubewright::object::from_value(json!({
            "metadata": {"name": "a"},
            "spec": {"providerID": provider},
            "status": {"nodeInfo": {
                "systemUUID": uuid, "architecture": "", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "",
                "kubeProxyVersion": "", "kubeletVersion": "", "machineID": "", "operatingSystem": "", "osImage": "",
            }},
        }))
        .expect("a node")
    }

    fn matches(spec: Value, labels: Value) -> bool {
        let mut spec = spec;
        spec["name"] = "x".into();
        let spec: SecurityGroupSpec = kubewright::object::from_value(spec).expect("a spec");
        let labels = kubewright::object::from_value(labels).expect("labels");
        NodeSelector::of(&spec).expect("a selector").matches(&labels)
    }

    /// SG-03.
    #[test]
    fn sg_03_the_server_is_the_system_uuid_in_lower_case() {
        assert_eq!(server_id(&node("", &ID.to_uppercase())).as_deref(), Ok(ID));
    }

    #[test]
    fn the_provider_id_goes_first_and_other_clouds_are_not_ours() {
        let other = "99999999-2222-3333-4444-55555555abcd";
        assert_eq!(server_id(&node(&format!("openstack:///{ID}"), other)).as_deref(), Ok(ID));
        assert_eq!(server_id(&node(&format!("openstack://RegionOne/{ID}"), other)).as_deref(), Ok(ID));
        for (provider, uuid) in [("aws:///eu/i-0abc", ID), ("openstack:///x", ID), ("", ""), ("", "ec2-1")] {
            assert!(server_id(&node(provider, uuid)).is_err(), "{provider} {uuid}");
        }
    }

    /// SG-04: `role: X` is the label of the role, everything else a label with its value, and all of them count.
    #[test]
    fn sg_04_role_means_the_label_of_the_role_and_all_entries_count() {
        let master = json!({"node-role.kubernetes.io/master": ""});
        let both = json!({"node-role.kubernetes.io/master": "", "foo": "bar"});
        let role = json!({"nodeSelector": {"role": "master"}});
        let tight = json!({"nodeSelector": {"role": "master", "foo": "bar"}});
        assert!(matches(role.clone(), master.clone()) && matches(role.clone(), both.clone()));
        assert!(!matches(tight.clone(), master.clone()) && matches(tight, both.clone()));
        assert!(!matches(role, json!({"role": "master"})));
        assert!(!matches(json!({"nodeSelector": {}}), both));
    }

    #[test]
    fn expressions_select_too_and_restrict_the_labels() {
        let selector = |operator: &str, values: Value| {
            json!({"nodeLabelSelector": {"matchExpressions": [
                {"key": "zone", "operator": operator, "values": values}]}})
        };
        assert!(matches(selector("In", json!(["a", "b"])), json!({"zone": "b"})));
        assert!(!matches(selector("NotIn", json!(["a", "b"])), json!({"zone": "b"})));
        assert!(matches(selector("Exists", json!([])), json!({"zone": "b"})));
        let mut spec = selector("DoesNotExist", json!([]));
        spec["nodeSelector"] = json!({"role": "x"});
        assert!(matches(spec.clone(), json!({"node-role.kubernetes.io/x": "true"})));
        assert!(!matches(spec, json!({"node-role.kubernetes.io/x": "", "zone": "a"})));
    }

    #[test]
    fn an_expression_that_makes_no_sense_is_an_error_and_selects_nobody() {
        for (operator, values) in [("In", json!([])), ("Exists", json!(["a"])), ("Near", json!([]))] {
            let spec = json!({"name": "x", "nodeLabelSelector": {"matchExpressions": [
                {"key": "zone", "operator": operator, "values": values}]}});
            let spec: SecurityGroupSpec = kubewright::object::from_value(spec).expect("a spec");
            assert!(NodeSelector::of(&spec).is_err(), "{operator}");
        }
    }
}
