//! What the store promises, one promise for each test, told to the memory backend through the trait.

use std::future::poll_fn;
use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use futures::FutureExt;
use kubewright_store::{
    Change, CommitError, Conflict, Draft, Entry, Event, Expect, Gone, Happening, Limits, Memory, Name,
    Revision, Store,
};

type Shared = Arc<dyn Store<&'static str>>;

fn store() -> Shared {
    Arc::new(Memory::new())
}

fn store_of(events: usize, bytes: usize) -> Shared {
    Arc::new(Memory::with_limits(Limits { events, bytes }))
}

fn name(text: &str) -> Name {
    Name::from(text)
}

/// A value that says its revision between two bars.
fn draft(text: &'static str) -> Draft<&'static str> {
    Draft { bytes: format!("{text}||").into_bytes(), revision_at: Some(text.len() + 1), tag: Arc::new(text) }
}

type Committed = Result<Arc<Entry<&'static str>>, CommitError<&'static str>>;

fn commit(
    store: &Shared,
    collection: &str,
    key: &str,
    expect: Expect,
    change: Change<&'static str>,
) -> Committed {
    let committed = store.commit(&name(collection), &name(key), expect, change).now_or_never();
    committed.expect("a commit to memory does not wait")
}

fn create(store: &Shared, collection: &str, key: &str) -> Revision {
    commit(store, collection, key, Expect::Absent, Change::Put(draft("new")))
        .expect("the key is free")
        .revision
}

fn update(store: &Shared, collection: &str, key: &str, at: Revision) -> Revision {
    commit(store, collection, key, Expect::At(at), Change::Put(draft("newer")))
        .expect("it is as expected")
        .revision
}

fn delete(store: &Shared, collection: &str, key: &str, at: Revision) -> Revision {
    commit(store, collection, key, Expect::At(at), Change::Delete(draft("last")))
        .expect("it is as expected")
        .revision
}

fn described<'a>(event: &'a Event<&'static str>) -> (Happening, &'a str, u64) {
    (event.happening, &event.entry.key, event.revision().0)
}

fn keys<'a>(range: impl Iterator<Item = &'a Arc<Entry<&'static str>>>) -> Vec<&'a str> {
    range.map(|entry| &*entry.key).collect()
}

#[test]
fn a_new_store_is_empty_at_revision_0() {
    let store = store();
    let snapshot = store.snapshot();
    assert_eq!(snapshot.revision(), Revision(0));
    assert_eq!(snapshot.collections().count(), 0);
    assert_eq!(snapshot.len("pods"), 0);
    assert_eq!(snapshot.modified("pods"), Revision(0));
    assert!(snapshot.get("pods", "a").is_none());
}

#[test]
fn a_commit_moves_the_revision_on_by_one_and_writes_it_into_the_bytes() {
    let store = store();
    assert_eq!(create(&store, "pods", "a"), Revision(1));
    assert_eq!(create(&store, "nodes", "a"), Revision(2));
    assert_eq!(update(&store, "pods", "a", Revision(1)), Revision(3));
    let snapshot = store.snapshot();
    let entry = snapshot.get("pods", "a").expect("it was put");
    assert_eq!(entry.bytes, "newer|3|");
    assert_eq!(*entry.tag, "newer");
    assert_eq!(store.revision(), Revision(3));
}

#[test]
fn a_conflict_tells_what_is_there_and_changes_nothing() {
    let store = store();
    create(&store, "pods", "a");
    let at = update(&store, "pods", "a", Revision(1));
    let current = |result: Committed| match result.expect_err("it is not as expected") {
        CommitError::Conflict(Conflict(current)) => current.map(|entry| entry.revision),
        other => panic!("{other}"),
    };
    let put = || Change::Put(draft("x"));
    let remove = || Change::Delete(draft("x"));

    assert_eq!(current(commit(&store, "pods", "a", Expect::Absent, put())), Some(at));
    assert_eq!(current(commit(&store, "pods", "a", Expect::At(Revision(1)), put())), Some(at));
    assert_eq!(current(commit(&store, "pods", "a", Expect::At(Revision(1)), remove())), Some(at));
    assert_eq!(current(commit(&store, "pods", "b", Expect::At(at), put())), None);
    assert_eq!(current(commit(&store, "pods", "b", Expect::At(at), remove())), None);
    assert_eq!(store.revision(), at);
}

