//! Any interleaving of commits, snapshots, cursors and compactions agrees with a naive model: a list of everything that
//! ever happened, from which each answer is worked out anew. So does a store on a disk that is closed and opened again in
//! between.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt;
use kubewright_store::{
    Change, CommitError, Conflict, Cursor, Disk, DiskOptions, Draft, Entry, Event, Expect, Gone, Happening,
    Limits, Memory, Name, Revision, Snapshot, Store,
};
use proptest::prelude::*;

const LIMITS: Limits = Limits { events: 4, bytes: 60 };
const COLLECTIONS: [&str; 2] = ["pods", "nodes"];
const KEYS: [&str; 6] = ["a", "a/1", "a/2", "a-b/1", "b/1", "b/2"];
const PREFIXES: [&str; 4] = ["", "a/", "a", "c/"];

/// What a test does next. Indices are taken modulo what is there.
#[derive(Clone, Debug)]
enum Step {
    Put { collection: usize, key: usize, expect: Guess, size: usize },
    Delete { collection: usize, key: usize, expect: Guess },
    Keep,
    Watch { collection: usize, back: u64 },
    Read { cursor: usize, limit: usize, wait: bool },
    Compact { back: u64 },
    Reopen,
}

/// Which expectation a commit is made with.
#[derive(Clone, Copy, Debug)]
enum Guess {
    Right,
    Absent,
    Stale,
}

fn step() -> impl Strategy<Value = Step> {
    let guess = prop_oneof![6 => Just(Guess::Right), 1 => Just(Guess::Absent), 1 => Just(Guess::Stale)];
    let at = (0..COLLECTIONS.len(), 0..KEYS.len(), guess);
    prop_oneof![
        8 => (at.clone(), 0..30_usize)
            .prop_map(|((collection, key, expect), size)| Step::Put { collection, key, expect, size }),
        4 => at.prop_map(|(collection, key, expect)| Step::Delete { collection, key, expect }),
        1 => Just(Step::Keep),
        2 => (0..COLLECTIONS.len(), 0..8_u64).prop_map(|(collection, back)| Step::Watch { collection, back }),
        5 => (0..8_usize, 1..4_usize, any::<bool>())
            .prop_map(|(cursor, limit, wait)| Step::Read { cursor, limit, wait }),
        1 => (0..6_u64).prop_map(|back| Step::Compact { back }),
        1 => Just(Step::Reopen),
    ]
}

/// One commit, as the model remembers it.
#[derive(Clone, Debug, PartialEq)]
struct Fact {
    collection: &'static str,
    key: &'static str,
    deleted: bool,
    bytes: Vec<u8>,
}

/// The naive store: the commit of revision n is `facts[n - 1]`.
#[derive(Default)]
struct Model {
    facts: Vec<Fact>,
    compacted: u64,
}

impl Model {
    fn revision(&self) -> u64 {
        self.facts.len() as u64
    }

    fn history(&self, collection: &str, until: u64) -> impl DoubleEndedIterator<Item = (u64, &Fact)> {
        let numbered = (1..).zip(&self.facts[..until as usize]).collect::<Vec<_>>();
        numbered.into_iter().filter(move |(_, fact)| fact.collection == collection)
    }

    fn contents(&self, collection: &str, at: u64) -> BTreeMap<&'static str, (u64, &[u8])> {
        let mut contents = BTreeMap::new();
        for (revision, fact) in self.history(collection, at) {
            if fact.deleted {
                contents.remove(fact.key);
            } else {
                contents.insert(fact.key, (revision, &*fact.bytes));
            }
        }
        contents
    }

    fn modified(&self, collection: &str, at: u64) -> u64 {
        self.history(collection, at).next_back().map_or(0, |(revision, _)| revision)
    }

    fn previous(&self, revision: u64, fact: &Fact) -> Option<(u64, &[u8])> {
        self.contents(fact.collection, revision - 1).remove(fact.key)
    }

    /// The last event of the collection that is not in its ring any more. Whatever came when, these are the events that
    /// were compacted, and those that do not fit together with all that came after them.
    fn dropped(&self, collection: &str) -> u64 {
        let (mut events, mut bytes) = (0, 0);
        for (revision, fact) in self.history(collection, self.revision()).rev() {
            events += 1;
            bytes += fact.bytes.len() + self.previous(revision, fact).map_or(0, |(_, bytes)| bytes.len());
            let fits = events == 1 || (events <= LIMITS.events && bytes <= LIMITS.bytes);
            if revision <= self.compacted || !fits {
                return revision;
            }
        }
        0
    }

    fn gone(&self, collection: &str, asked: u64) -> Gone {
        let oldest = self.dropped(collection).max(self.compacted);
        Gone { asked: Revision(asked), oldest: Revision(oldest), newest: Revision(self.revision()) }
    }
}

