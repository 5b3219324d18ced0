//! CustomResourceDefinitions come into force: what the rest of the cluster sees of a change of one, at once and with no
//! controller. The rules of a definition are in [`kubewright_kinds::definition`].

use std::collections::BTreeSet;
use std::sync::Arc;

use kubewright_identity::authn::User;
use kubewright_kinds::definition::{self, Versions};
use kubewright_kinds::{Kind, Kinds, Role, Summary, encode};
use kubewright_meta::{ApiError, FieldError, object};
use kubewright_schema::{Candidate, Extent};
use kubewright_store::{Change, CommitError, Conflict, Entry, Expect, Name, Revision, Snapshot};
use serde_json::{Value, json};

use super::waiting::Waiting;
use super::{Call, DeleteOptions, Registry};

/// The finalizer that holds a definition until its objects are gone.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

impl Registry {
    /// What is wrong with a definition; nothing for other kinds.
    pub(super) fn errors_of_definition(&self, kind: &Kind, candidate: Candidate<'_>) -> Vec<FieldError> {
        match candidate.part {
            _ if !is_definition(kind) => Vec::new(),
            Extent::Whole => definition::validate(candidate.object, candidate.old),
            Extent::Status => definition::validate_status(candidate.object),
        }
    }

    /// What a definition asks for that is not enforced; nothing for other kinds.
    pub(super) fn warnings_of_definition(
        &self,
        kind: &Kind,
        object: &Value,
        old: Option<&Value>,
    ) -> Vec<String> {
        if is_definition(kind) { definition::warnings(object, old) } else { Vec::new() }
    }

    /// Serves what the definitions of `snapshot` say.
    pub(super) fn reload_definitions(&self, snapshot: &Snapshot<Summary>) {
        let built_in = self.settings.runtime_config.kinds();
        let Some(definitions) = built_in.iter().find(|kind| is_definition(kind)).cloned() else { return };
        let mut custom: Vec<Arc<Kind>> = Vec::new();
        let mut waiting = Waiting::default();
        for entry in snapshot.range(&definitions.collection, "", None) {
            let definition = encode::value(&definitions, entry);
            custom.extend(self.served(&definition, Revision(0)).into_iter().map(Arc::new));
            waiting.note(&definition);
        }
        *self.waiting.lock() = waiting;
        self.set_kinds(built_in.iter().cloned().chain(custom));
    }

    /// Commits a definition. What it makes is served, or no longer, before anybody is told: who sees that it is in force
    /// finds its kinds, and who sees it gone does not.
    pub(super) async fn commit_definition(
        &self,
        definitions: &Kind,
        key: &Name,
        expect: Expect,
        change: Change<Summary>,
    ) -> Result<Arc<Entry<Summary>>, CommitError<Summary>> {
        let _turn = self.serving.lock().await;
        let stored = self.snapshot().get(&definitions.collection, key).cloned();
        if !expect.holds(stored.as_ref()) {
            return Err(Conflict(stored).into());
        }
        self.serve(
            key,
            match &change {
                Change::Put(draft) => self.made(&serde_json::from_slice(&draft.bytes).unwrap_or_default()),
                Change::Delete(_) => Vec::new(),
            },
        );
        let outcome = self.store.commit(&definitions.collection, key, expect, change).await;
        if outcome.is_err() {
            let made = stored.map(|entry| self.made(&encode::value(definitions, &entry)));
            self.serve(key, made.unwrap_or_default());
        }
        outcome
    }

    /// After a commit of a definition: its status is brought up to date, and a definition that is being deleted takes
    /// its objects with it. Names that it gave up are there for others.
    pub(super) async fn definition_changed(&self, kind: &Arc<Kind>, name: &str) {
        let _turn = self.defining.lock().await;
        let Some(definition) = self.establish(kind, name).await else { return };
        self.names_freed(kind, &definition).await;
        if object::is_deleting(&definition) {
            self.delete_objects_of(kind, name).await;
        }
    }

    /// Looks again at the definitions of the same group that lack a name
    /// (`apiextensions-apiserver/pkg/controller/status/naming_controller.go`, `requeueAllOtherGroupCRDs`).
    async fn names_freed(&self, definitions: &Arc<Kind>, by: &Value) {
        let others = self.waiting.lock().beside(by);
        for other in others {
            self.establish(definitions, &other).await;
        }
    }

