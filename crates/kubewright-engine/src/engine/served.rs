//! The kinds that are served, and views of objects that webhooks have made for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use kubewright_kinds::{Kind, Kinds, Summary};
use kubewright_store::{Entry, Revision};
use parking_lot::Mutex;

/// How many views are kept.
const MOST_KEPT: usize = 10_000;

/// The kinds that are served now, replaced at once. Views of entries that webhooks have converted for lists and watches are
/// kept until that happens: none is kept, or given, that was made for a kind as it is no longer served.
pub(super) struct Served {
    kinds: ArcSwap<Kinds>,
    views: Mutex<BTreeMap<Key, Arc<Entry<Summary>>>>,
}

/// The version asked for, and the commit that made the entry.
type Key = (String, Revision);

impl Served {
    pub(super) fn new(kinds: Kinds) -> Self {
        Self { kinds: ArcSwap::from_pointee(kinds), views: Mutex::default() }
    }

    /// The kinds that are served now.
    pub(super) fn kinds(&self) -> Arc<Kinds> {
        self.kinds.load_full()
    }

    /// These are all kinds from now on.
    pub(super) fn replace(&self, kinds: impl IntoIterator<Item = Arc<Kind>>) {
        let kinds = Arc::new(self.kinds.load().with(kinds));
        let mut views = self.views.lock();
        self.kinds.store(kinds);
        views.clear();
    }

    /// The view of an entry in a version, if it is kept.
    pub(super) fn view(&self, version: &str, entry: &Entry<Summary>) -> Option<Arc<Entry<Summary>>> {
        self.views.lock().get(&(version.to_owned(), entry.revision)).cloned()
    }

    /// Keeps views that were made for `kind`, if it is served as it was.
    pub(super) fn keep(&self, kind: &Kind, made: &[Arc<Entry<Summary>>]) {
        let mut views = self.views.lock();
        if !self.serves(kind) {
            return;
        }
        for view in made {
            if views.len() >= MOST_KEPT {
                views.clear();
            }
            views.insert((kind.version.clone(), view.revision), Arc::clone(view));
        }
    }

    /// Whether this is a kind as it is served now.
    fn serves(&self, kind: &Kind) -> bool {
        let kinds = self.kinds.load();
        kinds.get(&kind.group, &kind.version, &kind.plural).is_some_and(|now| std::ptr::eq(&**now, kind))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use kubewright_kinds::built_in::core::pod::POD;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_view_is_kept_for_as_long_as_its_kind_is_served_as_it_was() {
        let served = Served::new(Kinds::built_in());
        let pods = served.kinds().find(&POD).cloned().expect("pods are served");
        let view = Arc::new(Entry {
            key: "n/p".into(),
            bytes: Bytes::new(),
            revision: Revision(1),
            tag: Arc::new(Summary::unserved(&json!({}))),
        });
        served.keep(&pods, std::slice::from_ref(&view));
        assert!(served.view("v1", &view).is_some());
        served.replace([Arc::new(Kind::built_in(&POD))]);
        assert!(served.view("v1", &view).is_none(), "it was made for another definition");
        served.keep(&pods, std::slice::from_ref(&view));
        assert!(served.view("v1", &view).is_none(), "it came too late");
    }
}
