//! Further commands in a container.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::Machine;
use super::running::{Running, begin};
use super::shim::Shim;
use super::streams::{self, Ours};
use super::terminal::Terminal;
use crate::container::wire::{Namespaces, Order, Report};
use crate::container::{ExecError, Exit, Session, Signal, Streams};

/// What containerd and runc say before the reason why a command did not start.
const NOT_STARTED: &str = "OCI runtime exec failed: exec failed: unable to start container process";

/// Starts a command in a container, and returns once it runs.
pub(super) async fn run(
    container: &Running,
    command: Vec<String>,
    wanted: Streams,
    timeout: Option<Duration>,
) -> Result<Session, ExecError> {
    if container.ended.is_cancelled() {
        return Err(ExecError::NotRunning);
    }
    let machine = &container.machine;
    let broken = |error: io::Error| ExecError::Broken(format!("failed to exec in container: {error}"));
    let Ok(permit) = Arc::clone(&machine.sessions).try_acquire_owned() else {
        return Err(ExecError::Broken("too many commands are running in containers".to_owned()));
    };
    let (theirs, ours) = streams::pipes(wanted).map_err(broken)?;
    let shim = start(container, command, wanted.tty, &theirs).await.map_err(broken)?;
    drop(theirs);
    let begun = match begin(&shim, |_| Ok(())).await {
        Ok(begun) => begun,
        Err(_) if container.ended.is_cancelled() => return Err(ExecError::NotRunning),
        Err(failure) => {
            return Err(ExecError::Start(format!(
                "failed to exec in container: {NOT_STARTED}: {}",
                failure.0
            )));
        }
    };
    let terminal = begun.terminal.map(Terminal::new).transpose().map_err(broken)?;
    let (told, exit) = oneshot::channel();
    let watch = Watch { shim, told, timeout, ended: container.ended.clone(), closed: machine.closed.clone() };
    let machine = Arc::clone(machine);
    container.sessions.spawn(async move {
        watch.watch(&machine).await;
        drop(permit);
    });
    Ok(session(terminal, ours, wanted, exit))
}

async fn start(
    container: &Running,
    command: Vec<String>,
    tty: bool,
    theirs: &streams::Theirs,
) -> io::Result<Shim> {
    let machine = &container.machine;
    let program = container.program(command, tty);
    let namespaces = machine.namespaces;
    let mut files: Vec<BorrowedFd<'_>> = Vec::new();
    if namespaces != Namespaces::default() {
        let process = container.process.as_ref();
        files.push(process.ok_or_else(|| io::Error::other("its processes cannot be joined"))?.as_fd());
    }
    if !tty {
        files.extend(theirs.files());
    }
    Shim::start(&machine.launcher, &Order::Exec { namespaces, program }, &files).await
}

fn session(
    terminal: Option<Terminal>,
    ours: Ours,
    wanted: Streams,
    exit: oneshot::Receiver<Result<Exit, ExecError>>,
) -> Session {
    let exit = Box::pin(async move {
        exit.await.unwrap_or_else(|_| Err(ExecError::Broken("the runtime has gone".to_owned())))
    });
    let Some(terminal) = terminal else {
        return Session {
            stdin: ours.stdin.map(|stdin| Box::new(stdin) as _),
            stdout: ours.stdout.map(|stdout| Box::new(stdout) as _),
            stderr: ours.stderr.map(|stderr| Box::new(stderr) as _),
            resize: None,
            exit,
        };
    };
    Session {
        stdin: wanted.stdin.then(|| Box::new(terminal.clone()) as _),
        stdout: wanted.stdout.then(|| Box::new(terminal.clone()) as _),
        stderr: None,
        resize: Some(terminal.sizes()),
        exit,
    }
}

/// What stays with a command as long as it runs.
struct Watch {
    shim: Shim,
    told: oneshot::Sender<Result<Exit, ExecError>>,
    timeout: Option<Duration>,
    ended: CancellationToken,
    closed: CancellationToken,
}

impl Watch {
    async fn watch(self, machine: &Machine) {
        let Self { shim, mut told, timeout, ended, closed } = self;
        let patience = async {
            match timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        let killed = (128 + Signal::KILL.0, Some(Signal::KILL.0));
        let outcome = tokio::select! {
            biased;
            report = shim.receive() => match report {
                Ok(Some((Report::Ended { code, signal }, _))) => Ok((code, signal)),
                _ => Ok(killed),
            },
            () = told.closed() => Ok(killed),
            () = patience => Err(ExecError::TimedOut(timeout.unwrap_or_default())),
            () = ended.cancelled() => Ok(killed),
            () = closed.cancelled() => Ok(killed),
        };
        shim.end().await;
        let at = machine.clock.now().into();
        // Nobody may wait for it any more.
        let _ = told.send(outcome.map(|(code, signal)| Exit { code, signal, out_of_memory: false, at }));
    }
}
