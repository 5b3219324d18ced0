//! The kind `Namespace` of `v1`.

use kubewright_table as table;

use crate::rules;
use crate::selector::{Field, Fields};
use crate::{Behaviour, BuiltIn, Plugin, Role, Subresource, Verbs};

/// All that is known of it.
pub static NAMESPACE: BuiltIn = BuiltIn {
    short_names: &["ns"],
    verbs: Verbs::WithoutDeleteCollection,
    subresources: &[Subresource::Finalize, Subresource::Status],
    columns: table::cluster::NAMESPACES,
    rules: rules::namespaces::rules(),
    behaviour: Behaviour { role: Role::Namespace, deletion_answers_object: true, ..Behaviour::BUILT_IN },
    fields: Fields::of(&[Field::of("status.phase")]),
    plugins: &[Plugin::PodSecurity],
    ..BuiltIn::cluster_scoped("io.k8s.api.core.v1.Namespace", "/namespaces")
};
