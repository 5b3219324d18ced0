//! Devices: their classes, slices, taints, and claims of them (`pkg/apis/resource/validation`, `pkg/apis/resource/v1/defaults.go`,
//! `pkg/registry/resource/*/strategy.go`).

mod capacity;
mod classes;
mod names;
mod requests;
mod shapes;
mod slices;
mod spec;
mod status;
mod taints;

pub(crate) use classes::rules as classes;
pub(crate) use slices::rules as slices;
pub(crate) use spec::{claims, templates};
pub(crate) use taints::rules as taint_rules;

use std::collections::BTreeSet;

use kubewright_meta::FieldError;

use super::at::At;
use super::errors::Errors;
use super::version::since;
use kubewright_spec::Version;

/// Checks each item of a list that may not be longer than this (`validateSlice`): where it is, nothing else is looked at.
fn check_list(
    list: &At<'_>,
    most: usize,
    errors: &mut Errors,
    mut check: impl FnMut(&At<'_>, &mut Errors),
) -> bool {
    if list.len() > most {
        errors.too_many(list, list.len(), most);
        return false;
    }
    for item in list.items() {
        check(&item, errors);
    }
    true
}

/// Whether anything in the list at `field` has one of these members.
fn any_has(parent: Option<&serde_json::Value>, list: &str, members: &[&str]) -> bool {
    let items = parent.and_then(|parent| parent.get(list)).and_then(serde_json::Value::as_array);
    items.into_iter().flatten().any(|item| members.iter().any(|member| At::root(item).get(member).is_set()))
}

/// The same of a list in which each item has a key of its own (`validateSet`).
fn check_set(
    list: &At<'_>,
    most: usize,
    errors: &mut Errors,
    check: impl FnMut(&At<'_>, &mut Errors),
    key: impl Fn(&At<'_>) -> String,
) {
    if !check_list(list, most, errors, check) {
        return;
    }
    let mut seen = BTreeSet::new();
    for item in list.items() {
        let known = key(&item);
        if seen.contains(&known) {
            errors.push(FieldError::duplicate(&item.path, known));
        } else {
            seen.insert(known);
        }
    }
}

/// Checks the keys and values of a map that may not have more entries than this (`validateMap`). Keys are told as of the map; in
/// v1.35 as of their entries.
fn check_map(
    map: &At<'_>,
    most: usize,
    errors: &mut Errors,
    check_key: impl Fn(&At<'_>, &str, &mut Errors),
    mut check: impl FnMut(&At<'_>, &mut Errors),
) {
    if map.len() > most {
        errors.too_many(map, map.len(), most);
        return;
    }
    for (key, value) in map.entries() {
        check_key(if since(Version::V1_36) { map } else { &value }, key, errors);
        check(&value, errors);
    }
}

/// The text itself is the key of an item.
fn itself(item: &At<'_>) -> String {
    item.text().to_owned()
}

/// The name of an item is its key.
fn by_name(item: &At<'_>) -> String {
    item.get("name").text().to_owned()
}
