//! Server-side apply: a configuration becomes part of an object, and its fields are its manager's
//! (`sigs.k8s.io/structured-merge-diff/v6/merge`, `Updater.Apply`, and the managers of
//! `k8s.io/apimachinery/pkg/util/managedfields/internal` around it).

use kubewright_meta::{ApiError, TypeNames, object};
use serde_json::Value;

use super::check::{check, misfit};
use super::conflict::{Conflict, refuse};
use super::content::fields;
use super::differences::{Differences, NotCompared};
use super::element::same;
use super::last_applied;
use super::managed::{Entry, Managed, Manager, Operation};
use super::merge::merge;
use super::prune::prune;
use super::shape::Shape;
use super::update::{Write, put_managed, take_from_all, take_managed, without_system};
use super::versions::Version;
use crate::built_in;
use crate::decode::{self, Reading};

/// Who owns what was there before anybody applied.
const BEFORE: &str = "before-first-apply";

/// Why an apply fails.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// Others manage these fields.
    Conflicts(Vec<Conflict>),
    /// Anything else.
    Other(ApiError),
}

impl From<Failure> for ApiError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Conflicts(conflicts) => refuse(&conflicts),
            Failure::Other(error) => error,
        }
    }
}

/// An error that Kubernetes gives no reason for.
fn unexplained(what: String) -> Failure {
    Failure::Other(ApiError::unexplained(what))
}

impl Write<'_> {
    /// The object that comes out of applying a configuration to `live` (`None`: there is none yet), with its
    /// `metadata.managedFields`. It is neither typed nor defaulted yet.
    ///
    /// # Errors
    /// 400 for a configuration of another type, or one with managed fields; 409 for fields that others manage, unless
    /// `force`; 500 without a reason (as in Kubernetes) for one that does not fit the schema.
    pub fn apply(&self, live: Option<&Value>, config: &Value, force: bool) -> Result<Value, ApiError> {
        let kind = self.versions.written();
        check_type(kind, config)?;
        let mut live = live.unwrap_or(kind.blank()).clone();
        let managed = Managed::decode(take_managed(&mut live).as_ref())
            .map_err(|why| ApiError::unexplained(format!("failed to decode managed fields: {why}")))?;
        let managed = self.with_unmanaged(&live, managed).map_err(ApiError::from)?;
        let mut outcome = self.try_apply(&live, config, managed.clone(), force);
        if self.manager == last_applied::MANAGER
            && let Err(Failure::Conflicts(conflicts)) = &outcome
            && let Some(allowed) = last_applied::allowed(kind, &live)
        {
            let others: Vec<Conflict> =
                conflicts.iter().filter(|conflict| !allowed.has(&conflict.path)).cloned().collect();
            outcome = if others.is_empty() {
                self.try_apply(&live, config, managed, true)
            } else {
                Err(Failure::Conflicts(others))
            };
        }
        let (mut object, managed) = outcome?;
        if self.manager == last_applied::MANAGER {
            last_applied::renew(&mut object, config);
        }
        object::meta_mut(&mut object);
        take_managed(&mut object);
        put_managed(&mut object, managed);
        Ok(object)
    }

    /// What an object without any entry has belongs to nobody; from now on it is told apart.
    fn with_unmanaged(&self, live: &Value, managed: Managed) -> Result<Managed, Failure> {
        if !managed.entries.is_empty() {
            return Ok(managed);
        }
        let before = Self { manager: BEFORE, ..*self };
        let kind = self.versions.written();
        let failed = |why: String| {
            unexplained(format!(
                "failed to create manager for existing fields: failed to convert new object ({}) to smd typed: {why}",
                about(kind, live)
            ))
        };
        if let Some(why) = misfit(Shape::of(kind), live).filter(|_| kind.is_custom()) {
            return Err(failed(why));
        }
        before
            .updated(kind.blank(), live, managed)
            .map_err(|why| failed(check(Shape::of(kind), live).unwrap_or(why)))
    }

    fn try_apply(
        &self,
        live: &Value,
        config: &Value,
        managed: Managed,
        force: bool,
    ) -> Result<(Value, Managed), Failure> {
        let kind = self.versions.written();
        let shape = Shape::of(kind);
        if config["metadata"].get("managedFields").is_some_and(has_entries) {
            return Err(Failure::Other(ApiError::bad_request("metadata.managedFields must be nil")));
        }
        if let Some(why) = check(shape, config) {
            let about = about(kind, config);
            return Err(unexplained(format!("failed to create typed patch object ({about}): {why}")));
        }
        if self.may_misfit(&managed)
            && let Some(why) = misfit(shape, live)
        {
            return Err(unexplained(format!(
                "failed to create typed live object ({}): {why}",
                about(kind, live)
            )));
        }
        let mut managed = self.reconciled(live, managed).map_err(unexplained)?;
        let merged = merge(shape, live, config)
            .map_err(|why| unexplained(format!("failed to merge config: {why}")))?;
        let mut applied = fields(shape, config);
        if let Some(ignored) = self.ignored() {
            applied = applied.recursive_difference(ignored);
        }
        let manager = self.manager_of(Operation::Apply);
        let last = managed.entry(&manager).cloned();
        let entry = Entry {
            manager: manager.clone(),
            time: last.as_ref().and_then(|last| last.time.clone()),
            fields: applied,
        };
        match managed.entry_mut(&manager) {
            Some(same) => *same = entry,
            None => managed.entries.push(entry),
        }
        let next = match &last {
            Some(last) => prune(self.versions, merged, &managed, &manager, last),
            None => merged,
        };
        self.take(live, &next, &mut managed, &manager, force)?;
        let changes = !same(live, &next);
        self.settle(&mut managed, &manager, changes);
        Ok((next, managed))
    }

    /// Takes what changes from its managers, unless they object.
    fn take(
        &self,
        live: &Value,
        next: &Value,
        managed: &mut Managed,
        manager: &Manager,
        force: bool,
    ) -> Result<(), Failure> {
        let failed = |error: NotCompared| unexplained(error.to_string());
        let mut differences = Differences::new(self.versions, live, next, self.subresource);
        if !force {
            let mut conflicts = Vec::new();
            for entry in managed.entries.iter().filter(|entry| entry.manager != *manager) {
                let Some(difference) = differences.at(&entry.manager.api_version).map_err(failed)? else {
                    continue;
                };
                let taken = entry.fields.intersection(&difference.changed);
                conflicts.extend(Conflict::over(&entry.manager, &taken));
            }
            if !conflicts.is_empty() {
                return Err(Failure::Conflicts(conflicts));
            }
        }
        take_from_all(managed, &mut differences, Some(manager)).map_err(failed)
    }

    /// The applier's entry as it is kept: without the system's fields; with today's time where it changed the object.
    fn settle(&self, managed: &mut Managed, manager: &Manager, changes: bool) {
        managed.entries.retain_mut(|entry| {
            if entry.manager == *manager {
                entry.fields = without_system(&entry.fields);
                if changes {
                    entry.time = Some(self.now.to_owned());
                }
            }
            !entry.fields.is_empty()
        });
    }
}

