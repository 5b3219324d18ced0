//! How a process is asked to end.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// A token that is cancelled by SIGTERM or SIGINT (Ctrl-C). A second one ends the process at once, with status 1: whoever
/// sends it does not want to wait for a graceful end (controller-runtime's `signals.SetupSignalHandler`). Needs a tokio
/// runtime.
///
/// # Errors
/// When the system does not let signals be handled.
pub fn shutdown() -> io::Result<CancellationToken> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stop = CancellationToken::new();
    let token = stop.clone();
    tokio::spawn(async move {
        let mut next = async || {
            tokio::select! {
                biased;
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        next().await;
        tracing::info!("asked to end; a second signal ends at once");
        token.cancel();
        next().await;
        std::process::exit(1);
    });
    Ok(stop)
}
