//! The line of commits that wait for the disk.
//!
//! A commit is decided when it joins the line, against a state that has all commits before it, those that still wait
//! included. What waits is written in groups: while the disk takes one group, the next one gathers. Nobody is told of a
//! commit before its group is on the disk; a conflict with a commit that still waits is told after that commit, too.
//!
//! When there is no room for a group, it and all that was decided after it is taken back: deciding goes on from what
//! readers see.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::files::Entered;
use crate::state::State;
use crate::{
    Change, CommitError, Conflict, Entry, Event, Expect, Limits, Name, NoRoom, Revision, Unavailable,
};

/// The bytes of values after which a group takes no more commits.
const GROUP: usize = 8 << 20;

/// What a commit comes to.
pub(crate) type Outcome<T> = Result<Arc<Entry<T>>, CommitError<T>>;

/// Where commits wait for the disk.
pub(crate) struct Line<T> {
    inner: Mutex<Inner<T>>,
    /// Rung for the writer when there is something to do.
    work: Condvar,
    limits: Limits,
}

struct Inner<T> {
    /// With all that was decided.
    pending: State<T>,
    groups: VecDeque<Group<T>>,
    /// Whether a group is being written.
    writing: bool,
    standing: Standing,
    /// Why there was no room for the last group.
    full: Option<NoRoom>,
    /// Whether somebody wants to know if there is room again.
    asked: bool,
    /// The past before this was forgotten, and the group that had it had no room.
    owed: Option<Revision>,
}

enum Standing {
    Open,
    /// What waits is written, and then it is over.
    Closing,
    Failed(Unavailable),
}

/// What there is for the writer to do.
pub(crate) enum Task<T> {
    /// To write a group; this is the state after it.
    Write(Group<T>, State<T>),
    /// To find out whether there is room again.
    LookForRoom,
}

/// Commits that go to the disk together.
pub(crate) struct Group<T> {
    /// The revision of the first.
    pub(crate) first: Revision,
    records: Vec<Waiting<T>>,
    weight: usize,
    waiters: Vec<Waiter<T>>,
    /// The state after the last, once it takes no more.
    state: Option<State<T>>,
}

enum Waiting<T> {
    Commit(Name, Arc<Event<T>>),
    Compact(Revision),
}

/// Who waits, and what it will be told when the group is on the disk.
struct Waiter<T> {
    outcome: Result<Arc<Entry<T>>, Conflict<T>>,
    reply: oneshot::Sender<Outcome<T>>,
}

/// A commit that was decided.
pub(crate) enum Joined<T> {
    /// Nothing needs to be waited for.
    Told(Outcome<T>),
    Waits(oneshot::Receiver<Outcome<T>>),
}

impl<T> Line<T> {
    /// An empty line behind `state`.
    pub(crate) fn new(state: State<T>, limits: Limits) -> Self {
        let inner = Inner {
            pending: state,
            groups: VecDeque::new(),
            writing: false,
            standing: Standing::Open,
            full: None,
            asked: false,
            owed: None,
        };
        Self { inner: Mutex::new(inner), work: Condvar::new(), limits }
    }

    /// Decides a commit, and lets it wait for the disk. `published` is what readers see.
    pub(crate) fn join(
        &self,
        collection: &Name,
        key: &Name,
        expect: Expect,
        change: Change<T>,
        published: impl FnOnce() -> Option<Arc<Entry<T>>>,
    ) -> Joined<T> {
        let mut inner = self.inner.lock();
        if let Standing::Failed(why) = &inner.standing {
            return Joined::Told(Err(why.clone().into()));
        }
        let first = inner.pending.revision.next();
        let (reply, receiver) = oneshot::channel();
        match inner.pending.commit(collection, key, expect, change, self.limits) {
            Ok(event) => {
                let weight = event.entry.bytes.len();
                let outcome = Ok(Arc::clone(&event.entry));
                let group = inner.open_group(first);
                group.waiters.push(Waiter { outcome, reply });
                group.push(Waiting::Commit(Arc::clone(collection), event), weight);
                inner.seal_if_full();
            }
            Err(conflict) => {
                let waits = inner.writing || !inner.groups.is_empty();
                if !waits || same(&conflict.0, &published()) {
                    return Joined::Told(Err(conflict.into()));
                }
                let group = inner.last_group(first);
                group.waiters.push(Waiter { outcome: Err(conflict), reply });
            }
        }
        drop(inner);
        self.work.notify_one();
        Joined::Waits(receiver)
    }

    /// Lets the past before `revision` be forgotten, on the disk too.
    pub(crate) fn compact(&self, revision: Revision) {
        let mut inner = self.inner.lock();
        inner.pending = inner.pending.compact(revision);
        if matches!(inner.standing, Standing::Open) {
            let first = inner.pending.revision.next();
            inner.open_group(first).push(Waiting::Compact(revision), 0);
            drop(inner);
            self.work.notify_one();
        }
    }

