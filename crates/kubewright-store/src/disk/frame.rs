//! Frames: how bytes lie in a file so that, read back, they are what was written or are known not to be.
//!
//! A frame is a head of twelve bytes and a body. The head says the body's length and CRC-32, and carries a CRC-32 of
//! itself: hence a length that was damaged is not followed, and a frame that reaches beyond the end of its file was cut
//! off, not damaged. A CRC-32 finds every change of up to three bits, and every burst of up to 32, in bodies of our size.

use std::io::{self, Read};

/// The length of a head.
pub(crate) const HEAD: usize = 12;

/// What a disk writes at once or not at all. A hole in a write that was cut off is as long as this, and lies at a
/// multiple of it (as in etcd, `server/storage/wal/decoder.go`, `isTornEntry`).
const SECTOR: usize = 512;

/// How many zeros in a row are not in what we write.
const TELLING: usize = 16;

/// Why a frame cannot be read.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The write of the file's last frame was cut off. It never came to its sync, so nobody was told of it.
    Torn,
    /// These are not the bytes that were written.
    Damaged(&'static str),
    /// The file cannot be read.
    Io(io::Error),
}

/// Appends a frame to `out`; `body` appends its body.
pub(crate) fn write(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; HEAD]);
    body(out);
    let (length, sum) = {
        let body = &out[start + HEAD..];
        (u32::try_from(body.len()).unwrap_or(u32::MAX), crc32fast::hash(body))
    };
    let head = &mut out[start..start + HEAD];
    head[..4].copy_from_slice(&length.to_le_bytes());
    head[4..8].copy_from_slice(&sum.to_le_bytes());
    let sum = crc32fast::hash(&head[..8]);
    head[8..].copy_from_slice(&sum.to_le_bytes());
}

/// Reads the frames of a file, from `at` to its end.
pub(crate) struct Frames<R> {
    input: R,
    at: u64,
    end: u64,
}

impl<R: Read> Frames<R> {
    /// Over a file of length `end` that was read up to `at`.
    pub(crate) fn new(input: R, at: u64, end: u64) -> Self {
        Self { input, at, end }
    }

    /// Where the next frame begins.
    pub(crate) fn position(&self) -> u64 {
        self.at
    }

    /// The body of the next frame; `None` at the end of the file.
    ///
    /// # Errors
    /// [`Fault`]; after one, nothing more can be read.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        let left = self.end - self.at;
        if left == 0 {
            return Ok(None);
        }
        if left < HEAD as u64 {
            return Err(Fault::Torn);
        }
        let mut head = [0; HEAD];
        self.input.read_exact(&mut head).map_err(Fault::Io)?;
        let [length, sum, own] = [&head[..4], &head[4..8], &head[8..]].map(number);
        if own != crc32fast::hash(&head[..8]) {
            return Err(self.judge_head(&head));
        }
        if u64::from(length) > left - HEAD as u64 {
            return Err(Fault::Torn);
        }
        let mut body = vec![0; length as usize];
        self.input.read_exact(&mut body).map_err(Fault::Io)?;
        let start = self.at + HEAD as u64;
        if sum != crc32fast::hash(&body) {
            let is_last = start + u64::from(length) == self.end;
            return Err(if is_last && has_hole(&body, start) { Fault::Torn } else { damaged() });
        }
        self.at = start + u64::from(length);
        Ok(Some(body))
    }

    /// A head that is none was cut off if nothing of the frame was written, or nothing from a sector within the head on.
    fn judge_head(&mut self, head: &[u8]) -> Fault {
        let mut rest = head.to_vec();
        if let Err(error) = self.input.read_to_end(&mut rest) {
            return Fault::Io(error);
        }
        let written = rest.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let boundary = SECTOR - (self.at % SECTOR as u64) as usize;
        let torn = written == 0 || (boundary < HEAD && written <= boundary);
        if torn { Fault::Torn } else { damaged() }
    }
}

