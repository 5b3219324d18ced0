//! What has happened to the objects of a cluster: who wrote what, and when.
//!
//! A [`Recording`] is what the [`Journal`] of a cluster has at one moment: it can be looked through, kept as a
//! [file](Recording::write), and be made a cluster of again ([`Builder::recording`](crate::Builder::recording)), as it was at its
//! end or at any revision before.

mod blocks;
mod file;
pub mod place;
mod recorder;
mod replay;
mod tap;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use kubewright_store::{Happening, Name};
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::journal::{Journal, Written};

pub use blocks::{Opened, Unreadable, besides};
pub use file::{BadRecording, Header};
pub use kubewright_store::Revision;
pub use recorder::{KEPT, Recorded, Recorder, redactor};
pub use replay::Unfit;
pub(crate) use replay::replay;
pub use tap::Tap;

/// Writer: who has written something.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Writer {
    /// The user. Empty for the API server itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// The header `User-Agent`, if there was one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub program: String,
}

/// Effect of a write on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Did {
    /// It came.
    Create,
    /// It changed.
    Update,
    /// It went.
    Delete,
}

impl From<Happening> for Did {
    fn from(happening: Happening) -> Self {
        match happening {
            Happening::Added => Self::Create,
            Happening::Modified => Self::Update,
            Happening::Deleted => Self::Delete,
        }
    }
}

/// One commit.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The revision that it made: the object's `resourceVersion`.
    pub revision: Revision,
    /// When, in cluster time.
    pub time: Timestamp,
    /// Who did it.
    pub by: Writer,
    /// What it did.
    pub did: Did,
    /// Group and plural of the resource, as `apps/deployments` or `/pods`.
    pub collection: Name,
    /// Namespace and name, as `default/web`; the name alone where there is no namespace.
    pub key: Name,
    /// The object in JSON; of one that went, its last state.
    pub bytes: Bytes,
}

impl From<Written> for Write {
    fn from(written: Written) -> Self {
        let by = written.by.map(|by| Writer { user: by.user.clone(), program: by.user_agent.clone() });
        Self {
            revision: written.revision,
            time: written.time,
            by: by.unwrap_or_default(),
            did: written.happening.into(),
            collection: written.collection,
            key: written.key,
            bytes: written.bytes,
        }
    }
}

impl Write {
    /// The object.
    #[must_use]
    pub fn object(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_default()
    }

    /// The namespace; empty where there is none.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.key.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.key.split_once('/').map_or(&self.key, |(_, name)| name)
    }
}

/// Everything that was written until one moment, oldest first. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    writes: Vec<Arc<Write>>,
}

impl FromIterator<Write> for Recording {
    /// Of writes that made the revisions from 1 on, in their order.
    fn from_iter<I: IntoIterator<Item = Write>>(writes: I) -> Self {
        Self { writes: writes.into_iter().map(Arc::new).collect() }
    }
}

impl Recording {
    /// What a journal has; `None` when it has forgotten how it began.
    #[must_use]
    pub fn of_journal(journal: &Journal) -> Option<Self> {
        let writes = journal.written(|_| true).into_iter().map(Write::from);
        (journal.forgotten() == 0).then(|| writes.collect())
    }

    /// All writes, oldest first: the one at index `i` made revision `i + 1`.
    #[must_use]
    pub fn writes(&self) -> &[Arc<Write>] {
        &self.writes
    }

    /// The writes after a revision.
    #[must_use]
    pub fn after(&self, revision: Revision) -> &[Arc<Write>] {
        let from = usize::try_from(revision.0).unwrap_or(usize::MAX).min(self.writes.len());
        &self.writes[from..]
    }

    /// The revision of the last write.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.writes.last().map_or(Revision(0), |write| write.revision)
    }

    /// The recording as it was at a revision; all of it, if that is later.
    #[must_use]
    pub fn at(&self, revision: Revision) -> Self {
        let until = usize::try_from(revision.0).unwrap_or(usize::MAX).min(self.writes.len());
        Self { writes: self.writes[..until].to_vec() }
    }

    /// What was written of one object, by its collection (`apps/deployments`) and key (`default/web`).
    pub fn of<'a>(&'a self, collection: &'a str, key: &'a str) -> impl Iterator<Item = &'a Arc<Write>> {
        self.writes.iter().filter(move |write| &*write.collection == collection && &*write.key == key)
    }

    /// The objects that are there at the end, by collection and key: the write that made each what it is.
    #[must_use]
    pub fn objects(&self) -> BTreeMap<(Name, Name), Arc<Write>> {
        let mut objects = BTreeMap::new();
        for write in &self.writes {
            let place = (Arc::clone(&write.collection), Arc::clone(&write.key));
            match write.did {
                Did::Delete => drop(objects.remove(&place)),
                Did::Create | Did::Update => drop(objects.insert(place, Arc::clone(write))),
            }
        }
        objects
    }

    /// When the last write was.
    #[must_use]
    pub fn end(&self) -> Option<Timestamp> {
        self.writes.last().map(|write| write.time)
    }

    /// SHA-256 of all of it, in hexadecimal digits: two runs with the same have written the same bytes, at the same times,
    /// in the same order, in the name of the same users.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut context = Context::new(&SHA256);
        for write in &self.writes {
            let head = format!(
                "{} {} {:?} {} {} {} {}\n",
                write.revision,
                write.time,
                write.did,
                write.by.user,
                write.by.program,
                write.collection,
                write.key
            );
            context.update(head.as_bytes());
            context.update(&write.bytes);
        }
        context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The first write in which two recordings differ, of this one and of the other.
    #[must_use]
    pub fn first_difference<'a>(&'a self, other: &'a Self) -> Option<(Option<&'a Write>, Option<&'a Write>)> {
        let length = self.writes.len().max(other.writes.len());
        (0..length).find_map(|index| {
            let (one, two) = (self.writes.get(index), other.writes.get(index));
            (one != two).then(|| (one.map(AsRef::as_ref), two.map(AsRef::as_ref)))
        })
    }
}
