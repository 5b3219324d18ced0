//! How many requests run at once, of whom, and for how long.
//!
//! kube-apiserver has flow schemas and priority levels for this (`k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap`). Here
//! is what they come to, without queues: administrators are never held up, leases and what nodes say of themselves have
//! places of their own, and all else shares the others, no user more than [`Shares`] allow.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http_body::SizeHint;
use kubewright_codec::request::{Query, Target};
use kubewright_identity::authn::{NODES, SYSTEM_MASTERS, User};
use kubewright_meta::ApiError;
use kubewright_meta::duration::parse_or_none;
use serde_json::json;

use super::incoming::BODY_LIMIT;
use super::shares::{Share, Shares};

/// What lasts as long as the client wants beside watches, and takes no place among the requests in flight
/// (`k8s.io/kubernetes/pkg/controlplane/apiserver/config.go`, `LongRunningFunc`).
const LASTING: [&str; 5] = ["attach", "exec", "proxy", "log", "portforward"];
/// The bytes of bodies that are read at once: of all users, and as much again for what is vital.
const BODIES: usize = 256 << 20;
/// What a body counts at least: one that does not come takes room, too.
const LEAST: u64 = 64 << 10;

/// The requests that run now.
#[derive(Debug)]
pub(super) struct InFlight {
    reads: Level,
    writes: Level,
    /// Leases of whomever, and what nodes say of themselves: what is taken for dead when it cannot be told.
    vital: Level,
}

/// Requests that share their places.
#[derive(Debug)]
pub(super) struct Level {
    requests: Arc<Shares>,
    /// Bytes of bodies that are on their way.
    bodies: Arc<Shares>,
}

/// A place among the requests in flight, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place(#[expect(dead_code, reason = "it is held")] Share);

impl InFlight {
    /// At most so many reads and so many writes, and as many that are vital as there are writes; 0 for any number.
    pub(super) fn new(reads: usize, writes: usize) -> Self {
        let bodies = Shares::new(BODIES);
        let level = |most, bodies: &Arc<_>| Level { requests: Shares::new(most), bodies: Arc::clone(bodies) };
        Self {
            reads: level(reads, &bodies),
            writes: level(writes, &bodies),
            vital: level(writes, &Shares::new(BODIES)),
        }
    }

    /// Whether a request waits for nobody else's.
    pub(super) fn is_urgent(user: &User, target: &Target) -> bool {
        user.is_in(SYSTEM_MASTERS) || is_vital(user, target)
    }

    /// Where a document about all kinds needs a place; `None` for who never waits for one.
    pub(super) fn of_documents(&self, user: &User) -> Option<&Level> {
        (!user.is_in(SYSTEM_MASTERS)).then_some(&self.reads)
    }

    /// Where a request needs a place; `None` for who never waits for one.
    pub(super) fn level(&self, user: &User, verb: &str, target: &Target) -> Option<&Level> {
        let reads = matches!(verb, "get" | "list" | "watch" | "head");
        match () {
            () if user.is_in(SYSTEM_MASTERS) => None,
            () if is_vital(user, target) => Some(&self.vital),
            () if reads => Some(&self.reads),
            () => Some(&self.writes),
        }
    }
}

impl Level {
    /// A place for one more request of a user.
    ///
    /// # Errors
    /// 429 when there is none, or the user has as many as others are left.
    pub(super) fn enter(&self, user: &User) -> Result<Place, ApiError> {
        self.requests.take(&user.name, 1).map(Place).ok_or_else(too_many)
    }

    /// Room for a body that is to be read. One that does not say how long it is may be as long as any.
    ///
    /// # Errors
    /// As [`Self::enter`].
    pub(super) fn body(&self, user: &User, size: &SizeHint) -> Result<Share, ApiError> {
        let longest = BODY_LIMIT as u64;
        let length = size.upper().unwrap_or(longest).clamp(LEAST, longest);
        let length = usize::try_from(length).unwrap_or(BODY_LIMIT);
        self.bodies.take(&user.name, length).ok_or_else(too_many)
    }
}

/// What must not wait for others (the flow schemas `system-leader-election` and `system-node-high`; the leases of
/// operators, too).
fn is_vital(user: &User, target: &Target) -> bool {
    match (&*target.group, &*target.resource) {
        ("coordination.k8s.io", "leases") => true,
        ("", "nodes") => user.is_in(NODES),
        _ => false,
    }
}

