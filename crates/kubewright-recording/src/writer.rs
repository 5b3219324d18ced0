//! Writing a recording.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

use crate::block::{self, Span};
use crate::reader::{BadRecording, MAGIC, Reader};
use crate::{Header, Record};

/// A block is written when its text is so long.
const BLOCK: usize = 256 << 10;

/// Writes records at the end of a file. What is not [flushed](Self::flush) is lost when the program ends.
#[derive(Debug)]
pub struct Writer<F> {
    file: F,
    raw: Vec<u8>,
    span: Span,
    records: u64,
    bytes: u64,
    is_broken: bool,
}

impl<F: Write> Writer<F> {
    /// Begins a recording in an empty file.
    ///
    /// # Errors
    /// What the file fails with.
    pub fn create(mut file: F, header: &Header) -> io::Result<Self> {
        let mut first = MAGIC.to_vec();
        first.extend(block::encode(&serde_json::to_vec(header)?, Span::default())?);
        file.write_all(&first)?;
        file.flush()?;
        Ok(Self::at_the_end_of(file, first.len() as u64))
    }

    fn at_the_end_of(file: F, bytes: u64) -> Self {
        Self { file, raw: Vec::new(), span: Span::default(), records: 0, bytes, is_broken: false }
    }

    /// Adds a record. It is in the file once its block is full, or with the next [`flush`](Self::flush).
    ///
    /// # Errors
    /// What the file fails with. Then it takes nothing more: what follows a torn block could not be read.
    pub fn push(&mut self, record: &Record) -> io::Result<()> {
        let before = self.raw.len();
        if let Err(error) = serde_json::to_writer(&mut self.raw, record) {
            self.raw.truncate(before);
            return Err(error.into());
        }
        self.raw.push(b'\n');
        self.span.add(record);
        self.records += 1;
        if self.raw.len() >= BLOCK { self.flush() } else { Ok(()) }
    }

    /// Writes what was added as a block, so that it can be read.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn flush(&mut self) -> io::Result<()> {
        if self.is_broken {
            return Err(io::Error::other("a write of the recording has failed before"));
        }
        if self.raw.is_empty() {
            return Ok(());
        }
        let block = block::encode(&self.raw, self.span)?;
        self.is_broken = true;
        self.file.write_all(&block)?;
        self.file.flush()?;
        self.is_broken = false;
        self.bytes += block.len() as u64;
        self.raw.clear();
        self.span = Span::default();
        Ok(())
    }

    /// How many records were added by this writer.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// How long the file is.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes what is left, and gives the file back.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn finish(mut self) -> io::Result<F> {
        self.flush()?;
        Ok(self.file)
    }
}

impl Writer<File> {
    /// Goes on with a recording: cuts off what is left of a block that was not finished, and gives how many bytes that were.
    ///
    /// # Errors
    /// When the file is no recording, or cannot be written.
    pub fn append(mut file: File) -> Result<(Self, u64), BadRecording> {
        let mut reader = Reader::open(&mut file)?;
        let end = reader.end()?;
        let length = file.seek(SeekFrom::End(0))?;
        file.set_len(end)?;
        file.seek(SeekFrom::Start(end))?;
        if end == MAGIC.len() as u64 {
            return Err(BadRecording::NoHeader);
        }
        Ok((Self::at_the_end_of(file, end), length - end))
    }
}
