//! What is known of the past: the objects of the beginning, and the writes since.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use kubewright_control_plane::recording::{Did, Recording, Revision, Write};

/// How much of the past is kept. What is older is folded into the objects of the beginning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Writes.
    pub(crate) writes: usize,
    /// Bytes of the objects of these writes.
    pub(crate) bytes: usize,
}

/// What a live cluster's view keeps.
pub(crate) const LIVE: Limits = Limits { writes: 50_000, bytes: 128 << 20 };

type Place = (Arc<str>, Arc<str>);

/// The objects of the beginning, and the writes since, oldest first.
#[derive(Debug)]
pub(crate) struct History {
    limits: Limits,
    base: BTreeMap<Place, Arc<Write>>,
    /// The revision of `base`.
    through: Revision,
    writes: VecDeque<Arc<Write>>,
    bytes: usize,
    /// Writes that were made and not seen, as more were made than the journal keeps.
    missed: u64,
}

impl History {
    /// A history that begins with these objects, at this revision.
    pub(crate) fn starting_from(
        objects: impl IntoIterator<Item = Write>,
        through: Revision,
        limits: Limits,
    ) -> Self {
        let place = |write: Write| ((Arc::clone(&write.collection), Arc::clone(&write.key)), Arc::new(write));
        let base = objects.into_iter().map(place).collect();
        Self { limits, base, through, writes: VecDeque::new(), bytes: 0, missed: 0 }
    }

    /// All of a recording.
    pub(crate) fn of_recording(recording: &Recording) -> Self {
        let limits = Limits { writes: usize::MAX, bytes: usize::MAX };
        let through = recording.writes().first().map_or(0, |write| write.revision.0.saturating_sub(1));
        let mut history = Self::starting_from([], Revision(through), limits);
        for write in recording.writes() {
            history.add(Arc::clone(write));
        }
        history
    }

    /// Adds the next write. One that is known already changes nothing.
    pub(crate) fn add(&mut self, write: Arc<Write>) {
        let last = self.last();
        if write.revision <= last {
            return;
        }
        self.missed += write.revision.0 - last.0 - 1;
        self.bytes += write.bytes.len();
        self.writes.push_back(write);
        while self.writes.len() > self.limits.writes || self.bytes > self.limits.bytes {
            let Some(oldest) = self.writes.pop_front() else { return };
            self.bytes -= oldest.bytes.len();
            self.through = oldest.revision;
            let place = (Arc::clone(&oldest.collection), Arc::clone(&oldest.key));
            match oldest.did {
                Did::Delete => drop(self.base.remove(&place)),
                Did::Create | Did::Update => drop(self.base.insert(place, oldest)),
            }
        }
    }

    /// The revision of the last write; that of the beginning where there is none.
    pub(crate) fn last(&self) -> Revision {
        self.writes.back().map_or(self.through, |write| write.revision)
    }

    /// The revision of the beginning.
    pub(crate) fn through(&self) -> Revision {
        self.through
    }

    /// How many writes were made and not seen.
    pub(crate) fn missed(&self) -> u64 {
        self.missed
    }

    /// So many objects of the beginning, after so many others.
    pub(crate) fn base(&self, skip: usize, limit: usize) -> Vec<Arc<Write>> {
        self.base.values().skip(skip).take(limit).cloned().collect()
    }

    /// So many writes after a revision.
    pub(crate) fn after(&self, revision: Revision, limit: usize) -> Vec<Arc<Write>> {
        let from = self.writes.partition_point(|write| write.revision <= revision);
        self.writes.range(from..).take(limit).cloned().collect()
    }

    /// The writes of one object up to a revision, newest first; last the one that the beginning has of it.
    pub(crate) fn of(&self, collection: &str, key: &str, until: Revision) -> Vec<Arc<Write>> {
        let end = self.writes.partition_point(|write| write.revision <= until);
        let mine = |write: &&Arc<Write>| &*write.collection == collection && &*write.key == key;
        let mut found: Vec<_> = self.writes.range(..end).rev().filter(mine).cloned().collect();
        found.extend(self.base.get(&(collection.into(), key.into())).cloned());
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::write;

    fn revisions(writes: &[Arc<Write>]) -> Vec<u64> {
        writes.iter().map(|write| write.revision.0).collect()
    }

    #[test]
    fn what_is_too_old_is_folded_into_the_objects_of_the_beginning() {
        let limits = Limits { writes: 2, bytes: usize::MAX };
        let mut history = History::starting_from([write(3, Did::Create, "default/old")], Revision(3), limits);
        for (revision, did, key) in [
            (4, Did::Create, "default/a"),
            (5, Did::Delete, "default/old"),
            (6, Did::Update, "default/a"),
            (7, Did::Update, "default/a"),
        ] {
            history.add(Arc::new(write(revision, did, key)));
        }
        assert_eq!((history.through(), history.last(), history.missed()), (Revision(5), Revision(7), 0));
        assert_eq!(revisions(&history.base(0, 10)), [4], "the deleted one is not there");
        assert_eq!(revisions(&history.of("/configmaps", "default/a", Revision(6))), [6, 4]);
        assert_eq!(revisions(&history.after(Revision(6), 10)), [7]);
    }

    #[test]
    fn bytes_are_limited_and_gaps_are_counted() {
        let size = write(1, Did::Create, "default/a").bytes.len();
        let limits = Limits { writes: 100, bytes: 2 * size };
        let mut history = History::starting_from([], Revision(0), limits);
        for revision in [1, 2, 2, 6] {
            history.add(Arc::new(write(revision, Did::Update, "default/a")));
        }
        assert_eq!(revisions(&history.after(Revision(0), 10)), [2, 6]);
        assert_eq!(history.missed(), 3);
    }
}
