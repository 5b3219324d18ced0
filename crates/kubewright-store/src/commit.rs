//! What goes into a commit and what comes out of it.

use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;

use crate::{Name, Revision};

/// A value to be committed. The revision that the commit gets is written, in decimal digits, into the bytes at
/// `revision_at`, so that what readers share carries its own version. (A backend that learns the revision late, such as
/// etcd, keeps the draft and fills it in when it reads.)
#[derive(Debug)]
pub struct Draft<T> {
    /// The value without its revision.
    pub bytes: Vec<u8>,
    /// Where the digits go; `None` for a value without. Beyond the end means at the end.
    pub revision_at: Option<usize>,
    /// What the owner of the store wants to know of a value without decoding it.
    pub tag: Arc<T>,
}

/// A committed value.
#[derive(Debug)]
pub struct Entry<T> {
    /// Its key within the collection.
    pub key: Name,
    /// Its bytes, revision included, shared by all readers.
    pub bytes: Bytes,
    /// The commit that made this value.
    pub revision: Revision,
    /// See [`Draft::tag`].
    pub tag: Arc<T>,
}

/// What must hold for a commit to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The key is not there.
    Absent,
    /// The key's value is the one of this revision.
    At(Revision),
}

/// What a commit does to a key.
#[derive(Clone, Debug)]
pub enum Change<T> {
    /// Sets its value.
    Put(Draft<T>),
    /// Removes it; the draft is what watchers are told of its last state.
    Delete(Draft<T>),
}

/// The key was not as expected; this is what is there.
#[derive(Debug, thiserror::Error)]
#[error("the key has changed")]
pub struct Conflict<T>(pub Option<Arc<Entry<T>>>);

/// The backend has failed, and why. What it holds can still be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store is not available: {0}")]
pub struct Unavailable(pub Arc<str>);

/// The backend has no room for a commit, and why. It goes on by itself once there is room.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store has no room: {0}")]
pub struct NoRoom(pub Arc<str>);

/// Why a commit did not happen.
#[derive(Debug, thiserror::Error)]
pub enum CommitError<T> {
    /// The key was not as expected. Nothing has changed.
    #[error(transparent)]
    Conflict(#[from] Conflict<T>),
    /// There was no room for it. Nothing has changed, and nothing of it is there when the store is opened again.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// The backend failed. Nobody has seen the commit; whether it is there when the store is opened again is not known.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

// Not derived: a derive would ask for `T: Clone`, which sharing the tag does not need.
impl<T> Clone for Draft<T> {
    fn clone(&self) -> Self {
        Self { bytes: self.bytes.clone(), revision_at: self.revision_at, tag: Arc::clone(&self.tag) }
    }
}

impl<T> Draft<T> {
    /// The entry that this draft becomes under `revision`.
    pub(crate) fn into_entry(self, key: Name, revision: Revision) -> Entry<T> {
        let bytes = match self.revision_at {
            Some(at) => splice(&self.bytes, at, revision),
            None => self.bytes,
        };
        // Boxed first: an entry may live for long, and must not keep the spare capacity of a writer's buffer.
        Entry { key, bytes: Bytes::from(bytes.into_boxed_slice()), revision, tag: self.tag }
    }
}

impl Expect {
    /// Whether it holds for what is there.
    #[must_use]
    pub fn holds<T>(self, current: Option<&Arc<Entry<T>>>) -> bool {
        match (self, current) {
            (Self::Absent, None) => true,
            (Self::At(revision), Some(entry)) => entry.revision == revision,
            (Self::Absent, Some(_)) | (Self::At(_), None) => false,
        }
    }
}

/// `bytes` with the digits of `revision` put in before index `at`, in one exact allocation.
fn splice(bytes: &[u8], at: usize, revision: Revision) -> Vec<u8> {
    let (before, after) = bytes.split_at(at.min(bytes.len()));
    let digits = revision.0.checked_ilog10().map_or(1, |log| log as usize + 1);
    let mut spliced = Vec::with_capacity(bytes.len() + digits);
    spliced.extend_from_slice(before);
    // Writing into a vector cannot fail.
    let _ = write!(spliced, "{revision}");
    spliced.extend_from_slice(after);
    spliced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_revisions_digits_go_where_the_draft_says_in_one_exact_allocation() {
        for (revision, expected) in
            [(0, "<0>"), (9, "<9>"), (10, "<10>"), (u64::MAX, "<18446744073709551615>")]
        {
            let spliced = splice(b"<>", 1, Revision(revision));
            assert_eq!(spliced, expected.as_bytes());
            assert_eq!(spliced.capacity(), spliced.len());
        }
        assert_eq!(splice(b"<>", 0, Revision(7)), b"7<>");
        assert_eq!(splice(b"<>", 2, Revision(7)), b"<>7");
        assert_eq!(splice(b"<>", 9, Revision(7)), b"<>7");
    }

    #[test]
    fn a_draft_without_a_place_for_its_revision_keeps_its_bytes() {
        let draft = Draft { bytes: b"plain".to_vec(), revision_at: None, tag: Arc::new(()) };
        let entry = draft.into_entry("k".into(), Revision(3));
        assert_eq!(entry.bytes, "plain");
        assert_eq!(entry.revision, Revision(3));
    }
}
