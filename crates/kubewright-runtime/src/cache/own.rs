//! Which changes need not wake up who made them.
//!
//! What a reconcile writes comes back twice: as the answer to the write and from the watch, in either order. To wake its own
//! key for that would be a reconcile that finds nothing to do. But the answer only tells how the object is now, not whether
//! somebody else wrote as well, between what the reconcile saw and its own write. The watch tells every version there was.
//! So a change is *withheld* from its author until both were heard: each version that the watch told of has to be claimed
//! by an answer. One that is not is somebody else's, and the author is told after all.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::state::Change;
use crate::Key;

/// With so many own versions that the watch has not told of, an author is told: it may be long until the watch works again.
const PATIENCE: usize = 256;

/// Whom a change is told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Audience<A> {
    /// Everybody but these authors, who made it.
    AllBut(Vec<A>),
    /// This author, from whom it was withheld: it was not, or not alone, its own.
    Only(A),
}

impl<A> Audience<A> {
    pub(crate) const EVERYBODY: Self = Self::AllBut(Vec::new());
}

/// A change, and whom it is told.
#[derive(Debug)]
pub(crate) struct News<K: ?Sized, A> {
    pub(crate) change: Change<K>,
    pub(crate) audience: Audience<A>,
}

/// What authors wrote to the objects of one kind, as far as the watch and the answers do not agree on it yet.
#[derive(Debug)]
pub(super) struct OwnWrites<K: ?Sized, A>(BTreeMap<Key, Vec<Writer<K, A>>>);

/// What one author wrote to one object.
#[derive(Debug)]
struct Writer<K: ?Sized, A> {
    author: A,
    /// Writes that are not answered.
    under_way: usize,
    /// The version up to which the author was told of everything, or began to write on.
    known: u64,
    /// Later versions that the watch told of and no answer claimed.
    told: BTreeSet<u64>,
    /// Later versions that answers claimed and the watch has not told of.
    claimed: BTreeSet<u64>,
    /// The change over all of these versions.
    withheld: Option<Change<K>>,
    /// Somebody else may have written unnoticed: a list tells only of the last version.
    in_doubt: bool,
}

impl<K: ?Sized, A: Clone + PartialEq> Writer<K, A> {
    fn new(author: A, known: u64) -> Self {
        Self {
            author,
            under_way: 0,
            known,
            told: BTreeSet::new(),
            claimed: BTreeSet::new(),
            withheld: None,
            in_doubt: false,
        }
    }

    /// Keeps a change to this version from the author.
    fn withhold(&mut self, change: &Change<K>, version: Option<u64>) {
        self.in_doubt |= version.is_none_or(|version| version <= self.known);
        self.withheld = Some(match self.withheld.take() {
            Some(before) => before.then(change),
            None => change.clone(),
        });
    }

    /// The author was told of everything up to `version`.
    fn knows(&mut self, version: Option<u64>) {
        self.known = version.unwrap_or(self.known).max(self.known);
        self.told.clear();
        self.claimed.clear();
        self.withheld = None;
        self.in_doubt = false;
    }

    fn was_told(&mut self, version: Option<u64>) {
        let Some(version) = version else {
            self.in_doubt = true;
            return;
        };
        if version > self.known && !self.claimed.remove(&version) {
            self.told.insert(version);
        }
        // Versions before it that the watch did not tell of: it never will.
        self.in_doubt |= self.claimed.first().is_some_and(|claimed| *claimed < version);
    }

    fn claims(&mut self, version: u64) {
        if version > self.known && !self.told.remove(&version) {
            self.claimed.insert(version);
        }
    }

    fn verdict(&self) -> Verdict {
        if self.under_way > 0 {
            Verdict::Open
        } else if self.in_doubt || !self.told.is_empty() || self.claimed.len() > PATIENCE {
            Verdict::Foreign
        } else if self.claimed.is_empty() {
            Verdict::Own
        } else {
            Verdict::Open
        }
    }
}

/// Whose changes were withheld from an author.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Nobody knows yet.
    Open,
    /// All its own.
    Own,
    /// Not all.
    Foreign,
}

impl<K: ?Sized, A: Clone + PartialEq> OwnWrites<K, A> {
    pub(super) fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// `author` writes to an object that is known in this version. [`OwnWrites::ended`] must follow.
    pub(super) fn began(&mut self, key: &Key, author: &A, version: Option<u64>) {
        self.writer(key, author, version).under_way += 1;
    }

