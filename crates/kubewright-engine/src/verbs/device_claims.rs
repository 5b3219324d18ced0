//! Who may ask for devices as an administrator, and who may write which part of the status of a claim
//! (`pkg/registry/resource/authz.go`): what depends on the namespace and on rights.

use std::collections::BTreeSet;

use kubewright_identity::authn::split_service_account;
use kubewright_identity::authz::{self, Attributes, Rights};
use kubewright_kinds::Role;
use kubewright_kinds::built_in::core::namespace::NAMESPACE;
use kubewright_meta::{FieldError, text};
use kubewright_spec::Version;
use serde_json::Value;

use super::Part;
use crate::admission::Objects;
use crate::request::Call;

const LABEL: &str = "resource.kubernetes.io/admin-access";
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

/// What speaks against a write of a claim or template, whatever its own rules say. `verb`: `create`, `update` or `patch`.
pub(super) fn errors(
    objects: &dyn Objects,
    call: Call<'_>,
    (part, verb): (Part, &str),
    next: &Value,
    old: Option<&Value>,
) -> Vec<FieldError> {
    match (call.kind.behaviour.role, part, old) {
        (Role::DeviceClaim, Part::Main, None) => admin_request(objects, call, next, "/spec"),
        (Role::DeviceClaimTemplate, Part::Main, None) => admin_request(objects, call, next, "/spec/spec"),
        (Role::DeviceClaim, Part::Status, Some(old)) => status(objects, call, verb, next, old),
        _ => Vec::new(),
    }
}

fn admin_request(objects: &dyn Objects, call: Call<'_>, object: &Value, spec: &str) -> Vec<FieldError> {
    let requests = list(object, &format!("{spec}/devices/requests"));
    let asks = |request: &Value| request.pointer("/exactly/adminAccess") == Some(&Value::Bool(true));
    let Some(index) = requests.iter().position(asks) else { return Vec::new() };
    // Of a template, too, Kubernetes names the field as that of a claim.
    admin_access(objects, call, format!("spec.devices.requests[{index}].adminAccess"))
}

/// Only in namespaces that say so.
fn admin_access(objects: &dyn Objects, call: Call<'_>, field: String) -> Vec<FieldError> {
    let namespace = objects.object(&NAMESPACE, call.namespace);
    let label = namespace.as_ref().and_then(|namespace| namespace["metadata"]["labels"][LABEL].as_str());
    if label == Some("true") {
        return Vec::new();
    }
    let why =
        format!("admin access to devices requires the `{LABEL}: true` label on the containing namespace");
    vec![FieldError::forbidden(field, why)]
}

fn status(objects: &dyn Objects, call: Call<'_>, verb: &str, next: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let granted = |claim: &Value| {
        let results = list(claim, "/status/allocation/devices/results");
        results.iter().position(|result| result["adminAccess"] == true)
    };
    if let (None, Some(index)) = (granted(old), granted(next)) {
        let field = format!("status.allocation.devices.results[{index}].adminAccess");
        errors.extend(admin_access(objects, call, field));
    }
    // The feature DRAResourceClaimGranularStatusAuthorization is on from v1.36 on.
    if call.kind.kubernetes() >= Version::V1_36 {
        let rights = objects.rights();
        errors.extend(binding(&rights, call, verb, next, old));
        if next.pointer("/status/allocation").is_some_and(|allocation| !allocation.is_null()) {
            errors.extend(drivers(&rights, call, verb, next, old));
        }
    }
    errors
}

/// Who allocates, and says for whom, binds claims.
fn binding(rights: &Rights, call: Call<'_>, verb: &str, next: &Value, old: &Value) -> Option<FieldError> {
    let of =
        |claim: &Value, field: &str| claim.pointer(&format!("/status/{field}")).cloned().unwrap_or_default();
    let same = |field: &str| kubewright_meta::rules::at::same(&of(next, field), &of(old, field));
    if same("allocation") && same("reservedFor") {
        return None;
    }
    let why = refusal(rights, call, Attributes { verb, subresource: "binding", ..of_claims(call) })?;
    let detail = format!(
        "changing status.allocation or status.reservedFor requires resource=\"resourceclaims/binding\", verb=\"{verb}\" permission: {why}"
    );
    Some(FieldError::forbidden("status.allocation", detail))
}

