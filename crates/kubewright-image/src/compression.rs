//! Archives as they come: plain, or compressed by gzip or zstd. Which it is, their first bytes say: media types lie.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::{
    BlockDecodingStrategy, FrameDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};

const BUFFER: usize = 64 << 10;

/// The content of `reader`, uncompressed.
///
/// # Errors
/// When nothing can be read, or it is compressed by something else that is common.
pub(crate) fn uncompressed<'a>(mut reader: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let mut head = Vec::new();
    reader.by_ref().take(4).read_to_end(&mut head)?;
    let mut magic = [0; 4];
    magic[..head.len()].copy_from_slice(&head);
    let whole = BufReader::with_capacity(BUFFER, Cursor::new(head).chain(reader));
    Ok(match magic {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(whole)),
        [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => Box::new(Zstd::new(whole)),
        [b'B', b'Z', b'h', _] => return Err(unknown("bzip2")),
        [0xfd, b'7', b'z', b'X'] => return Err(unknown("xz")),
        _ => Box::new(whole),
    })
}

fn unknown(algorithm: &str) -> io::Error {
    io::Error::other(format!("it is compressed by {algorithm}, and only gzip and zstd are known here"))
}

/// Frames of zstd, one after the other, and between them frames that carry no content (RFC 8878, 3.1).
struct Zstd<R> {
    source: R,
    decoder: FrameDecoder,
    within_frame: bool,
}

impl<R: BufRead> Zstd<R> {
    fn new(source: R) -> Self {
        Self { source, decoder: FrameDecoder::new(), within_frame: false }
    }

    /// Begins the next frame that carries content; whether there is one.
    fn begin_frame(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    io::copy(&mut self.source.by_ref().take(length.into()), &mut io::sink())?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.within_frame && !self.begin_frame()? {
                return Ok(0);
            }
            self.within_frame = true;
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.source, one).map_err(io::Error::other)?;
            }
            match self.decoder.read(buffer)? {
                0 => self.within_frame = false,
                read => return Ok(read),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).expect("in memory");
        encoder.finish().expect("in memory")
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        compress_to_vec(bytes, CompressionLevel::Fastest)
    }

    fn read(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        uncompressed(bytes)?.read_to_end(&mut content)?;
        Ok(content)
    }

    #[test]
    fn what_was_compressed_comes_out_as_it_was() {
        let content: Vec<u8> = (0..300_000_u32).flat_map(|number| (number / 7).to_le_bytes()).collect();
        for compressed in [content.clone(), gzip(&content), zstd(&content)] {
            assert!(read(&compressed).expect("known") == content);
        }
        assert_eq!(read(b"").expect("nothing"), b"");
        assert_eq!(read(b"abc").expect("short"), b"abc");
    }

    #[test]
    fn several_members_and_frames_are_one_content() {
        assert_eq!(read(&[gzip(b"one "), gzip(b"two")].concat()).expect("gzip"), b"one two");
        let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"xyz"].concat();
        let frames = [skipped.clone(), zstd(b"one "), skipped.clone(), zstd(b"two"), skipped].concat();
        assert_eq!(read(&frames).expect("zstd"), b"one two");
    }

    #[test]
    fn what_is_cut_off_is_an_error() {
        let content = vec![7; 100_000];
        for compressed in [gzip(&content), zstd(&content)] {
            assert!(read(&compressed[..compressed.len() - 5]).is_err());
        }
    }

    #[test]
    fn other_compressions_are_named() {
        for (bytes, name) in [(&b"BZh91AY"[..], "bzip2"), (b"\xfd7zXZ\0", "xz")] {
            assert!(read(bytes).expect_err("unknown").to_string().contains(name));
        }
    }
}
