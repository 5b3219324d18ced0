//! Ownership after a write that is no apply: who changes a field owns it, alone
//! (`sigs.k8s.io/structured-merge-diff/v6/merge`, `Updater.Update`, and the managers of
//! `k8s.io/apimachinery/pkg/util/managedfields/internal` around it).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use kubewright_meta::object;
use serde_json::Value;

use super::check::{check, misfit};
use super::differences::{Differences, NotCompared};
use super::managed::{Entry, Managed, Manager, Operation, is_reset};
use super::reconcile::reconcile;
use super::set::{Set, named};
use super::shape::Shape;
use super::versions::{Version, Versions};

/// The most entries of updates that an object keeps (`DefaultMaxUpdateManagers`).
const MOST_UPDATES: usize = 10;
/// Who owns what the oldest of more updates did.
const ANCIENT: &str = "ancient-changes";

/// Fields that nobody owns: the server's own.
static SYSTEM: LazyLock<Set> = LazyLock::new(|| {
    let meta = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ];
    meta.iter().fold(named(&[&["apiVersion"], &["kind"], &["metadata"]]), |set, field| {
        set.union(&named(&[&["metadata", field]]))
    })
});

/// A write, as far as ownership is concerned.
#[derive(Clone, Copy)]
pub struct Write<'a> {
    /// The version that is written, and the others.
    pub versions: &'a dyn Versions,
    /// Who writes.
    pub manager: &'a str,
    /// What is written to; empty for the object itself.
    pub subresource: &'a str,
    /// Now, as RFC 3339 in whole seconds of UTC.
    pub now: &'a str,
}

/// Gives an object the owners that it has after a write that cannot be compared: none, or, since v1.37, those of before
/// (`k8s.io/apimachinery/pkg/util/managedfields/internal/fieldmanager.go`, `UpdateNoErrors`).
pub fn disown(written: &dyn Version, live: Option<&Value>, next: &mut Value) {
    let before = live.and_then(|live| live.get("metadata")?.get("managedFields"));
    object::set_meta(next, "managedFields", before.filter(|_| written.keeps_owners()).cloned());
}

impl Write<'_> {
    /// Sets `metadata.managedFields` of `next`, an object as the client sent it (typed and defaulted): what `live` has,
    /// or, where the client brought other entries along, those; with the fields that the write changes given to its
    /// manager. `live` is `None` for a creation. Of an object that cannot be compared, or does not fit
    /// the schema (its status, say, which is not written), see [`disown`].
    pub fn update(&self, live: Option<&Value>, next: &mut Value) {
        let given = take_managed(next);
        let old = live.and_then(|live| live.get("metadata")?.get("managedFields"));
        let Ok(managed) = self.start(old, given.as_ref()) else { return };
        let written = self.versions.written();
        let misfits = |object: &Value| misfit(Shape::of(written), object).is_some();
        if self.may_misfit(&managed) && (misfits(next) || live.is_some_and(misfits)) {
            return disown(written, live, next);
        }
        // An object whose entries were cleared stays without them until somebody applies.
        if live.is_some() && managed.entries.is_empty() {
            return;
        }
        match self.updated(live.unwrap_or(written.blank()), next, managed) {
            Ok(managed) => put_managed(next, managed),
            Err(_) => disown(written, live, next),
        }
    }

    /// Whether objects may not fit the schema: those of built-in kinds, which were decoded by their types, only where an item has lost its
    /// key.
    pub(super) fn may_misfit(&self, managed: &Managed) -> bool {
        let is_suspect = |entry: &Entry| entry.fields.has_empty_key();
        self.versions.written().is_custom() || managed.entries.iter().any(is_suspect)
    }

    /// The entries that a write starts from: the client's, where they make sense; else those of the object. A
    /// subresource takes none from the client.
    fn start(&self, old: Option<&Value>, given: Option<&Value>) -> Result<Managed, String> {
        let old = || Ok(Managed::decode(old).unwrap_or_default());
        if !self.subresource.is_empty() {
            return old();
        }
        if is_reset(given) {
            return Ok(Managed::default());
        }
        match Managed::decode(given) {
            Ok(managed) if !managed.entries.is_empty() => Ok(managed),
            _ => old(),
        }
    }

    /// The entries after a write of `new` over `live`.
    ///
    /// # Errors
    /// The objects cannot be compared.
    pub(super) fn updated(&self, live: &Value, new: &Value, managed: Managed) -> Result<Managed, String> {
        let mut managed = self.reconciled(live, managed)?;
        let mut differences = Differences::new(self.versions, live, new, self.subresource);
        take_from_all(&mut managed, &mut differences, None).map_err(|error| error.why)?;
        let version = self.versions.written().api_version();
        let changed = differences.at(&version).map_err(|error| error.why)?;
        let changed = changed.map(|difference| difference.changed.difference(&SYSTEM));
        if let Some(changed) = changed.filter(|changed| !changed.is_empty()) {
            self.give(&mut managed, changed);
        }
        cap(&mut managed);
        Ok(managed)
    }

    /// Gives fields to the manager of an update.
    fn give(&self, managed: &mut Managed, fields: Set) {
        let manager = self.manager_of(Operation::Update);
        let time = Some(self.now.to_owned());
        match managed.entry_mut(&manager) {
            Some(entry) => {
                entry.fields = entry.fields.union(&fields);
                entry.time = time;
            }
            None => managed.entries.push(Entry { manager, time, fields }),
        }
    }

    pub(super) fn manager_of(&self, operation: Operation) -> Manager {
        Manager {
            name: if self.manager.is_empty() { "unknown" } else { self.manager }.to_owned(),
            operation,
            api_version: self.versions.written().api_version(),
            subresource: self.subresource.to_owned(),
        }
    }

    pub(super) fn ignored(&self) -> Option<&Set> {
        self.versions.written().left_alone(self.subresource)
    }

    /// The entries under today's schemas, without those of versions that are not there any more.
    ///
    /// # Errors
    /// An entry is of a version that the definition of a custom kind no longer has, or that the live object does not fit.
    pub(super) fn reconciled(&self, live: &Value, mut managed: Managed) -> Result<Managed, String> {
        let mut versions = managed.entries.iter().map(|entry| &entry.manager.api_version);
        if let Some(lost) = versions.find(|version| self.versions.has_lost(version)) {
            return Err(format!("request to convert CR to an invalid group/version: {lost}"));
        }
        self.check_others(live, &managed)?;
        managed.entries.retain_mut(|entry| {
            let Some(version) = self.versions.get(&entry.manager.api_version) else { return false };
            if let Some(fields) = reconcile(Shape::of(version), &entry.fields) {
                entry.fields = fields;
            }
            true
        });
        Ok(managed)
    }

    /// Whether a custom object fits the other versions of its managers, each once. (Built-in ones were decoded by their types.)
    fn check_others(&self, live: &Value, managed: &Managed) -> Result<(), String> {
        let written = self.versions.written();
        let own = written.api_version();
        let others: BTreeSet<&str> = managed
            .entries
            .iter()
            .map(|entry| &*entry.manager.api_version)
            .filter(|one| *one != own)
            .collect();
        for version in
            others.into_iter().filter_map(|one| self.versions.get(one)).filter(|one| one.is_custom())
        {
            if let Some(why) = check(Shape::of(version), &self.versions.convert(written, version, live)) {
                return Err(why);
            }
        }
        Ok(())
    }
}

