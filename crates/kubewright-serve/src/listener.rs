//! A listener: it accepts connections as long as there is room, and ends them when it is to stop.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

/// A port that is taken. Clients that connect wait until it is served.
pub struct Listener {
    name: &'static str,
    socket: TcpListener,
    address: SocketAddr,
}

/// How many connections there may be at a time, and what happens when one more comes.
pub trait ConnectionLimit: Sync {
    /// Given to each connection, and dropped with it.
    type Permit;

    /// Whether to accept another one beside so many. Else it waits in the system's queue.
    fn accepts(&self, connections: usize) -> bool;

    /// The permit of a connection that was accepted; `None` when it has to wait for [`Self::changed`].
    fn admit(&self) -> Option<Self::Permit>;

    /// Ends when there may be room again after [`Self::admit`] gave none.
    fn changed(&self) -> impl Future<Output = ()> + Send;

    /// Ends a connection that can be missed, as the system has no file descriptors left; `false` when there is none.
    fn end_one(&self) -> bool;
}

/// So many connections at a time; more wait in the system's queue.
#[derive(Clone, Copy, Debug)]
pub struct MaxConnections(pub usize);

impl ConnectionLimit for MaxConnections {
    type Permit = ();

    fn accepts(&self, connections: usize) -> bool {
        connections < self.0
    }

    fn admit(&self) -> Option<()> {
        Some(())
    }

    async fn changed(&self) {}

    fn end_one(&self) -> bool {
        false
    }
}

impl Listener {
    /// Takes a port (0: any that is free). The name stands in logs.
    ///
    /// # Errors
    /// When it cannot be had.
    pub async fn bind(name: &'static str, address: impl ToSocketAddrs) -> io::Result<Self> {
        Self::of(name, TcpListener::bind(address).await?)
    }

    /// The listener of a port that somebody has taken.
    ///
    /// # Errors
    /// When the system does not say which it is.
    pub fn of(name: &'static str, socket: TcpListener) -> io::Result<Self> {
        let address = socket.local_addr()?;
        Ok(Self { name, socket, address })
    }

    /// The address that it listens on, with the port that it was given.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Runs `connection` for each that comes, until `shutdown` is cancelled. Then it accepts nobody any more, and lets
    /// connections end for up to `grace` (they have to watch `shutdown` themselves); those that have not are ended.
    ///
    /// Dropping the future ends everything at once.
    pub async fn serve<L, F>(
        self,
        limit: L,
        grace: Duration,
        shutdown: CancellationToken,
        connection: impl Fn(TcpStream, SocketAddr, L::Permit) -> F,
    ) where
        L: ConnectionLimit,
        F: Future<Output = ()> + Send + 'static,
    {
        let mut connections = JoinSet::new();
        let mut arrived = None;
        loop {
            if let Some((stream, remote)) = arrived.take() {
                match limit.admit() {
                    Some(permit) => drop(connections.spawn(connection(stream, remote, permit))),
                    None => arrived = Some((stream, remote)),
                }
            }
            let accepts = arrived.is_none() && limit.accepts(connections.len());
            tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                Some(ended) = connections.join_next() => report(self.name, ended),
                accepted = self.accept(&limit), if accepts => arrived = Some(accepted),
                () = limit.changed(), if arrived.is_some() => {}
            }
        }
        drop(self.socket);
        let finish = async {
            while let Some(ended) = connections.join_next().await {
                report(self.name, ended);
            }
        };
        if tokio::time::timeout(grace, finish).await.is_err() {
            tracing::warn!(
                listener = self.name,
                connections = connections.len(),
                "ending connections whose requests do not finish"
            );
            connections.shutdown().await;
        }
    }

    /// The next connection. Errors do not end a listener: those of a single connection are its own, and when the system has
    /// no file descriptors or memory left, others have to give some back.
    async fn accept(&self, limit: &impl ConnectionLimit) -> (TcpStream, SocketAddr) {
        survive(self.name, || self.socket.accept(), || limit.end_one()).await
    }
}

/// Asks again until there is no error. `end_one` ends a connection that need not be, if there is one.
async fn survive<T, F: Future<Output = io::Result<T>>>(
    name: &str,
    mut ask: impl FnMut() -> F,
    end_one: impl Fn() -> bool,
) -> T {
    /// A connection has ended by then.
    const SOON: Duration = Duration::from_millis(10);
    const LATER: Duration = Duration::from_secs(1);
    loop {
        let error = match ask().await {
            Ok(answer) => return answer,
            Err(error) => error,
        };
        let of_one_connection = matches!(
            error.kind(),
            io::ErrorKind::ConnectionAborted
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionRefused
        );
        if of_one_connection {
            continue;
        }
        let wait = if end_one() { SOON } else { LATER };
        tracing::warn!(listener = name, %error, ?wait, "cannot accept connections; trying again");
        tokio::time::sleep(wait).await;
    }
}

fn report(name: &str, ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(listener = name, %error, "a connection panicked");
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Listener({}, {})", self.name, self.address)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::VecDeque;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_listener_survives_that_the_system_is_out_of_file_descriptors() {
        let start = tokio::time::Instant::now();
        // 24 is EMFILE, 23 is ENFILE; the one in the middle is of a client that has gone already.
        let mut answers = VecDeque::from([
            Err(io::Error::from_raw_os_error(24)),
            Err(io::ErrorKind::ConnectionAborted.into()),
            Err(io::Error::from_raw_os_error(23)),
            Ok("connection"),
        ]);
        let ask = || std::future::ready(answers.pop_front().expect("it stops at the first success"));
        assert_eq!(survive("test", ask, || false).await, "connection");
        assert_eq!(start.elapsed(), Duration::from_secs(2), "two pauses");
    }

    #[tokio::test(start_paused = true)]
    async fn where_a_connection_could_be_ended_the_next_is_accepted_soon() {
        let (start, ended) = (tokio::time::Instant::now(), Cell::new(0));
        let mut answers = VecDeque::from([Err(io::Error::from_raw_os_error(24)), Ok("connection")]);
        let ask = || std::future::ready(answers.pop_front().expect("it stops at the first success"));
        let end_one = || {
            ended.set(ended.get() + 1);
            true
        };
        assert_eq!(survive("test", ask, end_one).await, "connection");
        assert_eq!((start.elapsed(), ended.get()), (Duration::from_millis(10), 1));
    }

    #[tokio::test]
    async fn more_connections_than_may_be_wait_and_all_end_with_the_listener() {
        let listener = Listener::bind("test", "127.0.0.1:0").await.expect("a port");
        let (address, shutdown) = (listener.local_addr(), CancellationToken::new());
        let served = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&served);
        let connection = move |mut stream: TcpStream, _, ()| {
            count.fetch_add(1, Ordering::SeqCst);
            async move {
                let _ = stream.read(&mut [0]).await;
            }
        };
        let grace = Duration::ZERO;
        let serving = tokio::spawn(listener.serve(MaxConnections(1), grace, shutdown.clone(), connection));
        let first = TcpStream::connect(address).await.expect("it listens");
        let mut second = TcpStream::connect(address).await.expect("the system's queue has room");
        drop(first);
        while served.load(Ordering::SeqCst) < 2 {
            tokio::task::yield_now().await;
        }
        shutdown.cancel();
        serving.await.expect("it ends");
        assert_eq!(second.read(&mut [0]).await.ok(), Some(0), "the second one was ended");
        assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
    }
}
