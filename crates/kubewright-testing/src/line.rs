//! The line between an operator and its cluster: it counts what is under way on it, and can be cut.

use std::sync::Arc;

use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tower::service_fn;

/// One replica's line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    state: Arc<Mutex<State>>,
    /// Cancelled when the replica crashes.
    pub(crate) cut: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    in_flight: usize,
    /// How many writes may still pass; any number where nothing is said.
    writes_left: Option<u64>,
}

/// A request that is under way, as long as it is held.
struct InFlight(Arc<Mutex<State>>);

impl Line {
    /// A client whose requests go over the line.
    pub(crate) fn client(&self, over: Client) -> Client {
        let (line, namespace) = (self.clone(), over.default_namespace().to_owned());
        let service = service_fn(move |request: Request<Body>| {
            let (line, over) = (line.clone(), over.clone());
            async move {
                if !line.lets_pass(&request) {
                    line.cut.cancel();
                    // The replica ends, and this with it.
                    std::future::pending::<()>().await;
                }
                let _in_flight = line.begin();
                over.send(request).await
            }
        });
        Client::new(service, namespace)
    }

    /// Cuts the line when its user is about to write for one more time than `writes`.
    pub(crate) fn cut_after(&self, writes: u64) {
        self.state.lock().writes_left = Some(writes);
    }

    /// Whether no request waits for its answer.
    pub(crate) fn is_silent(&self) -> bool {
        self.state.lock().in_flight == 0
    }

    fn lets_pass(&self, request: &Request<Body>) -> bool {
        let is_lease = request.uri().path().starts_with("/apis/coordination.k8s.io/");
        if request.method() == Method::GET || is_lease {
            return true;
        }
        match &mut self.state.lock().writes_left {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }

    fn begin(&self) -> InFlight {
        self.state.lock().in_flight += 1;
        InFlight(Arc::clone(&self.state))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.lock().in_flight -= 1;
    }
}