/// Whether managed fields are a list of entries: where one is none, nobody sees any of them
/// (`k8s.io/apimachinery/pkg/apis/meta/v1/unstructured`, `GetManagedFields`).
fn has_entries(managed: &Value) -> bool {
    let entry = built_in::named(
        kubewright_spec::Version::DEFAULT,
        "io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry",
    );
    let reading = Reading { converts: true, ..Reading::PLAIN };
    let is_entry =
        |one: &Value| one.is_object() && decode::decode(&entry, &mut one.clone(), "", reading).is_ok();
    managed.as_array().is_some_and(|entries| entries.iter().all(is_entry))
}

/// The configuration has to say what it is.
fn check_type(kind: &dyn Version, config: &Value) -> Result<(), ApiError> {
    let text = |field: &str| config.get(field).and_then(Value::as_str).unwrap_or_default();
    if text("kind") == kind.kind() && text("apiVersion") == kind.api_version() {
        return Ok(());
    }
    Err(ApiError::bad_request(format!("invalid object type: {}", said_type(config))))
}

/// Group, version and kind that an object says it is of, as Go prints them.
fn said_type(object: &Value) -> String {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    go_type(text("apiVersion"), text("kind"))
}

fn go_type(api_version: &str, kind: &str) -> String {
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={kind}")
}

/// Group, version and kind of a kind, as Go prints them: `group/version, Kind=kind`.
#[must_use]
pub fn type_of(kind: &(impl TypeNames + ?Sized)) -> String {
    go_type(&kind.api_version(), kind.kind())
}

/// An object as messages of apply name it: `namespace/name; group/version, Kind=kind`.
#[must_use]
pub fn about(kind: &(impl TypeNames + ?Sized), object: &Value) -> String {
    format!("{}/{}; {}", object::namespace(object), object::name(object), type_of(kind))
}
