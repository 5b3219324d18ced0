//! A store whose objects several threads change, and what its subscribers get.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicU64, atomic::Ordering, mpsc},
    thread,
};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use parking_lot::Mutex;
use proptest::{collection::vec, prelude::*};

use super::{
    deliveries::Handler,
    own_writes::{ActiveReconcile, Author},
    state::Change,
    store::Store,
    write::Write,
};
use crate::{Key, object::Kept};

const NAMES: usize = 3;

fn store() -> Arc<Store> {
    Arc::new(Store::new("configmaps", [None]))
}

fn key(name: usize) -> Key {
    Key::namespaced("default", name.to_string())
}

fn object(name: usize, version: u64) -> Arc<dyn Kept> {
    Arc::new(ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_string()),
            namespace: Some("default".into()),
            uid: Some(name.to_string()),
            resource_version: Some(version.to_string()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    })
}

fn version(object: &Arc<dyn Kept>) -> u64 {
    object.head().resource_version.and_then(|version| version.parse().ok()).unwrap_or(0)
}

fn known(store: &Store) -> BTreeMap<Key, u64> {
    store.list(None).iter().map(|object| (Key::at(object.head()), version(object))).collect()
}

/// What one who gets the changes of a store knows by them. Each has to go on where the one before it ended.
#[derive(Clone, Default)]
struct Follower(Arc<Mutex<BTreeMap<Key, u64>>>);

impl Follower {
    fn handler(&self) -> Handler {
        let known = self.0.clone();
        Box::new(move |delivery| {
            let (mut known, change) = (known.lock(), &delivery.change);
            if delivery.is_repeated() {
                return;
            }
            let (Change::Created(object) | Change::Updated { new: object, .. } | Change::Deleted(object)) =
                change;
            let key = Key::at(object.head());
            let (before, is_as_known) = match change {
                Change::Created(new) => (known.insert(key, version(new)), None),
                Change::Updated { old, new } => (known.insert(key, version(new)), Some(version(old))),
                Change::Deleted(last) => (known.remove(&key), Some(version(last))),
            };
            // A handler's panic is caught, so it is told by a key that no object has.
            if before != is_as_known {
                known.insert(Key::cluster_scoped(format!("{before:?} is not {is_as_known:?}")), 0);
            }
        })
    }

    fn known(&self) -> BTreeMap<Key, u64> {
        self.0.lock().clone()
    }
}

/// What a thread does with an object.
#[derive(Clone, Copy, Debug)]
enum Op {
    /// The watch tells of it.
    Watch,
    /// The watch tells of its end.
    End,
    /// A reconcile writes it.
    Write,
    /// One more follows.
    Follow,
}

fn op() -> impl Strategy<Value = (usize, Op)> {
    let op = prop_oneof![
        8 => Just(Op::Watch),
        2 => Just(Op::End),
        4 => Just(Op::Write),
        1 => Just(Op::Follow),
    ];
    (0..NAMES, op)
}

