//! Object metadata: `k8s.io/apimachinery/pkg/api/validation/objectmeta.go`, and what `pkg/apis/core/validation` adds
//! to it for built-in kinds.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::at::{At, same};
use super::errors::Errors;
use super::selector;
use crate::field::{FieldError, Problem};
use crate::text;

const ANNOTATIONS_LIMIT: usize = 256 * 1024;
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

/// What a name must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// A DNS subdomain (RFC 1123): most kinds.
    Subdomain,
    /// The same, where only the whole name is looked at: replication controllers.
    LongName,
    /// A DNS label (RFC 1123): namespaces, services, stateful sets.
    Label,
    /// A DNS label that starts with a letter (RFC 1035): services up to v1.35.
    OldLabel,
    /// An IP address in its canonical form.
    Address,
    /// Anything that fits in one segment of a path: RBAC.
    PathSegment,
    /// Anything at all, but for what no object may have: certificate requests.
    Any,
    /// The signer that the spec names, and a DNS subdomain: trust bundles of the cluster ([`trust_bundle_name`]).
    TrustBundle,
}

/// What is wrong with the metadata of an object, whose name was already generated.
#[must_use]
pub fn validate(object: &Value, rule: NameRule, namespaced: bool) -> Vec<FieldError> {
    Errors::of(|errors| check(&At::root(object), rule, namespaced, errors))
}

/// What is wrong with a change of metadata. Both objects are whole. That the resource version is there and the present
/// one is the store's matter, and not looked at.
#[must_use]
pub fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    Errors::of(|errors| check_update(&At::root(new).get("metadata"), &At::root(old).get("metadata"), errors))
}

/// What built-in kinds ask of finalizers beyond the syntax: a domain, or one of Kubernetes' own names. (Custom kinds
/// only warn: [`finalizer_warnings`].)
#[must_use]
pub fn validate_finalizers(object: &Value) -> Vec<FieldError> {
    Errors::of(|errors| {
        for finalizer in At::root(object).dig(&["metadata", "finalizers"]).items() {
            if is_bare(finalizer.text()) {
                errors.invalid_text(
                    &finalizer,
                    "name is neither a standard finalizer name nor is it fully qualified",
                );
            }
        }
    })
}

/// The warnings for finalizers of custom resources that have no domain and that `old` has not
/// (`apiextensions-apiserver/pkg/registry/customresource/validator.go`).
#[must_use]
pub fn finalizer_warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let names = |object: &Value| -> BTreeSet<String> {
        let finalizers = At::root(object).dig(&["metadata", "finalizers"]);
        finalizers.items().map(|finalizer| finalizer.text().to_owned()).collect()
    };
    let before = old.map(names).unwrap_or_default();
    let mut warnings = Vec::new();
    for name in names(object).difference(&before).map(String::as_str) {
        warnings.extend(
            text::label_key(name).into_iter().map(|why| format!("metadata.finalizers: {name:?}: {why}")),
        );
        if is_bare(name) {
            let path = if name.contains('.') { " including a path (/)" } else { "" };
            warnings.push(format!(
                "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
            ));
        }
    }
    warnings
}

/// What is wrong with a name: of an object, or (`prefix`) the start of a generated one.
#[must_use]
pub fn name_errors(name: &str, rule: NameRule, prefix: bool) -> Vec<String> {
    // What follows the prefix may make a last dash right.
    let masked = match name.strip_suffix('-') {
        Some(stem) if prefix && !stem.is_empty() => {
            let mut masked = stem.to_owned();
            masked.pop();
            masked.push('a');
            masked
        }
        _ => name.to_owned(),
    };
    match rule {
        NameRule::Subdomain => text::subdomain(&masked),
        NameRule::Any => Vec::new(),
        NameRule::LongName if prefix => Vec::new(),
        NameRule::LongName => text::subdomain(name)
            .into_iter()
            .map(|wrong| wrong.replace("253 characters", "253 bytes"))
            .collect(),
        NameRule::Label => text::label(&masked),
        NameRule::OldLabel => text::label_1035(&masked),
        NameRule::Address => text::canonical_ip(name),
        NameRule::TrustBundle => trust_bundle_name(name, "", prefix),
        NameRule::PathSegment if prefix => text::path_segment_prefix(name),
        NameRule::PathSegment => text::path_segment(name),
    }
}

