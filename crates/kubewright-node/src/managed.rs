//! Which nodes are simulated.

use k8s_openapi::api::core::v1::Node;
use kubewright_meta::well_known::{NODE_ANNOTATION, PROCESS_NODE};

/// Whether a node's annotation says that its pods really run.
pub(crate) fn is_process(node: &Node) -> bool {
    let annotations = node.metadata.annotations.as_ref();
    annotations
        .and_then(|annotations| annotations.get(PROCESS_NODE.0))
        .is_some_and(|said| said == PROCESS_NODE.1)
}

/// Which nodes are simulated; pods on others are left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Managed {
    /// All that do not say that they are something else (kwok's `--manage-all-nodes`).
    All,
    /// Those that say so: `kwok.x-k8s.io/node: fake`.
    Fake,
}

impl Managed {
    /// Whoever asks for nodes has all that come later simulated too; whoever asks for none, only those that say so.
    pub(crate) fn of(nodes: usize) -> Self {
        if nodes == 0 { Self::Fake } else { Self::All }
    }

    /// Whether pods are placed on the node.
    pub(crate) fn places_on(self, node: &Node) -> bool {
        self.includes(node) || is_process(node)
    }

    /// Whether the node is simulated.
    pub(crate) fn includes(self, node: &Node) -> bool {
        let said =
            node.metadata.annotations.as_ref().and_then(|annotations| annotations.get(NODE_ANNOTATION));
        match self {
            Self::All => said.is_none_or(|said| said == "fake"),
            Self::Fake => said.is_some_and(|said| said == "fake"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_that_says_that_it_is_fake_is_always_simulated() {
        let node = |annotations: serde_json::Value| -> Node {
            kubewright_objects::from_value(json!({"metadata": {"annotations": annotations}})).expect("a node")
        };
        let (fake, plain, other) =
            (node(json!({NODE_ANNOTATION: "fake"})), node(json!({})), node(json!({NODE_ANNOTATION: "real"})));
        assert!(Managed::of(0).includes(&fake) && Managed::of(1).includes(&fake));
        assert!(!Managed::of(0).includes(&plain) && Managed::of(1).includes(&plain));
        assert!(!Managed::of(0).includes(&other) && !Managed::of(1).includes(&other));
        let process = node(json!({NODE_ANNOTATION: "process"}));
        assert!(!Managed::of(0).includes(&process) && !Managed::of(1).includes(&process));
        assert!(Managed::of(0).places_on(&process) && Managed::of(1).places_on(&process));
        assert!(!Managed::of(1).places_on(&other));
    }
}
