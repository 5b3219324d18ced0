//! Lets writes through as long as somebody holds a lease.

use std::{fmt, future::poll_fn, pin::pin, sync::Arc, task::Poll};

use http::{Method, Request, header};
use jiff::Timestamp;
use kube::{Client, client::Body};
use kubewright_world::Clock;
use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};
use tower::{BoxError, service_fn};

/// A write was refused, or broken off, in this process: the lease in whose name it was sent is not held any more.
///
/// [`Error::fenced`](crate::Error::fenced) tells it apart. A write that was broken off may have reached the API
/// server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fenced {
    /// The write was not sent.
    #[error("refused: this replica does not hold the lease for it (any more); nothing was sent")]
    Refused,
    /// The write was sent, and its answer not waited for.
    #[error("broken off: the lease was lost during the request; it may or may not have been carried out")]
    BrokenOff,
}

/// Open while a lease is held, by two clocks: whichever says first that the time is over.
///
/// The monotonic clock cannot be set, but stands still while a machine sleeps; the wall clock is the other way round.
#[derive(Clone)]
pub(crate) struct Gate(Arc<Inner>);

struct Inner {
    clock: Clock,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Closed,
    Open { until: Instant, wall: Timestamp },
}

impl Gate {
    /// A closed gate.
    pub(crate) fn new(clock: Clock) -> Self {
        Self(Arc::new(Inner { clock, state: Mutex::new(State::Closed), changed: Notify::new() }))
    }

    /// Opens the gate, or keeps it open, until an instant.
    pub(crate) fn open(&self, until: Instant) {
        let left = until.saturating_duration_since(Instant::now());
        let wall = self.0.clock.now().saturating_add(left).unwrap_or(Timestamp::MAX);
        *self.0.state.lock() = State::Open { until, wall };
        self.0.changed.notify_waiters();
    }

    /// Closes the gate; writes that are under way are broken off.
    pub(crate) fn close(&self) {
        *self.0.state.lock() = State::Closed;
        self.0.changed.notify_waiters();
    }

    /// Whether writes pass.
    pub(crate) fn is_open(&self) -> bool {
        self.closes_at().is_some()
    }

    /// Waits until the gate is closed, or its time is over without having been prolonged.
    pub(crate) async fn closed(&self) {
        loop {
            let changed = self.0.changed.notified();
            let Some(until) = self.closes_at() else { return };
            tokio::select! {
                biased;
                () = changed => {}
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }

    /// Waits until the gate is open.
    pub(crate) async fn opened(&self) {
        loop {
            let changed = self.0.changed.notified();
            if self.is_open() {
                return;
            }
            changed.await;
        }
    }

    /// Polls `work` as long as the gate is open, and drops it then. The clock is asked each time: after a pause of the
    /// process, a timer may be told later than whatever else the work waits for.
    pub(crate) async fn while_open<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let (mut work, mut closed) = (pin!(work), pin!(self.closed()));
        poll_fn(|cx| {
            if !self.is_open() || closed.as_mut().poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            work.as_mut().poll(cx).map(Some)
        })
        .await
    }

    /// A client whose writes pass this gate or fail with [`Fenced`].
    pub(crate) fn guard(&self, client: &Client) -> Client {
        let (gate, inner) = (self.clone(), client.clone());
        let service = service_fn(move |request: Request<Body>| {
            let (gate, client) = (gate.clone(), inner.clone());
            async move {
                if !is_write(&request) {
                    return client.send(request).await.map_err(BoxError::from);
                }
                if !gate.is_open() {
                    return Err(Fenced::Refused.into());
                }
                match gate.while_open(client.send(request)).await {
                    Some(answer) => answer.map_err(BoxError::from),
                    None => Err(Fenced::BrokenOff.into()),
                }
            }
        });
        Client::new(service, client.default_namespace()).with_valid_until(*client.valid_until())
    }

    fn closes_at(&self) -> Option<Instant> {
        match *self.0.state.lock() {
            State::Open { until, wall } if Instant::now() < until && self.0.clock.now() < wall => Some(until),
            _ => None,
        }
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Gate").field(&*self.0.state.lock()).finish()
    }
}

/// Whether a request may change something: all but reads, and those that open a connection into a container.
fn is_write(request: &Request<Body>) -> bool {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    !reads || request.headers().contains_key(header::UPGRADE)
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, time::Duration};

