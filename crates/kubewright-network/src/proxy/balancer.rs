//! Which endpoint a client is led to.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::time::Instant;

/// How many clients are remembered for one port.
const CLIENTS: usize = 10_000;

/// The endpoints of a port, one after the other; with an affinity, for each client the one that it had.
#[derive(Debug)]
pub(crate) struct Balancer {
    backends: Vec<SocketAddr>,
    next: usize,
    affinity: Option<Duration>,
    /// What a client was led to, and when last.
    clients: BTreeMap<IpAddr, (SocketAddr, Instant)>,
}

impl Balancer {
    pub(crate) fn new(backends: Vec<SocketAddr>, affinity: Option<Duration>) -> Self {
        Self { backends, next: 0, affinity, clients: BTreeMap::new() }
    }

    /// These are the endpoints from now on.
    pub(crate) fn set(&mut self, backends: Vec<SocketAddr>, affinity: Option<Duration>) {
        self.backends = backends;
        self.affinity = affinity;
        let (backends, is_kept) = (&self.backends, affinity.is_some());
        self.clients.retain(|_, (backend, _)| is_kept && backends.contains(backend));
    }

    /// Whether it is one of the endpoints.
    pub(crate) fn has(&self, backend: SocketAddr) -> bool {
        self.backends.contains(&backend)
    }

    /// The endpoints for a client: the one that it is led to, and the others, should that not answer.
    pub(crate) fn order(&mut self, client: IpAddr, now: Instant) -> Vec<SocketAddr> {
        if self.backends.is_empty() {
            return Vec::new();
        }
        let kept = self.affinity.and_then(|kept_for| {
            let (backend, last) = self.clients.get(&client)?;
            (now.duration_since(*last) < kept_for).then_some(*backend)
        });
        let first = match kept.and_then(|kept| self.backends.iter().position(|one| *one == kept)) {
            Some(kept) => kept,
            None => {
                let turn = self.next % self.backends.len();
                self.next = turn + 1;
                turn
            }
        };
        let mut order = self.backends.clone();
        order.rotate_left(first);
        order
    }

    /// The client has been led to this one.
    pub(crate) fn led(&mut self, client: IpAddr, backend: SocketAddr, now: Instant) {
        let Some(kept_for) = self.affinity else { return };
        if self.clients.len() >= CLIENTS && !self.clients.contains_key(&client) {
            self.clients.retain(|_, (_, last)| now.duration_since(*last) < kept_for);
            if self.clients.len() >= CLIENTS {
                self.clients.pop_first();
            }
        }
        self.clients.insert(client, (backend, now));
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn backend(number: u8) -> SocketAddr {
        SocketAddr::from(([127, 64, 0, number], 80))
    }

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[tokio::test(start_paused = true)]
    async fn endpoints_take_turns_and_stand_in_for_each_other() {
        let now = Instant::now();
        let mut balancer = Balancer::new(vec![backend(1), backend(2), backend(3)], None);
        assert_eq!(balancer.order(CLIENT, now), [backend(1), backend(2), backend(3)]);
        assert_eq!(balancer.order(CLIENT, now), [backend(2), backend(3), backend(1)]);
        balancer.set(vec![backend(3)], None);
        assert_eq!(balancer.order(CLIENT, now), [backend(3)]);
        balancer.set(Vec::new(), None);
        assert!(balancer.order(CLIENT, now).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_comes_back_to_its_endpoint_until_it_was_away_for_long_or_the_endpoint_has_gone() {
        let now = Instant::now();
        let both = || vec![backend(1), backend(2)];
        let mut balancer = Balancer::new(both(), Some(Duration::from_secs(10)));
        let first = balancer.order(CLIENT, now)[0];
        balancer.led(CLIENT, first, now);
        let later = now + Duration::from_secs(9);
        assert_eq!(balancer.order(CLIENT, later)[0], first);
        balancer.led(CLIENT, first, later);
        assert_eq!(balancer.order(CLIENT, later + Duration::from_secs(9))[0], first);
        assert_ne!(balancer.order(CLIENT, later + Duration::from_secs(10))[0], first);
        balancer.led(CLIENT, backend(1), later);
        balancer.set(vec![backend(2)], Some(Duration::from_secs(10)));
        assert_eq!(balancer.order(CLIENT, later), [backend(2)]);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_clients_are_remembered_than_there_is_room_for() {
        let now = Instant::now();
        let mut balancer = Balancer::new(vec![backend(1)], Some(Duration::from_secs(10)));
        for number in 0..CLIENTS + 10 {
            let client = Ipv4Addr::from_bits(u32::try_from(number).expect("a number"));
            balancer.led(client.into(), backend(1), now);
        }
        assert_eq!(balancer.clients.len(), CLIENTS);
    }
}
