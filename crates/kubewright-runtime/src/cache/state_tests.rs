//! The state against a server whose watch, lists and answers arrive at any time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::api::ObjectMeta;
use proptest::{collection::vec, prelude::*};

use super::{
    own_writes::{Author, Delivery, Recipients},
    state::{Change, State, Ticket},
};
use crate::{Key, object::Head};

const NAMES: usize = 2;
const AUTHORS: usize = 2;

fn key(name: usize) -> Key {
    Key::namespaced("default", name.to_string())
}

/// An object of which uid, version and owner matter.
fn object(name: usize, uid: u64, version: u64) -> ConfigMap {
    let owner = OwnerReference { uid: format!("owner-{}", version % 2), ..OwnerReference::default() };
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_string()),
            namespace: Some("default".into()),
            uid: Some(uid.to_string()),
            resource_version: Some(version.to_string()),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

fn version(object: &ConfigMap) -> u64 {
    object.metadata.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or(0)
}

#[derive(Clone, Copy, Debug)]
struct Event {
    name: usize,
    uid: u64,
    version: u64,
    end: bool,
}

impl Event {
    fn object(self) -> ConfigMap {
        object(self.name, self.uid, self.version)
    }
}

/// What the API server has and had.
#[derive(Default)]
struct Server {
    /// Uid and version by name.
    objects: BTreeMap<usize, (u64, u64)>,
    log: Vec<Event>,
    version: u64,
}

impl Server {
    fn put(&mut self, name: usize) -> Event {
        self.version += 1;
        let uid = self.objects.get(&name).map_or(self.version, |(uid, _)| *uid);
        self.objects.insert(name, (uid, self.version));
        self.commit(name, uid, false)
    }

    fn delete(&mut self, name: usize) -> Option<Event> {
        let (uid, _) = self.objects.remove(&name)?;
        self.version += 1;
        Some(self.commit(name, uid, true))
    }

    fn commit(&mut self, name: usize, uid: u64, end: bool) -> Event {
        let event = Event { name, uid, version: self.version, end };
        self.log.push(event);
        event
    }
}

enum Watch {
    /// The next event in the log.
    At(usize),
    /// A list began; the server has not looked yet.
    ListAsked,
    /// The items that were not told yet, and where the watch goes on.
    Listing(Vec<Event>, usize),
}

struct Request {
    ticket: Ticket,
    name: usize,
    delete: bool,
    by: By,
    /// The answer, once the server has worked on it.
    answer: Option<Option<Event>>,
}

/// Who asks for a write.
#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    /// Nobody who could be left untold.
    Anyone,
    /// This author, who gets what was asked for.
    Author(usize),
    /// This author, who gets something else.
    Astonished(usize),
    /// This author, who is never answered.
    Unanswered(usize),
}

impl By {
    fn author(self) -> Option<usize> {
        match self {
            Self::Anyone => None,
            Self::Author(author) | Self::Astonished(author) | Self::Unanswered(author) => Some(author),
        }
    }
}

fn author(number: usize) -> Arc<Author> {
    Arc::new(Author { controller: "test".into(), key: Key::cluster_scoped(number.to_string()) })
}

#[derive(Clone, Debug)]
enum Op {
    ForeignPut(usize),
    ForeignDelete(usize),
    Ask { name: usize, delete: bool, by: By },
    Work(usize),
    Answer(usize),
    Watch,
    List,
    Confirm,
}

fn by() -> impl Strategy<Value = By> {
    prop_oneof![
        1 => Just(By::Anyone),
        4 => (0..AUTHORS).prop_map(By::Author),
        1 => (0..AUTHORS).prop_map(By::Astonished),
        1 => (0..AUTHORS).prop_map(By::Unanswered),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => (0..NAMES).prop_map(Op::ForeignPut),
        2 => (0..NAMES).prop_map(Op::ForeignDelete),
        3 => (0..NAMES, prop::bool::weighted(0.4), by())
            .prop_map(|(name, delete, by)| Op::Ask { name, delete, by }),
        4 => (0..3_usize).prop_map(Op::Work),
        4 => (0..3_usize).prop_map(Op::Answer),
        6 => Just(Op::Watch),
        1 => Just(Op::List),
        1 => Just(Op::Confirm),
    ]
}

/// What somebody got last of an object.
#[derive(Clone, Copy, Default)]
struct Known {
    /// Its uid, if it is there.
    uid: Option<u64>,
    /// The version up to which that is so.
    until: u64,
}