/// What is wrong with the name of a trust bundle of a signer, or (an empty text) of none
/// (`ValidateClusterTrustBundleName` of `pkg/apis/core/validation/names.go`).
#[must_use]
pub fn trust_bundle_name(name: &str, signer: &str, prefix: bool) -> Vec<String> {
    if signer.is_empty() {
        if name.contains(':') {
            return vec!["ClusterTrustBundle without signer name must not have \":\" in its name".to_owned()];
        }
        return name_errors(name, NameRule::Subdomain, prefix);
    }
    let start = format!("{}:", signer.replace('/', ":"));
    match name.strip_prefix(&start) {
        Some(rest) => name_errors(rest, NameRule::Subdomain, prefix),
        None => {
            vec![format!("ClusterTrustBundle for signerName {signer} must be named with prefix {start}")]
        }
    }
}

fn is_bare(finalizer: &str) -> bool {
    !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(&finalizer)
}

fn check(object: &At<'_>, rule: NameRule, namespaced: bool, errors: &mut Errors) {
    let meta = object.get("metadata");
    let name_errors = |name: &str, prefix: bool| match rule {
        NameRule::TrustBundle => trust_bundle_name(name, object.dig(&["spec", "signerName"]).text(), prefix),
        rule => name_errors(name, rule, prefix),
    };
    let generate_name = meta.get("generateName");
    if !generate_name.is_empty() {
        for message in name_errors(generate_name.text(), true) {
            errors.invalid_text(&generate_name, message);
        }
    }
    let name = meta.get("name");
    if name.is_empty() {
        errors.required(&name, "name or generateName is required");
    } else {
        for message in name_errors(name.text(), false) {
            errors.invalid_text(&name, message);
        }
    }
    let namespace = meta.get("namespace");
    if namespaced {
        errors.need_text(&namespace, text::label);
    } else if !namespace.is_empty() {
        errors.forbidden(&namespace, "not allowed on this type");
    }
    errors.non_negative(&meta.get("generation"));
    selector::check_labels(&meta.get("labels"), errors);
    check_annotations(&meta.get("annotations"), errors);
    check_owners(&meta.get("ownerReferences"), errors);
    check_finalizers(&meta.get("finalizers"), errors);
    check_managers(&meta.get("managedFields"), errors);
}

fn check_update(new: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    if old.get("deletionTimestamp").is_set() {
        check_no_new_finalizers(&new.get("finalizers"), &old.get("finalizers"), errors);
    }
    let generation = |meta: &At<'_>| meta.get("generation").number().unwrap_or_default();
    if generation(new) < generation(old) {
        errors.invalid(&new.get("generation"), "must not be decremented");
    }
    for field in ["name", "namespace", "uid"] {
        let at = new.get(field);
        if at.text() != old.get(field).text() {
            errors.invalid_text(&at, "field is immutable");
        }
    }
    for field in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        errors.immutable(&new.get(field), &old.get(field));
    }
    selector::check_labels(&new.get("labels"), errors);
    check_annotations(&new.get("annotations"), errors);
    check_owners(&new.get("ownerReferences"), errors);
    check_managers(&new.get("managedFields"), errors);
}

/// Annotations: keys like those of labels (in any case), and a limit on all of them together.
pub fn check_annotations(annotations: &At<'_>, errors: &mut Errors) {
    for key in annotations.value.as_object().into_iter().flatten().map(|(key, _)| key) {
        for message in text::label_key(&key.to_lowercase()) {
            errors.invalid_as(annotations, key.as_str(), message);
        }
    }
    check_annotations_size(annotations, errors);
}

/// The limit on all annotations together.
pub fn check_annotations_size(annotations: &At<'_>, errors: &mut Errors) {
    let annotations_of = annotations.value.as_object().into_iter().flatten();
    let size: usize =
        annotations_of.map(|(key, value)| key.len() + value.as_str().unwrap_or_default().len()).sum();
    if size > ANNOTATIONS_LIMIT {
        errors.push(FieldError::too_long(&annotations.path, ANNOTATIONS_LIMIT));
    }
}

const EMPTY: &str = "must not be empty";
const NO_VERSION: &str = "must be <group>/<version> or <version>";

/// Tells what is wrong with an owner as Kubernetes did up to v1.36: without its place in the list, and of what is empty as of a bad value.
pub fn as_before_v1_37(error: &mut FieldError) {
    const OWNERS: &str = "metadata.ownerReferences";
    let Some((_, below)) = error.field.strip_prefix(OWNERS).and_then(|rest| rest.split_once(']')) else {
        return;
    };
    let is_version = below == ".apiVersion";
    error.field = format!("{OWNERS}{below}");
    if error.detail == EMPTY && error.problem == Problem::Required {
        error.problem = Problem::Invalid("".into());
    }
    if is_version && [EMPTY, NO_VERSION].contains(&&*error.detail) {
        error.detail = "version must not be empty".to_owned();
    }
}

