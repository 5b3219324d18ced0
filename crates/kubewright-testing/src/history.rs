//! Who wrote what, and when: what a test that fails tells of the objects that it was about.

use std::fmt;
use std::sync::Arc;

use jiff::{Timestamp, Unit};
use kubewright_cluster::admin::RequestInfo;
use kubewright_cluster::journal;
use kubewright_recording::Reconcile;
use kubewright_runtime::{Differences, Object};
use kubewright_store::Happening;
use serde_json::Value;

use crate::Cluster;
use crate::because::{Written, because};

/// The most objects that a failure tells of.
const MOST_SUBJECTS: usize = 4;
/// The most writes of one object that are told.
const MOST_WRITES: usize = 20;

/// What changes with every write and says nothing of it.
const NOISE: [&str; 2] = ["metadata.managedFields", "metadata.resourceVersion"];

/// An object, or one that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectId {
    kind: String,
    collection: String,
    key: String,
}

impl ObjectId {
    pub(crate) fn of<K: Object>(namespace: &str, name: &str) -> Self {
        let key = if K::is_namespaced() { format!("{namespace}/{name}") } else { name.to_owned() };
        Self {
            kind: K::kind(&()).into_owned(),
            collection: format!("{}/{}", K::group(&()), K::plural(&())),
            key,
        }
    }
}

/// History of one object: all its writes. It is shown as text: each write with its time, whose it was, and what it changed.
#[derive(Clone, Debug)]
pub struct History {
    subject: ObjectId,
    /// The writes, oldest first.
    pub writes: Vec<Write>,
}

/// One write.
#[derive(Clone, Debug)]
pub struct Write {
    /// When, in cluster time.
    pub time: Timestamp,
    /// What was asked for: `create`, `patch status`, `delete`. A deletion of one object can be a write of another.
    pub verb: String,
    /// The user whose request it was, such as `system:serviceaccount:web-system:web`; empty for what the API server did by
    /// itself.
    pub user: String,
    /// The header `User-Agent` of the request, such as `web/1.0`.
    pub program: String,
    /// In which reconcile of an operator it was made, and why that was, as `web reconciled default/a: ConfigMap default/a updated at 230`; empty where
    /// that is not known: of several reconciles at the same moment it is the one of the object or of its controlling owner.
    pub because: String,
    /// What it changed, each as `path: old -> new`; that it `came`, or `went`.
    pub changes: Vec<String>,
}

impl Cluster {
    /// What was written of the object `name`, as far as it is kept, whether it is there now or not.
    #[must_use]
    pub fn history<K: Object>(&self, name: &str) -> History {
        self.history_of(ObjectId::of::<K>(self.namespace(), name))
    }

    fn history_of(&self, subject: ObjectId) -> History {
        let is_meant =
            |one: &journal::Written| *one.collection == *subject.collection && *one.key == *subject.key;
        let written = self
            .simulated()
            .and_then(|cluster| cluster.journal())
            .map(|journal| journal.written(is_meant))
            .unwrap_or_default();
        let reconciles = self.admin().map(|admin| admin.reconciles_since(0).0).unwrap_or_default();
        let mut before: Option<Value> = None;
        let mut writes = Vec::new();
        for one in written {
            let now: Value = serde_json::from_slice(&one.bytes).unwrap_or_default();
            let changes = match (one.happening, &before) {
                (Happening::Added, _) => vec!["it came".to_owned()],
                (Happening::Deleted, _) => vec!["it went".to_owned()],
                (Happening::Modified, Some(before)) => {
                    Differences { ignored: &NOISE, ..Differences::default() }.between("", before, &now)
                }
                (Happening::Modified, None) => vec!["it changed; what it was before is not kept".to_owned()],
            };
            let because = one.by.as_ref().and_then(|by| {
                let written = Written { user: &by.user, time: one.time, key: &one.key, object: &now };
                because(&written, &reconciles).map(described)
            });
            before = Some(now);
            writes.push(Write::new(one.time, one.by.as_ref(), because.unwrap_or_default(), changes));
        }
        History { subject, writes }
    }

    /// Notes that the test looks at an object.
    pub(crate) fn look_at(&self, subject: ObjectId) {
        let mut looked = self.looked();
        looked.retain(|other| *other != subject);
        looked.push(subject);
        if looked.len() > MOST_SUBJECTS {
            looked.remove(0);
        }
    }

    /// Notes that what comes is about other objects.
    pub(crate) fn look_away(&self) {
        self.looked().clear();
    }

    /// The histories of what the test has looked at last, for a failure; empty when there is nothing to be told, or it was
    /// told already.
    pub(crate) fn looked_at_history(&self) -> String {
        let subjects = std::mem::take(&mut *self.looked());
        subjects.into_iter().map(|subject| format!("\n{}", self.history_of(subject))).collect()
    }
}

/// A reconcile and its reasons, as one line.
fn described(reconcile: &Reconcile) -> String {
    let Reconcile { controller, key, reasons, .. } = reconcile;
    format!("{controller} reconciled {key}: {reasons}")
}

impl Write {
    fn new(time: Timestamp, by: Option<&Arc<RequestInfo>>, because: String, changes: Vec<String>) -> Self {
        let (verb, user, program) = by.map_or_else(Default::default, |asked| {
            let space = if asked.subresource.is_empty() { "" } else { " " };
            (
                format!("{}{space}{}", asked.verb, asked.subresource),
                asked.user.clone(),
                asked.user_agent.clone(),
            )
        });
        Self { time, verb, user, program, because, changes }
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ObjectId { kind, key, .. } = &self.subject;
        if self.writes.is_empty() {
            return writeln!(f, "{kind} {key}: nobody has written it");
        }
        writeln!(f, "{kind} {key}: who wrote it")?;
        let skipped = self.writes.len().saturating_sub(MOST_WRITES);
        if skipped > 0 {
            writeln!(f, "  ({skipped} writes before)")?;
        }
        self.writes[skipped..].iter().try_for_each(|write| write.fmt(f))
    }
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = self.time.round(Unit::Millisecond).unwrap_or(self.time);
        match (self.program.as_str(), self.user.as_str()) {
            (_, "") => writeln!(f, "  {time:.3}  by the API server itself")?,
            ("", user) => writeln!(f, "  {time:.3}  {} by {user}", self.verb)?,
            (program, user) => writeln!(f, "  {time:.3}  {} by {program} as {user}", self.verb)?,
        }
        if !self.because.is_empty() {
            writeln!(f, "      because {}", self.because)?;
        }
        self.changes.iter().try_for_each(|change| writeln!(f, "      {change}"))
    }
}
