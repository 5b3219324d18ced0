//! What is in frames: headers of files, commits, and entries of a checkpoint. Numbers are little-endian, texts and bytes
//! carry their length.

use crate::{Event, Happening, Name, Revision};

const PUT: u8 = 1;
const DELETE: u8 = 2;
const COMPACT: u8 = 3;
const COLLECTION: u8 = 4;
const ENTRY: u8 = 5;
const END: u8 = 6;
const CUT: u8 = 7;

/// What a log says, in the order in which it happened.
#[derive(Debug, PartialEq)]
pub(crate) enum Record {
    /// A key got a value, or went; `bytes` is what watchers were told.
    Commit { collection: String, key: String, deleted: bool, bytes: Vec<u8> },
    /// The past was forgotten.
    Compact(Revision),
    /// The first record of a log that was begun because writing to the one before had failed: what that one holds after
    /// this one's beginning did not happen.
    Cut,
}

/// What a checkpoint says: each collection, followed by its entries; then that this was all.
#[derive(Debug, PartialEq)]
pub(crate) enum Part {
    Collection { name: String, modified: Revision },
    Entry { key: String, revision: Revision, bytes: Vec<u8> },
    End { entries: u64 },
}

/// The first frame of a file: the version of its format, and what a checkpoint shows or a log begins after.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Header {
    pub(crate) version: u32,
    pub(crate) revision: Revision,
    pub(crate) compacted: Revision,
}

impl Header {
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.version.to_le_bytes());
        put_number(out, self.revision.0);
        put_number(out, self.compacted.0);
    }

    /// `None` when this is no header. One of another version may go on with more.
    pub(crate) fn read(body: &[u8]) -> Option<Self> {
        let mut input = Input(body);
        let version = input.length()?;
        Some(Self { version, revision: input.revision()?, compacted: input.revision()? })
    }
}

/// The first bytes of a group of commits: the revision of the first.
pub(crate) fn begin_group(out: &mut Vec<u8>, first: Revision) {
    put_number(out, first.0);
}

pub(crate) fn write_commit<T>(out: &mut Vec<u8>, collection: &Name, event: &Event<T>) {
    out.push(if event.happening == Happening::Deleted { DELETE } else { PUT });
    put_bytes(out, collection.as_bytes());
    put_bytes(out, event.entry.key.as_bytes());
    put_bytes(out, &event.entry.bytes);
}

pub(crate) fn write_compaction(out: &mut Vec<u8>, revision: Revision) {
    out.push(COMPACT);
    put_number(out, revision.0);
}

pub(crate) fn write_cut(out: &mut Vec<u8>) {
    out.push(CUT);
}

/// The revision of a group's first commit, and its records; `None` when this is no group.
pub(crate) fn read_group(body: &[u8]) -> Option<(Revision, Vec<Record>)> {
    let mut input = Input(body);
    let first = input.revision()?;
    let mut records = Vec::new();
    while !input.0.is_empty() {
        records.push(match input.byte()? {
            COMPACT => Record::Compact(input.revision()?),
            CUT => Record::Cut,
            kind @ (PUT | DELETE) => Record::Commit {
                collection: input.text()?,
                key: input.text()?,
                deleted: kind == DELETE,
                bytes: input.bytes()?.to_vec(),
            },
            _ => return None,
        });
    }
    Some((first, records))
}

pub(crate) fn write_collection(out: &mut Vec<u8>, name: &str, modified: Revision) {
    out.push(COLLECTION);
    put_bytes(out, name.as_bytes());
    put_number(out, modified.0);
}

pub(crate) fn write_entry(out: &mut Vec<u8>, key: &str, revision: Revision, bytes: &[u8]) {
    out.push(ENTRY);
    put_bytes(out, key.as_bytes());
    put_number(out, revision.0);
    put_bytes(out, bytes);
}

pub(crate) fn write_end(out: &mut Vec<u8>, entries: u64) {
    out.push(END);
    put_number(out, entries);
}

/// The parts in one frame of a checkpoint; `None` when it holds something else.
pub(crate) fn read_parts(body: &[u8]) -> Option<Vec<Part>> {
    let mut input = Input(body);
    let mut parts = Vec::new();
    while !input.0.is_empty() {
        parts.push(match input.byte()? {
            COLLECTION => Part::Collection { name: input.text()?, modified: input.revision()? },
            ENTRY => Part::Entry {
                key: input.text()?,
                revision: input.revision()?,
                bytes: input.bytes()?.to_vec(),
            },
            END => Part::End { entries: input.number()? },
            _ => return None,
        });
    }
    Some(parts)
}

fn put_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    // What does not fit would not fit into a frame either, and is refused there.
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(bytes);
}

/// What is left to read. Whatever it holds, reading it ends with a value or with `None`.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.0.split_at_checked(length)?;
        self.0 = left;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn length(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn number(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    fn revision(&mut self) -> Option<Revision> {
        self.number().map(Revision)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.length()? as usize;
        self.take(length)
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::Entry;

    fn event(happening: Happening, key: &str, bytes: &'static [u8]) -> Event<()> {
        let entry = Entry {
            key: key.into(),
            bytes: Bytes::from_static(bytes),
            revision: Revision(1),
            tag: Arc::new(()),
        };
        Event { happening, entry: Arc::new(entry), previous: None }
    }

    #[test]
    fn a_group_is_read_as_it_was_written() {
        let mut body = Vec::new();
        begin_group(&mut body, Revision(7));
        write_commit(&mut body, &"pods".into(), &event(Happening::Added, "a/ü", b"new"));
        write_compaction(&mut body, Revision(6));
        write_cut(&mut body);
        write_commit(&mut body, &"pods".into(), &event(Happening::Deleted, "a/ü", b""));
        let commit = |deleted, bytes: &[u8]| Record::Commit {
            collection: "pods".to_owned(),
            key: "a/ü".to_owned(),
            deleted,
            bytes: bytes.to_vec(),
        };
        let expected =
            vec![commit(false, b"new"), Record::Compact(Revision(6)), Record::Cut, commit(true, b"")];
        assert_eq!(read_group(&body), Some((Revision(7), expected)));
    }

    #[test]
    fn the_parts_of_a_checkpoint_are_read_as_they_were_written() {
        let mut body = Vec::new();
        write_collection(&mut body, "pods", Revision(9));
        write_entry(&mut body, "a", Revision(4), b"value");
        write_end(&mut body, 1);
        let expected = vec![
            Part::Collection { name: "pods".to_owned(), modified: Revision(9) },
            Part::Entry { key: "a".to_owned(), revision: Revision(4), bytes: b"value".to_vec() },
            Part::End { entries: 1 },
        ];
        assert_eq!(read_parts(&body), Some(expected));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused_without_a_panic(body in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = (read_group(&body), read_parts(&body), Header::read(&body));
        }
    }
}
