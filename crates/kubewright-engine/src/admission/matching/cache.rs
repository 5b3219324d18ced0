//! Configurations are compiled when they have changed, not when they are asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use kubewright_kinds::BuiltIn;
use kubewright_store::{Name, Revision, Snapshot};
use serde_json::Value;

/// The objects of a built-in kind, compiled, for as long as none of them changes.
pub(crate) struct Cache<T> {
    kind: &'static BuiltIn,
    compile: fn(&Value) -> T,
    known: ArcSwap<Compiled<T>>,
}

/// A collection as it was after its last change.
pub(in crate::admission) struct Compiled<T> {
    modified: Revision,
    objects: BTreeMap<Name, (Revision, Arc<T>)>,
}

impl<T> Cache<T> {
    pub(crate) fn new(kind: &'static BuiltIn, compile: fn(&Value) -> T) -> Self {
        let known = Compiled { modified: Revision(0), objects: BTreeMap::new() };
        Self { kind, compile, known: ArcSwap::from_pointee(known) }
    }

    /// Whether there are objects.
    pub(crate) fn any<S>(&self, snapshot: &Snapshot<S>) -> bool {
        snapshot.len(self.kind.collection()) > 0
    }

    /// The objects of this moment, in the order of their names. While none of them changes this is one comparison; after a
    /// change only the changed ones are compiled.
    pub(crate) fn get<S>(&self, snapshot: &Snapshot<S>) -> Arc<Compiled<T>> {
        let modified = snapshot.modified(self.kind.collection());
        let known = self.known.load();
        if known.modified == modified {
            return Arc::clone(&known);
        }
        let objects = snapshot.range(self.kind.collection(), "", None).map(|entry| {
            let compiled = match known.objects.get(&entry.key) {
                Some((revision, compiled)) if *revision == entry.revision => Arc::clone(compiled),
                _ => {
                    let object = serde_json::from_slice(&entry.bytes).unwrap_or_default();
                    Arc::new((self.compile)(&object))
                }
            };
            (Arc::clone(&entry.key), (entry.revision, compiled))
        });
        let renewed = Arc::new(Compiled { modified, objects: objects.collect() });
        self.known.store(Arc::clone(&renewed));
        renewed
    }
}

impl<T> Compiled<T> {
    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The objects, in the order of their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.objects.values().map(|(_, compiled)| compiled)
    }
}