/// The store under test, beside its model.
struct Pair {
    /// Always there but for the moment between closing and opening.
    store: Option<Arc<dyn Store<()>>>,
    /// Where it is kept, if it is.
    folder: Option<PathBuf>,
    model: Model,
    cursors: Vec<(&'static str, u64, Cursor<()>)>,
    kept: Vec<Snapshot<()>>,
}

impl Pair {
    fn new(folder: Option<PathBuf>) -> Self {
        let mut pair =
            Self { store: None, folder, model: Model::default(), cursors: Vec::new(), kept: Vec::new() };
        pair.open();
        pair
    }

    /// Closes the store and opens it again, if it is one that is still there then.
    fn open(&mut self) {
        let Some(folder) = &self.folder else {
            self.store.get_or_insert_with(|| Arc::new(Memory::with_limits(LIMITS)));
            return;
        };
        self.store = None;
        self.cursors.clear();
        let options = DiskOptions { limits: LIMITS, ..DiskOptions::default() };
        let store = Disk::open(folder, options, |_| |_: &str, _: &[u8]| Ok(())).expect("it was closed well");
        self.store = Some(Arc::new(store));
    }

    fn store(&self) -> &Arc<dyn Store<()>> {
        self.store.as_ref().expect("it is open")
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Put { collection, key, expect, size } => self.commit(collection, key, expect, Some(size)),
            Step::Delete { collection, key, expect } => self.commit(collection, key, expect, None),
            Step::Keep => self.kept.push(self.store().snapshot()),
            Step::Watch { collection, back } => self.watch(COLLECTIONS[collection], back),
            Step::Read { cursor, limit, wait } => self.read(cursor, limit, wait),
            Step::Compact { back } => {
                let revision = self.model.revision().saturating_sub(back);
                self.store().compact(Revision(revision));
                self.model.compacted = self.model.compacted.max(revision);
            }
            Step::Reopen => self.open(),
        }
    }

    fn commit(&mut self, collection: usize, key: usize, expect: Guess, size: Option<usize>) {
        let (collection, key) = (COLLECTIONS[collection], KEYS[key]);
        let next = self.model.revision() + 1;
        let current =
            self.model.contents(collection, next - 1).get(key).map(|&(at, bytes)| (at, bytes.to_vec()));
        let expect = match (expect, &current) {
            (Guess::Right, Some((at, _))) => Expect::At(Revision(*at)),
            (Guess::Right | Guess::Absent, _) => Expect::Absent,
            (Guess::Stale, at) => Expect::At(Revision(at.as_ref().map_or(next, |(at, _)| at - 1))),
        };
        let bytes = vec![b'x'; size.unwrap_or(3)];
        let draft = Draft { bytes: bytes.clone(), revision_at: Some(0), tag: Arc::new(()) };
        let change = if size.is_some() { Change::Put(draft) } else { Change::Delete(draft) };

        let holds = match (expect, &current) {
            (Expect::Absent, None) => size.is_some(),
            (Expect::At(revision), Some((at, _))) => revision.0 == *at,
            _ => false,
        };
        let (collection_name, key_name) = (Name::from(collection), Name::from(key));
        match finish(self.store().commit(&collection_name, &key_name, expect, change)) {
            Ok(entry) => {
                assert!(holds, "a conflict was missed");
                let bytes = [next.to_string().as_bytes(), &bytes].concat();
                assert_eq!(seen(&entry), (key, next, &*bytes));
                self.model.facts.push(Fact { collection, key, deleted: size.is_none(), bytes });
            }
            Err(CommitError::Conflict(Conflict(there))) => {
                assert!(!holds, "there is no conflict");
                let there = there.as_deref().map(seen).map(|(_, at, bytes)| (at, bytes.to_vec()));
                assert_eq!(there, current);
            }
            Err(other) => panic!("{other}"),
        }
    }

    fn watch(&mut self, collection: &'static str, back: u64) {
        let after = self.model.revision().saturating_sub(back);
        let gone = self.model.gone(collection, after);
        match self.store().watch(&Name::from(collection), Revision(after)) {
            Ok(cursor) => {
                assert!(gone.oldest.0 <= after, "{gone}");
                self.cursors.push((collection, after, cursor));
            }
            Err(told) => {
                assert_eq!(told, gone);
                assert!(gone.oldest.0 > after, "{gone}");
            }
        }
    }

