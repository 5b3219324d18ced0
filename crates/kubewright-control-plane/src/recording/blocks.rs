//! A recording as a file of blocks, the format of `kubewright-recording`: what `up --record` and `kubewright record` write.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _};

use bytes::Bytes;
use kubewright_recording::{self as format, At, Author, Limit, Reader, Record};
use kubewright_store::{Name, Revision};
use serde_json::{Value, value::RawValue};

use super::{BadRecording, Did, Recording, Write, Writer};

/// Error of a file that no cluster can be made of.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is a file of lines, and damaged, or no recording at all.
    #[error(transparent)]
    Lines(#[from] BadRecording),
    /// It is a file of blocks, and damaged.
    #[error(transparent)]
    Blocks(#[from] format::BadRecording),
    /// It does not go so far.
    #[error("the recording ends at revision {0}")]
    Revision(u64),
    /// It begins later.
    #[error("the recording begins at {0}")]
    Begins(jiff::Timestamp),
}

/// A recording that was read from a file.
#[derive(Debug)]
pub struct Opened {
    /// What a cluster is made of.
    pub recording: Recording,
    /// The last write that counts, with the revision that it had when it was recorded.
    pub last: Option<Write>,
    /// Whether the revisions are those of the cluster that was recorded: it was recorded from its beginning, and without a gap.
    /// Otherwise the recording has the objects that were there, each as it was, and nothing from before.
    pub is_whole: bool,
    /// How many bytes at the end of the file are no whole block: it is still written, or was cut off.
    pub cut: u64,
}

impl From<&Writer> for Author {
    fn from(writer: &Writer) -> Self {
        Self { user: writer.user.clone(), program: writer.program.clone() }
    }
}

impl Write {
    /// As a record of a file.
    ///
    /// # Errors
    /// When the object is no JSON, which none of a cluster is.
    pub fn record(&self) -> Result<format::Write, serde_json::Error> {
        Ok(format::Write {
            revision: self.revision.0,
            time: self.time,
            by: Author::from(&self.by),
            did: match self.did {
                Did::Create => format::Did::Create,
                Did::Update => format::Did::Update,
                Did::Delete => format::Did::Delete,
            },
            inferred: false,
            collection: self.collection.to_string(),
            key: self.key.to_string(),
            object: serde_json::from_slice::<Box<RawValue>>(&self.bytes)?,
        })
    }
}

impl From<format::Write> for Write {
    fn from(write: format::Write) -> Self {
        Self {
            revision: Revision(write.revision),
            time: write.time,
            by: Writer { user: write.by.user, program: write.by.program },
            did: match write.did {
                format::Did::Create => Did::Create,
                format::Did::Update => Did::Update,
                format::Did::Delete => Did::Delete,
            },
            collection: Name::from(write.collection),
            key: Name::from(write.key),
            bytes: Bytes::from(String::from(Box::<str>::from(write.object)).into_bytes()),
        }
    }
}

impl Recording {
    /// Writes it down as blocks, smaller than [`Self::write`] and sought by revision and time, with what happened besides, such as
    /// [`Admin::records`](crate::admin::Admin::records): each record at its time, behind the writes of the same moment.
    ///
    /// # Errors
    /// What `file` fails with.
    pub fn write_blocks(
        &self,
        header: &format::Header,
        mut besides: Vec<Record>,
        file: &mut dyn io::Write,
    ) -> io::Result<()> {
        besides.sort_by_key(Record::time);
        let mut besides = besides.into_iter().peekable();
        let mut writer = format::Writer::create(file, header)?;
        for write in self.writes() {
            while let Some(record) = besides.next_if(|record| record.time() < write.time) {
                writer.push(&record)?;
            }
            writer.push(&Record::Write(write.record()?))?;
        }
        besides.try_for_each(|record| writer.push(&record))?;
        writer.finish().map(drop)
    }

    /// Of the first writes of a file, in its order. Where these do not begin with the first of a cluster, or have a gap, it has the
    /// objects that are there at the end, each as it was.
    #[must_use]
    pub fn of_records(writes: impl IntoIterator<Item = format::Write>) -> Self {
        let mut state = State::Whole(Vec::new());
        writes.into_iter().for_each(|write| state.add(write.into()));
        state.recording()
    }

    /// Reads a file of either format, as far as a moment; all of it, if none is said.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn open(mut file: File, at: Option<At>) -> Result<Opened, Unreadable> {
        let mut beginning = Vec::new();
        (&mut file).take(8).read_to_end(&mut beginning)?;
        file.rewind()?;
        if format::is_recording(&beginning) { in_blocks(file, at) } else { in_lines(file, at) }
    }
}

/// What a file has besides writes, of requests the last so many; nothing, where it is one of lines.
///
/// # Errors
/// [`Unreadable`].
pub fn besides(mut file: File, requests: usize) -> Result<Vec<Record>, Unreadable> {
    let mut beginning = Vec::new();
    (&mut file).take(8).read_to_end(&mut beginning)?;
    file.rewind()?;
    let (mut found, mut asked) = (Vec::new(), VecDeque::new());
    if format::is_recording(&beginning) {
        Reader::open(file)?.for_each(
            |_| true,
            |record| match record {
                Record::Write(_) => {}
                Record::Request(_) if asked.len() >= requests => {
                    asked.push_back(record);
                    asked.pop_front();
                }
                Record::Request(_) => asked.push_back(record),
                Record::Reconcile(_) | Record::Mark(_) => found.push(record),
            },
        )?;
    }
    found.extend(asked);
    Ok(found)
}

