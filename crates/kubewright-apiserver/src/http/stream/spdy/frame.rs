//! The frames of SPDY/3.1, as bytes.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio_util::codec::Decoder;

use super::Error;
use super::headers::{Deflater, Headers, Inflater};

const VERSION: u16 = 0x8003;
const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const SETTINGS: u16 = 4;
const PING: u16 = 6;
const GO_AWAY: u16 = 7;
const HEADERS: u16 = 8;
const WINDOW_UPDATE: u16 = 9;

/// The flag of who has no more to send.
const FIN: u8 = 1;
/// The head of each frame.
const HEAD: usize = 8;
/// The longest frame that is no data; that of data is given on in pieces, and needs no limit.
const LONGEST: usize = 64 << 10;

/// Why a stream is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Reason {
    /// Its number is wrong.
    Protocol = 1,
    /// There are too many.
    Refused = 3,
    /// It is not needed any more.
    Cancel = 5,
}

/// One frame, or a part of one with data.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum Frame {
    /// A stream begins; `last` when nothing will be sent on it.
    Open { stream: u32, headers: Headers, last: bool },
    /// A stream was accepted.
    Reply { stream: u32 },
    /// A stream has ended in both directions.
    Reset { stream: u32 },
    /// To be sent back.
    Ping(u32),
    /// No more streams.
    GoAway,
    /// What is sent on a stream; `last` when there is no more.
    Data { stream: u32, bytes: Bytes, last: bool },
    /// What needs no answer: settings, windows, later headers.
    Other,
}

/// Makes frames of bytes.
pub(in super::super) struct Reader {
    inflater: Inflater,
    /// The frame of data that is being read.
    data: Option<Unfinished>,
}

#[derive(Clone, Copy)]
struct Unfinished {
    stream: u32,
    left: usize,
    last: bool,
}

impl Reader {
    pub(in super::super) fn new() -> Self {
        Self { inflater: Inflater::new(), data: None }
    }

    /// The bytes of a frame of data that are there.
    fn piece(&mut self, data: Unfinished, buffer: &mut BytesMut) -> Option<Frame> {
        let bytes = buffer.split_to(data.left.min(buffer.len())).freeze();
        let left = data.left - bytes.len();
        self.data = (left > 0).then_some(Unfinished { left, ..data });
        let last = data.last && left == 0;
        (!bytes.is_empty() || left == 0).then_some(Frame::Data { stream: data.stream, bytes, last })
    }

    fn control(&mut self, kind: u16, flags: u8, mut payload: &[u8]) -> Result<Frame, Error> {
        let short = |_| Error::Protocol("a frame that is too short");
        let last = flags & FIN != 0;
        Ok(match kind {
            SYN_STREAM => {
                let stream = payload.try_get_u32().map_err(short)?;
                // The stream that it belongs to, its priority, a certificate.
                let headers = payload.get(6..).ok_or(Error::Protocol("a frame that is too short"))?;
                Frame::Open { stream, headers: self.inflater.read(headers)?, last }
            }
            SYN_REPLY | HEADERS => {
                let stream = payload.try_get_u32().map_err(short)?;
                // They are read for what later ones are compressed with.
                self.inflater.read(payload)?;
                match kind {
                    SYN_REPLY => Frame::Reply { stream },
                    _ => Frame::Other,
                }
            }
            RST_STREAM => Frame::Reset { stream: payload.try_get_u32().map_err(short)? },
            PING => Frame::Ping(payload.try_get_u32().map_err(short)?),
            GO_AWAY => Frame::GoAway,
            SETTINGS | WINDOW_UPDATE => Frame::Other,
            _ => return Err(Error::Protocol("a frame of an unknown kind")),
        })
    }
}

impl Decoder for Reader {
    type Item = Frame;
    type Error = Error;

    fn decode(&mut self, buffer: &mut BytesMut) -> Result<Option<Frame>, Error> {
        if let Some(data) = self.data {
            return Ok(self.piece(data, buffer));
        }
        let Some(mut head) = buffer.get(..HEAD) else { return Ok(None) };
        let (first, flags) = (head.get_u32(), head[0]);
        let length = (head.get_u32() & 0x00ff_ffff) as usize;
        if first >> 31 == 0 {
            buffer.advance(HEAD);
            let data = Unfinished { stream: first, left: length, last: flags & FIN != 0 };
            return Ok(self.piece(data, buffer));
        }
        if length > LONGEST {
            return Err(Error::Protocol("a frame that is too long"));
        }
        if buffer.len() < HEAD + length {
            buffer.reserve(HEAD + length - buffer.len());
            return Ok(None);
        }
        buffer.advance(HEAD);
        let payload = buffer.split_to(length);
        self.control(first as u16, flags, &payload).map(Some)
    }
}

/// Makes bytes of frames.
pub(in super::super) struct Writer(Deflater);

impl Writer {
    pub(in super::super) fn new() -> Result<Self, Error> {
        Ok(Self(Deflater::new()?))
    }

    /// A stream begins; only clients say so here.
    #[cfg(test)]
    pub(in super::super) fn open(
        &mut self,
        stream: u32,
        headers: &Headers,
        last: bool,
    ) -> Result<Bytes, Error> {
        let block = self.0.write(headers)?;
        let fields = [&stream.to_be_bytes()[..], &[0; 6], &block].concat();
        Ok(control(SYN_STREAM, if last { FIN } else { 0 }, &fields))
    }

    /// A stream is accepted.
    pub(in super::super) fn reply(&mut self, stream: u32) -> Result<Bytes, Error> {
        let block = self.0.write(&Headers::new())?;
        Ok(control(SYN_REPLY, 0, &[&stream.to_be_bytes()[..], &block].concat()))
    }

