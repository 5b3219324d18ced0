//! The kind `RuntimeClass` of `node.k8s.io/v1`.

use std::collections::BTreeSet;

use kubewright_meta::FieldError;
use kubewright_meta::rules::at::At;
use kubewright_meta::rules::errors::Errors;
use kubewright_meta::rules::{fill, selector};
use kubewright_meta::text;
use kubewright_spec::Version;
use kubewright_table as table;
use serde_json::Value;

use crate::rules::declared::{Declared, Mistake};
use crate::rules::pods::check_tolerations;
use crate::rules::{Again, Finalizers, Rules, resources, version, warnings};
use crate::{Behaviour, BuiltIn};

/// What its types declare from v1.37 on.
const DECLARED: &[Declared] =
    &[("handler", Mistake::Required), ("handler", Mistake::Immutable), ("handler", Mistake::Other)];

/// All that is known of it.
pub static RUNTIME_CLASS: BuiltIn = BuiltIn {
    columns: table::cluster::RUNTIME_CLASSES,
    rules: Rules { warn: warnings::of_runtime_class, ..RULES },
    behaviour: Behaviour { create_on_update: true, conditional_update: true, ..Behaviour::BUILT_IN },
    since: &[(Version::V1_37, |kind| kind.rules.declared = DECLARED)],
    ..BuiltIn::cluster_scoped("io.k8s.api.node.v1.RuntimeClass", "node.k8s.io/runtimeclasses")
};

/// The rules of runtime classes (`pkg/apis/node/validation`).
const RULES: Rules = Rules {
    default: |class| {
        if let Some(overhead) = fill::present(class, "overhead") {
            fill::canonical_map(overhead, "podFixed");
        }
    },
    again: Again::Object,
    finalizers: Finalizers::Syntax,
    validate: |class| Errors::of(|errors| check_runtime(&At::root(class), errors)),
    validate_update: |new, old| {
        Errors::of(|errors| {
            errors.immutable(&At::root(new).get("handler"), &At::root(old).get("handler"));
        })
    },
    ..Rules::none()
};

fn check_runtime(class: &At<'_>, errors: &mut Errors) {
    let handler = class.get("handler");
    // An empty one was no label up to v1.35.
    if version::since(Version::V1_36) {
        errors.need_text(&handler, text::label);
    } else {
        errors.text(&handler, text::label);
    }
    for (name, entry) in class.dig(&["overhead", "podFixed"]).entries() {
        let at = At { path: format!("overhead.limits[{name}]"), ..entry };
        resources::container_name(name, &at, errors);
        resources::amount(name, &at, errors);
    }
    let scheduling = class.get("scheduling");
    selector::check_labels(&scheduling.get("nodeSelector"), errors);
    let tolerations = scheduling.get("tolerations");
    check_tolerations(&tolerations, errors);
    let mut seen = BTreeSet::new();
    for toleration in tolerations.items() {
        let [key, operator, value, effect] =
            ["key", "operator", "value", "effect"].map(|field| toleration.get(field).text());
        if !seen.insert((key, operator, value, effect)) {
            let error = FieldError::duplicate(&toleration.path, toleration.value.clone());
            errors.push(error.printed(format!(
                "{{\"Key\":{},\"Operator\":{},\"Value\":{},\"Effect\":{},\"TolerationSeconds\":{}}}",
                Value::from(key),
                Value::from(operator),
                Value::from(value),
                Value::from(effect),
                toleration.get("tolerationSeconds").value
            )));
        }
    }
}
