//! Blocks: records, compressed, behind a head of fixed length that says how long they are and what is in them.

use std::io::{self, Read, Write};

use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use jiff::Timestamp;

use crate::Record;

/// What a head begins with.
const MAGIC: [u8; 4] = *b"KWBK";
/// How long a head is.
pub(crate) const HEAD: usize = 56;
/// The most bytes of a block, compressed or not. An object has at most three million.
pub(crate) const LARGEST: u32 = 64 << 20;

/// What is in a block: the least and the greatest of its revisions and times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// How many records there are.
    pub records: u32,
    /// Revisions of its writes; `None` where there are none.
    pub revisions: Option<(u64, u64)>,
    /// Times of its records; `None` where there are none.
    pub times: Option<(Timestamp, Timestamp)>,
}

impl Span {
    /// Takes a record in.
    pub(crate) fn add(&mut self, record: &Record) {
        self.records += 1;
        self.times = Some(wider(self.times, record.time()));
        if let Some(revision) = record.revision() {
            self.revisions = Some(wider(self.revisions, revision));
        }
    }
}

fn wider<T: Ord + Copy>(range: Option<(T, T)>, with: T) -> (T, T) {
    range.map_or((with, with), |(least, greatest)| (least.min(with), greatest.max(with)))
}

/// Head of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// How long what follows is.
    pub(crate) length: u32,
    /// How long it is when it is not compressed.
    pub(crate) raw: u32,
    /// CRC-32 of what follows.
    pub(crate) sum: u32,
    pub(crate) span: Span,
}

impl Head {
    fn encode(&self) -> [u8; HEAD] {
        let (least, greatest) = self.span.revisions.unwrap_or((u64::MAX, 0));
        let micros = |time: Timestamp| time.as_microsecond();
        let (first, last) =
            self.span.times.map_or((i64::MAX, i64::MIN), |(first, last)| (micros(first), micros_up(last)));
        let mut bytes = Vec::with_capacity(HEAD);
        bytes.extend(MAGIC);
        bytes.extend(self.length.to_le_bytes());
        bytes.extend(self.raw.to_le_bytes());
        bytes.extend(self.span.records.to_le_bytes());
        bytes.extend(least.to_le_bytes());
        bytes.extend(greatest.to_le_bytes());
        bytes.extend(first.to_le_bytes());
        bytes.extend(last.to_le_bytes());
        bytes.extend(self.sum.to_le_bytes());
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        let mut head = [0; HEAD];
        head.copy_from_slice(&bytes);
        head
    }

    /// `None` for what is no head.
    pub(crate) fn decode(bytes: &[u8; HEAD]) -> Option<Self> {
        let word = |at: usize| bytes[at..at + 4].try_into().map(u32::from_le_bytes).ok();
        let long = |at: usize| bytes[at..at + 8].try_into().map(u64::from_le_bytes).ok();
        let time = |at: usize| bytes[at..at + 8].try_into().map(i64::from_le_bytes).ok();
        if bytes[..4] != MAGIC || word(52)? != crc32fast::hash(&bytes[..52]) {
            return None;
        }
        let (length, raw) = (word(4)?, word(8)?);
        if length > LARGEST || raw > LARGEST {
            return None;
        }
        let revisions = Some((long(16)?, long(24)?)).filter(|(least, greatest)| least <= greatest);
        let times = Some((time(32)?, time(40)?)).filter(|(first, last)| first <= last);
        let times = times.and_then(|(first, last)| {
            Some((Timestamp::from_microsecond(first).ok()?, Timestamp::from_microsecond(last).ok()?))
        });
        let span = Span { records: word(12)?, revisions, times };
        Some(Self { length, raw, sum: word(48)?, span })
    }
}

/// The next whole microsecond: what is in a block is not later than its head says.
fn micros_up(time: Timestamp) -> i64 {
    let micros = time.as_microsecond();
    match Timestamp::from_microsecond(micros) {
        Ok(floor) if floor < time => micros + 1,
        _ => micros,
    }
}

/// A block of this text: its head and what follows it.
pub(crate) fn encode(raw: &[u8], span: Span) -> io::Result<Vec<u8>> {
    let too_long = |_| io::Error::new(io::ErrorKind::InvalidInput, "a block of a recording is too long");
    let mut encoder = DeflateEncoder::new(vec![0; HEAD], Compression::default());
    encoder.write_all(raw)?;
    let mut bytes = encoder.finish()?;
    let head = Head {
        length: u32::try_from(bytes.len() - HEAD).map_err(too_long)?,
        raw: u32::try_from(raw.len()).map_err(too_long)?,
        sum: crc32fast::hash(&bytes[HEAD..]),
        span,
    };
    if head.raw > LARGEST || head.length > LARGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a block of a recording is too long"));
    }
    bytes[..HEAD].copy_from_slice(&head.encode());
    Ok(bytes)
}

/// The text of a block; `None` where it is not what was written.
pub(crate) fn decode(head: &Head, bytes: &[u8]) -> Option<Vec<u8>> {
    if crc32fast::hash(bytes) != head.sum {
        return None;
    }
    let mut raw = Vec::new();
    // One more than there should be, so that more is seen.
    DeflateDecoder::new(bytes).take(u64::from(head.raw) + 1).read_to_end(&mut raw).ok()?;
    (raw.len() == head.raw as usize).then_some(raw)
}