/// Whether a request lasts as long as its client wants.
pub(super) fn lasts(verb: &str, target: &Target) -> bool {
    verb == "watch" || !counts(target)
}

/// Whether a request takes a place; a watch does at its beginning.
pub(super) fn counts(target: &Target) -> bool {
    !LASTING.contains(&&*target.subresource)
}

/// The answer to one request too many (`k8s.io/apiserver/pkg/server/filters`, `tooManyRequests`).
fn too_many() -> ApiError {
    let text = "Too many requests, please try again later.\n";
    let mut error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", text)
        .with_details(json!({"retryAfterSeconds": 1}));
    error.plain = true;
    error
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
    let asked = parse_or_none(text).map_err(|why| {
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

    fn target(path: &str) -> Target {
        match kubewright_codec::request::Path::parse(path) {
            kubewright_codec::request::Path::Resource(target) => target,
            other => panic!("{path} is no resource: {other:?}"),
        }
    }

    const PODS: &str = "/api/v1/namespaces/default/pods";
    const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/a";

    /// The places that a user is given, until there is none.
    fn all(in_flight: &InFlight, user: &User, verb: &str, path: &str) -> Vec<Place> {
        let level = in_flight.level(user, verb, &target(path)).expect("it is limited");
        std::iter::from_fn(|| level.enter(user).ok()).collect()
    }

    fn user(name: &str) -> User {
        User::new(name, ["system:authenticated"])
    }

    #[test]
    fn reads_and_writes_have_places_of_their_own() {
        let in_flight = InFlight::new(1, 1);
        let read = all(&in_flight, &user("a"), "list", PODS);
        assert_eq!(read.len(), 1);
        assert!(all(&in_flight, &user("a"), "get", PODS).is_empty());
        assert_eq!(all(&in_flight, &user("a"), "patch", PODS).len(), 1);
        drop(read);
        assert_eq!(all(&in_flight, &user("a"), "get", PODS).len(), 1);
    }

    #[test]
    fn none_is_no_limit() {
        let in_flight = InFlight::new(0, 1);
        let pods = target(PODS);
        let level = in_flight.level(&user("a"), "get", &pods).expect("it is limited");
        let reads: Vec<_> = (0..1000).map(|_| level.enter(&user("a"))).collect();
        assert!(reads.iter().all(Result::is_ok));
    }

    #[test]
    fn administrators_and_leases_do_not_wait_for_what_others_do() {
        let in_flight = InFlight::new(4, 4);
        let held: Vec<_> =
            ["a", "b", "c"].iter().flat_map(|name| all(&in_flight, &user(name), "create", PODS)).collect();
        assert_eq!(held.len(), 4, "nobody finds a place any more");
        assert!(all(&in_flight, &user("d"), "create", PODS).is_empty());
        assert!(in_flight.level(&User::new("admin", [SYSTEM_MASTERS]), "create", &target(PODS)).is_none());
        assert!(!all(&in_flight, &user("d"), "update", LEASE).is_empty());
        let node = User::new("system:node:n", [NODES]);
        assert!(!all(&in_flight, &node, "patch", "/api/v1/nodes/n/status").is_empty());
        assert!(all(&in_flight, &user("d"), "patch", "/api/v1/nodes/n/status").is_empty());
    }

    #[test]
    fn bodies_on_their_way_count_by_their_length_and_leave_room_for_others() {
        let in_flight = InFlight::new(400, 200);
        let level = in_flight.level(&user("a"), "create", &target(PODS)).expect("it is limited");
        let bodies = |name: &str, size: &SizeHint| {
            std::iter::from_fn(|| level.body(&user(name), size).ok()).collect::<Vec<_>>()
        };
        let unknown = bodies("a", &SizeHint::default());
        assert_eq!(unknown.len(), BODIES / 2 / BODY_LIMIT);
        assert!(!bodies("b", &SizeHint::with_exact(BODY_LIMIT as u64)).is_empty());
        drop(unknown);
        assert_eq!(bodies("a", &SizeHint::with_exact(1)).len(), BODIES / 2 / (64 << 10));
    }
}
