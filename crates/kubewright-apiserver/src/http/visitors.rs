//! Who is connected, and who has to go when there is no room: strangers first.
//!
//! kube-apiserver has no number of connections that would be too many, but the system has. So what somebody holds who need
//! not even say who they are must not be what keeps others out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use kubewright_serve::ConnectionLimit;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// One connection, as the listener sees it. It is in the extensions of each of its requests, for the service to say when it
/// has found out who the client is.
#[derive(Clone, Debug)]
pub struct Visitor(Arc<Visit>);

#[derive(Debug)]
struct Visit {
    number: u64,
    is_known: AtomicBool,
    /// Requests whose answers are not sent yet.
    requests: AtomicUsize,
    /// When it came, or a request of it began or ended: in the order of all such.
    last: AtomicU64,
    /// Cancelled when it has to go.
    ended: CancellationToken,
    house: Arc<House>,
}

/// All that are connected.
#[derive(Clone, Debug)]
pub(super) struct Visitors(Arc<House>);

#[derive(Debug)]
struct House {
    most: usize,
    here: Mutex<BTreeMap<u64, Visitor>>,
    turn: AtomicU64,
    /// Whether there is no room.
    is_full: AtomicBool,
    /// Rings when there is none, and somebody could go.
    changed: Notify,
}

/// A visitor who is here, until it is dropped.
#[derive(Debug)]
pub(super) struct Stay(Visitor);

/// A request that is being answered, until it is dropped.
#[derive(Debug)]
pub(super) struct Busy(Visitor);

/// In which order visitors have to go; the first of each kind is who did nothing for the longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    /// Nobody knows who it is, and it asks for nothing; the handshake may not even be done.
    IdleStranger,
    /// Nobody knows who it is.
    Stranger,
    /// It asks for nothing, and can come again.
    Idle,
}

impl Visitor {
    /// The service knows who the client is.
    pub fn identified(&self) {
        self.0.is_known.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stranger(&self) -> bool {
        !self.0.is_known.load(Ordering::Relaxed)
    }

    /// A request begins.
    pub(super) fn asks(&self) -> Busy {
        self.0.requests.fetch_add(1, Ordering::SeqCst);
        self.acts();
        Busy(self.clone())
    }

    fn acts(&self) {
        self.0.last.store(self.0.house.next_turn(), Ordering::Relaxed);
    }

    /// Its place among those that may have to go; `None` for who may stay.
    fn standing(&self) -> Option<(Standing, u64)> {
        let idle = self.0.requests.load(Ordering::SeqCst) == 0;
        let standing = match (self.is_stranger(), idle) {
            (true, true) => Standing::IdleStranger,
            (true, false) => Standing::Stranger,
            (false, true) => Standing::Idle,
            (false, false) => return None,
        };
        Some((standing, self.0.last.load(Ordering::Relaxed)))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let Self(visitor) = self;
        visitor.acts();
        // In this order, and the door looks the other way round: one of the two sees the other.
        let was_last = visitor.0.requests.fetch_sub(1, Ordering::SeqCst) == 1;
        if was_last && visitor.0.house.is_full.load(Ordering::SeqCst) {
            visitor.0.house.changed.notify_one();
        }
    }
}

impl Stay {
    pub(super) fn visitor(&self) -> &Visitor {
        &self.0
    }

    /// When it has to go.
    pub(super) fn ended(&self) -> WaitForCancellationFuture<'_> {
        self.0.0.ended.cancelled()
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        let visit = &self.0.0;
        visit.house.here.lock().remove(&visit.number);
    }
}

impl Visitors {
    /// At most so many at a time.
    pub(super) fn new(most: usize) -> Self {
        let (here, turn, is_full, changed) = Default::default();
        Self(Arc::new(House { most, here, turn, is_full, changed }))
    }
}

impl ConnectionLimit for Visitors {
    type Permit = Stay;

    /// Who comes is what shows that somebody has to go.
    fn accepts(&self, _: usize) -> bool {
        true
    }

