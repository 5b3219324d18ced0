//! What is refused up front that a schema cannot tell: a ValidatingAdmissionPolicy for both groups.
//!
//! Rules inside of the CRDs would do, but a CRD with rules answers a missing field with a second line about rules that were
//! not checked (`hasBlockingErr` in `k8s.io/apiextensions-apiserver/pkg/registry/customresource/strategy.go`).

use serde_json::{Value, json};

/// The name of the policy and of its binding.
pub(crate) const NAME: &str = "ats.cnat";

/// How a schedule ends that says its offset.
const OFFSET: &str = r"(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])$";
/// A date and a time of the day, to nine digits after the point.
const LOCAL: &str = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?$";

/// The policy and its binding.
pub(crate) fn objects() -> [Value; 2] {
    let spec = json!({
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [{
            "apiGroups": ["cnat.study.jayground8", "cnat.programming-kubernetes.info"],
            "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["ats"],
        }]},
        "variables": [
            {"name": "schedule", "expression": "object.spec.schedule"},
            {"name": "hasOffset", "expression": format!("variables.schedule.matches({OFFSET:?})")},
            {"name": "local", "expression": format!("variables.schedule.substring(0, size(variables.schedule) - size(variables.schedule.find({OFFSET:?})))")},
            {"name": "started", "expression": "oldObject != null && has(oldObject.status) && has(oldObject.status.phase) && oldObject.status.phase in ['RUNNING', 'DONE']"},
        ],
        "validations": [
            {
                "expression": format!("variables.local.matches({LOCAL:?}) && !format.datetime().validate(variables.local + 'Z').hasValue()"),
                "message": "spec.schedule is no date and time that exists: write it as 2026-07-14T10:12:00Z or 2026-07-14T19:12:00+09:00, or as 2026-07-14T19:12:00 with spec.timeZone",
                "reason": "Invalid",
            },
            {
                "expression": "variables.hasOffset != has(object.spec.timeZone)",
                "message": "spec.schedule does not say once which clocks it means: end it with Z or an offset such as +09:00, or else set spec.timeZone",
                "reason": "Invalid",
            },
            {
                "expression": "size(object.metadata.name) <= 63",
                "message": "metadata.name has more than 63 characters: the pod carries it as a label",
                "reason": "Invalid",
            },
            {
                "expression": "!variables.started || ['schedule', 'timeZone', 'command', 'args', 'shell', 'image'].all(field, (field in object.spec) == (field in oldObject.spec) && (!(field in object.spec) || object.spec[field] == oldObject.spec[field]))",
                "message": "the command was started already: what it is and when it runs cannot be changed any more, make another At",
                "reason": "Invalid",
            },
        ],
    });
    let of = |kind: &str, spec: Value| json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": NAME}, "spec": spec});
    [
        of("ValidatingAdmissionPolicy", spec),
        of("ValidatingAdmissionPolicyBinding", json!({"policyName": NAME, "validationActions": ["Deny"]})),
    ]
}
