//! How many requests run at once, and for how long.

use std::sync::Arc;
use std::time::Duration;

use http::{Response, StatusCode};
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

/// A duration as Go writes it, such as `1m30s` or `500ms`; a negative one is none at all.
///
/// # Errors
/// What Go's `time.ParseDuration` says.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let invalid = || format!("invalid duration {text:?}");
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let is_digit = |character: char| character.is_ascii_digit() || character == '.';
        let (number, unit) = rest.split_at(rest.find(|character| !is_digit(character)).unwrap_or(rest.len()));
        let number: f64 = number.parse().map_err(|_| invalid())?;
        let (unit, after) = unit.split_at(unit.find(is_digit).unwrap_or(unit.len()));
        seconds += number
            * match unit {
                "" => return Err(format!("missing unit in duration {text:?}")),
                "h" => 3600.0,
                "m" => 60.0,
                "s" => 1.0,
                "ms" => 1e-3,
                "us" | "\u{b5}s" | "\u{3bc}s" => 1e-6,
                "ns" => 1e-9,
                other => return Err(format!("unknown unit {other:?} in duration {text:?}")),
            };
        rest = after;
    }
    let seconds = if text.starts_with('-') { 0.0 } else { seconds };
    Duration::try_from_secs_f64(seconds).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        for (text, millis) in
            [("1s", 1000), ("500ms", 500), ("1m0.5s", 60_500), ("0", 0), ("-5s", 0), ("1h", 3_600_000)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for (text, told) in [
            ("-", "invalid duration \"-\""),
            ("abc", "invalid duration \"abc\""),
            ("1..2s", "invalid duration \"1..2s\""),
            ("1", "missing unit in duration \"1\""),
            ("1x", "unknown unit \"x\" in duration \"1x\""),
        ] {
            assert_eq!(parse_duration(text), Err(told.to_owned()), "{text}");
        }
    }

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
