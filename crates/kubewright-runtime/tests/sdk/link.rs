//! What lies between one replica and the server, with levers for what goes wrong there; and a record of who works on what.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use http::Request;
use kube::{Client, client::Body};
use kubewright_world::Dice;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::server::Server;

/// How long somebody waits for an answer that was lost.
const LOST: Duration = Duration::from_secs(30);

/// A connection; clones are the same one.
#[derive(Clone)]
pub(crate) struct Link(Arc<Inner>);

struct Inner {
    dice: Dice,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// Requests whose path ends so wait, before they reach the server.
    held: Option<&'static str>,
    /// One request in so many is delayed, and one lost, and one's answer; none with 0.
    trouble: usize,
}

impl Link {
    pub(crate) fn new(seed: u64) -> Self {
        let inner = Inner { dice: Dice::from_seed(seed), state: Mutex::default(), changed: Notify::new() };
        Self(Arc::new(inner))
    }

    /// Requests wait from now on.
    pub(crate) fn hold(&self) {
        self.hold_only("");
    }

    /// Requests about this object wait from now on.
    pub(crate) fn hold_only(&self, name: &'static str) {
        self.0.state.lock().held = Some(name);
    }

    /// Requests that waited, and all others, go on.
    pub(crate) fn release(&self) {
        self.0.state.lock().held = None;
        self.0.changed.notify_waiters();
    }

    /// One request in so many meets trouble of each kind; none with 0.
    pub(crate) fn trouble(&self, one_in: usize) {
        self.0.state.lock().trouble = one_in;
    }

    /// A client that reaches the server by this link.
    pub(crate) fn client(&self, server: &Server) -> Client {
        let (link, server) = (self.clone(), server.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (link, server) = (link.clone(), server.clone());
            // Who gives up waiting does not call a request back: it may arrive much later.
            let request = tokio::spawn(async move {
                link.pass(request.uri().path()).await?;
                let answer = server.serve(request).await;
                link.pass("").await?;
                Ok::<_, std::io::Error>(answer)
            });
            async move { request.await? }
        });
        Client::new(service, "default")
    }

    async fn pass(&self, path: &str) -> std::io::Result<()> {
        loop {
            let changed = self.0.changed.notified();
            if self.0.state.lock().held.is_none_or(|held| !path.ends_with(held)) {
                break;
            }
            changed.await;
        }
        let trouble = self.0.state.lock().trouble;
        if trouble > 0 && self.0.dice.below(trouble) == 0 {
            let delay = Duration::from_millis(self.0.dice.below(20_000) as u64);
            tokio::time::sleep(delay).await;
        }
        if trouble > 0 && self.0.dice.below(trouble) == 0 {
            tokio::time::sleep(LOST).await;
            return Err(std::io::Error::other("lost"));
        }
        Ok(())
    }
}

/// Who works on what. Two replicas on one key fail the test.
#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<Entries>>);

#[derive(Default)]
struct Entries {
    working: BTreeMap<String, String>,
    /// Replica and key of every reconcile that ended, in order.
    done: Vec<(String, String)>,
    overlaps: Vec<String>,
}

/// A reconcile that goes on until it is dropped.
pub(crate) struct Working {
    ledger: Ledger,
    key: String,
    replica: String,
}

impl Ledger {
    /// `what` is a key, or anything that only one may do at a time.
    pub(crate) fn begin(&self, replica: &str, what: &str) -> Working {
        let mut entries = self.0.lock();
        if let Some(other) = entries.working.insert(what.to_owned(), replica.to_owned()) {
            entries.overlaps.push(format!("{replica} began {what} while {other} was at it"));
        }
        Working { ledger: self.clone(), key: what.to_owned(), replica: replica.to_owned() }
    }

    /// What was done since the last time, by key: who did it, in order.
    pub(crate) fn take(&self) -> BTreeMap<String, Vec<String>> {
        let mut by_key: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (replica, key) in std::mem::take(&mut self.0.lock().done) {
            by_key.entry(key).or_default().push(replica);
        }
        by_key
    }

    #[track_caller]
    pub(crate) fn assert_no_overlap(&self) {
        let overlaps = self.0.lock().overlaps.clone();
        assert!(overlaps.is_empty(), "{overlaps:#?}");
    }
}

impl Working {
    /// The reconcile ended; one that is only dropped did not.
    pub(crate) fn done(self) {
        self.ledger.0.lock().done.push((self.replica.clone(), self.key.clone()));
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.ledger.0.lock().working.remove(&self.key);
    }
}
