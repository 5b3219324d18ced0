//! The backend on folders that fail, forget and are damaged. What it shares with [`Memory`](crate::Memory) is tested
//! against the model in `tests/model.rs`.

mod crash;
mod damage;
mod full;
mod lost;
mod sim;
mod waiting;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::folder::Folder;
use super::mark::MARK;
use super::{Disk, DiskOptions, OpenError};
use crate::{Change, CommitError, Draft, Expect, Limits, Revision, Store};
use sim::{Left, Sim};

/// A tag that shows what it was made of.
type Tag = String;

/// A log that is followed by a checkpoint after a few commits.
const SHORT: DiskOptions =
    DiskOptions { limits: Limits { events: 8, bytes: 1 << 20 }, checkpoint_after: 300 };

/// A log that goes on.
const LONG: DiskOptions = DiskOptions { checkpoint_after: u64::MAX, ..SHORT };

fn open(sim: &Sim, options: DiskOptions) -> Result<Disk<Tag>, OpenError> {
    let folder: Arc<dyn Folder> = Arc::new(sim.clone());
    Disk::open_in(folder, options, |_| |_: &str, bytes: &[u8]| Ok(tag(bytes)))
}

fn tag(bytes: &[u8]) -> Tag {
    format!("{} bytes", bytes.len())
}

fn wait<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

/// What the `number`th commit of the story does, and the revision that it gets: the first is 1.
#[derive(Clone, Debug)]
struct Step {
    key: String,
    expect: Expect,
    deletes: bool,
}

/// A story of commits to one collection: most keys come, change and go again.
fn story(length: u64) -> Vec<Step> {
    let mut there: BTreeMap<String, u64> = BTreeMap::new();
    (1..=length)
        .map(|revision| {
            let key = format!("key-{}", revision * 7 % 5);
            let at = there.get(&key).copied();
            let deletes = at.is_some() && revision % 3 == 0;
            if deletes {
                there.remove(&key);
            } else {
                there.insert(key.clone(), revision);
            }
            Step { key, expect: at.map_or(Expect::Absent, |at| Expect::At(Revision(at))), deletes }
        })
        .collect()
}

/// What is there after the first `revision` steps: the revision and the bytes of each key.
fn contents(story: &[Step], revision: u64) -> BTreeMap<String, (u64, Vec<u8>)> {
    let mut contents = BTreeMap::new();
    for (revision, step) in (1..=revision).zip(story) {
        if step.deletes {
            contents.remove(&step.key);
        } else {
            contents.insert(step.key.clone(), (revision, bytes(step, revision)));
        }
    }
    contents
}

fn bytes(step: &Step, revision: u64) -> Vec<u8> {
    format!("{{\"key\":{:?},\"revision\":{revision}}}", step.key).into_bytes()
}

fn change(step: &Step) -> Change<Tag> {
    let bytes = format!("{{\"key\":{:?},\"revision\":}}", step.key).into_bytes();
    let draft = Draft { revision_at: Some(bytes.len() - 1), bytes, tag: Arc::new("new".to_owned()) };
    if step.deletes { Change::Delete(draft) } else { Change::Put(draft) }
}

/// Commits a step.
async fn take(store: &Disk<Tag>, step: &Step) -> Result<Revision, CommitError<Tag>> {
    let entry = store.commit(&"things".into(), &step.key.as_str().into(), step.expect, change(step)).await?;
    Ok(entry.revision)
}

/// The files of a folder, without the mark.
fn names(sim: &Sim) -> Vec<String> {
    let names = sim.names().expect("names");
    names.into_iter().filter(|name| name != MARK).collect()
}

/// What is in the store: the revision and the bytes of each key.
fn shown(store: &Disk<Tag>) -> BTreeMap<String, (u64, Vec<u8>)> {
    let snapshot = store.snapshot();
    let entries = snapshot.range("things", "", None);
    entries.map(|entry| (entry.key.to_string(), (entry.revision.0, entry.bytes.to_vec()))).collect()
}

/// Checks that the store shows the story up to its revision, and that the tags were made of the bytes.
fn check(store: &Disk<Tag>, story: &[Step]) {
    let snapshot = store.snapshot();
    assert_eq!(shown(store), contents(story, snapshot.revision().0));
    assert_eq!(snapshot.modified("things"), snapshot.revision());
}
