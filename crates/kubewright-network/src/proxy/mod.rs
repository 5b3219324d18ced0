//! The sockets of Services: what comes there goes on to an endpoint.

mod balancer;
mod tcp;
mod udp;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use self::balancer::Balancer;
use crate::frontends::{Frontend, Protocol, Socket};

/// How many connections are carried at a time, of all Services.
const CONNECTIONS: usize = 4096;
/// How long until it is tried again to listen where that was refused. Most often a pod's program listens at all addresses there: the
/// Service leads to it, too, and when it starts again it finds its port taken if a socket of ours was faster.
pub(crate) const AGAIN: Duration = Duration::from_secs(10);

/// What listens now.
pub(crate) struct Proxy {
    listening: BTreeMap<Socket, Listening>,
    refused: BTreeMap<Socket, Refused>,
    connections: Arc<Semaphore>,
}

struct Listening {
    balancer: Arc<Mutex<Balancer>>,
    task: JoinHandle<()>,
}

/// A socket at which nothing can listen.
struct Refused {
    reason: String,
    /// Where it was to lead.
    backends: Vec<SocketAddr>,
    /// When it was tried last.
    at: Instant,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Default for Proxy {
    fn default() -> Self {
        Self {
            listening: BTreeMap::new(),
            refused: BTreeMap::new(),
            connections: Arc::new(Semaphore::new(CONNECTIONS)),
        }
    }
}

impl Proxy {
    /// Listens at these sockets and at no other. Connections that are there stay, wherever they lead. What was refused is
    /// tried again when it leads elsewhere, or after [`AGAIN`]. Says of which sockets it is new that nothing can listen there, with
    /// the reason.
    pub(crate) async fn apply(
        &mut self,
        wanted: BTreeMap<Socket, Frontend>,
    ) -> Vec<(Socket, String, String)> {
        self.listening.retain(|socket, _| wanted.contains_key(socket));
        self.refused.retain(|socket, _| wanted.contains_key(socket));
        let mut problems = Vec::new();
        for (socket, frontend) in wanted {
            let Frontend { owner, backends, affinity } = frontend;
            if let Some(there) = self.listening.get(&socket) {
                there.balancer.lock().set(backends, affinity);
                continue;
            }
            let now = Instant::now();
            if self
                .refused
                .get(&socket)
                .is_some_and(|last| last.backends == backends && now < last.at + AGAIN)
            {
                continue;
            }
            let balancer = Arc::new(Mutex::new(Balancer::new(backends.clone(), affinity)));
            match self.listen(socket, Arc::clone(&balancer)).await {
                Ok(task) => {
                    self.refused.remove(&socket);
                    self.listening.insert(socket, Listening { balancer, task });
                }
                Err(error) => {
                    let reason = error.to_string();
                    let refused = Refused { reason: reason.clone(), backends, at: now };
                    let last = self.refused.insert(socket, refused);
                    if last.is_none_or(|last| last.reason != reason) {
                        problems.push((socket, owner, reason));
                    }
                }
            }
        }
        problems
    }

    /// Whether there are sockets that cannot be listened at.
    pub(crate) fn is_incomplete(&self) -> bool {
        !self.refused.is_empty()
    }

    async fn listen(&self, socket: Socket, balancer: Arc<Mutex<Balancer>>) -> io::Result<JoinHandle<()>> {
        let address = socket.address;
        Ok(match socket.protocol {
            Protocol::Tcp => {
                let listener = TcpListener::bind(address).await?;
                tokio::spawn(tcp::serve(listener, balancer, Arc::clone(&self.connections)))
            }
            Protocol::Udp => {
                let listener = UdpSocket::bind(address).await?;
                tokio::spawn(udp::serve(listener, balancer))
            }
        })
    }
}
