//! The kind `Lease` of `coordination.k8s.io/v1`.

use kubewright_meta::rules::at::At;
use kubewright_meta::rules::errors::Errors;
use kubewright_meta::rules::fill;
use kubewright_table as table;
use serde_json::Value;

use crate::rules::{Finalizers, Rules};
use crate::{Behaviour, BuiltIn};

/// All that is known of it.
pub static LEASE: BuiltIn = BuiltIn {
    columns: table::cluster::LEASES,
    rules: RULES,
    behaviour: Behaviour { create_on_update: true, conditional_update: true, ..Behaviour::BUILT_IN },
    ..BuiltIn::namespaced("io.k8s.api.coordination.v1.Lease", "coordination.k8s.io/leases")
};

/// The rules of leases (`pkg/apis/coordination/validation`).
const RULES: Rules = Rules {
    default: |lease| {
        fill::object(lease, "spec");
    },
    // Coordinated leader election is an alpha feature.
    prepare_create: |lease| drop_disabled(lease, &Value::Null),
    prepare_update: |new, old| drop_disabled(new, old),
    finalizers: Finalizers::Syntax,
    validate: |lease| Errors::of(|errors| check_lease(&At::root(lease).get("spec"), errors)),
    validate_update: |new, _| Errors::of(|errors| check_lease(&At::root(new).get("spec"), errors)),
    ..Rules::none()
};

/// Takes away what an alpha feature is for, where the object had it not before.
fn drop_disabled(lease: &mut Value, old: &Value) {
    if let Some(spec) = fill::present(lease, "spec") {
        for field in ["strategy", "preferredHolder"] {
            if old["spec"].get(field).is_none() {
                fill::remove(spec, field);
            }
        }
    }
}

fn check_lease(spec: &At<'_>, errors: &mut Errors) {
    errors.positive(&spec.get("leaseDurationSeconds"));
    errors.non_negative(&spec.get("leaseTransitions"));
}
