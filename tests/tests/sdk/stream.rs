//! The body of a watch's answer, whose parts can come late, and which can be cut.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use futures::stream;
use http_body::{Body, Frame};
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use kubewright_runtime::BoxError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The body of an answer that passed.
pub(crate) type Passed = UnsyncBoxBody<Bytes, BoxError>;

/// `body` as it is.
pub(crate) fn whole<B>(body: B) -> Passed
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    body.map_err(Into::into).boxed_unsync()
}

/// `body`, each part of which comes as much later as `delay` says when it arrives, until `cut` is cancelled. `closed` is
/// called when nobody reads it any more.
pub(crate) fn delayed(
    body: Passed,
    delay: impl Fn() -> Duration + Send + 'static,
    cut: CancellationToken,
    closed: impl FnOnce() + Send + 'static,
) -> Passed {
    let parts =
        Parts { body, is_over: false, waiting: VecDeque::new(), delay, cut, _closed: AtEnd(Some(closed)) };
    let parts = stream::unfold(parts, |mut parts| async move {
        let part = parts.next().await?;
        Some((Ok::<_, BoxError>(Frame::data(part)), parts))
    });
    StreamBody::new(parts).boxed_unsync()
}

struct Parts<D, C: FnOnce()> {
    body: Passed,
    is_over: bool,
    /// What has arrived, and when it may be seen.
    waiting: VecDeque<(Instant, Bytes)>,
    delay: D,
    cut: CancellationToken,
    _closed: AtEnd<C>,
}

impl<D: Fn() -> Duration, C: FnOnce()> Parts<D, C> {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let due = self.waiting.front().map(|(due, _)| *due);
            if due.is_some_and(|due| due <= Instant::now()) {
                return self.waiting.pop_front().map(|(_, part)| part);
            }
            if self.is_over && self.waiting.is_empty() {
                return None;
            }
            tokio::select! {
                biased;
                () = self.cut.cancelled() => return None,
                part = self.body.frame(), if !self.is_over => match part.and_then(Result::ok) {
                    Some(part) => {
                        let due = Instant::now() + (self.delay)();
                        self.waiting.extend(part.into_data().ok().map(|part| (due, part)));
                    }
                    None => self.is_over = true,
                },
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
            }
        }
    }
}

struct AtEnd<C: FnOnce()>(Option<C>);

impl<C: FnOnce()> Drop for AtEnd<C> {
    fn drop(&mut self) {
        if let Some(closed) = self.0.take() {
            closed();
        }
    }
}