/// Takes what has changed from everybody but `except`.
pub(super) fn take_from_all(
    managed: &mut Managed,
    differences: &mut Differences<'_>,
    except: Option<&Manager>,
) -> Result<(), NotCompared> {
    let mut kept = Vec::with_capacity(managed.entries.len() + 1);
    for mut entry in std::mem::take(&mut managed.entries) {
        if except != Some(&entry.manager) {
            let Some(difference) = differences.at(&entry.manager.api_version)? else { continue };
            for gone in [&difference.changed, &difference.removed] {
                if entry.fields.intersects(gone) {
                    entry.fields = entry.fields.difference(gone);
                }
            }
        }
        if !entry.fields.is_empty() {
            kept.push(entry);
        }
    }
    managed.entries = kept;
    Ok(())
}

/// Takes the system's fields out of a set.
pub(super) fn without_system(fields: &Set) -> Set {
    fields.difference(&SYSTEM)
}

/// Merges the oldest updates of a version into one, until there are few enough
/// (`k8s.io/apimachinery/pkg/util/managedfields/internal/capmanagers.go`).
fn cap(managed: &mut Managed) {
    let is_update = |entry: &&Entry| entry.manager.operation == Operation::Update;
    let mut count = managed.entries.iter().filter(is_update).count();
    if count <= MOST_UPDATES {
        return;
    }
    let mut updates: Vec<(String, String, Manager)> = managed
        .entries
        .iter()
        .filter(is_update)
        .map(|entry| {
            (entry.time.clone().unwrap_or_default(), entry.manager.identifier(), entry.manager.clone())
        })
        .collect();
    updates.sort_by(|one, other| (&one.0, &one.1).cmp(&(&other.0, &other.1)));
    let mut first_of: BTreeMap<String, Manager> = BTreeMap::new();
    for (_, _, manager) in updates {
        if count <= MOST_UPDATES {
            return;
        }
        let Some(first) = first_of.get(&manager.api_version) else {
            first_of.insert(manager.api_version.clone(), manager);
            continue;
        };
        let bucket = Manager { name: ANCIENT.to_owned(), subresource: String::new(), ..manager.clone() };
        if managed.entry(&bucket).is_none()
            && let Some(oldest) = managed.entry_mut(&first.clone())
        {
            oldest.manager = bucket.clone();
        }
        let Some(at) = managed.entries.iter().position(|entry| entry.manager == manager) else { continue };
        let merged = managed.entries.remove(at);
        if let Some(ancient) = managed.entry_mut(&bucket) {
            ancient.fields = merged.fields.union(&ancient.fields);
            ancient.time = merged.time;
        }
        count -= 1;
    }
}

/// Takes `metadata.managedFields` out of an object.
pub(super) fn take_managed(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove("managedFields")
}

/// Sets `metadata.managedFields` of an object that has none.
pub(super) fn put_managed(object: &mut Value, managed: Managed) {
    if let (Some(entries), Some(meta)) =
        (managed.encode(), object.get_mut("metadata").and_then(Value::as_object_mut))
    {
        meta.insert("managedFields".to_owned(), entries);
    }
}
