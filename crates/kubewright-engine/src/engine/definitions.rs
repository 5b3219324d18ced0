//! CustomResourceDefinitions come into force: what they make is served before anybody is told of them, at once and with no
//! controller. The rules of a definition are in [`kubewright_kinds::definition`].

use std::collections::BTreeSet;
use std::sync::Arc;

use kubewright_kinds::definition::{self, Versions};
use kubewright_kinds::{Kind, Role, Summary, encode};
use kubewright_meta::object;
use kubewright_store::{Change, CommitError, Conflict, Entry, Expect, Name, Revision, Snapshot};
use serde_json::Value;
use tokio::sync::MutexGuard;

use super::Engine;
use super::waiting::Waiting;

/// What is known of definitions beside their objects, and whose turn it is to change them.
#[derive(Default)]
pub(crate) struct Definitions {
    /// Those that lack a name.
    waiting: parking_lot::Mutex<Waiting>,
    /// Held while what follows from a change of one is done.
    following: tokio::sync::Mutex<()>,
    /// Held while one is committed, and with it the set of kinds changes.
    committing: tokio::sync::Mutex<()>,
}

impl Definitions {
    /// The turn of who does what follows from a change of a definition.
    pub(crate) async fn following(&self) -> MutexGuard<'_, ()> {
        self.following.lock().await
    }

    /// The turn of who commits a definition.
    async fn committing(&self) -> MutexGuard<'_, ()> {
        self.committing.lock().await
    }

    /// Keeps in mind whether a definition, as it is now, waits for a name.
    pub(crate) fn note(&self, definition: &Value) {
        self.waiting.lock().note(definition);
    }

    /// There is no definition of this name.
    pub(crate) fn forget(&self, name: &str) {
        self.waiting.lock().forget(name);
    }

    /// Those of the same group that wait for a name.
    pub(crate) fn waiting_beside(&self, definition: &Value) -> Vec<String> {
        self.waiting.lock().beside(definition)
    }

    /// Those of a group that wait for a name.
    pub(crate) fn waiting_in(&self, group: &str) -> Vec<String> {
        self.waiting.lock().of_group(group)
    }

    /// These are all that wait.
    fn replace(&self, waiting: Waiting) {
        *self.waiting.lock() = waiting;
    }
}

/// Serves what the definitions of `snapshot` say.
pub(crate) fn reload(engine: &Engine, snapshot: &Snapshot<Summary>) {
    let built_in = engine.settings().runtime_config.kinds(engine.settings().kubernetes);
    let Some(definitions) = built_in.iter().find(|kind| is_definition(kind)).cloned() else { return };
    let mut custom: Vec<Arc<Kind>> = Vec::new();
    let mut waiting = Waiting::default();
    for entry in snapshot.range(&definitions.collection, "", None) {
        let definition = encode::value(&definitions, entry);
        custom.extend(served(engine, &definition, Revision(0)).into_iter().map(Arc::new));
        waiting.note(&definition);
    }
    engine.definitions.replace(waiting);
    engine.served.replace(built_in.iter().cloned().chain(custom));
}

/// Commits a definition. What it makes is served, or no longer, before anybody is told: who sees that it is in force
/// finds its kinds, and who sees it gone does not.
pub(crate) async fn commit(
    engine: &Engine,
    definitions: &Kind,
    key: &Name,
    expect: Expect,
    change: Change<Summary>,
) -> Result<Arc<Entry<Summary>>, CommitError<Summary>> {
    let _turn = engine.definitions.committing().await;
    let stored = engine.snapshot().get(&definitions.collection, key).cloned();
    if !expect.holds(stored.as_ref()) {
        return Err(Conflict(stored).into());
    }
    serve(
        engine,
        key,
        match &change {
            Change::Put(draft) => made(engine, &serde_json::from_slice(&draft.bytes).unwrap_or_default()),
            Change::Delete(_) => Vec::new(),
        },
    );
    let outcome = engine.store.commit(&definitions.collection, key, expect, change).await;
    if outcome.is_err() {
        let made = stored.map(|entry| made(engine, &encode::value(definitions, &entry)));
        serve(engine, key, made.unwrap_or_default());
    }
    outcome
}

/// Puts what the definition `name` makes now in the place of what it made.
fn serve(engine: &Engine, name: &str, made: Vec<Kind>) {
    let before = engine.kinds();
    if !made.is_empty() || before.iter().any(|kind| made_by(kind, name)) {
        let kept = before.iter().filter(|kind| !made_by(kind, name)).cloned();
        engine.served.replace(kept.chain(made.into_iter().map(Arc::new)));
    }
}

/// The kinds that a definition makes that is about to be committed.
fn made(engine: &Engine, definition: &Value) -> Vec<Kind> {
    served(engine, definition, engine.store().revision().next())
}

/// The kinds that a definition makes, once its names are accepted; where none were made before, they are `new`
/// at this revision.
fn served(engine: &Engine, definition: &Value, new: Revision) -> Vec<Kind> {
    if !condition(definition, "Established") {
        return Vec::new();
    }
    let name = object::name(definition);
    let before = engine.kinds();
    let made_before = before.iter().find(|kind| made_by(kind, name)).and_then(|kind| kind.custom.as_ref());
    let versions = Versions::of(
        definition,
        made_before.map(|custom| &*custom.versions),
        &stored_versions(engine, definition),
    );
    let mut made = definition::kinds(definition, &Arc::new(versions));
    for kind in &mut made {
        kind.judge_by(before.version());
    }
    for custom in made.iter_mut().filter_map(|kind| kind.custom.as_mut()) {
        custom.served_since = made_before.map_or(new, |before| before.served_since);
    }
    made
}

/// The versions in which objects of a definition are stored.
fn stored_versions(engine: &Engine, definition: &Value) -> BTreeSet<String> {
    let collection = definition::collection(definition);
    let snapshot = engine.snapshot();
    let mut found = BTreeSet::new();
    for entry in snapshot.range(&collection, "", None) {
        let version = encode::stored_version(&entry.bytes);
        if !found.contains(version) {
            found.insert(version.to_owned());
        }
    }
    found
}

/// Whether its objects are definitions.
pub(crate) fn is_definition(kind: &Kind) -> bool {
    kind.behaviour.role == Role::Definition
}

/// Whether a definition makes the kind.
pub(crate) fn made_by(kind: &Kind, definition: &str) -> bool {
    kind.custom.as_ref().is_some_and(|custom| custom.definition == definition)
}

/// Whether a condition of an object is true.
pub(crate) fn condition(object: &Value, name: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == name && condition["status"] == "True")
}