#[test]
fn a_deletion_that_expects_nothing_is_a_conflict() {
    let store = store();
    create(&store, "pods", "a");
    for key in ["a", "b"] {
        assert!(commit(&store, "pods", key, Expect::Absent, Change::Delete(draft("x"))).is_err());
    }
    assert_eq!(store.revision(), Revision(1));
}

#[test]
fn a_commit_that_is_not_polled_does_not_happen() {
    let store = store();
    drop(store.commit(&name("pods"), &name("a"), Expect::Absent, Change::Put(draft("x"))));
    assert_eq!(store.revision(), Revision(0));
}

#[test]
fn a_snapshot_does_not_change_with_later_commits() {
    let store = store();
    create(&store, "pods", "a");
    let before = store.snapshot();
    update(&store, "pods", "a", Revision(1));
    create(&store, "pods", "b");
    delete(&store, "pods", "a", Revision(2));

    assert_eq!(before.revision(), Revision(1));
    assert_eq!(keys(before.range("pods", "", None)), ["a"]);
    assert_eq!(before.get("pods", "a").expect("it was there").bytes, "new|1|");
    assert_eq!(keys(store.snapshot().range("pods", "", None)), ["b"]);
}

#[test]
fn a_range_is_a_prefix_in_key_order_after_a_key() {
    let store = store();
    for key in ["b/2", "a/1", "b-c/1", "b/1", "b0/1", "b/3"] {
        create(&store, "pods", key);
    }
    let snapshot = store.snapshot();
    let range = |prefix, after| keys(snapshot.range("pods", prefix, after));
    assert_eq!(range("", None), ["a/1", "b-c/1", "b/1", "b/2", "b/3", "b0/1"]);
    assert_eq!(range("b/", None), ["b/1", "b/2", "b/3"]);
    assert_eq!(range("b/", Some("b/1")), ["b/2", "b/3"]);
    assert_eq!(range("b/", Some("b/1\0")), ["b/2", "b/3"]);
    assert_eq!(range("b/", Some("a/1")), ["b/1", "b/2", "b/3"]);
    assert!(range("b/", Some("b/3")).is_empty());
    assert!(range("b/", Some("z")).is_empty());
    assert!(range("c/", None).is_empty());
    assert_eq!(snapshot.range("nodes", "", None).count(), 0);
}

#[test]
fn modified_is_the_last_commit_to_that_collection_alone() {
    let store = store();
    create(&store, "roles", "a");
    create(&store, "pods", "a");
    assert_eq!(store.snapshot().modified("roles"), Revision(1));
    delete(&store, "roles", "a", Revision(1));
    create(&store, "pods", "b");
    let snapshot = store.snapshot();
    assert_eq!(snapshot.modified("roles"), Revision(3));
    assert_eq!(snapshot.len("roles"), 0);
    assert_eq!(snapshot.modified("pods"), Revision(4));
    store.compact(Revision(4));
    assert_eq!(store.snapshot().modified("roles"), Revision(3), "compaction is no modification");
}

#[test]
fn an_older_snapshot_is_exact_as_far_back_as_the_ring_reaches() {
    let store = store_of(3, usize::MAX);
    create(&store, "pods", "a"); // 1
    create(&store, "pods", "b"); // 2
    create(&store, "nodes", "n"); // 3
    update(&store, "pods", "a", Revision(1)); // 4
    delete(&store, "pods", "b", Revision(2)); // 5
    let seen = |revision| {
        let snapshot = store.snapshot_at(&name("pods"), Revision(revision))?;
        assert_eq!(snapshot.revision(), Revision(revision));
        let values = snapshot.range("pods", "", None).map(|entry| format!("{}={:?}", entry.key, entry.bytes));
        Ok::<_, Gone>((values.collect::<Vec<_>>(), snapshot.modified("pods").0))
    };
    assert_eq!(seen(5), Ok((vec!["a=b\"newer|4|\"".to_owned()], 5)));
    assert_eq!(seen(4), Ok((vec!["a=b\"newer|4|\"".to_owned(), "b=b\"new|2|\"".to_owned()], 4)));
    assert_eq!(seen(3), Ok((vec!["a=b\"new|1|\"".to_owned(), "b=b\"new|2|\"".to_owned()], 2)));
    assert_eq!(seen(1), Ok((vec!["a=b\"new|1|\"".to_owned()], 1)));
    assert_eq!(seen(0), Err(Gone { asked: Revision(0), oldest: Revision(1), newest: Revision(5) }));
    assert_eq!(seen(6), Err(Gone { asked: Revision(6), oldest: Revision(1), newest: Revision(5) }));
}