    fn read(&mut self, cursor: usize, limit: usize, wait: bool) {
        let count = self.cursors.len().max(1);
        let Some((collection, read, cursor)) = self.cursors.get_mut(cursor % count) else { return };
        let model = &self.model;
        let coming = model.history(collection, model.revision()).filter(|(revision, _)| revision > read);
        let expected: Vec<_> = coming.take(limit).collect();
        let limit = NonZeroUsize::new(limit).expect("limits start at 1");
        let result = if wait {
            match cursor.next_batch(limit).now_or_never() {
                Some(result) => result,
                None => Ok(Vec::new()),
            }
        } else {
            cursor.try_batch(limit)
        };
        match result {
            Err(gone) => {
                assert!(model.dropped(collection) > *read, "it has missed nothing");
                assert_eq!(gone, model.gone(collection, *read));
            }
            Ok(events) => {
                assert!(model.dropped(collection) <= *read, "it has missed something");
                assert_eq!(events.len(), expected.len());
                for (event, &(revision, fact)) in events.iter().zip(&expected) {
                    check_event(model, event, revision, fact);
                    *read = revision;
                }
            }
        }
        let position =
            if model.modified(collection, model.revision()) <= *read { model.revision() } else { *read };
        assert_eq!(cursor.position(), Revision(position));
    }

    /// Every snapshot that can be had, or was kept, shows what the model says.
    fn check(&self) {
        let present = self.store().snapshot();
        assert_eq!(self.store().revision(), Revision(self.model.revision()));
        assert_eq!(present.revision(), self.store().revision());
        for snapshot in self.kept.iter().chain([&present]) {
            for collection in COLLECTIONS {
                check_snapshot(&self.model, snapshot, collection);
            }
        }
        for collection in COLLECTIONS {
            for revision in 0..=self.model.revision() + 1 {
                let gone = self.model.gone(collection, revision);
                let can_be_had = (gone.oldest..=gone.newest).contains(&gone.asked);
                match self.store().snapshot_at(&Name::from(collection), Revision(revision)) {
                    Ok(snapshot) => {
                        assert!(can_be_had, "{gone}");
                        assert_eq!(snapshot.revision(), Revision(revision));
                        check_snapshot(&self.model, &snapshot, collection);
                    }
                    Err(told) => {
                        assert!(!can_be_had, "{gone}");
                        assert_eq!(told, gone);
                    }
                }
            }
        }
    }
}

fn seen(entry: &Entry<()>) -> (&str, u64, &[u8]) {
    (&entry.key, entry.revision.0, &entry.bytes)
}

fn check_event(model: &Model, event: &Event<()>, revision: u64, fact: &Fact) {
    assert_eq!(seen(&event.entry), (fact.key, revision, &*fact.bytes));
    let previous = model.previous(revision, fact);
    assert_eq!(event.previous.as_deref().map(|entry| (entry.revision.0, &*entry.bytes)), previous);
    let happening = match (fact.deleted, previous) {
        (true, _) => Happening::Deleted,
        (false, Some(_)) => Happening::Modified,
        (false, None) => Happening::Added,
    };
    assert_eq!(event.happening, happening);
}

fn check_snapshot(model: &Model, snapshot: &Snapshot<()>, collection: &str) {
    let at = snapshot.revision().0;
    let contents = model.contents(collection, at);
    assert_eq!(snapshot.len(collection), contents.len());
    assert_eq!(snapshot.modified(collection), Revision(model.modified(collection, at)));
    for key in KEYS {
        let entry = snapshot.get(collection, key).map(|entry| (entry.revision.0, &*entry.bytes));
        assert_eq!(entry, contents.get(key).copied());
    }
    for prefix in PREFIXES {
        for after in [None].into_iter().chain(KEYS.map(Some)) {
            let range: Vec<_> = snapshot.range(collection, prefix, after).map(|entry| seen(entry)).collect();
            let expected: Vec<_> = contents
                .iter()
                .filter(|(key, _)| key.starts_with(prefix) && after.is_none_or(|after| **key > after))
                .map(|(key, &(revision, bytes))| (*key, revision, bytes))
                .collect();
            assert_eq!(range, expected);
        }
    }
}

/// Waits for a commit.
fn finish<F: Future>(commit: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(commit)
}

/// Takes the steps, and checks now and then.
fn agree(mut pair: Pair, steps: &[Step]) {
    for (number, step) in steps.iter().enumerate() {
        pair.take(step);
        if number % 8 == 0 {
            pair.check();
        }
    }
    pair.check();
}

/// A folder that is not there.
fn no_folder() -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("model-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    path
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(512))]

    #[test]
    fn any_interleaving_agrees_with_the_model(steps in prop::collection::vec(step(), 1..60)) {
        agree(Pair::new(None), &steps);
    }
}

proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn any_interleaving_on_a_disk_agrees_with_the_model(steps in prop::collection::vec(step(), 1..60)) {
        agree(Pair::new(Some(no_folder())), &steps);
        let _ = std::fs::remove_dir_all(no_folder());
    }
}
