//! How a process is asked to end.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
#[cfg(windows)]
use tokio::signal::windows::{CtrlBreak, CtrlC, ctrl_break, ctrl_c};
use tokio_util::sync::CancellationToken;

/// A token that is cancelled by SIGTERM or SIGINT (Ctrl-C), on Windows by Ctrl-C or Ctrl-Break. A second one ends the process
/// at once, with status 1: whoever sends it does not want to wait for a graceful end (controller-runtime's
/// `signals.SetupSignalHandler`). Needs a tokio runtime.
///
/// # Errors
/// When the system does not let signals be handled.
pub fn shutdown() -> io::Result<CancellationToken> {
    let mut signals = Signals::new()?;
    let stop = CancellationToken::new();
    let token = stop.clone();
    tokio::spawn(async move {
        signals.next().await;
        tracing::info!("asked to end; a second signal ends at once");
        token.cancel();
        signals.next().await;
        std::process::exit(1);
    });
    Ok(stop)
}

/// What asks a process to end.
struct Signals {
    #[cfg(unix)]
    both: [Signal; 2],
    #[cfg(windows)]
    both: (CtrlC, CtrlBreak),
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self { both: [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?] })
    }

    async fn next(&mut self) {
        let [terminate, interrupt] = &mut self.both;
        tokio::select! {
            biased;
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    }
}

#[cfg(windows)]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self { both: (ctrl_c()?, ctrl_break()?) })
    }

    async fn next(&mut self) {
        let (interrupt, terminate) = &mut self.both;
        tokio::select! {
            biased;
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}
