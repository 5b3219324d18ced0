//! The body of a response: bytes that are there, pieces that are made when the client reads them, or a stream; each may be
//! compressed on its way.

use std::fmt;
use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::Stream;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use super::in_flight::Place;
use super::places::Places;
use super::sending::give_up_at;

/// The body of every response.
pub struct ResponseBody {
    form: Form,
    /// What the request takes among those in flight, until all is sent.
    place: Option<Place>,
    /// When the time for it is over.
    until: Option<Instant>,
}

/// The time for an answer was over before it was read to its end
/// (`k8s.io/apiserver/pkg/server/filters/timeout.go`: what has begun is cut).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the request did not complete within the allotted timeout")]
pub struct CutOff;

enum Form {
    Whole(Bytes),
    /// Whether the last poll has given one: others have their turn before the next is made.
    Pieces(Box<dyn Iterator<Item = Bytes> + Send>, bool),
    /// Pieces that are work to make.
    Rendered(Box<dyn Iterator<Item = Bytes> + Send>),
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
    /// Pieces that are made elsewhere.
    Placed(Pin<Box<dyn Stream<Item = Result<Bytes, CutOff>> + Send>>),
    Zipped(Box<Zipped>),
}

/// Pieces, compressed one by one.
struct Zipped {
    pieces: Box<dyn Iterator<Item = Bytes> + Send>,
    encoder: Encoder,
}

/// What compresses: some hundred kilobytes, while there is something to compress.
enum Encoder {
    New,
    Running(Box<GzEncoder<Vec<u8>>>),
    Done,
}

impl ResponseBody {
    /// Bytes that are there.
    pub(super) fn whole(bytes: impl Into<Bytes>) -> Self {
        Form::Whole(bytes.into()).into()
    }