    /// Somebody comes; who has to go for it is ended. `None` when all others may stay.
    fn admit(&self) -> Option<Stay> {
        let is_full = self.0.here.lock().len() >= self.0.most;
        self.0.is_full.store(is_full, Ordering::SeqCst);
        if is_full && !self.end_one() {
            return None;
        }
        let number = self.0.next_turn();
        let (is_known, requests, ended) = Default::default();
        let last = AtomicU64::new(number);
        let visit = Visit { number, is_known, requests, last, ended, house: Arc::clone(&self.0) };
        let visitor = Visitor(Arc::new(visit));
        self.0.here.lock().insert(number, visitor.clone());
        Some(Stay(visitor))
    }

    /// Ends the connection that has to go first; `false` when all may stay.
    fn end_one(&self) -> bool {
        let mut here = self.0.here.lock();
        let first = first_to_go(&here);
        let ended = first.and_then(|number| here.remove(&number));
        ended.inspect(|visitor| visitor.0.ended.cancel()).is_some()
    }

    /// Waits, where nobody can go, until perhaps somebody can.
    async fn changed(&self) {
        self.0.changed.notified().await;
    }
}

impl House {
    fn next_turn(&self) -> u64 {
        self.turn.fetch_add(1, Ordering::Relaxed)
    }
}

fn first_to_go(here: &BTreeMap<u64, Visitor>) -> Option<u64> {
    let can_go = here.iter().filter_map(|(number, visitor)| Some((visitor.standing()?, *number)));
    can_go.min().map(|(_, number)| number)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Request;
    use http_body_util::Empty;
    use kubewright_store::Memory;
    use kubewright_world::World;
    use tower::ServiceExt;

    use super::*;
    use crate::http::{ApiServer, Config};
    use crate::kubelet::Kubelets;
    use kubewright_engine::{Engine, Settings};
    use kubewright_identity::authn::{Authenticator, User};

    #[test]
    fn who_has_to_go_first_is_the_stranger_who_did_nothing_for_the_longest() {
        let visitors = Visitors::new(6);
        let stays: [Stay; 6] = std::array::from_fn(|_| visitors.admit().expect("there is room"));
        let [busy, idle, busy_stranger, first, second, third] = &stays;
        let _requests = [busy.0.asks(), busy_stranger.0.asks()];
        busy.0.identified();
        idle.0.identified();
        drop(first.0.asks());
        for goes in [second, third, first, busy_stranger, idle] {
            assert!(!goes.0.0.ended.is_cancelled());
            assert!(visitors.end_one());
            assert!(goes.0.0.ended.is_cancelled());
        }
        assert!(!visitors.end_one(), "who is known and waits for an answer stays");
    }

    #[tokio::test]
    async fn where_all_may_stay_who_comes_waits_until_one_can_go() {
        let visitors = Visitors::new(1);
        let first = visitors.admit().expect("there is room");
        first.0.identified();
        let request = first.0.asks();
        assert!(visitors.admit().is_none());
        drop(request);
        visitors.changed().await;
        let second = visitors.admit().expect("there is room");
        assert!(first.0.0.ended.is_cancelled());
        drop((first, second));
        assert!(visitors.0.here.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn the_api_server_tells_whom_it_knows() {
        let world = World::simulated(7);
        let engine = Engine::with(world.clone(), Arc::new(Memory::new()), Settings::default());
        let server = ApiServer::new(Config {
            engine: Arc::new(engine),
            authenticator: Authenticator::new(&world).expect("there is entropy"),
            shutdown: CancellationToken::new(),
            address: String::new(),
            kubelets: Kubelets::default(),
        });
        let visitors = Visitors::new(1);
        for (user, is_stranger) in [(None, true), (Some(User::new("a", ["b"])), false)] {
            let stay = visitors.admit().expect("there is room");
            let mut request =
                Request::get("/api/v1/pods").body(Empty::<Bytes>::new()).expect("a good request");
            request.extensions_mut().insert(stay.visitor().clone());
            if let Some(user) = user {
                request.extensions_mut().insert(user);
            }
            server.clone().oneshot(request).await.expect("the service never fails");
            assert_eq!(stay.visitor().is_stranger(), is_stranger);
        }
    }
}
