//! Probes and hooks that run a command in a container.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::ProbeResult;
use crate::container::{Container, ExecError, Streams};

/// So much of what a command writes is kept (`maxReadLength` in `pkg/probe/exec`).
const LONGEST_OUTPUT: u64 = 10 * 1024;

pub(super) async fn probe(container: &dyn Container, command: Vec<String>, timeout: Duration) -> ProbeResult {
    match output_of(container, command, Some(timeout)).await {
        Ok((0, _)) => ProbeResult::Good,
        Ok((_, output)) => ProbeResult::Bad(output),
        Err(Failure::TimedOut(problem)) => ProbeResult::Bad(problem),
        Err(Failure::Other(problem)) => ProbeResult::Unknown(problem),
    }
}

/// Why there is no exit code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{0}")]
    TimedOut(String),
    #[error("{0}")]
    Other(String),
}

/// Runs a command to its end: its exit code, and what it wrote to both streams.
pub(crate) async fn output_of(
    container: &dyn Container,
    command: Vec<String>,
    timeout: Option<Duration>,
) -> Result<(i32, String), Failure> {
    let told = command.join(" ");
    let run = async {
        let streams = Streams { stdout: true, stderr: true, ..Streams::default() };
        let mut session = container.exec(command, streams, timeout).await.map_err(failed)?;
        let (stdout, stderr) = (session.stdout.take(), session.stderr.take());
        let (mut output, errors) = tokio::join!(read(stdout), read(stderr));
        let exit = session.exit.await.map_err(failed)?;
        output.extend(errors);
        Ok((exit.code, String::from_utf8_lossy(&output).into_owned()))
    };
    match timeout {
        None => run.await,
        Some(longest) => tokio::time::timeout(longest, run).await.unwrap_or_else(|_| {
            Err(Failure::TimedOut(format!(
                "command timed out: {told:?} timed out after {}s",
                longest.as_secs()
            )))
        }),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn failed(error: ExecError) -> Failure {
    Failure::Other(error.to_string())
}

/// The beginning of a stream; what comes after it is read too, so that its writer goes on.
async fn read(stream: Option<Box<dyn AsyncRead + Send + Unpin>>) -> Vec<u8> {
    let mut kept = Vec::new();
    if let Some(mut stream) = stream {
        let _ = (&mut stream).take(LONGEST_OUTPUT).read_to_end(&mut kept).await;
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    }
    kept
}
