//! Bytes on their way to a client: what is small is put together, what is large is shared with whoever else has it.

use std::collections::VecDeque;

use bytes::{BufMut, Bytes, BytesMut};

/// How many bytes of its own make a piece.
pub const PIECE: usize = 16 * 1024;
/// How many bytes of objects are read for a piece at most, however little is made of them.
pub const READ: usize = 64 * 1024;
/// From how many bytes on something is shared and not copied: a frame of its own costs less than the copy.
const SHARED: usize = 4 * 1024;

/// Pieces of an answer, as they are made. It keeps no memory when all of them are taken.
#[derive(Debug, Default)]
pub struct Rope {
    ready: VecDeque<Bytes>,
    own: BytesMut,
}

impl Rope {
    /// Takes the memory for a piece, before much is added.
    #[inline]
    pub fn reserve(&mut self) {
        self.own.reserve(PIECE + SHARED);
    }

    /// Adds a copy.
    #[inline]
    pub fn copy(&mut self, bytes: &[u8]) {
        self.own.put_slice(bytes);
    }

    /// Adds what is shared, unless it is small.
    #[inline]
    pub fn share(&mut self, bytes: Bytes) {
        if bytes.len() < SHARED {
            return self.copy(&bytes);
        }
        self.cut();
        self.ready.push_back(bytes);
    }

    /// Whether there is as much as is sent at once.
    #[inline]
    pub fn is_full(&self) -> bool {
        !self.ready.is_empty() || self.own.len() >= PIECE
    }

    /// The next piece of what was added.
    pub fn take(&mut self) -> Option<Bytes> {
        if self.ready.is_empty() {
            self.cut();
        }
        let piece = self.ready.pop_front();
        if self.ready.is_empty() {
            self.ready = VecDeque::new();
        }
        piece
    }

    /// All that was added, in one piece.
    pub fn whole(mut self) -> Bytes {
        let mut out = BytesMut::new();
        while let Some(piece) = self.take() {
            out.put(piece);
        }
        out.freeze()
    }

    fn cut(&mut self) {
        if !self.own.is_empty() {
            // Not `split`, which would keep what is left of the memory.
            self.ready.push_back(std::mem::take(&mut self.own).freeze());
        }
    }
}

/// Puts the pieces of a watch's JSON together to whole events, for who needs these: an event may come in several pieces, and
/// the last of them ends with its line.
#[derive(Debug, Default)]
pub struct WholeLines(BytesMut);

impl WholeLines {
    /// Takes the next piece; gives all that is whole with it, if it ends an event.
    pub fn add(&mut self, piece: Bytes) -> Option<Bytes> {
        let ends = piece.ends_with(b"\n");
        if self.0.is_empty() && ends {
            return Some(piece);
        }
        self.0.put(piece);
        ends.then(|| std::mem::take(&mut self.0).freeze())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_small_is_put_together_and_what_is_large_is_shared() {
        let large = Bytes::from(vec![b'x'; SHARED]);
        let mut rope = Rope::default();
        rope.copy(b"a");
        rope.share(Bytes::from_static(b"b"));
        assert!(!rope.is_full());
        rope.share(large.clone());
        rope.copy(b"c");
        assert!(rope.is_full());
        assert_eq!(rope.take().expect("the small ones"), "ab");
        let shared = rope.take().expect("the large one");
        assert_eq!(shared.as_ptr(), large.as_ptr(), "the same memory");
        assert_eq!(rope.take().expect("the rest"), "c");
        assert_eq!(rope.take(), None);
        assert_eq!((rope.own.capacity(), rope.ready.capacity()), (0, 0), "it keeps nothing");
    }

    #[test]
    fn events_are_whole_when_their_line_ends() {
        let mut lines = WholeLines::default();
        let mut add = |piece: &'static str| lines.add(Bytes::from_static(piece.as_bytes()));
        assert_eq!(add("{1}\n{2}\n").as_deref(), Some(&b"{1}\n{2}\n"[..]));
        assert_eq!((add("{3}\n{"), add("4")), (None, None));
        assert_eq!(add("}\n").as_deref(), Some(&b"{3}\n{4}\n"[..]));
    }
}