struct Run {
    server: Server,
    state: State<ConfigMap>,
    watch: Watch,
    requests: Vec<Request>,
    /// What one who only gets the changes knows.
    delivered: BTreeMap<Key, Arc<ConfigMap>>,
    /// By name, the newest version that an answer told of.
    seen: BTreeMap<usize, u64>,
    /// The uids that an answer told the end of.
    ended: Vec<u64>,
    /// The versions that an author was answered with and had asked for.
    own: BTreeSet<(usize, u64)>,
    /// What an author was told last of an object.
    last_delivered: BTreeMap<(usize, usize), Known>,
    /// How often an author was told anything.
    times_delivered: [usize; AUTHORS],
}

impl Run {
    fn new() -> Self {
        Self {
            server: Server::default(),
            state: State::new(),
            watch: Watch::At(0),
            requests: Vec::new(),
            delivered: BTreeMap::new(),
            seen: BTreeMap::new(),
            ended: Vec::new(),
            own: BTreeSet::new(),
            last_delivered: BTreeMap::new(),
            times_delivered: [0; AUTHORS],
        }
    }

    fn see(&mut self, number: usize, change: &Change<ConfigMap>) {
        let (object, is_there) = match change {
            Change::Created(new) | Change::Updated { new, .. } => (new, true),
            Change::Deleted(last) => (last, false),
        };
        let name = object.metadata.name.as_deref().and_then(|name| name.parse().ok()).unwrap_or(0);
        let uid = object.metadata.uid.as_deref().and_then(|uid| uid.parse().ok()).unwrap_or(0);
        // A reconcile that begins now sees what the cache has by now.
        let now = self.state.get(&key(name)).map_or(version(object), |object| version(object));
        self.last_delivered.insert((number, name), Known { uid: is_there.then_some(uid), until: now });
        self.times_delivered[number] += 1;
    }

    fn deliver(&mut self, deliveries: impl IntoIterator<Item = Delivery<ConfigMap>>) {
        for delivery in deliveries {
            for number in 0..AUTHORS {
                let author = author(number);
                if delivery.is_for(&author.controller, &author.key) {
                    self.see(number, &delivery.change);
                }
            }
            if delivery.is_repeated() {
                continue;
            }
            match delivery.change {
                Change::Created(new) => assert!(self.delivered.insert(Key::of(&*new), new).is_none()),
                Change::Updated { old, new } => {
                    assert_eq!(self.delivered.insert(Key::of(&*new), new), Some(old));
                }
                Change::Deleted(last) => assert_eq!(self.delivered.remove(&Key::of(&*last)), Some(last)),
            }
        }
    }

    fn step(&mut self, op: &Op) {
        match *op {
            Op::ForeignPut(name) => drop(self.server.put(name)),
            Op::ForeignDelete(name) => drop(self.server.delete(name)),
            Op::Ask { name, delete, by } => {
                let (key, by_whom) = (key(name), by.author().map(author));
                let ticket = self.state.write_began(by_whom.as_ref().map(|author| (&key, author)));
                self.requests.push(Request { ticket, name, delete, by, answer: None });
            }
            Op::Work(index) => self.work(index),
            Op::Answer(index) => self.answer(index),
            Op::Watch => self.watch(),
            Op::List => {
                self.state.list_began();
                self.watch = Watch::ListAsked;
            }
            Op::Confirm => self.confirm(),
        }
    }

    fn work(&mut self, index: usize) {
        if let Some(request) = self.requests.get_mut(index)
            && request.answer.is_none()
        {
            let name = request.name;
            request.answer =
                Some(if request.delete { self.server.delete(name) } else { Some(self.server.put(name)) });
        }
    }

    fn answer(&mut self, index: usize) {
        if self.requests.get(index).is_none_or(|request| request.answer.is_none()) {
            return;
        }
        let request = self.requests.remove(index);
        let answer = request.answer.flatten().filter(|_| !matches!(request.by, By::Unanswered(_)));
        let deliveries = match answer {
            Some(event) if event.end => {
                self.ended.push(event.uid);
                self.state.written_end(&key(event.name), Some(&event.uid.to_string()))
            }
            Some(event) => {
                let seen = self.seen.entry(event.name).or_default();
                *seen = event.version.max(*seen);
                let by = if let By::Author(number) = request.by {
                    self.own.insert((number, event.version));
                    Some(author(number))
                } else {
                    None
                };
                self.state.written(request.ticket, Arc::new(event.object()), by.as_ref())
            }
            None => None,
        };
        self.deliver(deliveries);
        let (key, by) = (key(request.name), request.by.author().map(author));
        let deliveries = self.state.write_ended(request.ticket, by.as_ref().map(|author| (&key, author)));
        self.deliver(deliveries);
    }