#[test]
fn a_busy_collection_does_not_shorten_the_past_of_a_quiet_one() {
    let store = store_of(2, usize::MAX);
    create(&store, "pods", "a");
    for key in ["1", "2", "3", "4"] {
        create(&store, "leases", key);
    }
    assert!(store.snapshot_at(&name("leases"), Revision(1)).is_err());
    assert!(store.watch(&name("leases"), Revision(1)).is_err());
    let pods = store.snapshot_at(&name("pods"), Revision(0)).expect("the ring of pods reaches that far");
    assert_eq!(pods.len("pods"), 0);
    assert_eq!(pods.collections().collect::<Vec<_>>(), [&name("pods")]);
    assert!(store.watch(&name("pods"), Revision(0)).is_ok());
}

#[test]
fn a_cursor_reads_the_events_of_its_collection_after_its_start_in_order() {
    let store = store();
    create(&store, "pods", "a");
    let mut cursor = store.watch(&name("pods"), Revision(1)).expect("nothing is gone");
    create(&store, "nodes", "n");
    update(&store, "pods", "a", Revision(1));
    delete(&store, "pods", "a", Revision(3));

    let event = cursor.try_next().expect("nothing is gone").expect("it was updated");
    assert_eq!(described(&event), (Happening::Modified, "a", 3));
    assert_eq!(event.previous.as_ref().expect("there was one before").bytes, "new|1|");
    let event = cursor.try_next().expect("nothing is gone").expect("it was deleted");
    assert_eq!(described(&event), (Happening::Deleted, "a", 4));
    assert_eq!(event.entry.bytes, "last|4|");
    assert_eq!(event.previous.as_ref().expect("there was one before").bytes, "newer|3|");
    assert!(cursor.try_next().expect("nothing is gone").is_none());
}

#[test]
fn readers_and_watchers_share_the_bytes_of_the_commit() {
    let store = store();
    let mut cursor = store.watch(&name("pods"), Revision(0)).expect("nothing is gone");
    let entry =
        commit(&store, "pods", "a", Expect::Absent, Change::Put(draft("x"))).expect("the key is free");
    let event = cursor.try_next().expect("nothing is gone").expect("it was created");
    assert!(Arc::ptr_eq(&entry, &event.entry));
    assert!(Arc::ptr_eq(&entry, store.snapshot().get("pods", "a").expect("it is there")));
}

#[test]
fn a_batch_is_as_long_as_asked_and_goes_on_where_it_stopped() {
    let store = store();
    let mut cursor = store.watch(&name("pods"), Revision(0)).expect("nothing is gone");
    for key in ["a", "b", "c"] {
        create(&store, "pods", key);
    }
    let two = NonZeroUsize::new(2).expect("two is not zero");
    let mut batch = || -> Vec<u64> {
        cursor.try_batch(two).expect("nothing is gone").iter().map(|event| event.revision().0).collect()
    };
    assert_eq!(batch(), [1, 2]);
    assert_eq!(batch(), [3]);
    assert!(batch().is_empty());
}

#[test]
fn a_start_ahead_of_the_store_skips_what_is_committed_up_to_it() {
    let store = store();
    let mut cursor = store.watch(&name("pods"), Revision(2)).expect("the future is not gone");
    for key in ["a", "b", "c"] {
        create(&store, "pods", key);
    }
    let event = cursor.try_next().expect("nothing is gone").expect("the third commit");
    assert_eq!(described(&event), (Happening::Added, "c", 3));
}

#[test]
fn what_is_older_than_the_ring_is_gone() {
    let store = store_of(2, usize::MAX);
    for key in ["a", "b", "c"] {
        create(&store, "pods", key);
    }
    let gone = store.watch(&name("pods"), Revision(0)).expect_err("the first event was dropped");
    assert_eq!(gone, Gone { asked: Revision(0), oldest: Revision(1), newest: Revision(3) });
    let mut cursor = store.watch(&name("pods"), gone.oldest).expect("the oldest can be had");
    assert_eq!(described(&cursor.try_next().expect("not gone").expect("the second commit")).2, 2);
}

