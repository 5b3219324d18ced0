//! Reading a recording.

use std::collections::VecDeque;
use std::io::{self, Read, Seek, SeekFrom};

use crate::block::{self, HEAD, Head};
use crate::{Header, Record, Span};

/// What a file begins with. The sixth byte is the version.
pub(crate) const MAGIC: [u8; 8] = *b"KWREC\x02\r\n";
/// The version that is written.
const VERSION: u8 = 2;

/// Error of a file that is no recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadRecording {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is something else.
    #[error("it is no recording of kubewright")]
    Foreign,
    /// It was written by another version.
    #[error("it is a recording of version {0}; this program reads versions 1 and {VERSION}")]
    Version(u8),
    /// It ends before it says what it is of.
    #[error("it is a recording that was cut off before its first record")]
    NoHeader,
    /// A whole block has something else than records.
    #[error("the block at byte {offset} has no records of this version: {why}")]
    Record {
        /// Where the block begins.
        offset: u64,
        /// What is wrong with it.
        why: String,
    },
}

/// Whether a file that begins with these bytes is a recording in blocks, of whatever version.
#[must_use]
pub fn is_recording(beginning: &[u8]) -> bool {
    beginning.starts_with(&MAGIC[..5])
}

/// Where a block is, and what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Where its head begins.
    pub offset: u64,
    /// How long it is, with its head.
    pub length: u64,
    /// What is in it.
    pub span: Span,
}

/// Reads a recording, which may still be written. What is behind its last whole block is not there for it.
#[derive(Debug)]
pub struct Reader<F> {
    file: F,
    header: Header,
    /// Where the next block begins.
    offset: u64,
    pending: VecDeque<Record>,
}

impl<F: Read + Seek> Reader<F> {
    /// Opens a recording at its beginning. One that was cut off before its header is empty.
    ///
    /// # Errors
    /// When it is something else, or of another version.
    pub fn open(mut file: F) -> Result<Self, BadRecording> {
        let mut first = [0; MAGIC.len()];
        file.seek(SeekFrom::Start(0))?;
        let length = fill(&mut file, &mut first)?;
        if !is_recording(&first[..length]) {
            return Err(BadRecording::Foreign);
        }
        if length == first.len() && first != MAGIC {
            return Err(BadRecording::Version(first[5]));
        }
        if length < first.len() {
            return Err(BadRecording::NoHeader);
        }
        let header = Header::default();
        let mut reader = Self { file, header, offset: MAGIC.len() as u64, pending: VecDeque::new() };
        if let Some((block, raw)) = reader.whole_block()? {
            let why = |error: serde_json::Error| reader.bad(block.offset, &error);
            reader.header = serde_json::from_slice(&raw).map_err(why)?;
            reader.offset = block.offset + block.length;
        }
        Ok(reader)
    }

    /// What it is of.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The next record. `None` at the end; when more was written since, it goes on there.
    ///
    /// # Errors
    /// When the file cannot be read, or has records of a later version.
    pub fn next_record(&mut self) -> Result<Option<Record>, BadRecording> {
        loop {
            if let Some(record) = self.pending.pop_front() {
                return Ok(Some(record));
            }
            let Some((block, raw)) = self.whole_block()? else { return Ok(None) };
            self.pending = self.records(block.offset, &raw)?.into();
            self.offset = block.offset + block.length;
        }
    }

    /// Hands every record to `each`, but those of blocks that `wanted` does not want by what their heads say: these are not
    /// read. From the next block on, to the end.
    ///
    /// # Errors
    /// As [`Self::next_record`].
    pub fn for_each(
        &mut self,
        wanted: impl Fn(&Span) -> bool,
        mut each: impl FnMut(Record),
    ) -> Result<(), BadRecording> {
        self.pending.drain(..).for_each(&mut each);
        while let Some(head) = self.head()? {
            let next = self.offset + length(&head);
            if wanted(&head.span) {
                let Some((block, raw)) = self.whole_block()? else { break };
                self.records(block.offset, &raw)?.into_iter().for_each(&mut each);
            } else if next > self.file.seek(SeekFrom::End(0))? {
                break;
            }
            self.offset = next;
        }
        Ok(())
    }

    /// Where each block from the next one on is, and what is in it: heads alone are read. Where it reads on does not change.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn blocks(&mut self) -> Result<Vec<Block>, BadRecording> {
        let (before, end) = (self.offset, self.file.seek(SeekFrom::End(0))?);
        let mut blocks = Vec::new();
        while let Some(head) = self.head()? {
            let block = Block { offset: self.offset, length: length(&head), span: head.span };
            if block.offset + block.length > end {
                break;
            }
            self.offset += block.length;
            blocks.push(block);
        }
        self.offset = before;
        Ok(blocks)
    }

    /// Where the last whole block ends. Each is read, and compared with its sum.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn end(&mut self) -> Result<u64, BadRecording> {
        let before = self.offset;
        while let Some((block, _)) = self.whole_block()? {
            self.offset = block.offset + block.length;
        }
        Ok(std::mem::replace(&mut self.offset, before))
    }

    /// How many bytes are behind what was read: at the end, what is left of a block that is not whole.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn unread(&mut self) -> Result<u64, BadRecording> {
        Ok(self.file.seek(SeekFrom::End(0))?.saturating_sub(self.offset))
    }

    fn head(&mut self) -> Result<Option<Head>, BadRecording> {
        let mut bytes = [0; HEAD];
        self.file.seek(SeekFrom::Start(self.offset))?;
        let is_whole = fill(&mut self.file, &mut bytes)? == HEAD;
        Ok(if is_whole { Head::decode(&bytes) } else { None })
    }

    /// The next block with its text; `None` where it is not there or not what was written.
    fn whole_block(&mut self) -> Result<Option<(Block, Vec<u8>)>, BadRecording> {
        let Some(head) = self.head()? else { return Ok(None) };
        let mut bytes = Vec::new();
        (&mut self.file).take(u64::from(head.length)).read_to_end(&mut bytes)?;
        if bytes.len() < head.length as usize {
            return Ok(None);
        }
        let block = Block { offset: self.offset, length: length(&head), span: head.span };
        Ok(block::decode(&head, &bytes).map(|raw| (block, raw)))
    }

    fn records(&self, offset: u64, raw: &[u8]) -> Result<Vec<Record>, BadRecording> {
        let records = serde_json::Deserializer::from_slice(raw).into_iter();
        records.collect::<Result<_, _>>().map_err(|error| self.bad(offset, &error))
    }

    #[expect(clippy::unused_self, reason = "an error of this file")]
    fn bad(&self, offset: u64, error: &serde_json::Error) -> BadRecording {
        BadRecording::Record { offset, why: error.to_string() }
    }
}

fn length(head: &Head) -> u64 {
    HEAD as u64 + u64::from(head.length)
}

/// Reads as much as there is; gives how much that was.
fn fill(file: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
