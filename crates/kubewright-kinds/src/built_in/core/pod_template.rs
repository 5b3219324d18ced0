//! The kind `PodTemplate` of `v1`.

use kubewright_table as table;

use crate::rules::{self, Rules, warnings};
use crate::{Behaviour, BuiltIn, Plugin};

/// All that is known of it.
pub static POD_TEMPLATE: BuiltIn = BuiltIn {
    columns: table::workloads::POD_TEMPLATES,
    rules: Rules { warn: warnings::of_pod_template, ..rules::pods::template_rules() },
    behaviour: Behaviour { deletion_answers_object: true, ..Behaviour::BUILT_IN },
    plugins: &[Plugin::PodSecurity],
    ..BuiltIn::namespaced("io.k8s.api.core.v1.PodTemplate", "/podtemplates")
};