fn damaged() -> Fault {
    Fault::Damaged("the bytes are not those that were written (a checksum does not match)")
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// Whether a sector of `body`, which lies at `start` in its file, was never written. At either end a sector holds only a
/// part of the body; where that is a few bytes, their being zero says nothing.
fn has_hole(body: &[u8], start: u64) -> bool {
    let boundary = SECTOR - (start % SECTOR as u64) as usize;
    let (first, rest) = body.split_at(boundary.min(body.len()));
    let mut parts = [first].into_iter().chain(rest.chunks(SECTOR));
    parts.any(|part| part.len() >= TELLING && part.iter().all(|byte| *byte == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(bodies: &[&[u8]]) -> Vec<u8> {
        let mut file = Vec::new();
        for body in bodies {
            write(&mut file, |out| out.extend_from_slice(body));
        }
        file
    }

    fn read(file: &[u8]) -> (Vec<Vec<u8>>, Option<Fault>) {
        let mut frames = Frames::new(file, 0, file.len() as u64);
        let mut bodies = Vec::new();
        loop {
            match frames.next() {
                Ok(Some(body)) => bodies.push(body),
                Ok(None) => return (bodies, None),
                Err(fault) => return (bodies, Some(fault)),
            }
        }
    }

    const BODIES: [&[u8]; 3] = [b"one", b"", b"the third and longest of them"];

    #[test]
    fn what_was_written_is_read() {
        let (bodies, fault) = read(&frames(&BODIES));
        assert_eq!(bodies, BODIES);
        assert!(fault.is_none());
        assert!(read(b"").0.is_empty());
    }

    #[test]
    fn a_file_that_ends_anywhere_gives_its_whole_frames_and_is_torn() {
        let file = frames(&BODIES);
        let ends = [HEAD + 3, HEAD + 3 + HEAD];
        for length in 0..file.len() {
            let (bodies, fault) = read(&file[..length]);
            let whole = ends.iter().filter(|end| **end <= length).count();
            assert_eq!(bodies, BODIES[..whole], "{length}");
            match fault {
                None => assert!(length == 0 || ends.contains(&length), "{length}"),
                Some(fault) => assert!(matches!(fault, Fault::Torn), "{length}: {fault:?}"),
            }
        }
    }

    #[test]
    fn no_flipped_bit_passes_or_looks_like_a_torn_write() {
        let file = frames(&BODIES);
        for bit in 0..file.len() * 8 {
            let mut damaged = file.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let (bodies, fault) = read(&damaged);
            assert_eq!(bodies, BODIES[..bodies.len()], "bit {bit}");
            assert!(matches!(fault, Some(Fault::Damaged(_))), "bit {bit}: {fault:?}");
        }
    }

    #[test]
    fn sectors_of_the_last_frame_that_were_never_written_make_it_torn() {
        let long = vec![7; 5 * SECTOR];
        let file = frames(&[b"one", &long]);
        for sector in 0..file.len().div_ceil(SECTOR) {
            let mut holed = file.clone();
            let end = ((sector + 1) * SECTOR).min(file.len());
            let start = (sector * SECTOR).max(HEAD + 3);
            holed[start..end].fill(0);
            let (bodies, fault) = read(&holed);
            assert_eq!(bodies, [b"one"], "{sector}");
            // Without its head nothing says how long the frame is: that is refused unless nothing of it was written.
            let expected_torn = sector > 0;
            assert_eq!(matches!(fault, Some(Fault::Torn)), expected_torn, "{sector}: {fault:?}");
        }
        holed_head_and_nothing_after(&file);
    }

    fn holed_head_and_nothing_after(file: &[u8]) {
        let mut nothing = file.to_vec();
        nothing[HEAD + 3..].fill(0);
        assert!(matches!(read(&nothing).1, Some(Fault::Torn)));
        nothing[HEAD + 3] = 1;
        assert!(matches!(read(&nothing).1, Some(Fault::Damaged(_))), "a sector is written as a whole");
    }
}
