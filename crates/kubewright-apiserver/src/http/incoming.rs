//! Bodies of requests, collected within the limit and in time.

use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use kubewright_meta::ApiError;

use super::in_flight;

/// Any error of a body.
pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// Why a body does not come to its end.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Broken(BoxError);

/// The body of a request, of whatever type.
pub(super) type RequestBody = UnsyncBoxBody<Bytes, Broken>;

/// Forgets the type of a body.
pub(super) fn boxed<B>(body: B) -> RequestBody
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    body.map_err(|error| Broken(error.into())).boxed_unsync()
}

/// No body.
pub(super) fn empty() -> RequestBody {
    boxed(Empty::new())
}

/// The most bytes that a body may have: 3 MiB, as in kube-apiserver.
pub const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// Reads a whole body, for so long at most.
///
/// # Errors
/// 413 over [`BODY_LIMIT`]; 400 when the client goes away in the middle; 504 when it has not come in time.
pub(super) async fn collect(body: &mut RequestBody, longest: Duration) -> Result<Bytes, ApiError> {
    let read = tokio::time::timeout(longest, Limited::new(body, BODY_LIMIT).collect());
    match read.await.map_err(|_| in_flight::timed_out())? {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(ApiError::too_large(BODY_LIMIT)),
        Err(error) => Err(ApiError::bad_request(format!("unable to read the request body: {error}"))),
    }
}

/// Reads what is left of the body of a request that was answered without it, so that its connection can be used again;
/// not all of a long one, nor of one that does not come (Go's `net/http` does it, too).
pub(super) async fn drain(body: &mut RequestBody) {
    const MOST: usize = 256 * 1024;
    const LONGEST: Duration = Duration::from_secs(1);
    if body.is_end_stream() {
        return;
    }
    let read = async {
        let mut length = 0;
        while let Some(Ok(frame)) = body.frame().await {
            length += frame.data_ref().map_or(0, Bytes::len);
            if length > MOST {
                break;
            }
        }
    };
    // Whether it is all there or not, the answer is given.
    let _ = tokio::time::timeout(LONGEST, read).await;
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::stream;
    use http_body::Frame;
    use http_body_util::StreamBody;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_left_of_a_body_is_read_but_not_all_of_a_long_one_nor_for_long() {
        async fn left_of(chunks: usize) -> usize {
            let read = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&read);
            let frames = (0..chunks).map(move |_| {
                counted.fetch_add(1, Ordering::Relaxed);
                Ok(Frame::data(vec![0; 1024].into()))
            });
            drain(&mut StreamBody::new(stream::iter(frames)).boxed_unsync()).await;
            chunks - read.load(Ordering::Relaxed)
        }
        assert_eq!((left_of(0).await, left_of(200).await), (0, 0));
        assert_eq!(left_of(1000).await, 1000 - 257);
        drain(&mut StreamBody::new(stream::pending()).boxed_unsync()).await;
    }
}
