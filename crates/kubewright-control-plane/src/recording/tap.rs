//! What happens in a cluster, as records, while it runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use kubewright_recording::{Author, Mark, Record, Request};
use kubewright_store::{Name, Revision};
use tokio::sync::watch;

use super::{Did, Write, Writer};
use crate::ControlPlane;
use crate::admin::{Admin, AnsweredRequest};
use crate::journal::Journal;

/// Takes the writes of a cluster from its [`Journal`], and its requests from the log of its [`Admin`], as
/// [records](kubewright_recording::Record): writes in the order of their revisions, each once.
pub struct Tap {
    journal: Journal,
    admin: Option<Admin>,
    commits: watch::Receiver<Revision>,
    /// How much of the journal and of the log was taken.
    taken: u64,
    taken_requests: u64,
    taken_marks: u64,
    taken_reconciles: u64,
    /// What was there before the journal.
    before: Vec<Write>,
    /// Commits that wait for one of an earlier revision, which is noted in a moment.
    waiting: BTreeMap<Revision, Write>,
    next: Revision,
    /// Whether somebody has waited for `next` already.
    has_waited: bool,
}

impl Tap {
    /// Of a cluster from its beginning on; where the journal does not have that, from what is there now on. `None` where there is no
    /// [journal](crate::Builder::journal).
    #[must_use]
    pub fn of(cluster: &ControlPlane) -> Option<Self> {
        let journal = cluster.journal()?.clone();
        let commits = journal.follow();
        let (written, lost) = journal.since(0);
        let has_all = lost == 0 && written.iter().any(|one| one.revision == Revision(1));
        let (before, next) = if has_all { (Vec::new(), Revision(1)) } else { there(cluster) };
        let admin = cluster.admin().cloned();
        Some(Self {
            journal,
            admin,
            commits,
            taken: 0,
            taken_requests: 0,
            taken_marks: 0,
            taken_reconciles: 0,
            before,
            waiting: BTreeMap::new(),
            next,
            has_waited: false,
        })
    }

    /// Waits for a commit that was not seen. It never returns when the cluster has ended.
    pub async fn changed(&mut self) {
        if self.commits.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// What has happened since this was last called: the writes, then the requests, then what a test did to the
    /// cluster, then the reconciles that operators told of.
    pub fn take(&mut self) -> Vec<Record> {
        self.commits.mark_unchanged();
        let mut records: Vec<Record> = std::mem::take(&mut self.before).iter().filter_map(record).collect();
        let (written, lost) = self.journal.since(self.taken);
        self.taken += lost + written.len() as u64;
        for one in written.into_iter().filter(|one| one.revision >= self.next) {
            self.waiting.insert(one.revision, one.into());
        }
        self.in_order(lost, &mut records);
        if let Some(admin) = &self.admin {
            if admin.requested() < self.taken_requests {
                self.taken_requests = 0;
            }
            let (requests, lost) = admin.requests_since(self.taken_requests);
            self.taken_requests += lost + requests.len() as u64;
            records.extend(lost_mark(requests.first().map(|first| first.time), lost, "requests"));
            records.extend(requests.iter().map(request));
            let (marks, position) = admin.marks_since(self.taken_marks);
            self.taken_marks = position;
            records.extend(marks.into_iter().map(Record::Mark));
            let (reconciles, position) = admin.reconciles_since(self.taken_reconciles);
            self.taken_reconciles = position;
            records.extend(reconciles.into_iter().map(Record::Reconcile));
        }
        records
    }

    /// Those that wait for none any more. One whose commit nobody noted is waited for once.
    fn in_order(&mut self, lost: u64, records: &mut Vec<Record>) {
        let Some((first, write)) = self.waiting.first_key_value() else { return };
        if *first != self.next && (self.has_waited || lost > 0) {
            records.extend(lost_mark(Some(write.time), first.0 - self.next.0, "writes"));
            self.next = *first;
        }
        while let Some(write) = self.waiting.remove(&self.next) {
            records.extend(record(&write));
            self.next = Revision(self.next.0 + 1);
        }
        self.has_waited = !self.waiting.is_empty();
    }
}

impl Admin {
    /// What happened besides writes, as far as it is kept: requests, what a test did to the cluster, and reconciles.
    #[must_use]
    pub fn records(&self) -> Vec<Record> {
        let requests = self.requests_since(0).0;
        let mut records: Vec<Record> = requests.iter().map(request).collect();
        records.extend(self.marks_since(0).0.into_iter().map(Record::Mark));
        records.extend(self.reconciles_since(0).0.into_iter().map(Record::Reconcile));
        records
    }
}

/// The objects that are there, by revision, and the revision after theirs.
fn there(cluster: &ControlPlane) -> (Vec<Write>, Revision) {
    let snapshot = cluster.server().engine().store().snapshot();
    let time = cluster.world().clock.now();
    let mut writes: Vec<Write> = Vec::new();
    for collection in snapshot.collections() {
        writes.extend(snapshot.range(collection, "", None).map(|entry| Write {
            revision: entry.revision,
            time,
            by: Writer::default(),
            did: Did::Create,
            collection: Name::clone(collection),
            key: Name::clone(&entry.key),
            bytes: Bytes::clone(&entry.bytes),
        }));
    }
    writes.sort_by_key(|write| write.revision);
    (writes, Revision(snapshot.revision().0 + 1))
}

/// As a record; `None` for an object that is no JSON, which none of a cluster is.
fn record(write: &Write) -> Option<Record> {
    write.record().ok().map(Record::Write)
}

fn lost_mark(time: Option<Timestamp>, lost: u64, what: &str) -> Option<Record> {
    let note = format!("{lost} {what} came faster than they were recorded");
    let time = time.filter(|_| lost > 0)?;
    Some(Record::Mark(Mark { time, what: "lost".to_owned(), note }))
}

fn request(answered: &AnsweredRequest) -> Record {
    let info = Arc::clone(&answered.info);
    let by = Author { user: info.user.clone(), program: info.user_agent.clone() };
    let slash = if info.subresource.is_empty() { "" } else { "/" };
    let (resource, key) = match (info.is_for_objects(), &*info.namespace) {
        (false, _) => (info.path.clone(), String::new()),
        (true, namespace) => {
            let resource = format!("{}/{}{slash}{}", info.group, info.resource, info.subresource);
            let between = if namespace.is_empty() { "" } else { "/" };
            (resource, format!("{namespace}{between}{}", info.name))
        }
    };
    Record::Request(Request {
        time: answered.time,
        by,
        verb: info.verb.to_owned(),
        resource,
        key,
        code: answered.code,
        fault: answered.fault,
    })
}

impl std::fmt::Debug for Tap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tap(next revision {})", self.next)
    }
}