    /// Pieces that are made one by one, when the client reads them.
    pub(super) fn pieces(pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Self {
        Form::Pieces(Box::new(pieces), false).into()
    }

    /// Pieces that are work to make, one by one, when the client reads them.
    pub(super) fn rendered(pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Self {
        Form::Rendered(Box::new(pieces)).into()
    }

    /// What comes when it comes.
    pub(super) fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Form::Stream(Box::pin(stream)).into()
    }

    /// What comes from elsewhere when it comes; what breaks there is cut off here.
    pub(super) fn passed(stream: impl Stream<Item = Result<Bytes, CutOff>> + Send + 'static) -> Self {
        Form::Placed(Box::pin(stream)).into()
    }

    /// The same body, which keeps a place among the requests in flight.
    pub(super) fn holding(self, place: Option<Place>) -> Self {
        Self { place, ..self }
    }

    /// The same body, which is cut off when it is not read to its end by then.
    pub(super) fn until(self, end: Instant) -> Self {
        give_up_at(end);
        Self { until: Some(end), ..self }
    }

    /// How many bytes there are, where that is known.
    pub(super) fn length(&self) -> Option<usize> {
        match &self.form {
            Form::Whole(bytes) => Some(bytes.len()),
            Form::Pieces(..) | Form::Rendered(_) | Form::Stream(_) | Form::Placed(_) | Form::Zipped(_) => {
                None
            }
        }
    }

    /// The same body, compressed as fast as that goes (`k8s.io/apiserver/pkg/endpoints/handlers/responsewriters`). A stream
    /// stays as it is: what it waits for would wait for more.
    pub(super) fn zipped(self) -> Self {
        let pieces: Box<dyn Iterator<Item = Bytes> + Send> = match self.form {
            Form::Whole(mut bytes) => Box::new(std::iter::from_fn(move || slice(&mut bytes))),
            Form::Pieces(pieces, _) | Form::Rendered(pieces) => pieces,
            form => return Self { form, ..self },
        };
        Self { form: Form::Zipped(Box::new(Zipped { pieces, encoder: Encoder::New })), ..self }
    }

    /// Whether it can be compressed.
    pub(super) fn can_be_zipped(&self) -> bool {
        matches!(self.form, Form::Whole(_) | Form::Pieces(..) | Form::Rendered(_))
    }

    /// The same body, whose pieces are made in places of their own where they are work.
    pub(super) fn placed(self, places: &Places) -> Self {
        let form = match self.form {
            Form::Rendered(pieces) => match places.pieces(pieces) {
                Ok(stream) => Form::Placed(Box::pin(stream)),
                Err(pieces) => Form::Rendered(pieces),
            },
            Form::Zipped(zipped) => match places.pieces(zipped) {
                Ok(stream) => Form::Placed(Box::pin(stream)),
                Err(zipped) => Form::Zipped(zipped),
            },
            form => form,
        };
        Self { form, ..self }
    }
}

/// Takes as much of what is left as is sent, or compressed, at once: between two the time of an answer is looked at.
fn slice(bytes: &mut Bytes) -> Option<Bytes> {
    const MOST: usize = 64 * 1024;
    (!bytes.is_empty()).then(|| bytes.split_to(bytes.len().min(MOST)))
}

impl From<Form> for ResponseBody {
    fn from(form: Form) -> Self {
        Self { form, place: None, until: None }
    }
}

impl Iterator for Zipped {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let mut encoder = match std::mem::replace(&mut self.encoder, Encoder::Done) {
            Encoder::New => Box::new(GzEncoder::new(Vec::new(), Compression::fast())),
            Encoder::Running(encoder) => encoder,
            Encoder::Done => return None,
        };
        for piece in self.pieces.by_ref() {
            // A vector takes all that is written.
            let _ = encoder.write_all(&piece);
            if !encoder.get_ref().is_empty() {
                let written = std::mem::take(encoder.get_mut());
                self.encoder = Encoder::Running(encoder);
                return Some(written.into());
            }
        }
        encoder.finish().ok().map(Bytes::from)
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = CutOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutOff>>> {
        if self.until.is_some_and(|end| Instant::now() > end) && !self.is_end_stream() {
            return Poll::Ready(Some(Err(CutOff)));
        }
        let next = match &mut self.form {
            Form::Whole(bytes) => Poll::Ready(slice(bytes)),
            Form::Pieces(pieces, given) => {
                *given = !*given;
                if *given {
                    Poll::Ready(pieces.next())
                } else {
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
            }
            Form::Rendered(pieces) => Poll::Ready(pieces.next()),
            Form::Stream(stream) => stream.as_mut().poll_next(context),
            Form::Placed(pieces) => {
                return pieces
                    .as_mut()
                    .poll_next(context)
                    .map(|piece| piece.map(|piece| piece.map(Frame::data)));
            }
            Form::Zipped(zipped) => Poll::Ready(zipped.next()),
        };
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.form, Form::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        self.length().map_or_else(SizeHint::default, |length| SizeHint::with_exact(length as u64))
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody")
            .field("length", &self.length())
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::time::Duration;

    use futures::FutureExt;
    use http_body_util::BodyExt;

    use super::*;

    async fn read(body: ResponseBody) -> Vec<u8> {
        body.collect().await.expect("there is time").to_bytes().to_vec()
    }

    fn pieces() -> ResponseBody {
        ResponseBody::pieces((0..100u8).map(|at| Bytes::from(vec![at; 10_000])))
    }

    #[test]
    fn others_have_their_turn_between_two_pieces() {
        let mut body = pieces();
        for _ in 0..3 {
            assert!(body.frame().now_or_never().is_some(), "a piece");
            assert!(body.frame().now_or_never().is_none(), "a turn for others");
        }
    }

    #[tokio::test]
    async fn every_form_gives_all_its_bytes() {
        let all: Vec<u8> = (0..100u8).flat_map(|at| vec![at; 10_000]).collect();
        assert_eq!(read(ResponseBody::whole(all.clone())).await, all);
        assert_eq!(read(pieces()).await, all);
        let stream = futures::stream::iter([Bytes::from_static(b"a"), Bytes::from_static(b"b")]);
        assert_eq!(read(ResponseBody::stream(stream)).await, b"ab");
    }

    #[tokio::test]
    async fn what_is_zipped_is_smaller_and_the_same() {
        let plain = read(pieces()).await;
        let zipped = read(pieces().zipped()).await;
        assert!(zipped.len() < plain.len() / 10, "{}", zipped.len());
        let mut back = Vec::new();
        flate2::read::GzDecoder::new(&zipped[..]).read_to_end(&mut back).expect("gzip");
        assert_eq!(back, plain);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_read_in_time_is_cut_off() {
        let mut body = pieces().until(Instant::now() + Duration::from_secs(60));
        assert!(body.frame().await.expect("a piece").is_ok());
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(body.frame().await.expect("an end").unwrap_err(), CutOff);
    }

    #[test]
    fn only_what_is_there_has_a_length() {
        assert_eq!(ResponseBody::whole("abc").size_hint().exact(), Some(3));
        assert!(ResponseBody::whole("").is_end_stream());
        assert_eq!(pieces().size_hint().exact(), None);
    }
}