fn in_lines(file: File, at: Option<At>) -> Result<Opened, Unreadable> {
    let (_, all) = Recording::read(BufReader::new(file))?;
    let recording = match at.map(|at| at.limit(all.end())) {
        None | Some(Limit::Nothing) => all,
        Some(Limit::Revision(revision)) if revision > all.revision().0 => {
            return Err(Unreadable::Revision(all.revision().0));
        }
        Some(Limit::Revision(revision)) => all.at(Revision(revision)),
        Some(Limit::Time(time)) => {
            all.writes().first().map_or(Ok(()), |first| not_before(time, first.time))?;
            all.writes()
                .iter()
                .take_while(|write| write.time <= time)
                .map(|write| (**write).clone())
                .collect()
        }
    };
    let last = recording.writes().last().map(|write| (**write).clone());
    Ok(Opened { recording, last, is_whole: true, cut: 0 })
}

fn not_before(time: jiff::Timestamp, first: jiff::Timestamp) -> Result<(), Unreadable> {
    if time < first { Err(Unreadable::Begins(first)) } else { Ok(()) }
}

fn in_blocks(file: File, at: Option<At>) -> Result<Opened, Unreadable> {
    let mut reader = Reader::open(file)?;
    let blocks = reader.blocks()?;
    let times = || blocks.iter().filter_map(|block| block.span.times);
    let limit = at.map_or(Limit::Nothing, |at| at.limit(times().map(|(_, last)| last).max()));
    let greatest = blocks.iter().filter_map(|block| block.span.revisions).map(|(_, greatest)| greatest).max();
    match limit {
        Limit::Revision(revision) if revision > greatest.unwrap_or_default() => {
            return Err(Unreadable::Revision(greatest.unwrap_or_default()));
        }
        Limit::Time(time) => {
            times().map(|(first, _)| first).min().map_or(Ok(()), |first| not_before(time, first))?;
        }
        _ => {}
    }
    let mut state = State::Whole(Vec::new());
    let mut last: Option<Write> = None;
    reader.for_each(
        |span| limit.may_include(span),
        |record| {
            if !limit.includes(&record) {
                return;
            }
            let Record::Write(write) = record else { return };
            let write = Write::from(write);
            last = Some(write.clone());
            state.add(write);
        },
    )?;
    let cut = reader.unread()?;
    let is_whole = matches!(state, State::Whole(_));
    Ok(Opened { recording: state.recording(), last, is_whole, cut })
}

/// What was read of the writes so far.
enum State {
    /// All of them: they made the revisions from 1 on.
    Whole(Vec<Write>),
    /// The objects that are there, by collection and key.
    Objects(BTreeMap<(Name, Name), Write>),
}

impl State {
    fn add(&mut self, write: Write) {
        match self {
            Self::Whole(writes) if write.revision.0 == writes.len() as u64 + 1 => writes.push(write),
            Self::Whole(writes) => {
                let before = std::mem::take(writes);
                *self = Self::Objects(BTreeMap::new());
                before.into_iter().for_each(|write| self.add(write));
                self.add(write);
            }
            Self::Objects(objects) => {
                let place = (Name::clone(&write.collection), Name::clone(&write.key));
                match write.did {
                    Did::Delete => drop(objects.remove(&place)),
                    Did::Create | Did::Update => drop(objects.insert(place, write)),
                }
            }
        }
    }

    fn recording(self) -> Recording {
        let mut writes = match self {
            Self::Whole(writes) => return writes.into_iter().collect(),
            Self::Objects(objects) => objects.into_values().collect::<Vec<_>>(),
        };
        writes.sort_by_key(|write| (write.revision, write.time));
        let numbered = writes.into_iter().zip(1..).map(|(write, revision)| renumbered(write, revision));
        numbered.collect()
    }
}

/// A write as the one that made this revision, and the object with it.
fn renumbered(write: Write, revision: u64) -> Write {
    let mut object = write.object();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("resourceVersion".to_owned(), Value::from(revision.to_string()));
    }
    let bytes = Bytes::from(stored(object).into_bytes());
    Write { revision: Revision(revision), did: Did::Create, bytes, ..write }
}

/// An object in the form of stores: kind and version come first, by which the version is told without reading the rest.
fn stored(object: Value) -> String {
    let Value::Object(mut fields) = object else { return object.to_string() };
    let first = ["kind", "apiVersion"].into_iter().filter_map(|name| Some((name, fields.remove(name)?)));
    let mut parts: Vec<String> = first.map(|(name, value)| format!("\"{name}\":{value}")).collect();
    let rest = Value::Object(fields).to_string();
    parts.extend(Some(rest[1..rest.len() - 1].to_owned()).filter(|rest| !rest.is_empty()));
    format!("{{{}}}", parts.join(","))
}

#[cfg(test)]
mod tests {
    use kubewright_kinds::encode::stored_version;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_numbered_anew_is_read_in_the_version_that_it_was_stored_in() {
        let page = json!({"apiVersion": "press.example/v1", "kind": "Page", "metadata": {"name": "hello"}});
        let text = stored(page.clone());
        assert_eq!(stored_version(text.as_bytes()), "v1");
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), page);
    }
}
