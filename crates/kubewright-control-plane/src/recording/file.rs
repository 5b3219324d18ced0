//! A recording as a file: one JSON document on each line. The first says what the file is ([`Header`]), each other is a
//! write: `{"revision":7,"time":"2026-01-01T00:00:00Z","by":{"user":"system:admin"},"did":"create",
//! "collection":"apps/deployments","key":"default/web","object":{...}}`.

use std::io::{self, BufRead, Write as _};
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use kubewright_store::{Name, Revision};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Did, Recording, Write, Writer};

/// What the first line calls the file.
const FORMAT: &str = "kubewright recording";
/// The only version there is.
const VERSION: u32 = 1;

/// The first line of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Where the dice of the cluster started.
    pub seed: Option<u64>,
    /// What the recording is of and why it was kept, for people.
    pub notes: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct First {
    format: String,
    version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

#[derive(Serialize)]
struct Line<'a> {
    revision: u64,
    time: Timestamp,
    by: &'a Writer,
    did: Did,
    collection: &'a str,
    key: &'a str,
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct ReadLine {
    revision: u64,
    time: Timestamp,
    by: Writer,
    did: Did,
    collection: Name,
    key: Name,
    object: Box<RawValue>,
}

/// Error of a file that is no recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadRecording {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is something else.
    #[error("it is no recording: its first line is not {{\"format\":\"{FORMAT}\",\"version\":{VERSION}}}")]
    Foreign,
    /// It was written by another version.
    #[error("it is a recording of version {0}; this program reads version {VERSION}")]
    Version(u32),
    /// A line is damaged.
    #[error("line {line}: {why}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
}

impl Recording {
    /// Writes it down.
    ///
    /// # Errors
    /// What `file` fails with, or when an object is no JSON, which none of a cluster is.
    pub fn write(&self, header: &Header, file: &mut dyn io::Write) -> io::Result<()> {
        let Header { seed, notes } = header.clone();
        let first = First { format: FORMAT.to_owned(), version: VERSION, seed, notes };
        let mut file = io::BufWriter::new(file);
        serde_json::to_writer(&mut file, &first)?;
        file.write_all(b"\n")?;
        for write in self.writes() {
            let line = Line {
                revision: write.revision.0,
                time: write.time,
                by: &write.by,
                did: write.did,
                collection: &write.collection,
                key: &write.key,
                object: serde_json::from_slice(&write.bytes)?,
            };
            serde_json::to_writer(&mut file, &line)?;
            file.write_all(b"\n")?;
        }
        file.flush()
    }

    /// Reads what [`Self::write`] has written.
    ///
    /// # Errors
    /// [`BadRecording`].
    pub fn read(file: impl BufRead) -> Result<(Header, Self), BadRecording> {
        let mut lines = file.lines().enumerate();
        let first = lines.next().ok_or(BadRecording::Foreign)?.1?;
        let first: First = serde_json::from_str(&first).map_err(|_| BadRecording::Foreign)?;
        match (&*first.format, first.version) {
            (FORMAT, VERSION) => {}
            (FORMAT, other) => return Err(BadRecording::Version(other)),
            _ => return Err(BadRecording::Foreign),
        }
        let mut writes: Vec<Arc<Write>> = Vec::new();
        for (index, line) in lines {
            let bad = |why: String| BadRecording::Line { line: index + 1, why };
            let line: ReadLine = serde_json::from_str(&line?).map_err(|error| bad(error.to_string()))?;
            let expected = writes.len() as u64 + 1;
            if line.revision != expected {
                return Err(bad(format!("the write of revision {expected} is missing")));
            }
            writes.push(Arc::new(Write {
                revision: Revision(line.revision),
                time: line.time,
                by: line.by,
                did: line.did,
                collection: line.collection,
                key: line.key,
                bytes: Bytes::from(String::from(Box::<str>::from(line.object)).into_bytes()),
            }));
        }
        Ok((Header { seed: first.seed, notes: first.notes }, Self { writes }))
    }
}