fn run(store: &Arc<Store>, ops: &[(usize, Op)], versions: &AtomicU64, followers: &Mutex<Vec<Follower>>) {
    for &(name, op) in ops {
        let object = object(name, versions.fetch_add(1, Ordering::SeqCst));
        match op {
            Op::Watch => store.watched(&object, Vec::new()),
            Op::End => store.watched_end(object.head()),
            Op::Write => {
                let author = Author { controller: "test".into(), key: key(name) };
                let (active, _guard) = ActiveReconcile::begin(author);
                let write = Write::begin(store, Some(key(name)), Some(active));
                write.returned(&object, Vec::new(), true);
            }
            Op::Follow => {
                let follower = Follower::default();
                store.subscribe(follower.handler());
                followers.lock().push(follower);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn each_subscriber_gets_the_changes_of_an_object_in_their_order_whatever_threads_make_them(
        threads in vec(vec(op(), 0..60), 2..4),
    ) {
        let (store, versions, followers) = (store(), AtomicU64::new(1), Mutex::default());
        run(&store, &[(0, Op::Follow)], &versions, &followers);
        thread::scope(|scope| {
            for ops in &threads {
                let (store, versions, followers) = (&store, &versions, &followers);
                scope.spawn(move || run(store, ops, versions, followers));
            }
        });
        for follower in followers.lock().iter() {
            prop_assert_eq!(follower.known(), known(&store));
        }
    }
}

#[test]
fn no_lock_is_held_while_a_handler_runs() {
    let (store, log) = (store(), Arc::new(Mutex::new(Vec::new())));
    let (entered, is_entered) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let (seen, may_go_on) = (log.clone(), Mutex::new(may_go_on));
    store.subscribe(Box::new(move |delivery| {
        let (Change::Created(new) | Change::Updated { new, .. }) = &delivery.change else { return };
        if version(new) == 1 {
            entered.send(()).expect("the test waits for it");
            may_go_on.lock().recv().expect("the test sends it");
        }
        seen.lock().push(version(new));
    }));
    thread::scope(|scope| {
        scope.spawn(|| store.watched(&object(0, 1), Vec::new()));
        is_entered.recv().expect("the first change is delivered");
        scope.spawn(|| {
            store.watched(&object(0, 2), Vec::new());
            assert_eq!(*log.lock(), [1, 2], "who changed it goes on when it is delivered");
        });
        // The second change is made and read while the first one is delivered.
        while known(&store) != BTreeMap::from([(key(0), 2)]) {
            thread::yield_now();
        }
        assert_eq!(*log.lock(), [0_u64; 0]);
        go_on.send(()).expect("the handler waits for it");
    });
    assert_eq!(*log.lock(), [1, 2]);
}

#[test]
fn handlers_may_read_and_write_their_own_cache_and_one_another() {
    const LAST: u64 = 200;
    let (one, other) = (store(), store());
    let followers = [Follower::default(), Follower::default()];
    let subscribed = Arc::new(Mutex::new(Vec::new()));
    for (from, to, follower) in [(&one, &other, &followers[0]), (&other, &one, &followers[1])] {
        from.subscribe(follower.handler());
        let (held, to) = (Arc::downgrade(from), to.clone());
        let subscribed = subscribed.clone();
        from.subscribe(Box::new(move |delivery| {
            let (Change::Created(new) | Change::Updated { new, .. }, Some(from)) =
                (&delivery.change, held.upgrade())
            else {
                return;
            };
            let next = version(new) + 1;
            assert!(from.get(&Key::at(new.head())).is_some_and(|now| version(&now) >= next - 1));
            if next <= LAST {
                to.watched(&object(0, next), Vec::new());
                from.watched(&object(1, next), Vec::new());
            }
            if next == LAST {
                let follower = Follower::default();
                from.subscribe(follower.handler());
                subscribed.lock().push((from, follower));
            }
        }));
    }
    thread::scope(|scope| {
        for store in [&one, &other] {
            scope.spawn(|| store.watched(&object(0, 1), Vec::new()));
        }
    });
    assert_eq!((followers[0].known(), followers[1].known()), (known(&one), known(&other)));
    assert_eq!(known(&one).get(&key(1)), Some(&LAST));
    let subscribed = subscribed.lock();
    assert!(!subscribed.is_empty());
    assert!(subscribed.iter().all(|(store, follower)| follower.known() == known(store)));
}

#[test]
fn a_handler_that_panics_loses_one_change_and_nothing_else() {
    let (store, follower, rest) = (store(), Follower::default(), Arc::new(Mutex::new(Vec::new())));
    let seen = rest.clone();
    store.subscribe(Box::new(move |delivery| {
        let (Change::Created(new) | Change::Updated { new, .. }) = &delivery.change else { return };
        assert_ne!(version(new), 1, "on purpose");
        seen.lock().push(version(new));
    }));
    store.subscribe(follower.handler());
    (1..=3).for_each(|version| store.watched(&object(0, version), Vec::new()));
    assert_eq!((follower.known(), &*rest.lock()), (known(&store), &vec![2, 3]));
}
