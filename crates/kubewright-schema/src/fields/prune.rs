//! What an applier no longer lists goes, unless somebody else manages it
//! (`sigs.k8s.io/structured-merge-diff/v6/merge`, `Updater.prune`).

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::content::{fields, with_named};
use super::managed::{Entry, Managed, Manager};
use super::remove::remove;
use super::set::Set;
use super::shape::Shape;
use super::versions::{Version, Versions};

/// An object in one of its versions.
struct Versioned<'a> {
    kind: &'a dyn Version,
    value: Cow<'a, Value>,
}

/// `merged`, an object that the configuration of `manager` was merged into, without what its configuration had `last`
/// time, has no more, and nobody else manages. `managed` has its new entry.
pub(super) fn prune(
    versions: &dyn Versions,
    merged: Value,
    managed: &Managed,
    manager: &Manager,
    last: &Entry,
) -> Value {
    let now = managed.entry(manager);
    let keeps_all = now.is_some_and(|now| {
        now.manager.api_version == last.manager.api_version && last.fields.is_subset(&now.fields)
    });
    if keeps_all || last.fields.is_empty() {
        return merged;
    }
    let Some(kind) = versions.get(&last.manager.api_version) else { return merged };
    let before = versions.convert(versions.written(), kind, &merged);
    let shape = Shape::of(kind);
    let last = with_named(Some(shape), &last.fields);
    let bare = Versioned { kind, value: Cow::Owned(remove(shape, &before, &last)) };
    let owned = with_owned(versions, &before, bare, managed);
    let owned = versions.convert(owned.kind, kind, &owned.value);
    let gone = with_named(Some(shape), &fields(shape, &before))
        .difference(&with_named(Some(shape), &fields(shape, &owned)));
    let pruned = remove(shape, &before, &gone.intersection(&last));
    versions.convert(kind, versions.written(), &pruned)
}

/// Adds back what somebody manages: in the version of `pruned` first, so that other versions can be made of it.
fn with_owned<'a>(
    versions: &'a dyn Versions,
    merged: &'a Value,
    mut pruned: Versioned<'a>,
    managed: &Managed,
) -> Versioned<'a> {
    let first = pruned.kind.api_version();
    let mut sets: BTreeMap<(bool, &str), Set> = BTreeMap::new();
    for entry in &managed.entries {
        let version = entry.manager.api_version.as_str();
        let set = sets.entry((version != first, version)).or_default();
        *set = set.union(&entry.fields);
    }
    let mut merged = Versioned { kind: pruned.kind, value: Cow::Borrowed(merged) };
    for ((_, version), set) in &sets {
        let Some(kind) = versions.get(version) else { continue };
        let all = versions.convert(merged.kind, kind, &merged.value);
        let some = versions.convert(pruned.kind, kind, &pruned.value);
        let shape = Shape::of(kind);
        let named = |set: &Set| with_named(Some(shape), set);
        let kept = named(&fields(shape, &some)).union(&named(set));
        let value = remove(shape, &all, &named(&fields(shape, &all)).difference(&kept));
        pruned = Versioned { kind, value: Cow::Owned(value) };
        merged = Versioned { kind, value: Cow::Owned(all) };
    }
    pruned
}
