//! The headers of streams: a list of names and values, compressed with what the connection has carried before.

use std::collections::BTreeMap;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};

use super::Error;
use super::dictionary::DICTIONARY;

/// The most bytes of the headers of one stream, before they are compressed.
const LONGEST: usize = 64 << 10;

/// Names in lower case, and their values.
pub(in super::super) type Headers = BTreeMap<String, String>;

/// Reads headers, in the order in which they come.
pub(super) struct Inflater(Decompress);

impl Inflater {
    pub(super) fn new() -> Self {
        Self(Decompress::new(true))
    }

    /// Reads one block of headers.
    pub(super) fn read(&mut self, block: &[u8]) -> Result<Headers, Error> {
        parse(&self.inflate(block)?).ok_or(Error::Protocol("headers that cannot be read"))
    }

    fn inflate(&mut self, block: &[u8]) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::with_capacity(1 << 10);
        let mut rest = block;
        loop {
            let (read, written) = (self.0.total_in(), bytes.len());
            let inflated = self.0.decompress_vec(rest, &mut bytes, FlushDecompress::Sync);
            rest = &rest[(self.0.total_in() - read) as usize..];
            match inflated {
                Err(error) if error.needs_dictionary().is_some() => {
                    self.0
                        .set_dictionary(&DICTIONARY)
                        .map_err(|_| Error::Protocol("compressed with another dictionary"))?;
                }
                Err(_) => return Err(Error::Protocol("headers that are compressed wrongly")),
                Ok(_) if bytes.len() >= LONGEST => return Err(Error::Protocol("too many headers")),
                Ok(_) if bytes.len() == bytes.capacity() => bytes.reserve(bytes.len()),
                Ok(_) if rest.is_empty() || written == bytes.len() => return Ok(bytes),
                Ok(_) => {}
            }
        }
    }
}

fn parse(bytes: &[u8]) -> Option<Headers> {
    let (count, mut rest) = number(bytes)?;
    let mut headers = Headers::new();
    for _ in 0..count {
        let (name, value);
        (name, rest) = text(rest)?;
        (value, rest) = text(rest)?;
        headers.insert(name.to_ascii_lowercase(), value);
    }
    Some(headers)
}

fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_be_bytes(*number), rest))
}

fn text(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (length, rest) = number(bytes)?;
    let (text, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    Some((String::from_utf8(text.to_vec()).ok()?, rest))
}

/// Writes headers, in the order in which they are sent.
pub(super) struct Deflater(Compress);

impl Deflater {
    pub(super) fn new() -> Result<Self, Error> {
        let mut compress = Compress::new(Compression::default(), true);
        compress.set_dictionary(&DICTIONARY).map_err(|_| Error::Protocol("the dictionary is too long"))?;
        Ok(Self(compress))
    }

    /// One block of headers.
    pub(super) fn write(&mut self, headers: &Headers) -> Result<Vec<u8>, Error> {
        let mut bytes = (headers.len() as u32).to_be_bytes().to_vec();
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            bytes.extend((text.len() as u32).to_be_bytes());
            bytes.extend(text.as_bytes());
        }
        let mut block = Vec::with_capacity(bytes.len() + 64);
        let mut rest = &bytes[..];
        loop {
            let read = self.0.total_in();
            self.0
                .compress_vec(rest, &mut block, FlushCompress::Sync)
                .map_err(|_| Error::Protocol("headers that cannot be compressed"))?;
            rest = &rest[(self.0.total_in() - read) as usize..];
            if block.len() < block.capacity() {
                return Ok(block);
            }
            block.reserve(block.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            blocks in proptest::collection::vec(
                proptest::collection::btree_map("[a-z-]{1,12}", "[ -~]{0,40}", 0..8), 1..6),
        ) {
            let (mut deflater, mut inflater) = (Deflater::new().unwrap(), Inflater::new());
            for headers in blocks {
                let block = deflater.write(&headers).unwrap();
                prop_assert_eq!(inflater.read(&block).unwrap(), headers);
            }
        }

        #[test]
        fn garbage_is_refused(block in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Inflater::new().read(&block);
        }

        #[test]
        fn what_is_inside_is_not_trusted(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = parse(&bytes);
        }
    }

    #[test]
    fn a_bomb_is_not_inflated() {
        let bomb = Headers::from([("a".to_owned(), "a".repeat(10 << 20))]);
        let block = Deflater::new().unwrap().write(&bomb).unwrap();
        assert!(block.len() < 20_000, "{}", block.len());
        assert!(Inflater::new().read(&block).is_err());
    }
}