    fn watch(&mut self) {
        match &mut self.watch {
            Watch::At(position) => {
                let Some(event) = self.server.log.get(*position).copied() else { return };
                *position += 1;
                let change = if event.end {
                    self.state.watched_end(Head::of(&event.object().metadata))
                } else {
                    self.state.watched(Arc::new(event.object()))
                };
                self.deliver(change);
            }
            Watch::ListAsked => {
                let items = self.server.objects.iter();
                let items = items.map(|(&name, &(uid, version))| Event { name, uid, version, end: false });
                self.watch = Watch::Listing(items.collect(), self.server.log.len());
            }
            Watch::Listing(items, position) => {
                if let Some(item) = items.pop() {
                    let change = self.state.watched(Arc::new(item.object()));
                    self.deliver(change);
                } else {
                    self.watch = Watch::At(*position);
                    let changes = self.state.list_ended();
                    self.deliver(changes);
                }
            }
        }
    }

    fn confirm(&mut self) {
        if let Some((key, uid)) = self.state.unconfirmed() {
            let there = self.server.objects.iter().any(|(name, (there, _))| {
                Key::namespaced("default", name.to_string()) == key && there.to_string() == uid
            });
            let change = self.state.confirmed(&key, &uid, there);
            self.deliver(change);
        }
    }

    /// Nothing that an answer told is forgotten.
    fn check_own_writes(&self) {
        for (&name, &seen) in &self.seen {
            match self.state.get(&key(name)) {
                Some(known) => assert!(version(known) >= seen, "{known:?} is older than {seen}"),
                None => assert!(
                    self.server
                        .log
                        .iter()
                        .any(|event| event.end && event.name == name && event.version > seen),
                    "{name} was not deleted since {seen}"
                ),
            }
        }
        for known in self.state.list(None) {
            assert!(
                !self.ended.iter().any(|uid| known.metadata.uid == Some(uid.to_string())),
                "{known:?} is gone"
            );
        }
    }

    /// The changes and the index agree with the objects.
    fn check_consistency(&self) {
        let known: BTreeMap<_, _> =
            self.state.list(None).into_iter().map(|object| (Key::of(&*object), object)).collect();
        assert_eq!(known, self.delivered, "the changes tell the whole story");
        for owner in ["owner-0", "owner-1"] {
            let owns = |object: &&Arc<ConfigMap>| {
                object.metadata.owner_references.iter().flatten().any(|reference| reference.uid == owner)
            };
            let owned: Vec<_> = known.values().filter(owns).cloned().collect();
            assert_eq!(self.state.owned_by(owner), owned);
        }
    }

    /// Whatever an author was not told of an object since the last time is its own.
    fn check_delivered(&self) {
        for number in 0..AUTHORS {
            for name in 0..NAMES {
                let seen = self.last_delivered.get(&(number, name)).copied().unwrap_or_default();
                let there = self.server.objects.get(&name).copied();
                let Some((uid, _)) = there else {
                    assert_eq!(seen.uid, None, "{number} does not know that {name} is gone");
                    continue;
                };
                assert!(
                    seen.uid.is_none_or(|seen| seen == uid),
                    "{number} does not know that {name} is another now"
                );
                let since = |event: &&Event| event.uid == uid && event.version > seen.until;
                for event in self.server.log.iter().filter(since) {
                    assert!(
                        self.own.contains(&(number, event.version)),
                        "{number} was not told of {event:?} after {}",
                        seen.until
                    );
                }
            }
        }
    }

