//! Writes a log: lines of both streams, in the order in which they came.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use kubewright_world::Clock;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{LARGEST_FILE, LONGEST_LINE, MOST_FILES, Stream, aged};

/// A log that is being written.
pub(crate) struct Log {
    clock: Clock,
    shared: Arc<Shared>,
    pending: Mutex<[Vec<u8>; 2]>,
}

/// What readers follow: a log that may still grow.
#[derive(Clone)]
pub struct Growing(Arc<Shared>);

struct Shared {
    path: PathBuf,
    largest: u64,
    files: Mutex<Files>,
    changed: watch::Sender<()>,
}

struct Files {
    current: File,
    size: u64,
    rotations: u64,
    whole: bool,
}

impl Log {
    /// A new log instead of what is at `path`; whoever reads that one goes on reading it.
    pub(crate) fn create(path: &Path, clock: Clock) -> io::Result<Self> {
        Self::with_limit(path, clock, LARGEST_FILE)
    }

    pub(super) fn with_limit(path: &Path, clock: Clock, largest: u64) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        super::remove(path)?;
        let files = Files { current: open(path)?, size: 0, rotations: 0, whole: false };
        let changed = watch::Sender::new(());
        let shared = Shared { path: path.to_owned(), largest, files: Mutex::new(files), changed };
        Ok(Self { clock, shared: Arc::new(shared), pending: Mutex::default() })
    }

    /// The log for whoever follows it.
    pub(crate) fn growing(&self) -> Growing {
        Growing(Arc::clone(&self.shared))
    }

    /// Adds what a program wrote.
    pub(crate) fn write(&self, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        let mut entries = Vec::new();
        let now = self.clock.now();
        let mut pending = self.pending.lock();
        split(&mut pending[stream as usize], bytes, |tag, content| {
            entry(&mut entries, now, stream, tag, content);
        });
        self.shared.append(&entries)
    }

    /// Adds what was no whole line, and lets followers go.
    pub(crate) fn finish(&self) -> io::Result<()> {
        let mut entries = Vec::new();
        let now = self.clock.now();
        for (stream, rest) in [Stream::Stdout, Stream::Stderr].into_iter().zip(&mut *self.pending.lock()) {
            if !rest.is_empty() {
                entry(&mut entries, now, stream, 'P', rest);
                rest.clear();
            }
        }
        let written = self.shared.append(&entries);
        self.shared.files.lock().whole = true;
        self.shared.changed.send_replace(());
        written
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.shared.files.lock().whole = true;
        self.shared.changed.send_replace(());
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Log").field(&self.shared.path).finish()
    }
}

impl fmt::Debug for Growing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Growing").field(&self.0.path).finish()
    }
}

impl Growing {
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.0.changed.subscribe()
    }

    /// How often it was rotated, and whether nothing is to come.
    pub(super) fn state(&self) -> (u64, bool) {
        let files = self.0.files.lock();
        (files.rotations, files.whole)
    }

    /// The file that is written, and how often the log was rotated before it.
    pub(super) fn newest(&self) -> io::Result<(File, u64)> {
        let files = self.0.files.lock();
        Ok((File::open(&self.0.path)?, files.rotations))
    }

    /// The oldest file that is left of those after so many rotations, and how many were before it.
    pub(super) fn after(&self, rotations: u64) -> io::Result<(File, u64)> {
        let files = self.0.files.lock();
        let mut next = rotations + 1;
        loop {
            match File::open(aged(&self.0.path, files.rotations.saturating_sub(next))) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && next < files.rotations => next += 1,
                opened => return Ok((opened?, next)),
            }
        }
    }
}