    /// Brings the status of a definition up to date. What it is now; nothing when it is gone.
    async fn establish(&self, kind: &Arc<Kind>, name: &str) -> Option<Value> {
        let key: Name = name.into();
        let epoch = self.epochs.now();
        while let Some(entry) = self.snapshot().get(&kind.collection, &key).cloned() {
            let current = encode::value(kind, &entry);
            let mut next = current.clone();
            definition::status(&mut next, &self.kinds(), self.world.clock.now());
            if object::is_deleting(&next) {
                terminate(&mut next, self.world.clock.now());
            }
            let now = if next == current {
                current
            } else {
                let change = Change::Put(encode::draft(kind, next.clone()));
                match self.commit(epoch, kind, &key, Expect::At(entry.revision), change).await {
                    Ok(Some(_)) => next,
                    Ok(None) => continue,
                    Err(_) => current,
                }
            };
            self.waiting.lock().note(&now);
            return Some(now);
        }
        self.waiting.lock().forget(name);
        None
    }

    /// Goes on with what a server that was stopped has left half done: definitions that are not established yet, or on
    /// their way out.
    pub(crate) async fn resume_definitions(&self) {
        let Some(definitions) = self.kinds().iter().find(|kind| is_definition(kind)).cloned() else { return };
        let snapshot = self.snapshot();
        for entry in snapshot.range(&definitions.collection, "", None) {
            self.definition_changed(&definitions, &entry.key).await;
        }
    }

    /// Puts what the definition `name` makes now in the place of what it made.
    fn serve(&self, name: &str, made: Vec<Kind>) {
        let before = self.kinds();
        if !made.is_empty() || before.iter().any(|kind| made_by(kind, name)) {
            let kept = before.iter().filter(|kind| !made_by(kind, name)).cloned();
            self.set_kinds(kept.chain(made.into_iter().map(Arc::new)));
        }
    }

    /// These are all kinds from now on. What was converted for others is forgotten, and no more of it is kept.
    fn set_kinds(&self, kinds: impl IntoIterator<Item = Arc<Kind>>) {
        let kinds = Arc::new(Kinds::of(kinds));
        self.converted.forget(|| self.kinds.store(kinds));
    }

    /// The kinds that a definition makes that is about to be committed.
    fn made(&self, definition: &Value) -> Vec<Kind> {
        self.served(definition, self.store.revision().next())
    }

    /// The kinds that a definition makes, once its names are accepted; where none were made before, they are `new`
    /// at this revision.
    fn served(&self, definition: &Value, new: Revision) -> Vec<Kind> {
        if !condition(definition, "Established") {
            return Vec::new();
        }
        let name = object::name(definition);
        let before = self.kinds();
        let made_before =
            before.iter().find(|kind| made_by(kind, name)).and_then(|kind| kind.custom.as_ref());
        let versions = Versions::of(
            definition,
            made_before.map(|custom| &*custom.versions),
            &self.stored_versions(definition),
        );
        let mut made = definition::kinds(definition, &Arc::new(versions));
        for custom in made.iter_mut().filter_map(|kind| kind.custom.as_mut()) {
            custom.served_since = made_before.map_or(new, |before| before.served_since);
        }
        made
    }

    /// The versions in which objects of a definition are stored.
    fn stored_versions(&self, definition: &Value) -> BTreeSet<String> {
        let collection = definition::collection(definition);
        let snapshot = self.snapshot();
        let mut found = BTreeSet::new();
        for entry in snapshot.range(&collection, "", None) {
            let version = encode::stored_version(&entry.bytes);
            if !found.contains(version) {
                found.insert(version.to_owned());
            }
        }
        found
    }

    async fn delete_objects_of(&self, definitions: &Arc<Kind>, name: &str) {
        let user = User::new("system:apiserver", ["system:masters"]);
        let kinds = self.kinds();
        let made: Vec<_> = kinds.iter().filter(|kind| made_by(kind, name)).collect();
        // In the version that they are stored in: nobody has to convert them for that.
        let stored = made.iter().find(|kind| kind.is_storage()).or(made.first());
        if let Some(kind) = stored.map(|kind| Arc::clone(kind)) {
            let call = Call { kind: &kind, namespace: "", name: "", user: &user };
            let all: Vec<_> = self.snapshot().range(&kind.collection, "", None).cloned().collect();
            for entry in all {
                let object = encode::value(&kind, &entry);
                let (namespace, name) = (object::namespace(&object), object::name(&object));
                // Gone meanwhile, or held by a finalizer: both are fine, the last one to go finishes the definition.
                let _ =
                    Box::pin(self.delete(Call { namespace, name, ..call }, &DeleteOptions::default())).await;
            }
        }
        self.finish_definition(definitions, name).await;
    }