fn check_owners(owners: &At<'_>, errors: &mut Errors) {
    let mut controller: Option<String> = None;
    for owner in owners.items() {
        let of = |field: &str| owner.get(field);
        let (group, version) = match of("apiVersion").text().split_once('/') {
            Some((_, version)) if version.contains('/') => ("", ""),
            Some((group, version)) => (group, version),
            None => ("", of("apiVersion").text()),
        };
        if version.is_empty() && !of("apiVersion").is_empty() {
            errors.invalid_text(&of("apiVersion"), NO_VERSION);
        }
        for field in ["apiVersion", "kind", "name", "uid"] {
            if of(field).is_empty() {
                errors.required(&of(field), EMPTY);
            }
        }
        if (group, version, of("kind").text()) == ("", "v1", "Event") {
            let error = FieldError::invalid(
                &owner.path,
                Value::Null,
                "/v1, Kind=Event is disallowed from being an owner",
            );
            errors.push(error.printed(printed_owner(owner.value)));
        }
        if of("controller").is_true() {
            let this = format!("{}/{}", of("kind").text(), of("name").text());
            match &controller {
                None => controller = Some(this),
                Some(first) => {
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                    );
                    let all: Vec<String> = owners.items().map(|owner| printed_owner(owner.value)).collect();
                    let error = FieldError::invalid(&owners.path, Value::Null, detail);
                    errors.push(error.printed(format!("[{}]", all.join(","))));
                }
            }
        }
    }
}

/// An owner reference as Go writes it: its fields in their own order.
fn printed_owner(owner: &Value) -> String {
    let fields = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let parts: Vec<String> = fields
        .iter()
        .filter_map(|field| match (owner.get(field), *field) {
            (Some(value), _) if !value.is_null() => Some(format!("{}:{value}", json!(field))),
            (_, "controller" | "blockOwnerDeletion") => None,
            _ => Some(format!("{}:\"\"", json!(field))),
        })
        .collect();
    format!("{{{}}}", parts.join(","))
}

fn check_finalizers(finalizers: &At<'_>, errors: &mut Errors) {
    let has = |name: &str| finalizers.items().any(|finalizer| finalizer.text() == name);
    for finalizer in finalizers.items() {
        for message in text::label_key(finalizer.text()) {
            errors.invalid_as(finalizers, finalizer.text(), message);
        }
    }
    if has("orphan") && has("foregroundDeletion") {
        errors.invalid(finalizers, "finalizer orphan and foregroundDeletion cannot be both set");
    }
}

fn check_no_new_finalizers(new: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let known: BTreeSet<&str> = old.items().map(|finalizer| finalizer.text()).collect();
    let mut extra: Vec<&str> =
        new.items().map(|finalizer| finalizer.text()).filter(|name| !known.contains(name)).collect();
    extra.sort_unstable();
    extra.dedup();
    if !extra.is_empty() {
        let listed: Vec<String> = extra.iter().map(|name| format!("{name:?}")).collect();
        errors.forbidden(
            new,
            format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                listed.join(", ")
            ),
        );
    }
}

fn check_managers(entries: &At<'_>, errors: &mut Errors) {
    for entry in entries.items() {
        if !matches!(entry.get("operation").text(), "Apply" | "Update") {
            errors.invalid_text(&entry.get("operation"), "must be `Apply` or `Update`");
        }
        if !matches!(entry.get("fieldsType").text(), "" | "FieldsV1") {
            errors.invalid_text(&entry.get("fieldsType"), "must be `FieldsV1`");
        }
        check_manager(&entry.get("manager"), errors);
        let subresource = entry.get("subresource");
        if subresource.text().len() > 256 {
            errors.push(FieldError::too_long(&subresource.path, 256));
        }
    }
}

fn check_manager(manager: &At<'_>, errors: &mut Errors) {
    if manager.text().len() > 128 {
        errors.push(FieldError::too_long(&manager.path, 128));
    }
    for (position, character) in manager.text().char_indices().filter(|(_, character)| character.is_control())
    {
        let code = u32::from(character);
        errors.invalid_text(manager, format!("invalid character U+{code:04X} (at position {position})"));
    }
}

/// What a field manager's name, given as the parameter `fieldManager`, must look like.
#[must_use]
pub fn validate_field_manager(name: &str) -> Vec<FieldError> {
    let value = Value::from(name);
    Errors::of(|errors| check_manager(&At::named("fieldManager", &value), errors))
}

/// Whether two objects have the same annotations.
pub fn same_annotations(one: &Value, other: &Value) -> bool {
    let of = |object: &Value| {
        let annotations = object.pointer("/metadata/annotations").cloned().unwrap_or_default();
        if annotations == json!({}) { Value::Null } else { annotations }
    };
    same(&of(one), &of(other))
}
