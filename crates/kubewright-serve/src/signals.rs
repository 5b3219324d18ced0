//! The signals that ask a program to end.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT and SIGTERM, which from now on no longer end the process by themselves.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Begins to listen.
    ///
    /// # Errors
    /// When the system does not let us.
    pub fn listen() -> io::Result<Self> {
        let listen = |kind| {
            signal(kind)
                .map_err(|error| io::Error::new(error.kind(), format!("cannot listen for signals: {error}")))
        };
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    /// The next one.
    pub async fn next(&mut self) {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
