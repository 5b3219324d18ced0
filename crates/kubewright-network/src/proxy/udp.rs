//! Datagrams to a port of a Service.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::UdpSocket;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};

use super::balancer::Balancer;

/// How long a client is remembered that neither says nor hears anything (as conntrack does for streams of datagrams).
const IDLE: Duration = Duration::from_secs(120);
/// How many clients a port has at a time; datagrams of others are lost, as on any network.
const CLIENTS: usize = 1024;
/// The longest datagram.
const DATAGRAM: usize = 65_535;

/// Where the datagrams of a client go.
struct Client {
    socket: Arc<UdpSocket>,
    backend: SocketAddr,
    /// When it last sent something.
    sent: Arc<Mutex<Instant>>,
    replies: AbortHandle,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.replies.abort();
    }
}

/// Carries datagrams, and what is answered, until it is dropped.
pub(super) async fn serve(listener: UdpSocket, balancer: Arc<Mutex<Balancer>>) {
    let listener = Arc::new(listener);
    let mut clients: BTreeMap<SocketAddr, Client> = BTreeMap::new();
    let mut buffer = vec![0; DATAGRAM];
    loop {
        // An error tells of an answer that nobody took.
        let Ok((length, from)) = listener.recv_from(&mut buffer).await else { continue };
        clients.retain(|_, client| !client.replies.is_finished());
        // Those of an endpoint that has gone are led to another one.
        if clients.get(&from).is_some_and(|client| !balancer.lock().has(client.backend)) {
            clients.remove(&from);
        }
        if !clients.contains_key(&from)
            && clients.len() < CLIENTS
            && let Some(client) = Client::new(from, &listener, &balancer).await
        {
            clients.insert(from, client);
        }
        if let Some(client) = clients.get(&from) {
            *client.sent.lock() = Instant::now();
            // What does not arrive is lost, as on any network.
            let _ = client.socket.send(&buffer[..length]).await;
        }
    }
}

impl Client {
    async fn new(from: SocketAddr, listener: &Arc<UdpSocket>, balancer: &Mutex<Balancer>) -> Option<Self> {
        let backend = {
            let now = Instant::now();
            let mut balancer = balancer.lock();
            let backend = balancer.order(from.ip(), now).first().copied()?;
            balancer.led(from.ip(), backend, now);
            backend
        };
        let any: IpAddr =
            if backend.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind((any, 0)).await.ok()?;
        socket.connect(backend).await.ok()?;
        let (socket, sent) = (Arc::new(socket), Arc::new(Mutex::new(Instant::now())));
        let replies = reply(Arc::clone(&socket), Arc::clone(listener), from, Arc::clone(&sent));
        let replies = tokio::spawn(replies).abort_handle();
        Some(Self { socket, backend, sent, replies })
    }
}

/// Carries what an endpoint answers, until both have been silent for long.
async fn reply(
    socket: Arc<UdpSocket>,
    listener: Arc<UdpSocket>,
    client: SocketAddr,
    sent: Arc<Mutex<Instant>>,
) {
    let mut buffer = vec![0; DATAGRAM];
    loop {
        match timeout(IDLE, socket.recv(&mut buffer)).await {
            Ok(Ok(length)) => drop(listener.send_to(&buffer[..length], client).await),
            // Nothing listens there, for now.
            Ok(Err(_)) => {}
            Err(_) if sent.lock().elapsed() < IDLE => {}
            Err(_) => return,
        }
    }
}
