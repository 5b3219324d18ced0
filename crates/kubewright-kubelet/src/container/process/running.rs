//! A container from its start to its end.

use std::fmt;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::warn;

use super::input::Input;
use super::output::{AttachedStreams, pump};
use super::shim::Shim;
use super::streams;
use super::terminal::Terminal;
use super::{Machine, exec, mapping};
use crate::container::log::{Growing, Log, Stream};
use crate::container::wire::{Failure, Files, Order, Program, Report, Word};
use crate::container::{
    Container, ExecError, Exit, Root, Session, Signal, Spec, StartError, Streams, sysctls,
};

/// What containerd and runc say before the reason why a program did not start.
const NOT_STARTED: &str = "failed to create containerd task: failed to create shim task: OCI runtime create failed: \
    runc create failed: unable to start container process: error during container init";

/// How long a container's output may be held open by somebody who is no process of it any more.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many signals wait to be sent.
const SIGNALS: usize = 64;

/// A container that was started.
pub(super) struct Running {
    pub(super) machine: Arc<Machine>,
    /// What its commands have in common with it.
    pub(super) program: Program,
    /// Its first process, where the machine can name it for sure.
    pub(super) process: Option<OwnedFd>,
    /// Its commands.
    pub(super) sessions: TaskTracker,
    /// Its first process has ended.
    pub(super) ended: CancellationToken,
    id: String,
    started_at: SystemTime,
    signals: mpsc::Sender<Signal>,
    exit: watch::Receiver<Option<Exit>>,
    log: Growing,
    stdout: Arc<AttachedStreams>,
    stderr: Arc<AttachedStreams>,
    input: Option<Input>,
    stdin_once: bool,
    terminal: Option<mpsc::Sender<crate::container::TerminalSize>>,
}

/// A container's name and place, until it has ended.
struct ContainerSlot {
    machine: Arc<Machine>,
    id: String,
    _permit: OwnedSemaphorePermit,
}

impl ContainerSlot {
    fn take(machine: &Arc<Machine>, id: &str) -> Result<Self, StartError> {
        let fits = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
        if id.is_empty() || id.len() > 200 || !id.chars().all(fits) {
            return Err(StartError::Create(format!("{id:?} cannot be what a container is called")));
        }
        let permit = Arc::clone(&machine.containers).try_acquire_owned();
        let Ok(permit) = permit else {
            return Err(StartError::Create("too many containers are running".to_owned()));
        };
        if machine.closed.is_cancelled() {
            return Err(StartError::Create("the runtime is closed".to_owned()));
        }
        if !machine.ids.lock().insert(id.to_owned()) {
            return Err(StartError::Create(format!("a container is called {id:?} already")));
        }
        Ok(Self { machine: Arc::clone(machine), id: id.to_owned(), _permit: permit })
    }

    fn directory(&self) -> PathBuf {
        self.machine.directory.join(&self.id)
    }
}

impl Drop for ContainerSlot {
    fn drop(&mut self) {
        // The shim removes it too, unless it was never started.
        let _ = fs::remove_dir(self.directory());
        self.machine.ids.lock().remove(&self.id);
    }
}

/// What the machine answered when something of a container was made.
fn unmade(error: impl fmt::Display) -> StartError {
    StartError::Create(format!("failed to create container: {error}"))
}

/// Starts a container, and returns once its program runs.
pub(super) async fn start(machine: &Arc<Machine>, spec: Spec) -> Result<Arc<Running>, StartError> {
    check(machine, &spec)?;
    let place = ContainerSlot::take(machine, &spec.id)?;
    let directory = place.directory();
    fs::create_dir(&directory).map_err(unmade)?;
    let log = Arc::new(Log::create(&spec.log, machine.clock).map_err(unmade)?);
    let wanted = Streams { stdin: spec.stdin, stdout: true, stderr: true, tty: spec.tty };
    let (theirs, ours) = streams::pipes(wanted).map_err(unmade)?;
    let (stdin, stdin_once) = (spec.stdin, spec.stdin_once);
    let order = order(machine, spec, directory);
    let Order::Run { program, .. } = &order else { return Err(unmade("it has no program")) };
    let program = program.clone();
    let files = if program.tty { Vec::new() } else { theirs.files().to_vec() };
    let shim = Shim::start(&machine.launcher, &order, &files).await.map_err(unmade)?;
    drop(files);
    drop(theirs);
    let started = match begin(&shim, mapping::write).await {
        Ok(started) => started,
        Err(failure) => {
            shim.end().await;
            return Err(StartError::Run(format!("{NOT_STARTED}: {}", failure.0)));
        }
    };
    let terminal = started.terminal.map(Terminal::new).transpose().map_err(unmade)?;
    let (stdout, stderr) = (AttachedStreams::new(), AttachedStreams::new());
    let pumps = pumps(&terminal, ours.stdout, ours.stderr, &log, [&stdout, &stderr]);
    let input = match (&terminal, ours.stdin) {
        (Some(terminal), _) if stdin => Some(Input::new(terminal.clone())),
        (_, input) => input.map(Input::new),
    };
    let (signals, asked) = mpsc::channel(SIGNALS);
    let (exited, exit) = watch::channel(None);
    let running = Arc::new(Running {
        machine: Arc::clone(machine),
        program,
        process: started.process,
        sessions: TaskTracker::new(),
        ended: CancellationToken::new(),
        id: place.id.clone(),
        started_at: machine.clock.now().into(),
        signals,
        exit,
        log: log.growing(),
        stdout,
        stderr,
        input,
        stdin_once,
        terminal: terminal.as_ref().map(Terminal::sizes),
    });
    let life = Life { shim, asked, pumps, log, exited, place };
    machine.running.spawn(life.live(running.sessions.clone(), running.ended.clone()));
    Ok(running)
}

