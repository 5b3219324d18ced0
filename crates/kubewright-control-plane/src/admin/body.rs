//! The bodies of answers, where a watch may be told to wait or to end.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::Full;
use kubewright_apiserver::http::{CutOff, ResponseBody};
use kubewright_codec::protobuf;
use kubewright_codec::rope::WholeLines;
use kubewright_meta::ApiError;
use tokio::time::Sleep;
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::request_info::RequestInfo;
use super::watches::{End, Order, WatchId};
use super::{Admin, WatchDelivery};

/// Why an answer ends before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Cut {
    /// The connection was cut, as a fault wanted it.
    #[error("connection reset by a fault")]
    Fault,
    /// The server did so.
    #[error(transparent)]
    Server(#[from] CutOff),
}

/// The body of an answer.
pub(crate) struct Body(Form);

enum Form {
    Server(ResponseBody),
    Own(Full<Bytes>),
    Watch(Box<Watch>),
}

impl From<ResponseBody> for Body {
    fn from(body: ResponseBody) -> Self {
        Self(Form::Server(body))
    }
}

impl Body {
    /// Bytes that are there.
    pub(super) fn own(bytes: impl Into<Bytes>) -> Self {
        Self(Form::Own(Full::new(bytes.into())))
    }

    /// An open watch.
    pub(super) fn watch(watch: Watch) -> Self {
        Self(Form::Watch(Box::new(watch)))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match &mut self.0 {
            Form::Server(body) => failing(Pin::new(body).poll_frame(context)),
            Form::Own(body) => failing(Pin::new(body).poll_frame(context)),
            Form::Watch(watch) => watch.poll(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Form::Server(body) => body.is_end_stream(),
            Form::Own(body) => body.is_end_stream(),
            Form::Watch(watch) => watch.over,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Form::Server(body) => body.size_hint(),
            Form::Own(body) => body.size_hint(),
            Form::Watch(_) => SizeHint::default(),
        }
    }
}

type Polled<E> = Poll<Option<Result<Frame<Bytes>, E>>>;

fn failing<E: Into<Cut>>(polled: Polled<E>) -> Polled<Cut> {
    polled.map(|frame| frame.map(|frame| frame.map_err(Into::into)))
}

impl From<Infallible> for Cut {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// An open watch. It does not read on while it is held, as a client that is slow does not.
pub(super) struct Watch {
    admin: Admin,
    id: WatchId,
    info: Arc<RequestInfo>,
    server: ResponseBody,
    /// Whether its events are frames of protobuf, and not lines of JSON.
    protobuf: bool,
    /// An event that has begun to come.
    begun: WholeLines,
    /// What it was about to tell when it was told to wait.
    kept: Option<Frame<Bytes>>,
    /// Wakes it when it has waited.
    waits: Option<Pin<Box<Sleep>>>,
    shutdown: Pin<Box<WaitForCancellationFutureOwned>>,
    over: bool,
}

impl Watch {
    pub(super) fn open(admin: &Admin, info: Arc<RequestInfo>, server: ResponseBody, protobuf: bool) -> Self {
        Self {
            id: admin.watch_opens(&info),
            shutdown: Box::pin(admin.shutdown().clone().cancelled_owned()),
            admin: admin.clone(),
            info,
            server,
            protobuf,
            begun: WholeLines::default(),
            kept: None,
            waits: None,
            over: false,
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Polled<Cut> {
        while !self.over {
            match self.admin.watch_order(self.id, context.waker()) {
                Order::End(end) => return Poll::Ready(self.end(end)),
                Order::Hold(until) => {
                    if self.shutdown.as_mut().poll(context).is_ready() {
                        return Poll::Ready(self.end(End::Cleanly));
                    }
                    let Some(until) = until else { return Poll::Pending };
                    let waits = self.waits.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
                    if waits.deadline() != until {
                        waits.as_mut().reset(until);
                    }
                    ready!(waits.as_mut().poll(context));
                }
                Order::Tell => {
                    self.waits = None;
                    if let Some(kept) = self.kept.take() {
                        return Poll::Ready(Some(Ok(kept)));
                    }
                    let frame = ready!(Pin::new(&mut self.server).poll_frame(context));
                    let Some(Ok(piece)) = frame.map(|frame| frame.map(Frame::into_data)) else {
                        self.over = true;
                        continue;
                    };
                    let Some(events) = piece.ok().and_then(|piece| self.whole_events(piece)) else {
                        continue;
                    };
                    let frame = Frame::data(events);
                    match self.admin.deliver_watch_event(self.id, &self.info) {
                        WatchDelivery::Once => return Poll::Ready(Some(Ok(frame))),
                        WatchDelivery::Twice => return Poll::Ready(Some(Ok(twice(frame, self.protobuf)))),
                        WatchDelivery::Never => {}
                        WatchDelivery::Ordered => self.kept = Some(frame),
                    }
                }
            }
        }
        Poll::Ready(None)
    }

    /// The events that are whole with this piece. In protobuf no event comes in pieces.
    fn whole_events(&mut self, piece: Bytes) -> Option<Bytes> {
        if self.protobuf { Some(piece) } else { self.begun.add(piece) }
    }

    fn end(&mut self, end: End) -> Option<Result<Frame<Bytes>, Cut>> {
        self.over = true;
        match end {
            End::Cleanly => None,
            End::Reset => Some(Err(Cut::Fault)),
            // `k8s.io/apiserver/pkg/storage/etcd3/watcher.go`, of a history that was compacted under a watch.
            End::Expired => {
                let error = ApiError::expired("The resourceVersion for the provided watch is too old.");
                Some(Ok(Frame::data(error_event(&error, self.protobuf))))
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.admin.watch_closes(self.id);
    }
}

/// A piece of events with each of them two times.
fn twice(frame: Frame<Bytes>, protobuf: bool) -> Frame<Bytes> {
    frame.map_data(|bytes| {
        let mut doubled = Vec::with_capacity(2 * bytes.len());
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (event, others) = rest.split_at(first_event(rest, protobuf).min(rest.len()));
            doubled.extend_from_slice(event);
            doubled.extend_from_slice(event);
            rest = others;
        }
        doubled.into()
    })
}

/// How long the first event is: a line, or in protobuf what four bytes in front of it say.
fn first_event(events: &[u8], protobuf: bool) -> usize {
    match (protobuf, events) {
        (true, [a, b, c, d, ..]) => 4 + u32::from_be_bytes([*a, *b, *c, *d]) as usize,
        (true, _) => events.len(),
        (false, _) => events.iter().position(|byte| *byte == b'\n').map_or(events.len(), |end| end + 1),
    }
}

/// The event of a watch that fails.
pub(super) fn error_event(error: &ApiError, protobuf: bool) -> Bytes {
    let status = error.to_status();
    if protobuf {
        return protobuf::encode_event("ERROR", &protobuf::encode(&status).unwrap_or_default()).into();
    }
    format!("{{\"type\":\"ERROR\",\"object\":{status}}}\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_of_a_piece_is_told_twice_in_its_place() {
        let doubled = |bytes: &'static [u8], protobuf| {
            twice(Frame::data(Bytes::from_static(bytes)), protobuf).into_data().expect("data")
        };
        assert_eq!(doubled(b"{1}\n{2}\n", false), &b"{1}\n{1}\n{2}\n{2}\n"[..]);
        assert_eq!(doubled(b"\0\0\0\x01a\0\0\0\0", true), &b"\0\0\0\x01a\0\0\0\x01a\0\0\0\0\0\0\0\0"[..]);
        assert_eq!(doubled(b"\xff\xff\xff\xffa", true), &b"\xff\xff\xff\xffa\xff\xff\xff\xffa"[..]);
    }
}