    /// A stream ends in both directions.
    pub(in super::super) fn reset(stream: u32, reason: Reason) -> Bytes {
        control(RST_STREAM, 0, &[stream.to_be_bytes(), (reason as u32).to_be_bytes()].concat())
    }

    /// A question whether the other side is there, or the answer.
    pub(in super::super) fn ping(number: u32) -> Bytes {
        control(PING, 0, &number.to_be_bytes())
    }

    /// No more streams; the last one that was accepted.
    pub(in super::super) fn go_away(stream: u32) -> Bytes {
        control(GO_AWAY, 0, &[stream.to_be_bytes(), [0; 4]].concat())
    }

    /// Data, far less than what a frame can hold; `last` when there is no more.
    pub(in super::super) fn data(stream: u32, bytes: &[u8], last: bool) -> Bytes {
        let mut frame = BytesMut::with_capacity(HEAD + bytes.len());
        frame.put_u32(stream & 0x7fff_ffff);
        frame.put_u32(if last { u32::from(FIN) << 24 } else { 0 } | bytes.len() as u32);
        frame.put(bytes);
        frame.freeze()
    }
}

fn control(kind: u16, flags: u8, payload: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(HEAD + payload.len());
    frame.put_u16(VERSION);
    frame.put_u16(kind);
    frame.put_u32(u32::from(flags) << 24 | payload.len() as u32);
    frame.put(payload);
    frame.freeze()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What `github.com/moby/spdystream` writes for a stream with the headers of client-go, and then for a second one.
    const GO: &str = "\
        800300010000003e0000000100000000000078f9e3c6a7c202253a703a2b294a4dcc851625aca9a0808614cb45e01c60\
        616061c0c0c0c0590489c64c50f2663400000000ffff800300010100001c00000003000000000000826ac61445350e54\
        3225a29b06000000ffff000000010100000568656c6c6f80030006000000040000000180030003000000080000000100\
        00000580030007000000080000000000000000";

    fn frames(bytes: &[u8], cuts: &[usize]) -> Result<Vec<Frame>, String> {
        let (mut reader, mut buffer, mut frames) = (Reader::new(), BytesMut::new(), Vec::new());
        let mut rest = bytes;
        for cut in cuts.iter().copied().chain([usize::MAX]) {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            buffer.extend_from_slice(piece);
            rest = after;
            while let Some(frame) = reader.decode(&mut buffer).map_err(|error| error.to_string())? {
                frames.push(frame);
            }
        }
        Ok(joined(frames))
    }

    /// Pieces of one frame of data as one.
    fn joined(frames: Vec<Frame>) -> Vec<Frame> {
        let mut all: Vec<Frame> = Vec::new();
        for frame in frames {
            match (all.last_mut(), frame) {
                (
                    Some(Frame::Data { stream, bytes, last: end @ false }),
                    Frame::Data { stream: on, bytes: more, last },
                ) if *stream == on => {
                    *bytes = [&bytes[..], &more].concat().into();
                    *end = last;
                }
                (_, frame) => all.push(frame),
            }
        }
        all
    }

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.chars().filter_map(|digit| Some(digit.to_digit(16)? as u8)).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    #[test]
    fn what_clients_in_go_write_is_read() {
        let headers = |kind: &str| {
            let pairs = [("streamtype", kind), ("port", "8080"), ("requestid", "0")];
            pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
        };
        assert_eq!(
            frames(&hex(GO), &[]),
            Ok(vec![
                Frame::Open { stream: 1, headers: headers("error"), last: false },
                Frame::Open { stream: 3, headers: headers("data"), last: true },
                Frame::Data { stream: 1, bytes: Bytes::from_static(b"hello"), last: true },
                Frame::Ping(1),
                Frame::Reset { stream: 1 },
                Frame::GoAway,
            ])
        );
    }

    proptest! {
        #[test]
        fn frames_may_be_cut_anywhere(
            data in proptest::collection::vec((1u32..9, proptest::collection::vec(any::<u8>(), 0..50), any::<bool>()), 0..8),
            cuts in proptest::collection::vec(0usize..40, 0..20),
        ) {
            let mut writer = Writer::new().unwrap();
            let mut bytes = Vec::new();
            for (stream, data, last) in data {
                let headers = [("a".to_owned(), format!("{data:?}"))].into();
                bytes.extend(writer.open(stream, &headers, last).unwrap());
                bytes.extend(writer.reply(stream).unwrap());
                bytes.extend(Writer::data(stream, &data, last));
                bytes.extend(Writer::reset(stream, Reason::Cancel));
            }
            let whole = frames(&bytes, &[]);
            prop_assert!(whole.is_ok());
            prop_assert_eq!(frames(&bytes, &cuts), whole);
        }

        #[test]
        fn garbage_is_no_harm(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..400),
            control in any::<bool>(),
            kind in 0u8..12,
            cuts in proptest::collection::vec(0usize..40, 0..20),
        ) {
            if control && bytes.len() > 8 {
                let length = bytes.len() as u32 - 8;
                bytes[..4].copy_from_slice(&[0x80, 3, 0, kind]);
                bytes[4..8].copy_from_slice(&length.to_be_bytes());
            }
            let _ = frames(&bytes, &cuts);
        }
    }

    #[test]
    fn a_frame_that_is_too_long_is_refused_before_it_is_there() {
        let head = [0x80, 3, 0, 1, 0, 0xff, 0xff, 0xff];
        assert!(frames(&head, &[]).is_err());
    }
}
