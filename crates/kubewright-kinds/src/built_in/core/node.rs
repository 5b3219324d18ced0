//! The kind `Node` of `v1`.

use kubewright_table as table;

use crate::rules::{self, Rules, warnings};
use crate::selector::{Field, Fields};
use crate::{Behaviour, BuiltIn, Plugin, Proxied, Subresource};

/// All that is known of it.
pub static NODE: BuiltIn = BuiltIn {
    short_names: &["no"],
    subresources: &[Subresource::Proxy(Proxied::Node), Subresource::Status],
    columns: table::cluster::NODES,
    rules: Rules { warn: warnings::of_node, ..rules::nodes::rules() },
    behaviour: Behaviour { born_with_status: true, ..Behaviour::BUILT_IN },
    fields: Fields::of(&[Field { default: "false", ..Field::of("spec.unschedulable") }]),
    plugins: &[Plugin::TaintNodesByCondition],
    storage_prefix: Some("minions"),
    ..BuiltIn::cluster_scoped("io.k8s.api.core.v1.Node", "/nodes")
};
