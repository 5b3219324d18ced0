//! The sockets of Services: what comes there goes on to an endpoint.

mod balancer;
mod tcp;
mod udp;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use self::balancer::Balancer;
use crate::frontends::{Frontend, Protocol, Socket};

/// How many connections are carried at a time, of all Services.
const CONNECTIONS: usize = 4096;

/// What listens now.
pub(crate) struct Proxy {
    listening: BTreeMap<Socket, Listening>,
    /// Where nothing can listen, and why.
    refused: BTreeMap<Socket, String>,
    connections: Arc<Semaphore>,
}

struct Listening {
    balancer: Arc<Mutex<Balancer>>,
    task: JoinHandle<()>,
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
    /// Listens at these sockets and at no other. Connections that are there stay, wherever they lead. Says of which sockets it is
    /// new that nothing can listen there, with the reason.
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
            let balancer = Arc::new(Mutex::new(Balancer::new(backends, affinity)));
            match self.listen(socket, Arc::clone(&balancer)).await {
                Ok(task) => {
                    self.refused.remove(&socket);
                    self.listening.insert(socket, Listening { balancer, task });
                }
                Err(error) => {
                    let reason = error.to_string();
                    if self.refused.insert(socket, reason.clone()).as_ref() != Some(&reason) {
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