impl Shared {
    fn append(&self, entries: &[u8]) -> io::Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        let mut files = self.files.lock();
        if files.size > 0 && files.size + entries.len() as u64 > self.largest {
            for age in (1..MOST_FILES).rev() {
                match fs::rename(aged(&self.path, age - 1), aged(&self.path, age)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
            files.current = open(&self.path)?;
            files.size = 0;
            files.rotations += 1;
        }
        files.current.write_all(entries)?;
        files.size += entries.len() as u64;
        drop(files);
        self.changed.send_replace(());
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Cuts bytes into lines, and lines that are too long into pieces: `F` ends a line, `P` does not. What is neither yet stays
/// in `pending`.
fn split(pending: &mut Vec<u8>, mut bytes: &[u8], mut emit: impl FnMut(char, &[u8])) {
    while !bytes.is_empty() {
        let room = LONGEST_LINE - pending.len();
        // One more than there is room for, since it may be the end of the line.
        let window = &bytes[..bytes.len().min(room + 1)];
        match window.iter().position(|byte| *byte == b'\n') {
            Some(end) => {
                pending.extend_from_slice(&bytes[..end]);
                emit('F', pending);
                pending.clear();
                bytes = &bytes[end + 1..];
            }
            None if window.len() > room => {
                pending.extend_from_slice(&bytes[..room]);
                emit('P', pending);
                pending.clear();
                bytes = &bytes[room..];
            }
            None => {
                pending.extend_from_slice(bytes);
                return;
            }
        }
    }
}

/// One line of a log file.
fn entry(entries: &mut Vec<u8>, at: Timestamp, stream: Stream, tag: char, content: &[u8]) {
    entries.extend_from_slice(format!("{at} {} {tag} ", stream.as_str()).as_bytes());
    entries.extend_from_slice(content);
    entries.push(b'\n');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pieces(chunks: &[&[u8]]) -> (Vec<(char, Vec<u8>)>, Vec<u8>) {
        let (mut pieces, mut pending) = (Vec::new(), Vec::new());
        for chunk in chunks {
            split(&mut pending, chunk, |tag, content| pieces.push((tag, content.to_vec())));
        }
        (pieces, pending)
    }

    #[test]
    fn a_line_that_just_fits_is_whole_and_a_longer_one_is_in_pieces() {
        let fits = vec![b'x'; LONGEST_LINE];
        assert_eq!(pieces(&[&fits, b"\n"]).0, [('F', fits.clone())]);
        assert_eq!(pieces(&[&fits, b"y\n"]).0, [('P', fits.clone()), ('F', b"y".to_vec())]);
        assert_eq!(pieces(&[&fits]), (vec![], fits));
    }

    #[test]
    fn an_entry_is_in_the_format_of_the_cri() {
        let mut entries = Vec::new();
        let at = "2016-10-06T00:17:09.669794200Z".parse().unwrap();
        entry(&mut entries, at, Stream::Stderr, 'F', b"log content 1");
        assert_eq!(entries, b"2016-10-06T00:17:09.6697942Z stderr F log content 1\n");
    }

    proptest! {
        #[test]
        fn lines_are_the_same_however_they_are_cut(
            lengths in proptest::collection::vec(prop_oneof![0..3usize, LONGEST_LINE - 2..LONGEST_LINE + 2, Just(40_000)], 0..4),
            cuts in proptest::collection::vec(0usize..40_000, 0..8),
        ) {
            let bytes: Vec<u8> = lengths.iter().map(|length| "x".repeat(*length)).collect::<Vec<_>>().join("\n").into();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for cut in cuts {
                chunks.push(&bytes[from..cut]);
                from = cut;
            }
            chunks.push(&bytes[from..]);
            let (cut, whole) = (pieces(&chunks), pieces(&[&bytes]));
            prop_assert_eq!(&cut, &whole);
            let mut again: Vec<u8> = Vec::new();
            for (tag, content) in &whole.0 {
                prop_assert!(content.len() <= LONGEST_LINE);
                again.extend(content);
                if *tag == 'F' {
                    again.push(b'\n');
                }
            }
            again.extend(&whole.1);
            prop_assert_eq!(again, bytes);
        }
    }
}