    /// For the writer: what is to be done next. `None` when the line is closed and empty.
    pub(crate) fn next(&self) -> Option<Task<T>> {
        let mut inner = self.inner.lock();
        inner.writing = false;
        loop {
            if let Some(mut group) = inner.groups.pop_front() {
                inner.writing = true;
                let state = group.state.take().unwrap_or_else(|| inner.pending.clone());
                return Some(Task::Write(group, state));
            }
            if !matches!(inner.standing, Standing::Open) {
                return None;
            }
            if std::mem::take(&mut inner.asked) {
                return Some(Task::LookForRoom);
            }
            self.work.wait(&mut inner);
        }
    }

    /// Takes no more commits; [`Self::next`] gives what waits, and then ends.
    pub(crate) fn close(&self) {
        let mut inner = self.inner.lock();
        if matches!(inner.standing, Standing::Open) {
            inner.standing = Standing::Closing;
        }
        drop(inner);
        self.work.notify_one();
    }

    /// There was no room for the group that was being written: it and all that were decided after it did not happen.
    /// `published` is what readers see. Gives those who waited behind it.
    pub(crate) fn refuse(&self, group: &Group<T>, why: &NoRoom, published: State<T>) -> VecDeque<Group<T>> {
        let mut inner = self.inner.lock();
        let behind = std::mem::take(&mut inner.groups);
        let forgotten = std::iter::once(group).chain(&behind).flat_map(|group| &group.records);
        let forgotten = forgotten.filter_map(|record| match record {
            Waiting::Compact(revision) => Some((*revision).min(published.revision)),
            Waiting::Commit(..) => None,
        });
        inner.owed = forgotten.chain(inner.owed).max();
        inner.pending = published;
        inner.full = Some(why.clone());
        behind
    }

    /// Writing goes on.
    pub(crate) fn has_room(&self) {
        self.inner.lock().full = None;
    }

    /// Whether the last group could be written. Where it had no room the writer looks again, for who asks later.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn health(&self) -> Result<(), Arc<str>> {
        let mut inner = self.inner.lock();
        if let Standing::Failed(why) = &inner.standing {
            return Err(why.to_string().into());
        }
        let Some(full) = inner.full.clone() else { return Ok(()) };
        inner.asked = true;
        drop(inner);
        self.work.notify_one();
        Err(full.to_string().into())
    }

    /// Tells all who wait, and all who will come, that the store has failed.
    pub(crate) fn fail(&self, why: &Unavailable) {
        let mut inner = self.inner.lock();
        inner.standing = Standing::Failed(why.clone());
        let groups = std::mem::take(&mut inner.groups);
        drop(inner);
        for group in groups {
            group.fail(&Failure::Unavailable(why.clone()));
        }
    }
}

impl<T> Inner<T> {
    /// The group that takes commits, the next of which is `first`.
    fn open_group(&mut self, first: Revision) -> &mut Group<T> {
        if self.groups.back().is_some_and(|last| last.state.is_some()) {
            self.groups.push_back(Group::new(first));
        }
        let owed = self.owed.take();
        let group = self.last_group(first);
        if let Some(revision) = owed {
            group.push(Waiting::Compact(revision), 0);
        }
        group
    }

    /// The last group, whether it takes commits or not.
    fn last_group(&mut self, first: Revision) -> &mut Group<T> {
        if self.groups.is_empty() {
            self.groups.push_back(Group::new(first));
        }
        let last = self.groups.len() - 1;
        &mut self.groups[last]
    }

    /// Later commits must not show in the state of a group that is full.
    fn seal_if_full(&mut self) {
        if let Some(last) = self.groups.back_mut()
            && last.weight >= GROUP
        {
            last.state = Some(self.pending.clone());
        }
    }
}

impl<T> Group<T> {
    fn new(first: Revision) -> Self {
        Self { first, records: Vec::new(), weight: 0, waiters: Vec::new(), state: None }
    }

    fn push(&mut self, record: Waiting<T>, weight: usize) {
        self.records.push(record);
        self.weight += weight;
    }

    /// What goes to the disk.
    pub(crate) fn records(&self) -> impl Iterator<Item = Entered<'_, T>> {
        self.records.iter().map(|record| match record {
            Waiting::Commit(collection, event) => Entered::Commit(collection, event),
            Waiting::Compact(revision) => Entered::Compact(*revision),
        })
    }

    /// Whether nothing goes to the disk: there are only conflicts, which wait for the groups before.
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The bytes of its values.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    /// Tells who waits what came of it: the group is on the disk, and readers see it.
    pub(crate) fn notify(self) {
        for Waiter { outcome, reply } in self.waiters {
            // Who has gone away does not want to know.
            let _ = reply.send(outcome.map_err(CommitError::from));
        }
    }

    /// Tells who waits that it did not come to the disk.
    pub(crate) fn fail(self, why: &Failure) {
        for Waiter { reply, .. } in self.waiters {
            let _ = reply.send(Err(match why {
                Failure::NoRoom(why) => why.clone().into(),
                Failure::Unavailable(why) => why.clone().into(),
            }));
        }
    }
}

/// Why a group did not come to the disk.
pub(crate) enum Failure {
    NoRoom(NoRoom),
    Unavailable(Unavailable),
}

/// Whether both are the value of the same commit, or none.
fn same<T>(one: &Option<Arc<Entry<T>>>, other: &Option<Arc<Entry<T>>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.revision == other.revision,
        (None, None) => true,
        _ => false,
    }
}