#[test]
fn the_ring_is_bounded_by_bytes_of_new_and_previous_values() {
    // "new|1|" has 6 bytes, so has "new|2|"; the deletion's event weighs "last|3|" and "new|1|".
    let reaches = |bytes| {
        let store = store_of(usize::MAX, bytes);
        create(&store, "pods", "a");
        create(&store, "pods", "b");
        delete(&store, "pods", "a", Revision(1));
        (0..=3).find(|&after| store.watch(&name("pods"), Revision(after)).is_ok())
    };
    assert_eq!(reaches(25), Some(0));
    assert_eq!(reaches(24), Some(1));
    assert_eq!(reaches(18), Some(2));
    assert_eq!(reaches(0), Some(2), "the newest event is kept whatever it weighs");
}

#[tokio::test]
async fn a_slow_cursor_is_told_that_its_place_is_gone_and_stays_so() {
    let store = store_of(2, usize::MAX);
    let mut slow = store.watch(&name("pods"), Revision(0)).expect("nothing is gone");
    create(&store, "pods", "a");
    create(&store, "pods", "b");
    assert_eq!(described(&slow.next().await.expect("still in the ring").expect("open")).2, 1);
    create(&store, "pods", "c");
    assert_eq!(described(&slow.next().await.expect("still in the ring").expect("open")).2, 2);
    for key in ["d", "e", "f"] {
        create(&store, "pods", key);
    }
    let gone = Gone { asked: Revision(2), oldest: Revision(4), newest: Revision(6) };
    assert_eq!(slow.next().await.expect_err("the third event was dropped"), gone);
    assert_eq!(slow.try_next().expect_err("and does not come back"), gone);
    assert_eq!(slow.position(), Revision(2));
}

#[tokio::test]
async fn compaction_forgets_the_past_but_not_who_has_missed_nothing() {
    let store = store();
    let mut behind = store.watch(&name("pods"), Revision(0)).expect("nothing is gone");
    let mut quiet = store.watch(&name("nodes"), Revision(0)).expect("nothing is gone");
    create(&store, "pods", "a");
    create(&store, "pods", "b");
    store.compact(Revision(1));

    assert!(store.watch(&name("pods"), Revision(0)).is_err());
    assert!(store.watch(&name("nodes"), Revision(0)).is_err());
    assert!(store.snapshot_at(&name("pods"), Revision(0)).is_err());
    assert_eq!(store.snapshot_at(&name("pods"), Revision(1)).expect("not compacted").len("pods"), 1);
    assert!(behind.try_next().is_err());
    create(&store, "nodes", "n");
    assert_eq!(described(&quiet.next().await.expect("it missed nothing").expect("open")).2, 3);

    store.compact(Revision(99));
    let gone = store.watch(&name("pods"), Revision(2)).expect_err("all was compacted");
    assert_eq!(gone.oldest, Revision(3), "beyond the present means up to it");
    assert_eq!(store.snapshot().len("pods"), 2);
}

#[test]
fn position_is_the_stores_revision_once_everything_is_read() {
    let store = store();
    let mut cursor = store.watch(&name("pods"), Revision(0)).expect("nothing is gone");
    create(&store, "nodes", "n");
    assert_eq!(cursor.position(), Revision(1), "nothing of pods is left to read");
    create(&store, "pods", "a");
    create(&store, "pods", "b");
    create(&store, "nodes", "m");
    assert_eq!(cursor.position(), Revision(0));
    cursor.try_next().expect("nothing is gone");
    assert_eq!(cursor.position(), Revision(2));
    cursor.try_next().expect("nothing is gone");
    assert_eq!(cursor.position(), Revision(4));
}

#[tokio::test]
async fn a_waiting_cursor_wakes_for_its_collection_and_not_for_others() {
    let store = store();
    let mut cursor = store.watch(&name("pods"), Revision(0)).expect("nothing is gone");
    let mut waiting = by_hand(cursor.next());
    assert!(waiting.poll().is_none());
    create(&store, "nodes", "n");
    assert!(!waiting.is_woken());
    create(&store, "pods", "a");
    assert!(waiting.is_woken());
    let event = waiting.poll().expect("an event is there").expect("nothing is gone").expect("open");
    assert_eq!(described(&event), (Happening::Added, "a", 2));
}