    /// Lets everything that is under way arrive.
    fn settle(&mut self) {
        while !self.requests.is_empty() {
            self.work(0);
            self.answer(0);
        }
        while !matches!(self.watch, Watch::At(position) if position == self.server.log.len()) {
            self.watch();
        }
        while self.state.unconfirmed().is_some() {
            self.confirm();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// One writer at a time for one object, as the workqueue has it.
    #[test]
    fn own_writes_are_never_forgotten(ops in vec(op(), 0..60)) {
        let mut run = Run::new();
        for op in &ops {
            let busy = |name| run.requests.iter().any(|request| request.name == name);
            if !matches!(op, Op::Ask { name, .. } if busy(*name)) {
                run.step(op);
            }
            run.check_own_writes();
            run.check_consistency();
        }
    }

    /// However many writers there are and in whatever order their answers arrive.
    #[test]
    fn the_server_is_right_in_the_end(ops in vec(op(), 0..60)) {
        let mut run = Run::new();
        for op in &ops {
            run.step(op);
            run.check_consistency();
        }
        run.settle();
        run.check_consistency();
        run.check_delivered();
        prop_assert_eq!(run.state.writers(), 0, "nothing is withheld for ever");
        let known: BTreeMap<_, _> = run.state.list(None).iter().map(|object| {
            let meta = &object.metadata;
            (meta.name.clone(), (meta.uid.clone(), version(object)))
        }).collect();
        let there: BTreeMap<_, _> = run.server.objects.iter().map(|(name, (uid, version))| {
            (Some(name.to_string()), (Some(uid.to_string()), *version))
        }).collect();
        prop_assert_eq!(known, there);
    }

    /// Who writes alone, and is answered, is told nothing: not of one's own writes.
    #[test]
    fn who_writes_alone_is_told_nothing(
        ops in vec(op(), 0..60),
        puts in prop::bool::ANY,
    ) {
        let mut run = Run::new();
        if puts {
            // The object may be there before.
            run.step(&Op::ForeignPut(0));
            run.step(&Op::Watch);
        }
        let before = run.times_delivered[0];
        for op in &ops {
            match op {
                Op::Ask { name, .. } => run.step(&Op::Ask { name: *name, delete: false, by: By::Author(0) }),
                Op::Work(_) | Op::Answer(_) | Op::Watch => run.step(op),
                Op::ForeignPut(_) | Op::ForeignDelete(_) | Op::List | Op::Confirm => {}
            }
        }
        run.settle();
        prop_assert_eq!(run.times_delivered[0], before);
        run.check_delivered();
    }

    #[test]
    fn nothing_is_remembered_of_the_dead_once_a_list_is_complete(ops in vec(op(), 0..60)) {
        let mut run = Run::new();
        ops.iter().for_each(|op| run.step(op));
        run.settle();
        run.step(&Op::List);
        run.settle();
        prop_assert_eq!(run.state.remembered(), 0);
    }
}

#[test]
fn the_dead_are_forgotten_although_there_is_always_a_write_on_its_way() {
    let mut state = State::new();
    let mut before = state.write_began(None);
    for uid in 0..100 {
        let object = Arc::new(object(1, uid, uid));
        state.watched(object.clone());
        state.watched_end(Head::of(&object.metadata));
        let next = state.write_began(None);
        state.write_ended(before, None);
        before = next;
        assert!(state.remembered() <= 2);
    }
}

#[test]
fn an_author_is_told_that_it_wrote_another_object_than_was_known() {
    let (mut state, key, author) = (State::new(), key(1), author(0));
    let old = Arc::new(object(1, 1, 1));
    state.watched(old.clone());
    let own = Some((&key, &author));
    let ticket = state.write_began(own);
    // The old one's end was left out, as after a list.
    let new = Arc::new(object(1, 5, 5));
    state.watched(new.clone());
    state.written(ticket, new.clone(), Some(&author));
    let seen = state.write_ended(ticket, own);
    let [
        Delivery {
            change: Change::Updated { old: before, new: now },
            recipients: Recipients::Only(only),
            ..
        },
    ] = seen.as_slice()
    else {
        panic!("{seen:?}")
    };
    assert_eq!((before, now, only), (&old, &new, &author));
}

#[test]
fn a_namespace_is_listed_without_its_neighbours() {
    let mut state = State::new();
    for (version, namespace) in ["a", "a-b", "b"].into_iter().enumerate() {
        let mut object = object(1, version as u64, version as u64);
        object.metadata.namespace = Some(namespace.into());
        state.watched(Arc::new(object));
    }
    let namespaces = |listed: Vec<Arc<ConfigMap>>| -> Vec<_> {
        listed.iter().filter_map(|object| object.metadata.namespace.clone()).collect()
    };
    assert_eq!(namespaces(state.list(Some("a"))), ["a"]);
    assert_eq!(namespaces(state.list(None)), ["a", "a-b", "b"]);
}
