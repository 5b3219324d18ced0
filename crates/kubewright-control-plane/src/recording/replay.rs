//! A store with a recording.

use kubewright_engine::tags_of;
use kubewright_kinds::Summary;
use kubewright_spec::Version;
use kubewright_store::{Change, CommitError, Draft, Expect, Memory, Store};

use super::{Did, Recording};

/// Error of a recording that makes no store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the recording does not fit together at revision {revision}: {why}")]
pub struct Unfit {
    revision: u64,
    why: String,
}

/// A store in which all of a recording has happened: its objects, revisions, and as much of its past as stores keep.
pub(crate) async fn replay(recording: &Recording, version: Version) -> Result<Memory<Summary>, Unfit> {
    let mut tag = tags_of(version, |collection| {
        let of = recording.writes().iter().filter(|write| &*write.collection == collection);
        of.map(|write| &write.bytes[..]).collect()
    });
    let store = Memory::new();
    for write in recording.writes() {
        let unfit = |why: String| Unfit { revision: write.revision.0, why };
        let tag = tag(&write.collection, &write.bytes).map_err(unfit)?;
        let draft = Draft { bytes: write.bytes.to_vec(), revision_at: None, tag: tag.into() };
        let current = store.snapshot().get(&write.collection, &write.key).map(|entry| entry.revision);
        let expect = current.map_or(Expect::Absent, Expect::At);
        let change = match write.did {
            Did::Create | Did::Update => Change::Put(draft),
            Did::Delete => Change::Delete(draft),
        };
        let committed = store.commit(&write.collection, &write.key, expect, change).await;
        committed.map_err(|error: CommitError<_>| unfit(error.to_string()))?;
    }
    Ok(store)
}