    use http::Response;
    use kubewright_world::Clock;

    use super::*;
    use crate::Error;

    /// A client whose requests are answered after `latency`, and how many reached the server.
    fn server(latency: Duration) -> (Client, Arc<Mutex<usize>>) {
        let count = Arc::new(Mutex::new(0));
        let counted = count.clone();
        let service = service_fn(move |_: Request<Body>| {
            *counted.lock() += 1;
            async move {
                tokio::time::sleep(latency).await;
                Ok::<_, Infallible>(Response::new(Body::from(b"{}".to_vec())))
            }
        });
        (Client::new(service, "default"), count)
    }

    async fn send(client: &Client, method: Method) -> Result<serde_json::Value, Error> {
        let request = Request::builder().method(method).uri("/api/v1/pods").body(Vec::new());
        Ok(client.request(request.map_err(Error::new)?).await?)
    }

    fn fenced(result: Result<serde_json::Value, Error>) -> Option<Fenced> {
        result.err().and_then(|error| error.fenced())
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_passes_until_the_time_is_over_and_a_read_always() {
        let (client, count) = server(Duration::ZERO);
        let gate = Gate::new(Clock::simulated());
        let client = gate.guard(&client);
        assert_eq!(fenced(send(&client, Method::POST).await), Some(Fenced::Refused));
        gate.open(Instant::now() + Duration::from_secs(10));
        assert!(send(&client, Method::POST).await.is_ok());
        // Nobody renews, and nobody is there to close the gate: the process was paused.
        tokio::time::advance(Duration::from_secs(10)).await;
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            assert_eq!(fenced(send(&client, method).await), Some(Fenced::Refused));
        }
        assert_eq!(*count.lock(), 1);
        assert!(send(&client, Method::GET).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_under_way_is_broken_off_when_the_gate_closes_and_not_when_it_is_prolonged() {
        let (client, _) = server(Duration::from_secs(5));
        let gate = Gate::new(Clock::simulated());
        let client = gate.guard(&client);
        gate.open(Instant::now() + Duration::from_secs(2));
        let start = Instant::now();
        assert_eq!(fenced(send(&client, Method::PUT).await), Some(Fenced::BrokenOff));
        assert_eq!(start.elapsed(), Duration::from_secs(2));
        gate.open(Instant::now() + Duration::from_secs(2));
        let write = tokio::spawn(async move { send(&client, Method::PUT).await });
        tokio::time::sleep(Duration::from_secs(1)).await;
        gate.open(Instant::now() + Duration::from_secs(10));
        assert!(write.await.is_ok_and(|answer| answer.is_ok()));
    }

    #[tokio::test(start_paused = true)]
    async fn work_does_not_go_on_after_a_pause_though_it_could() {
        let gate = Gate::new(Clock::simulated());
        gate.open(Instant::now() + Duration::from_secs(10));
        let (signal, signalled) = tokio::sync::oneshot::channel();
        let work = gate.while_open(async move {
            let _ = signalled.await;
            "went on"
        });
        let mut work = pin!(work);
        assert!(futures::poll!(&mut work).is_pending());
        tokio::time::advance(Duration::from_secs(11)).await;
        signal.send(()).expect("it waits");
        assert_eq!(work.await, None);
    }

    #[test]
    fn opening_a_connection_into_a_container_is_a_write() {
        let request = |upgrade: bool| {
            let builder = Request::get("/api/v1/namespaces/a/pods/b/exec");
            let builder = if upgrade { builder.header("Upgrade", "websocket") } else { builder };
            builder.body(Body::empty()).expect("a request")
        };
        assert!(is_write(&request(true)));
        assert!(!is_write(&request(false)));
    }
}
