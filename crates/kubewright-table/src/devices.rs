//! Devices and claims of them (`resource.k8s.io`).

use serde_json::Value;

use super::age::{age, ago};
use super::column::{NAME, text as column};
use super::printer::Printer;
use super::value::{at, cells, count, text};

/// Prints device classes and templates of resource claims: a name and an age.
pub const NAMED: Printer = Printer::new(&[NAME, column("Age")], |object, now| {
    cells![text(object, "/metadata/name"), age(object, now)]
});

/// Prints resource claims.
pub const CLAIMS: Printer = Printer::new(&[NAME, column("State"), column("Age")], |claim, now| {
    cells![text(claim, "/metadata/name"), state(claim), age(claim, now)]
});

/// Prints resource slices.
pub const SLICES: Printer =
    Printer::new(&[NAME, column("Node"), column("Driver"), column("Pool"), column("Age")], |slice, now| {
        cells![
            text(slice, "/metadata/name"),
            text(slice, "/spec/nodeName"),
            text(slice, "/spec/driver"),
            text(slice, "/spec/pool/name"),
            age(slice, now),
        ]
    });

/// Prints rules that taint devices.
pub const TAINT_RULES: Printer = Printer::new(
    &[NAME, column("Key"), column("Value"), column("Effect"), column("TimeAdded"), column("Age")],
    |rule, now| {
        let added = text(rule, "/spec/taint/timeAdded");
        cells![
            text(rule, "/metadata/name"),
            text(rule, "/spec/taint/key"),
            text(rule, "/spec/taint/value"),
            text(rule, "/spec/taint/effect"),
            if added.is_empty() { String::new() } else { ago(added, now) },
            age(rule, now),
        ]
    },
);

/// Whether a claim is being deleted, has devices, and is used.
fn state(claim: &Value) -> String {
    let is_deleted = at(claim, "/metadata/deletionTimestamp").is_some();
    let is_allocated = at(claim, "/status/allocation").is_some();
    let states = [
        (is_deleted, "deleted"),
        (!is_allocated && !is_deleted, "pending"),
        (is_allocated, "allocated"),
        (is_allocated && count(claim, "/status/reservedFor") > 0, "reserved"),
    ];
    let told: Vec<&str> = states.iter().filter(|(is_so, _)| *is_so).map(|(_, state)| *state).collect();
    told.join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_claim_says_whether_it_has_devices_and_is_used() {
        for (claim, expected) in [
            (json!({}), "pending"),
            (json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}), "deleted"),
            (json!({"status": {"allocation": {}}}), "allocated"),
            (json!({"status": {"allocation": {}, "reservedFor": [{}]}}), "allocated,reserved"),
            (
                json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"allocation": {}}}),
                "deleted,allocated",
            ),
        ] {
            assert_eq!(state(&claim), expected, "{claim}");
        }
    }
}
