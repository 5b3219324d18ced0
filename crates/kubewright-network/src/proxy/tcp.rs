//! Connections to a port of a Service.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};

use super::balancer::Balancer;

/// How long each of the endpoints may take that are tried, and how many are.
const PATIENCE: [Duration; 4] =
    [Duration::from_millis(250), Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2)];
/// How long it waits when a connection cannot be accepted, as there are no descriptors.
const BREATH: Duration = Duration::from_millis(50);

/// Carries what connects until it is dropped; connections outlive it.
pub(super) async fn serve(
    listener: TcpListener,
    balancer: Arc<Mutex<Balancer>>,
    connections: Arc<Semaphore>,
) {
    loop {
        // Those that wait are the system's: it refuses more than there is room for.
        let Ok(place) = Arc::clone(&connections).acquire_owned().await else { return };
        let Ok((client, from)) = listener.accept().await else {
            sleep(BREATH).await;
            continue;
        };
        let balancer = Arc::clone(&balancer);
        tokio::spawn(async move {
            carry(client, from.ip(), &balancer).await;
            drop(place);
        });
    }
}

/// Carries a connection to its end. What no endpoint takes is closed.
async fn carry(mut client: TcpStream, from: IpAddr, balancer: &Mutex<Balancer>) {
    let Some(mut backend) = connect(from, balancer).await else { return };
    let _ = (client.set_nodelay(true), backend.set_nodelay(true));
    // How it ends is between the two.
    let _ = copy_bidirectional(&mut client, &mut backend).await;
}

/// Connects to the endpoint that the client is led to, or to one that answers instead.
async fn connect(from: IpAddr, balancer: &Mutex<Balancer>) -> Option<TcpStream> {
    let order = balancer.lock().order(from, Instant::now());
    let turns = order.iter().copied().cycle().take(order.len().max(2));
    for (backend, patience) in turns.zip(PATIENCE) {
        if let Ok(Ok(stream)) = timeout(patience, TcpStream::connect(backend)).await {
            balancer.lock().led(from, backend, Instant::now());
            return Some(stream);
        }
    }
    None
}
