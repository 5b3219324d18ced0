//! Persistent volume claims, alone and as templates of other kinds.

use kubewright_meta::FieldError;
use serde_json::{Value, json};

use super::super::at::{At, same};
use super::super::errors::Errors;
use super::super::quantity::Quantity;
use super::super::{Again, Rules, fill, resources, selector, structs, text};
use super::{VOLUME_MODES, check_access_modes};

const FIXED: &str = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";

pub(crate) const fn rules() -> Rules {
    Rules {
        default,
        prepare_create: |claim| {
            fill::set(claim, "status", json!({"phase": "Pending"}));
            drop_foreign_sources(claim, None);
        },
        // The phase.
        lacks_defaults: |_| true,
        prepare_update: |new, old| drop_foreign_sources(new, Some(old)),
        again: Again::Metadata,
        validate: |claim| Errors::of(|errors| check_spec(&At::root(claim).get("spec"), errors)),
        validate_update: |new, old| {
            Errors::of(|errors| {
                let (new, old) = (At::root(new), At::root(old));
                check_spec_of(&new.get("spec"), has_source_of_group(&old.get("spec")), errors);
                check_change(&new, &old, errors);
            })
        },
        validate_status: |new, _| {
            Errors::of(|errors| {
                check_status(&At::root(new).get("status"), errors);
            })
        },
        ..Rules::none()
    }
}

/// The defaults of a claim.
pub(crate) fn default(claim: &mut Value) {
    default_spec(claim);
    if let Some(status) = fill::object(claim, "status") {
        fill::blank(status, "phase", "Pending");
        fill::canonical_map(status, "capacity");
        fill::canonical_map(status, "allocatedResources");
    }
}

/// The defaults of the spec of a claim or of a template of one.
pub(crate) fn default_spec(claim: &mut Value) {
    let Some(spec) = fill::object(claim, "spec") else { return };
    if let Some(resources) = fill::object(spec, "resources") {
        fill::round_up_amounts(resources, "limits");
        fill::round_up_amounts(resources, "requests");
    }
    fill::absent(spec, "volumeMode", "Filesystem");
}

/// Drops what is no source of data for an old client, and what names another namespace (a feature that is off); then
/// tells the source that is left in both fields (`pkg/api/persistentvolumeclaim`).
fn drop_foreign_sources(claim: &mut Value, old: Option<&Value>) {
    let before = At::root(old.unwrap_or(&Value::Null)).get("spec");
    let (had_source, had_reference) =
        (before.get("dataSource").is_set(), before.get("dataSourceRef").is_set());
    let Some(spec) = fill::present(claim, "spec") else { return };
    let at = At::root(spec);
    let (source, reference) = (at.get("dataSource"), at.get("dataSourceRef"));
    let drops_reference = !reference.get("namespace").is_empty() && !had_reference;
    let kept = matches!(
        (source.get("apiGroup").text(), source.get("kind").text()),
        ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
    );
    let has_reference = reference.is_set() && !drops_reference;
    let drops_source = source.is_set() && !had_source && !had_reference && !has_reference && !kept;
    if drops_reference {
        fill::remove(spec, "dataSourceRef");
    }
    if drops_source {
        fill::remove(spec, "dataSource");
    }
    one_source(spec);
}

/// `dataSource` and `dataSourceRef` say the same, as long as no namespace is named
/// (`pkg/registry/core/persistentvolumeclaim.NormalizeDataSources`).
fn one_source(spec: &mut Value) {
    let (old, new) = (spec.get("dataSource").cloned(), spec.get("dataSourceRef").cloned());
    let there = |source: &Option<Value>| source.as_ref().is_some_and(Value::is_object);
    match (there(&old), there(&new)) {
        (true, false) => fill::set(spec, "dataSourceRef", old),
        (false, true) if At::root(spec).dig(&["dataSourceRef", "namespace"]).is_empty() => {
            fill::set(spec, "dataSource", new);
            if let Some(source) = fill::present(spec, "dataSource") {
                fill::remove(source, "namespace");
            }
        }
        _ => {}
    }
}

const RESIZES: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

/// Checks a status (`ValidatePersistentVolumeClaimStatusUpdate`).
fn check_status(status: &At<'_>, errors: &mut Errors) {
    let amounts = |list: &At<'_>, errors: &mut Errors| {
        for (_, amount) in list.entries() {
            if let Some(bytes) = Quantity::of(amount.value).filter(|bytes| bytes.sign().is_lt()) {
                errors.invalid_as(&amount, bytes.whole(), "must be a valid resource quantity");
            }
        }
    };
    amounts(&status.get("capacity"), errors);
    let states = status.get("allocatedResourceStatuses");
    for (key, state) in states.entries() {
        check_resource(key, &states, errors);
        if !RESIZES.contains(&state.text()) {
            errors.push(FieldError::not_supported(&states.path, key, RESIZES));
        }
    }
    let allocated = status.get("allocatedResources");
    for (key, amount) in allocated.entries() {
        let before = errors.count();
        check_resource(key, &allocated, errors);
        if errors.count() > before {
            continue;
        }
        match Quantity::of(amount.value) {
            Some(bytes) if bytes.sign().is_lt() => {
                errors.invalid_as(&amount, bytes.whole(), "must be a valid resource quantity");
            }
            _ => resources::amount("storage", &amount, errors),
        }
    }
}