/// Refuses what this machine cannot do.
fn check(machine: &Machine, spec: &Spec) -> Result<(), StartError> {
    if spec.command.is_empty() {
        return Err(StartError::Create("no command specified".to_owned()));
    }
    let of_machine = |name: &&String| !machine.namespaces.ipc || !sysctls::is_of_ipc(name);
    if let Some(name) = spec.sysctls.keys().find(of_machine) {
        return Err(StartError::Create(format!("sysctl {name:?} is not in a separate kernel namespace")));
    }
    if machine.namespaces.mount {
        return Ok(());
    }
    let wanted = match (&spec.root, spec.mounts.first()) {
        (Root::Image(_), _) => "files of an image".to_owned(),
        (Root::Host, Some(mount)) => format!("something mounted at {}", mount.target.display()),
        (Root::Host, None) if spec.read_only_root => "a read-only root file system".to_owned(),
        (Root::Host, None) => return Ok(()),
    };
    let missing = machine.isolation.missing.join("; ");
    Err(StartError::Create(format!("a container cannot have {wanted} on this machine: {missing}")))
}

fn order(machine: &Machine, spec: Spec, directory: PathBuf) -> Order {
    let mapping = mapping::of(&spec.identity, machine.any_user);
    Order::Run {
        namespaces: machine.namespaces,
        mapping,
        sysctls: spec.sysctls,
        files: Files { root: spec.root, read_only_root: spec.read_only_root, mounts: spec.mounts, directory },
        hostname: spec.hostname,
        program: Program {
            command: spec.command,
            environment: spec.environment,
            working_directory: spec.working_directory,
            identity: spec.identity,
            any_user: machine.any_user,
            tty: spec.tty,
        },
    }
}

/// What a shim hands over when its program runs.
#[derive(Default)]
pub(super) struct Started {
    pub(super) terminal: Option<OwnedFd>,
    pub(super) process: Option<OwnedFd>,
}

/// Waits until a shim's program runs.
pub(super) async fn begin(shim: &Shim, map: fn(u32) -> io::Result<()>) -> Result<Started, Failure> {
    let mut started = Started::default();
    loop {
        match shim.receive().await {
            Ok(Some((Report::Separate, _))) => {
                let process = shim.process().ok_or_else(|| Failure("the launcher has gone".to_owned()))?;
                map(process).map_err(|error| Failure(format!("map users: {error}")))?;
                shim.say(Word::Mapped).await;
            }
            Ok(Some((Report::Terminal, files))) => started.terminal = files.into_iter().next(),
            Ok(Some((Report::Started, files))) => {
                started.process = files.into_iter().next();
                return Ok(started);
            }
            Ok(Some((Report::Failed(failure), _))) => return Err(failure),
            Ok(Some((report, _))) => return Err(Failure(format!("the launcher reported {report:?} first"))),
            Ok(None) => return Err(Failure("the launcher ended".to_owned())),
            Err(error) => return Err(Failure(format!("the launcher: {error}"))),
        }
    }
}