/// Who tells of devices has to be allowed to for their drivers.
fn drivers(rights: &Rights, call: Call<'_>, verb: &str, next: &Value, old: &Value) -> Vec<FieldError> {
    let mut verbs = vec![format!("arbitrary-node:{verb}")];
    if runs_on(call, next) {
        verbs.insert(0, format!("associated-node:{verb}"));
    }
    let refused = |driver: &str| {
        let ask = |verb: &String| {
            let what = Attributes {
                verb,
                subresource: "driver",
                namespace: call.namespace,
                name: driver,
                ..of_claims(call)
            };
            refusal(rights, call, what)
        };
        let mut refusals = Vec::new();
        for verb in &verbs {
            refusals.push(ask(verb)?);
        }
        let detail = format!(
            "changing status.devices requires resource=\"resourceclaims/driver\", verb=\"[{}]\" permission: {}",
            verbs.join(" "),
            refusals[0]
        );
        Some(FieldError::forbidden("status.devices", detail))
    };
    changed_drivers(next, old).into_iter().filter_map(refused).collect()
}

fn of_claims<'a>(call: Call<'a>) -> Attributes<'a> {
    Attributes {
        group: &call.kind.group,
        version: &call.kind.version,
        resource: &call.kind.plural,
        ..Attributes::default()
    }
}

/// Why something is not allowed; nothing where it is.
fn refusal(rights: &Rights, call: Call<'_>, what: Attributes<'_>) -> Option<String> {
    let decision = rights.authorize(call.user, &what);
    if decision.allowed() {
        return None;
    }
    let reason = match (&decision.error, decision.reason.as_str()) {
        (Some(error), "") => error.clone(),
        (Some(error), reason) => format!("{error}: {reason}"),
        (None, reason) => reason.to_owned(),
    };
    Some(authz::forbidden(call.user, &what, &reason).message)
}

/// Whether the writer is a service account of the one node that the claim is allocated on.
fn runs_on(call: Call<'_>, claim: &Value) -> bool {
    let terms = list(claim, "/status/allocation/nodeSelector/nodeSelectorTerms");
    let [term] = terms else { return false };
    let (expressions, fields) = (list(term, "/matchExpressions"), list(term, "/matchFields"));
    let ([], [field]) = (expressions, fields) else { return false };
    if field["key"] != "metadata.name" || field["operator"] != "In" {
        return false;
    }
    let [node] = list(field, "/values") else { return false };
    let told = call.user.extra.get(NODE_NAME).map(Vec::as_slice).unwrap_or_default();
    split_service_account(&call.user.name).is_some()
        && matches!(told, [own] if node.as_str() == Some(own) && text::subdomain(own).is_empty())
}

/// The drivers of devices of which something is told that was not told before, or no longer.
fn changed_drivers<'a>(next: &'a Value, old: &'a Value) -> BTreeSet<&'a str> {
    let key = |device: &Value| ["driver", "pool", "device", "shareID"].map(|field| device[field].clone());
    let (now, before) = (list(next, "/status/devices"), list(old, "/status/devices"));
    let differs = |device: &&Value, others: &[Value]| {
        let same = others.iter().find(|other| key(other) == key(device));
        same.is_none_or(|other| !kubewright_meta::rules::at::same(other, device))
    };
    let new = now.iter().filter(|device| differs(device, before));
    let gone = before.iter().filter(|device| differs(device, now));
    new.chain(gone).filter_map(|device| device["driver"].as_str()).collect()
}

fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