    /// `author` was answered with this version, which is what it asked for; the object was known in the version `before`,
    /// and this changed what is known. Says whom the change is told.
    pub(super) fn claimed(
        &mut self,
        key: &Key,
        author: &A,
        version: u64,
        before: Option<u64>,
        change: Option<&Change<K>>,
    ) -> Audience<A> {
        self.writer(key, author, before).claims(version);
        self.retain(key, |writer| match change {
            None => {}
            Some(change) if writer.author == *author => writer.withhold(change, Some(version)),
            Some(_) => writer.knows(Some(version)),
        });
        Audience::AllBut(vec![author.clone()])
    }

    /// What is known of an object changed, not by the watch and not as one of the authors asked for: everybody is told.
    pub(super) fn changed(&mut self, key: &Key, version: Option<u64>) {
        self.retain(key, |writer| writer.knows(version));
    }

    /// The watch told of this version of an object (none if it may have left others out), or of its end in this version, which
    /// may have changed what is known. Says whom the change is told, and who is told now of what was withheld.
    pub(super) fn watched(
        &mut self,
        key: &Key,
        version: Option<u64>,
        change: Option<Change<K>>,
    ) -> Vec<News<K, A>> {
        if !self.0.contains_key(key) {
            return change.map(|change| News { change, audience: Audience::EVERYBODY }).into_iter().collect();
        }
        let mut withheld_from = Vec::new();
        self.retain(key, |writer| {
            writer.was_told(version);
            match &change {
                Some(change @ (Change::Created(_) | Change::Updated { .. })) if writer.under_way > 0 => {
                    writer.withhold(change, version);
                    withheld_from.push(writer.author.clone());
                }
                Some(_) => writer.knows(version),
                None => {}
            }
        });
        let mut news = self.settle(key);
        news.extend(change.map(|change| News { change, audience: Audience::AllBut(withheld_from) }));
        news
    }

    /// A write of `author` is over, whatever came of it. Says who is told now of what was withheld.
    pub(super) fn ended(&mut self, key: &Key, author: &A) -> Vec<News<K, A>> {
        for writer in self.0.get_mut(key).into_iter().flatten().filter(|writer| writer.author == *author) {
            writer.under_way = writer.under_way.saturating_sub(1);
        }
        self.settle(key)
    }

    /// A list was complete. Says who is told now of what was withheld.
    pub(super) fn listed(&mut self) -> Vec<News<K, A>> {
        let keys: Vec<Key> = self.0.keys().cloned().collect();
        for writer in self.0.values_mut().flatten() {
            writer.in_doubt = true;
        }
        keys.iter().flat_map(|key| self.settle(key)).collect()
    }

    /// How much is remembered.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    fn writer(&mut self, key: &Key, author: &A, known: Option<u64>) -> &mut Writer<K, A> {
        let writers = self.0.entry(key.clone()).or_default();
        let position = writers.iter().position(|writer| writer.author == *author).unwrap_or_else(|| {
            writers.push(Writer::new(author.clone(), known.unwrap_or(0)));
            writers.len() - 1
        });
        &mut writers[position]
    }

    /// Does something with all who wrote to an object, and forgets of whom nothing is left to say.
    fn retain(&mut self, key: &Key, mut f: impl FnMut(&mut Writer<K, A>)) {
        if let Some(writers) = self.0.get_mut(key) {
            writers.iter_mut().for_each(&mut f);
            writers.retain(|writer| writer.verdict() != Verdict::Own);
            if writers.is_empty() {
                self.0.remove(key);
            }
        }
    }

    /// Forgets those whose case is clear, and tells those who have to know.
    fn settle(&mut self, key: &Key) -> Vec<News<K, A>> {
        let mut due = Vec::new();
        self.retain(key, |writer| {
            if writer.verdict() == Verdict::Foreign {
                let withheld = writer.withheld.take();
                due.extend(
                    withheld.map(|change| News { change, audience: Audience::Only(writer.author.clone()) }),
                );
                writer.knows(None);
            }
        });
        due
    }
}

impl<K: ?Sized> Change<K> {
    /// This change and a later one, as one.
    fn then(self, later: &Self) -> Self {
        match (self, later) {
            (Self::Created(_), Self::Updated { new, .. }) => Self::Created(new.clone()),
            (Self::Updated { old, .. }, Self::Updated { new, .. }) => Self::Updated { old, new: new.clone() },
            (_, later) => later.clone(),
        }
    }
}

impl<K: ?Sized> Clone for Change<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Created(new) => Self::Created(Arc::clone(new)),
            Self::Updated { old, new } => Self::Updated { old: Arc::clone(old), new: Arc::clone(new) },
            Self::Deleted(last) => Self::Deleted(Arc::clone(last)),
        }
    }
}