fn pumps(
    terminal: &Option<Terminal>,
    stdout: Option<tokio::net::unix::pipe::Receiver>,
    stderr: Option<tokio::net::unix::pipe::Receiver>,
    log: &Arc<Log>,
    [to_stdout, to_stderr]: [&Arc<AttachedStreams>; 2],
) -> Vec<JoinHandle<()>> {
    let (log, to_stdout, to_stderr) = (Arc::clone(log), Arc::clone(to_stdout), Arc::clone(to_stderr));
    if let Some(terminal) = terminal {
        to_stderr.close();
        return vec![tokio::spawn(pump(terminal.clone(), Stream::Stdout, log, to_stdout))];
    }
    let mut pumps = Vec::new();
    if let Some(stdout) = stdout {
        pumps.push(tokio::spawn(pump(stdout, Stream::Stdout, Arc::clone(&log), to_stdout)));
    }
    if let Some(stderr) = stderr {
        pumps.push(tokio::spawn(pump(stderr, Stream::Stderr, log, to_stderr)));
    }
    pumps
}

/// What stays with a container as long as it lives.
struct Life {
    shim: Shim,
    asked: mpsc::Receiver<Signal>,
    pumps: Vec<JoinHandle<()>>,
    log: Arc<Log>,
    exited: watch::Sender<Option<Exit>>,
    place: ContainerSlot,
}

impl Life {
    async fn live(mut self, sessions: TaskTracker, ended: CancellationToken) {
        let exit = self.wait().await;
        self.shim.end().await;
        ended.cancel();
        sessions.close();
        sessions.wait().await;
        for mut pump in self.pumps {
            if tokio::time::timeout(PATIENCE, &mut pump).await.is_err() {
                pump.abort();
            }
        }
        if let Err(error) = self.log.finish() {
            warn!(container = self.place.id, %error, "the log of a container is not whole");
        }
        drop(self.place);
        self.exited.send_replace(Some(exit));
    }

    /// Passes signals on until the end.
    async fn wait(&mut self) -> Exit {
        let closed = self.place.machine.closed.clone();
        let clock = self.place.machine.clock;
        let mut report = pin!(self.shim.receive());
        let report = loop {
            tokio::select! {
                biased;
                report = &mut report => break report,
                () = closed.cancelled() => break Ok(None),
                Some(Signal(number)) = self.asked.recv() => self.shim.say(Word::Signal(number)).await,
            }
        };
        let (code, signal) = match report {
            Ok(Some((Report::Ended { code, signal }, _))) => (code, signal),
            // The shim goes only when it is made to, and takes the container with it.
            _ => (128 + Signal::KILL.0, Some(Signal::KILL.0)),
        };
        Exit { code, signal, out_of_memory: false, at: clock.now().into() }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Running").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Running {
    /// How it ended, once it did.
    fn exit(&self) -> BoxFuture<'static, Exit> {
        let mut exit = self.exit.clone();
        Box::pin(async move {
            match exit.wait_for(Option::is_some).await.map(|exit| *exit) {
                Ok(Some(exit)) => exit,
                // The tokio runtime that it lived in is going, and all tasks with it.
                _ => std::future::pending().await,
            }
        })
    }

    /// Its program's environment, folder and user, with another command.
    pub(super) fn program(&self, command: Vec<String>, tty: bool) -> Program {
        Program { command, tty, ..self.program.clone() }
    }
}

impl Container for Running {
    fn started_at(&self) -> SystemTime {
        self.started_at
    }

    fn exited(&self) -> BoxFuture<'static, Exit> {
        self.exit()
    }

    fn log(&self) -> Option<Growing> {
        Some(self.log.clone())
    }

    fn signal(&self, signal: Signal) {
        if self.signals.try_send(signal).is_err() && !self.ended.is_cancelled() {
            warn!(container = self.id, ?signal, "too many signals wait for a container");
        }
    }

    fn exec(
        &self,
        command: Vec<String>,
        streams: Streams,
        timeout: Option<Duration>,
    ) -> BoxFuture<'_, Result<Session, ExecError>> {
        Box::pin(exec::run(self, command, streams, timeout))
    }

    fn attach(&self, streams: Streams) -> BoxFuture<'_, Result<Session, ExecError>> {
        Box::pin(async move {
            if self.ended.is_cancelled() {
                return Err(ExecError::NotRunning);
            }
            let input = self.input.as_ref().filter(|_| streams.stdin);
            let exit = self.exit();
            Ok(Session {
                stdin: input.map(|input| Box::new(input.join(self.stdin_once)) as _),
                stdout: streams.stdout.then(|| Box::new(self.stdout.join()) as _),
                stderr: streams.stderr.then(|| Box::new(self.stderr.join()) as _),
                resize: self.terminal.clone(),
                exit: Box::pin(async move { Ok(exit.await) }),
            })
        })
    }
}
