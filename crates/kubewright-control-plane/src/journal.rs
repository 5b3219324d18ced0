//! Who wrote what: the last commits of a cluster, each with the request that it was made for.
//!
//! A client in this process says whose request it makes (`under`) for as long as the API server works on it, and the
//! store, where it is kept (`Journaled`), notes that with the commit. So the built-in controllers are told of as well as
//! operators and the test itself; what the API server writes of its own accord has nobody's name.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use kubewright_apiserver::origin;
use kubewright_kinds::Summary;
use kubewright_store::{
    Change, Commit, Cursor, Entry, Expect, Gone, Happening, Name, Revision, Snapshot, Store,
};
use kubewright_world::Clock;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::admin::RequestInfo;

/// Works on a request, whose commits are noted to be `author`'s.
pub(crate) fn under<F: Future>(author: Arc<RequestInfo>, work: F) -> impl Future<Output = F::Output> {
    origin::within(author, work)
}

/// One commit.
#[derive(Clone, Debug)]
pub struct Written {
    /// When, in cluster time.
    pub time: Timestamp,
    /// Whether the object came, changed or went.
    pub happening: Happening,
    /// The collection of its kind: `<group>/<plural>`.
    pub collection: Name,
    /// `<namespace>/<name>`, or the name alone.
    pub key: Name,
    /// The revision that the commit made.
    pub revision: Revision,
    /// The object as it was written, as JSON; the last state of one that went.
    pub bytes: Bytes,
    /// The request that it was made for; none for what the API server does by itself.
    pub by: Option<Arc<RequestInfo>>,
}

/// The last commits of a cluster; clones are of the same ones.
#[derive(Clone, Debug)]
pub struct Journal(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clock: Clock,
    most: usize,
    kept: Mutex<Kept>,
    last: watch::Sender<Revision>,
}

#[derive(Debug, Default)]
struct Kept {
    written: VecDeque<Written>,
    forgotten: u64,
}

impl Journal {
    /// A journal of a store in which these commits were made before.
    pub(crate) fn new(clock: Clock, most: usize, before: &[Written]) -> Self {
        let last = watch::Sender::new(before.last().map_or(Revision(0), |written| written.revision));
        let forgotten = before.len().saturating_sub(most);
        let written = before[forgotten..].iter().cloned().collect();
        let kept = Mutex::new(Kept { written, forgotten: forgotten as u64 });
        Self(Arc::new(Inner { clock, most, kept, last }))
    }

    /// The commits that are kept and that `wanted` means, oldest first.
    #[must_use]
    pub fn written(&self, wanted: impl Fn(&Written) -> bool) -> Vec<Written> {
        self.0.kept.lock().written.iter().filter(|one| wanted(one)).cloned().collect()
    }

    /// How many commits that are kept `wanted` means; none is copied.
    #[must_use]
    pub fn count(&self, wanted: impl Fn(&Written) -> bool) -> usize {
        self.0.kept.lock().written.iter().filter(|one| wanted(one)).count()
    }

    /// How many commits are not kept any more.
    #[must_use]
    pub fn forgotten(&self) -> u64 {
        self.0.kept.lock().forgotten
    }

    /// The commits that were noted from a position on (0: the first that ever was), and how many of these are not kept any
    /// more. The next position is behind all of them. Commits that are made at the same time may be noted in another order than
    /// that of their revisions.
    #[must_use]
    pub fn since(&self, position: u64) -> (Vec<Written>, u64) {
        let kept = self.0.kept.lock();
        let lost = kept.forgotten.saturating_sub(position);
        let skipped = usize::try_from(position.saturating_sub(kept.forgotten)).unwrap_or(usize::MAX);
        (kept.written.iter().skip(skipped).cloned().collect(), lost)
    }

    /// Tells of every commit from now on.
    #[must_use]
    pub fn follow(&self) -> watch::Receiver<Revision> {
        self.0.last.subscribe()
    }

    fn note(&self, written: Written) {
        let revision = written.revision;
        {
            let mut kept = self.0.kept.lock();
            if kept.written.len() >= self.0.most {
                kept.written.pop_front();
                kept.forgotten += 1;
            }
            kept.written.push_back(written);
        }
        self.0.last.send_replace(revision);
    }
}

/// A store whose commits are noted.
pub(crate) struct Journaled {
    pub(crate) store: Arc<dyn Store<Summary>>,
    pub(crate) journal: Journal,
}

impl Store<Summary> for Journaled {
    fn commit(
        &self,
        collection: &Name,
        key: &Name,
        expect: Expect,
        change: Change<Summary>,
    ) -> Commit<'_, Summary> {
        let (collection, key) = (Arc::clone(collection), Arc::clone(key));
        let happening = match (&change, expect) {
            (Change::Delete(_), _) => Happening::Deleted,
            (Change::Put(_), Expect::Absent) => Happening::Added,
            (Change::Put(_), Expect::At(_)) => Happening::Modified,
        };
        Box::pin(async move {
            let entry: Arc<Entry<Summary>> = self.store.commit(&collection, &key, expect, change).await?;
            // What follows of a request in other collections, such as the address of a Service, the API server writes of its own accord.
            let is_asked_for = |by: &Arc<RequestInfo>| {
                collection.rsplit_once('/').is_some_and(|(_, plural)| plural == by.resource)
            };
            let by = origin::of_work().filter(is_asked_for);
            self.journal.note(Written {
                time: self.journal.0.clock.now(),
                happening,
                collection,
                key,
                revision: entry.revision,
                bytes: entry.bytes.clone(),
                by,
            });
            Ok(entry)
        })
    }

    fn snapshot(&self) -> Snapshot<Summary> {
        self.store.snapshot()
    }

    fn snapshot_at(&self, collection: &Name, revision: Revision) -> Result<Snapshot<Summary>, Gone> {
        self.store.snapshot_at(collection, revision)
    }

    fn watch(&self, collection: &Name, after: Revision) -> Result<Cursor<Summary>, Gone> {
        self.store.watch(collection, after)
    }

    fn compact(&self, revision: Revision) {
        self.store.compact(revision);
    }

    fn health(&self) -> Result<(), Arc<str>> {
        self.store.health()
    }

    fn revision(&self) -> Revision {
        self.store.revision()
    }
}