/// Checks the name of something that claims have: storage, or what is of another domain than Kubernetes'
/// (`validatePersistentVolumeClaimResourceKey`).
fn check_resource(resource: &str, list: &At<'_>, errors: &mut Errors) {
    let wrong = text::label_key(resource);
    if wrong.is_empty() && resources::is_native(resource) && resource != "storage" {
        errors.push(FieldError::not_supported(&list.path, resource, ["storage"]));
    }
    for message in wrong {
        errors.invalid_as(list, resource, message);
    }
}

/// Checks the spec of a claim (`ValidatePersistentVolumeClaimSpec`).
pub(crate) fn check_spec(spec: &At<'_>, errors: &mut Errors) {
    check_spec_of(spec, false, errors);
}

/// Whether a spec names the group of a source: replacements may name any then, as old ones named what is none
/// (`allowInvalidAPIGroupInDataSourceOrRef`).
fn has_source_of_group(spec: &At<'_>) -> bool {
    ["dataSource", "dataSourceRef"].iter().any(|source| spec.dig(&[source, "apiGroup"]).is_set())
}

fn check_spec_of(spec: &At<'_>, any_group: bool, errors: &mut Errors) {
    check_access_modes(&spec.get("accessModes"), "at least 1 access mode is required", errors);
    selector::check(&spec.get("selector"), errors);
    let size = spec.dig(&["resources", "requests", "storage"]);
    let size = At { path: format!("{}.resources[storage]", spec.path), ..size };
    if size.is_set() {
        resources::positive(&size, errors);
    } else {
        errors.required(&size, "");
    }
    for field in ["storageClassName", "volumeAttributesClassName"] {
        errors.maybe_text(&spec.get(field), text::subdomain);
    }
    errors.maybe_one_of(&spec.get("volumeMode"), &VOLUME_MODES);
    check_sources(spec, any_group, errors);
}

fn check_sources(spec: &At<'_>, any_group: bool, errors: &mut Errors) {
    let (old, new) = (spec.get("dataSource"), spec.get("dataSourceRef"));
    for source in [&old, &new].into_iter().filter(|source| source.is_set()) {
        let (group, kind) = (source.get("apiGroup"), source.get("kind"));
        errors.need(&source.get("name"));
        errors.need(&kind);
        if group.is_empty() && kind.text() != "PersistentVolumeClaim" {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.invalid_as(source, kind.text(), detail);
        }
        if !any_group {
            errors.maybe_text(&group, text::subdomain);
        }
    }
    errors.maybe_text(&new.get("namespace"), text::label);
    if !old.is_set() || !new.is_set() {
        return;
    }
    // Kubernetes shows an empty object: a path.
    let shown = || json!({});
    if !new.get("namespace").is_empty() {
        errors.invalid_as(spec, shown(), "may not be specified when dataSourceRef.namespace is specified");
    } else if !["apiGroup", "kind", "name"].iter().all(|field| old.get(field).same(&new.get(field))) {
        errors.invalid_as(spec, shown(), "must match dataSourceRef");
    }
}

/// A bound claim may ask for more; all else stays (`ValidatePersistentVolumeClaimUpdate`).
fn check_change(new: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let (spec, before) = (new.get("spec"), old.get("spec"));
    let (mut was, mut is) = (before.value.clone(), spec.value.clone());
    if before.get("volumeName").is_empty() {
        fill::keep(&mut was, spec.value, "volumeName");
    }
    if !before.get("storageClassName").is_set() {
        fill::keep(&mut is, before.value, "storageClassName");
    }
    let bound = new.dig(&["status", "phase"]).text() == "Bound";
    let size = |spec: &At<'_>| Quantity::of(spec.dig(&["resources", "requests", "storage"]).value);
    if bound {
        fill::keep(&mut is, before.value, "volumeAttributesClassName");
        let then = before.dig(&["resources", "requests", "storage"]);
        if let Some(requests) = fill::reach(&mut is, &["resources", "requests"]) {
            fill::set(requests, "storage", then.value.clone());
        }
    }
    if !same(&was, &is) {
        let difference = structs::difference("core.PersistentVolumeClaimSpec", &was, &is);
        errors.forbidden(&spec, format!("{FIXED}\n{difference}"));
    }
    let (now, then) = (size(&spec).unwrap_or(Quantity::ZERO), size(&before).unwrap_or(Quantity::ZERO));
    if now < then {
        let real = Quantity::of(old.dig(&["status", "capacity", "storage"]).value).unwrap_or(Quantity::ZERO);
        if now <= real {
            let place = spec.dig(&["resources", "requests", "storage"]);
            errors.forbidden(&place, "field can not be less than status.capacity");
        }
    }
    let mode = At { path: "volumeMode".to_owned(), ..spec.get("volumeMode") };
    errors.immutable(&mode, &before.get("volumeMode"));
    let class = spec.get("volumeAttributesClassName");
    if !class.same(&before.get("volumeAttributesClassName"))
        && old.dig(&["status", "currentVolumeAttributesClassName"]).is_set()
        && class.is_empty()
    {
        let to = if class.is_set() { "empty string" } else { "nil" };
        errors.push(FieldError::forbidden(
            &class.path,
            format!("update to {to} is forbidden when status.currentVolumeAttributesClassName is not nil"),
        ));
    }
}