    /// After an object has gone: a definition that was only waiting for it goes too.
    pub(super) async fn object_gone(&self, kind: &Kind) {
        let Some(custom) = &kind.custom else { return };
        let kinds = self.kinds();
        let mut made = kinds.iter().filter(|kind| made_by(kind, &custom.definition));
        if made.any(|kind| kind.custom.as_ref().is_some_and(|custom| !custom.terminating)) {
            return;
        }
        if let Some(definitions) = kinds.iter().find(|kind| is_definition(kind)) {
            self.finish_definition(definitions, &custom.definition).await;
        }
    }

    /// Lets a terminating definition go when none of its objects is left.
    async fn finish_definition(&self, definitions: &Arc<Kind>, name: &str) {
        let key: Name = name.into();
        let epoch = self.epochs.now();
        let snapshot = self.snapshot();
        let Some(entry) = snapshot.get(&definitions.collection, &key) else { return };
        let mut next = encode::value(definitions, entry);
        let left = self.kinds().iter().any(|kind| made_by(kind, name) && snapshot.len(&kind.collection) > 0);
        if !object::is_deleting(&next) || left {
            return;
        }
        object::remove_finalizer(&mut next, CLEANUP);
        let goes = super::update::is_finished(definitions, &next);
        let draft = encode::draft(definitions, next.clone());
        let change = if goes { Change::Delete(draft) } else { Change::Put(draft) };
        let outcome = self.commit(epoch, definitions, &key, Expect::At(entry.revision), change).await;
        if matches!(outcome, Ok(Some(_))) {
            self.waiting.lock().forget(name);
            self.names_freed(definitions, &next).await;
        }
    }
}

pub(super) fn is_definition(kind: &Kind) -> bool {
    kind.behaviour.role == Role::Definition
}

fn made_by(kind: &Kind, definition: &str) -> bool {
    kind.custom.as_ref().is_some_and(|custom| custom.definition == definition)
}

pub(super) fn condition(object: &Value, name: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == name && condition["status"] == "True")
}

/// Whether an object may come: not when its kind is about to go
/// (`apiextensions-apiserver/pkg/apiserver/customresource_handler.go`, `forbidCreateAdmission`).
///
/// # Errors
/// 403.
pub(super) fn may_come(kind: &Kind, name: &str) -> Result<(), ApiError> {
    if kind.custom.as_ref().is_some_and(|custom| custom.terminating) {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(ApiError::forbidden(&kind.group, &kind.plural, name, why));
    }
    Ok(())
}

/// A definition that is asked to go waits until its objects are gone
/// (`apiextensions-apiserver/pkg/registry/customresourcedefinition/etcd.go`, `Delete`).
pub(super) fn begin_termination(definition: &mut Value, now: jiff::Timestamp) {
    object::add_finalizer(definition, CLEANUP);
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    set_terminating(definition, "InstanceDeletionPending", message, now);
}

/// Its objects are being deleted (`apiextensions-apiserver/pkg/controller/finalizer`).
fn terminate(definition: &mut Value, now: jiff::Timestamp) {
    set_terminating(definition, "InstanceDeletionInProgress", "CustomResource deletion is in progress", now);
}

fn set_terminating(definition: &mut Value, reason: &str, message: &str, now: jiff::Timestamp) {
    let status = object::member_mut(definition, "status");
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    let Value::Array(conditions) = conditions else { return };
    match conditions.iter_mut().find(|condition| condition["type"] == "Terminating") {
        Some(condition) => {
            condition["reason"] = reason.into();
            condition["message"] = message.into();
        }
        None => conditions.push(json!({
            "type": "Terminating",
            "status": "True",
            "lastTransitionTime": object::time(now),
            "reason": reason,
            "message": message
        })),
    }
}
