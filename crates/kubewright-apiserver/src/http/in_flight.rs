//! How many requests run at once, and for how long.

use std::sync::Arc;
use std::time::Duration;

use http::{Response, StatusCode};
use kubewright_schedule::parse_duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::request::Query;
use super::respond;
use super::response_body::ResponseBody;
use crate::error::ApiError;

/// The requests that run now, watches left out (`k8s.io/apiserver/pkg/server/filters/maxinflight.go`).
#[derive(Debug)]
pub(super) struct InFlight {
    reads: Arc<Semaphore>,
    writes: Arc<Semaphore>,
}

impl InFlight {
    /// At most so many reads and so many writes; 0 for any number.
    pub(super) fn new(reads: usize, writes: usize) -> Self {
        let places = |most| match most {
            0 => Semaphore::MAX_PERMITS,
            most => most.min(Semaphore::MAX_PERMITS),
        };
        Self {
            reads: Arc::new(Semaphore::new(places(reads))),
            writes: Arc::new(Semaphore::new(places(writes))),
        }
    }

    /// A place for one more request, given back when it is dropped; `None` when there are too many.
    pub(super) fn enter(&self, verb: &str) -> Option<OwnedSemaphorePermit> {
        let reads = matches!(verb, "get" | "list" | "head");
        let of = if reads { &self.reads } else { &self.writes };
        Arc::clone(of).try_acquire_owned().ok()
    }
}

/// The answer to one request too many.
pub(super) fn too_many() -> Response<ResponseBody> {
    let text = "Too many requests, please try again later.\n";
    let mut response = respond::plain_error(StatusCode::TOO_MANY_REQUESTS, text);
    response.headers_mut().insert(http::header::RETRY_AFTER, 1.into());
    response
}

/// How long a request may take: what its `timeout` says, at most `longest`
/// (`k8s.io/apiserver/pkg/endpoints/filters/request_deadline.go`).
///
/// # Errors
/// 400 for what is no duration.
pub(super) fn deadline(query: &Query, longest: Duration) -> Result<Duration, ApiError> {
    let text = query.text("timeout");
    if text.is_empty() {
        return Ok(longest);
    }
    let asked = parse_duration(text).map_err(|why| {
        ApiError::bad_request(format!("invalid timeout specified in the request URL - time: {why}"))
    })?;
    Ok(if asked.is_zero() { longest } else { asked.min(longest) })
}

/// 504: the request took too long (`k8s.io/apiserver/pkg/server/filters/timeout.go`).
pub(super) fn timed_out() -> ApiError {
    ApiError::new(
        StatusCode::GATEWAY_TIMEOUT,
        "Timeout",
        "Timeout: request did not complete within the allotted timeout",
    )
    .with_details(serde_json::json!({}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_request_takes_longer_than_the_server_allows() {
        const LONGEST: Duration = Duration::from_secs(60);
        let deadline = |query: &str| deadline(&Query::parse(Some(query)), LONGEST);
        assert_eq!(deadline(""), Ok(LONGEST));
        assert_eq!(deadline("timeout=5s"), Ok(Duration::from_secs(5)));
        assert_eq!(deadline("timeout=1h"), Ok(LONGEST));
        assert_eq!(deadline("timeout=0s"), Ok(LONGEST));
        assert_eq!(
            deadline("timeout=abc").unwrap_err().message,
            "invalid timeout specified in the request URL - time: invalid duration \"abc\""
        );
    }

    #[test]
    fn reads_and_writes_have_places_of_their_own() {
        let in_flight = InFlight::new(1, 1);
        let read = in_flight.enter("list").expect("a place");
        assert!(in_flight.enter("get").is_none());
        assert!(in_flight.enter("patch").is_some());
        drop(read);
        assert!(in_flight.enter("get").is_some());
    }

    #[test]
    fn none_is_no_limit() {
        let in_flight = InFlight::new(0, 1);
        let reads: Vec<_> = (0..1000).map(|_| in_flight.enter("get")).collect();
        assert!(reads.iter().all(Option::is_some));
        let _write = in_flight.enter("create").expect("a place");
        assert!(in_flight.enter("create").is_none());
    }
}