#[tokio::test]
async fn a_wait_that_is_cancelled_loses_no_event() {
    let store = store();
    let mut cursor = store.watch(&name("pods"), Revision(0)).expect("nothing is gone");
    for round in 1..=3 {
        {
            let mut waiting = pin!(cursor.next());
            let first = poll_fn(|cx| Poll::Ready(waiting.as_mut().poll(cx))).await;
            assert!(first.is_pending());
            create(&store, "pods", &round.to_string());
        }
        assert_eq!(described(&cursor.next().await.expect("nothing is gone").expect("open")).2, round);
    }
}

#[tokio::test]
async fn dropping_the_store_ends_its_cursors_after_what_is_left() {
    let store = store();
    let mut behind = store.watch(&name("pods"), Revision(0)).expect("nothing is gone");
    let mut waiting = store.watch(&name("nodes"), Revision(0)).expect("nothing is gone");
    let snapshot = store.snapshot();
    create(&store, "pods", "a");
    let mut waiting = by_hand(waiting.next());
    assert!(waiting.poll().is_none());

    drop(store);
    assert!(waiting.is_woken());
    assert!(waiting.poll().expect("it has ended").expect("nothing is gone").is_none());
    assert_eq!(described(&behind.next().await.expect("nothing is gone").expect("one is left")).2, 1);
    assert!(behind.next().await.expect("nothing is gone").is_none());
    assert!(behind.next_batch(NonZeroUsize::MIN).await.expect("nothing is gone").is_empty());
    assert_eq!(snapshot.revision(), Revision(0));
}

#[tokio::test]
async fn waiting_cursors_wake_in_the_order_in_which_they_came_to_wait() {
    const WATCHERS: usize = 100;
    let store = store();
    let order = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let watchers: Vec<_> = (0..WATCHERS)
        .map(|number| {
            let mut cursor = store.watch(&name("pods"), Revision(0)).expect("nothing is gone");
            let order = Arc::clone(&order);
            tokio::spawn(async move {
                cursor.next().await.expect("nothing is gone").expect("open");
                order.lock().push(number);
            })
        })
        .collect();
    for _ in 0..WATCHERS {
        // Each yield lets at least one watcher come to wait.
        tokio::task::yield_now().await;
    }
    create(&store, "pods", "a");
    for watcher in watchers {
        watcher.await.expect("a watcher does not panic");
    }
    assert_eq!(*order.lock(), (0..WATCHERS).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn racing_writers_lose_no_write_and_waiting_watchers_no_event() {
    const WRITERS: u64 = 4;
    const WRITES: u64 = 250;
    let store = store();
    let total = WRITERS * WRITES;
    create(&store, "counters", "shared");
    let watchers: Vec<_> = (0..4)
        .map(|_| {
            let mut cursor = store.watch(&name("counters"), Revision(0)).expect("nothing is gone");
            tokio::spawn(async move {
                for expected in 1..=total + 1 {
                    let event = cursor.next().await.expect("the ring is long enough").expect("open");
                    assert_eq!(event.revision(), Revision(expected));
                }
            })
        })
        .collect();
    let writers: Vec<_> = (0..WRITERS)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let (collection, key) = (name("counters"), name("shared"));
                let mut at = Revision(1);
                for _ in 0..WRITES {
                    loop {
                        match store.commit(&collection, &key, Expect::At(at), Change::Put(draft("x"))).await {
                            Ok(entry) => break at = entry.revision,
                            Err(CommitError::Conflict(Conflict(current))) => {
                                at = current.expect("nobody deletes it").revision;
                            }
                            Err(other) => panic!("{other}"),
                        }
                    }
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for task in writers.into_iter().chain(watchers) {
        task.await.expect("no task panics");
    }
    assert_eq!(store.revision(), Revision(total + 1));
}

/// A future that is polled by hand.
struct Task<F> {
    future: std::pin::Pin<Box<F>>,
    woken: Arc<Woken>,
}

#[derive(Default)]
struct Woken(std::sync::atomic::AtomicBool);

impl std::task::Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, std::sync::atomic::Ordering::SeqCst);
    }
}

fn by_hand<F: Future>(future: F) -> Task<F> {
    Task { future: Box::pin(future), woken: Arc::default() }
}

impl<F: Future> Task<F> {
    fn poll(&mut self) -> Option<F::Output> {
        let waker = Arc::clone(&self.woken).into();
        match self.future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    fn is_woken(&self) -> bool {
        self.woken.0.load(std::sync::atomic::Ordering::SeqCst)
    }
}
