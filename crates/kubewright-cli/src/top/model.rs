//! What is known: the objects as they are now, and what happened, in the order of time.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use kubewright_cluster::recording::{Did, Revision};
use kubewright_view::{ReconcileRow, Row, Since};

/// How much of what happened is listed.
const LISTED: usize = 10_000;

/// One thing that happened.
pub(super) struct Entry {
    /// What no other has.
    pub(super) number: u64,
    pub(super) what: What,
}

pub(super) enum What {
    Write(Arc<Row>),
    Reconcile(Arc<ReconcileRow>),
}

impl Entry {
    /// Milliseconds since 1970.
    pub(super) fn time(&self) -> i64 {
        match &self.what {
            What::Write(row) => row.time,
            What::Reconcile(row) => row.time,
        }
    }
}

/// All of it.
pub(super) struct Model {
    pub(super) title: String,
    /// What the last line says beside the keys, such as a kind that may not be read.
    pub(super) note: String,
    objects: BTreeMap<String, Arc<Row>>,
    entries: VecDeque<Entry>,
    revision: Revision,
    /// Writes that say what was there before anybody looked.
    first: BTreeSet<u64>,
    numbers: u64,
}

impl Model {
    pub(super) fn new(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            note: String::new(),
            objects: BTreeMap::new(),
            entries: VecDeque::new(),
            revision: Revision(0),
            first: BTreeSet::new(),
            numbers: 0,
        }
    }

    /// The objects that are there.
    pub(super) fn objects(&self) -> impl Iterator<Item = &Arc<Row>> + Clone {
        self.objects.values()
    }

    /// What happened, oldest first.
    pub(super) fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.entries.iter()
    }

    /// As far as it knows.
    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    /// Says of a write that has not been followed yet that it only tells what was there.
    pub(super) fn was_there(&mut self, revision: Revision) {
        self.first.insert(revision.0);
    }

    /// Takes in what was written since its revision.
    pub(super) fn follow(&mut self, since: Since) {
        if let Some(base) = since.base {
            self.objects.clear();
            for row in base {
                self.revision = self.revision.max(Revision(row.revision));
                self.objects.insert(row.place(), Arc::new(row));
            }
        }
        for row in since.rows {
            let row = Arc::new(row);
            self.revision = Revision(row.revision);
            match row.did {
                Did::Delete => drop(self.objects.remove(&row.place())),
                Did::Create | Did::Update => drop(self.objects.insert(row.place(), Arc::clone(&row))),
            }
            if !self.first.remove(&row.revision) {
                self.list(What::Write(row));
            }
        }
        self.first.retain(|revision| *revision > self.revision.0);
    }

    /// Takes in reconciles that it has not yet.
    pub(super) fn reconciled(&mut self, rows: Vec<ReconcileRow>) {
        for row in rows {
            self.list(What::Reconcile(Arc::new(row)));
        }
    }

    /// Puts something in its place by time, behind what happened at the same.
    fn list(&mut self, what: What) {
        self.numbers += 1;
        let entry = Entry { number: self.numbers, what };
        let place = self.entries.partition_point(|before| before.time() <= entry.time());
        self.entries.insert(place, entry);
        if self.entries.len() > LISTED {
            self.entries.pop_front();
        }
    }
}
