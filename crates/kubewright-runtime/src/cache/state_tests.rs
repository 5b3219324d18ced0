//! The state against a server whose watch, lists and answers arrive at any time.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::api::ObjectMeta;
use proptest::{collection::vec, prelude::*};

use super::state::{Change, State, Ticket};
use crate::Key;

const NAMES: usize = 2;

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
    /// The answer, once the server has worked on it.
    answer: Option<Option<Event>>,
}

#[derive(Clone, Debug)]
enum Op {
    ForeignPut(usize),
    ForeignDelete(usize),
    Ask { name: usize, delete: bool },
    Work(usize),
    Answer(usize),
    Watch,
    List,
    Confirm,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => (0..NAMES).prop_map(Op::ForeignPut),
        2 => (0..NAMES).prop_map(Op::ForeignDelete),
        3 => (0..NAMES, prop::bool::weighted(0.4)).prop_map(|(name, delete)| Op::Ask { name, delete }),
        4 => (0..3_usize).prop_map(Op::Work),
        4 => (0..3_usize).prop_map(Op::Answer),
        6 => Just(Op::Watch),
        1 => Just(Op::List),
        1 => Just(Op::Confirm),
    ]
}

struct Run {
    server: Server,
    state: State<ConfigMap>,
    watch: Watch,
    requests: Vec<Request>,
    /// What one who only hears of the changes knows.
    heard: BTreeMap<Key, Arc<ConfigMap>>,
    /// By name, the newest version that an answer told of.
    told: BTreeMap<usize, u64>,
    /// The uids that an answer told the end of.
    ended: Vec<u64>,
}

impl Run {
    fn new() -> Self {
        Self {
            server: Server::default(),
            state: State::new(),
            watch: Watch::At(0),
            requests: Vec::new(),
            heard: BTreeMap::new(),
            told: BTreeMap::new(),
            ended: Vec::new(),
        }
    }

    fn hear(&mut self, changes: impl IntoIterator<Item = Change<ConfigMap>>) {
        for change in changes {
            match change {
                Change::Created(new) => assert!(self.heard.insert(Key::of(&*new), new).is_none()),
                Change::Updated { old, new } => assert_eq!(self.heard.insert(Key::of(&*new), new), Some(old)),
                Change::Deleted(last) => assert_eq!(self.heard.remove(&Key::of(&*last)), Some(last)),
            }
        }
    }

    fn step(&mut self, op: &Op) {
        match *op {
            Op::ForeignPut(name) => drop(self.server.put(name)),
            Op::ForeignDelete(name) => drop(self.server.delete(name)),
            Op::Ask { name, delete } => {
                let ticket = self.state.write_began();
                self.requests.push(Request { ticket, name, delete, answer: None });
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
        let change = match request.answer.flatten() {
            Some(event) if event.end => {
                self.ended.push(event.uid);
                self.state.written_end(&key(event.name), Some(&event.uid.to_string()))
            }
            Some(event) => {
                let told = self.told.entry(event.name).or_default();
                *told = event.version.max(*told);
                self.state.written(request.ticket, event.object())
            }
            None => None,
        };
        self.state.write_ended(request.ticket);
        self.hear(change);
    }

    fn watch(&mut self) {
        match &mut self.watch {
            Watch::At(position) => {
                let Some(event) = self.server.log.get(*position).copied() else { return };
                *position += 1;
                let change = if event.end {
                    self.state.watched_end(&event.object())
                } else {
                    self.state.watched(event.object())
                };
                self.hear(change);
            }
            Watch::ListAsked => {
                let items = self.server.objects.iter();
                let items = items.map(|(&name, &(uid, version))| Event { name, uid, version, end: false });
                self.watch = Watch::Listing(items.collect(), self.server.log.len());
            }
            Watch::Listing(items, position) => {
                if let Some(item) = items.pop() {
                    let change = self.state.watched(item.object());
                    self.hear(change);
                } else {
                    self.watch = Watch::At(*position);
                    let changes = self.state.list_ended();
                    self.hear(changes);
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
            self.hear(change);
        }
    }

    /// Nothing that an answer told is forgotten.
    fn check_own_writes(&self) {
        for (&name, &told) in &self.told {
            match self.state.get(&key(name)) {
                Some(known) => assert!(version(known) >= told, "{known:?} is older than {told}"),
                None => assert!(
                    self.server
                        .log
                        .iter()
                        .any(|event| event.end && event.name == name && event.version > told),
                    "{name} was not deleted since {told}"
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
        assert_eq!(known, self.heard, "the changes tell the whole story");
        for owner in ["owner-0", "owner-1"] {
            let owns = |object: &&Arc<ConfigMap>| {
                object.metadata.owner_references.iter().flatten().any(|reference| reference.uid == owner)
            };
            let owned: Vec<_> = known.values().filter(owns).cloned().collect();
            assert_eq!(self.state.owned_by(owner), owned);
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
        let known: BTreeMap<_, _> = run.state.list(None).iter().map(|object| {
            let meta = &object.metadata;
            (meta.name.clone(), (meta.uid.clone(), version(object)))
        }).collect();
        let there: BTreeMap<_, _> = run.server.objects.iter().map(|(name, (uid, version))| {
            (Some(name.to_string()), (Some(uid.to_string()), *version))
        }).collect();
        prop_assert_eq!(known, there);
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
    let mut before = state.write_began();
    for uid in 0..100 {
        let object = object(1, uid, uid);
        state.watched(object.clone());
        state.watched_end(&object);
        let next = state.write_began();
        state.write_ended(before);
        before = next;
        assert!(state.remembered() <= 2);
    }
}

#[test]
fn managed_fields_are_not_kept() {
    let mut state = State::new();
    let mut object = object(1, 1, 1);
    object.metadata.managed_fields = Some(Vec::new());
    state.watched(object);
    assert_eq!(state.get(&key(1)).and_then(|object| object.metadata.managed_fields.clone()), None);
}

#[test]
fn a_namespace_is_listed_without_its_neighbours() {
    let mut state = State::new();
    for (version, namespace) in ["a", "a-b", "b"].into_iter().enumerate() {
        let mut object = object(1, version as u64, version as u64);
        object.metadata.namespace = Some(namespace.into());
        state.watched(object);
    }
    let namespaces = |listed: Vec<Arc<ConfigMap>>| -> Vec<_> {
        listed.iter().filter_map(|object| object.metadata.namespace.clone()).collect()
    };
    assert_eq!(namespaces(state.list(Some("a"))), ["a"]);
    assert_eq!(namespaces(state.list(None)), ["a", "a-b", "b"]);
}
