//! Reads archives in bounded memory.

use std::{
    cell::Cell,
    io::{self, Read},
};

use tar::{Archive, Entry, EntryType};

use crate::limits::Limits;

/// How much may stand between the content of two entries: their headers, long names, attributes. All of it is kept in
/// memory, however much it is.
const MAX_METADATA: u64 = 1 << 20;

/// What is counted against [`Limits`], over several archives.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: Limits,
    entries: u64,
    bytes: u64,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, entries: 0, bytes: 0 }
    }

    /// Counts an entry of this size.
    fn charge(&mut self, bytes: u64) -> io::Result<()> {
        self.entries += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        if self.entries > self.limits.entries {
            return Err(io::Error::other(format!(
                "it has more than {} entries, the limit",
                self.limits.entries
            )));
        }
        if self.bytes > self.limits.bytes {
            return Err(io::Error::other(format!("it has more than {} bytes, the limit", self.limits.bytes)));
        }
        Ok(())
    }

    /// How much may still come.
    fn left(&self) -> u64 {
        self.limits.bytes.saturating_sub(self.bytes)
    }
}

/// Hands each entry of an archive to `each`, and reads `reader` to its end.
///
/// # Errors
/// When it is no archive, is cut off, exceeds the budget, or `each` refuses.
pub(crate) fn read<R: Read>(
    mut reader: R,
    budget: &mut Budget,
    mut each: impl FnMut(&mut Entry<'_, Bounded<'_, &mut R>>) -> io::Result<()>,
) -> io::Result<()> {
    let left = Cell::new(MAX_METADATA);
    let mut archive = Archive::new(Bounded { inner: &mut reader, left: &left });
    let mut entries = archive.entries()?;
    loop {
        left.set(MAX_METADATA);
        let Some(entry) = entries.next() else { break };
        let mut entry = entry?;
        budget.charge(entry.size())?;
        left.set(u64::MAX);
        if entry.header().entry_type() != EntryType::XGlobalHeader {
            each(&mut entry)?;
        }
        io::copy(&mut entry, &mut io::sink())?;
    }
    drain(reader, budget)
}

/// Reads what comes after the last entry: it belongs to the archive's digest.
fn drain(reader: impl Read, budget: &Budget) -> io::Result<()> {
    let limit = budget.left().saturating_add(MAX_METADATA);
    let read = io::copy(&mut reader.take(limit), &mut io::sink())?;
    if read == limit { Err(io::Error::other("too much comes after its last entry")) } else { Ok(()) }
}

/// A reader that ends with an error when more than is left is read.
pub(crate) struct Bounded<'a, R> {
    inner: R,
    left: &'a Cell<u64>,
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left.get();
        if left == 0 {
            return Err(io::Error::other("an entry has too long names or attributes"));
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.inner.read(&mut buffer[..most])?;
        self.left.set(left - read as u64);
        Ok(read)
    }
}
