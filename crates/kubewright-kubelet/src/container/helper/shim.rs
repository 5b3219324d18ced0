//! The shim of a program: starts it in its namespaces, passes signals to it, and tells how it ended.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
#[cfg(target_os = "linux")]
use std::path::Path;
use std::process::{self, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

#[cfg(target_os = "linux")]
use super::linux;
#[cfg(target_os = "linux")]
use super::linux::watch;
#[cfg(not(target_os = "linux"))]
use super::watch;
use super::{ARGUMENT, Failure};
use crate::container::wire::{Files, Mapping, Mounts, Namespaces, Order, Program, Report, Wire, Word};
use crate::files;

/// What a shim keeps.
pub(super) struct Container {
    pub(super) namespaces: Namespaces,
    pub(super) mapping: Mapping,
    pub(super) sysctls: BTreeMap<String, String>,
    pub(super) root: Files,
    pub(super) hostname: String,
    pub(super) program: Program,
}

/// Keeps a container to its end.
pub(super) fn run(wire: &Wire, container: Container, streams: Vec<OwnedFd>) -> Result<(), Failure> {
    let Container { namespaces, mapping, sysctls, root, hostname, program } = container;
    let directory = root.directory.clone();
    #[cfg(target_os = "linux")]
    {
        linux::separate(wire, namespaces, mapping)?;
        linux::set(&sysctls)?;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (mapping, sysctls);
    let order = Order::Become {
        mounts: if namespaces.mount { Mounts::Own(root) } else { Mounts::Machine },
        hostname: namespaces.uts.then_some(hostname),
        program,
    };
    let ended = keep(wire, namespaces.pid, &order, streams);
    // What cannot be removed stays until the next runtime tries.
    let _ = files::remove(&directory);
    report(wire, ended?)
}

/// Keeps a command in a container to its end.
pub(super) fn exec(
    wire: &Wire,
    namespaces: Namespaces,
    program: Program,
    files: Vec<OwnedFd>,
) -> Result<(), Failure> {
    #[cfg(target_os = "linux")]
    if namespaces != Namespaces::default() {
        let process = files.first().ok_or_else(|| Failure("there is no process to join".to_owned()))?;
        linux::join(process, namespaces)?;
    }
    let mounts = if namespaces.mount { Mounts::Joined } else { Mounts::Machine };
    let order = Order::Become { mounts, hostname: None, program };
    let ended = keep(wire, false, &order, files)?;
    report(wire, ended)
}

fn report(wire: &Wire, ended: ExitStatus) -> Result<(), Failure> {
    let signal = ended.signal();
    let code = ended.code().unwrap_or_else(|| 128 + signal.unwrap_or_default());
    // Nobody may be left to hear it.
    let _ = wire.send(&Report::Ended { code, signal }, &[]);
    Ok(())
}

fn keep(wire: &Wire, whole: bool, order: &Order, files: Vec<OwnedFd>) -> Result<ExitStatus, Failure> {
    if !whole {
        adopt_orphans();
    }
    let mut child = start(wire, order, files)?;
    let kept = Kept { pid: Pid::from_child(&child), whole };
    watch::until_end(wire, kept)?;
    if !whole {
        let _ = kill_process_group(kept.pid, Signal::KILL);
    }
    let ended = child.wait().map_err(Failure::of("wait"))?;
    if !whole {
        end_orphans();
    }
    Ok(ended)
}

/// Starts the second helper, and returns once it has become the program.
fn start(wire: &Wire, order: &Order, files: Vec<OwnedFd>) -> Result<process::Child, Failure> {
    let (ours, mut child) = helper().map_err(Failure::of("start a helper"))?;
    let beside: Vec<BorrowedFd<'_>> = files.iter().map(AsFd::as_fd).collect();
    let mut outcome = ours.send(order, &beside).map_err(Failure::of("start a helper"));
    drop(beside);
    drop(files);
    let mut ready = false;
    while outcome.is_ok() {
        match ours.receive::<Report>() {
            Ok(Some((Report::Terminal, terminal))) => {
                let beside: Vec<BorrowedFd<'_>> = terminal.iter().map(AsFd::as_fd).collect();
                outcome = wire.send(&Report::Terminal, &beside).map_err(Failure::of("pass the terminal on"));
            }
            Ok(Some((Report::Ready, _))) => ready = true,
            Ok(Some((Report::Failed(failure), _))) => outcome = Err(failure),
            Ok(None) if ready => return Ok(child),
            Ok(_) => break,
            Err(error) => outcome = Err(Failure::of("start a helper")(error)),
        }
    }
    let _ = child.kill();
    let ended = child.wait().map_err(Failure::of("wait"))?;
    outcome?;
    Err(Failure(format!("it ended before it was the program: {ended}")))
}

/// This program once more, and a socket to it.
pub(super) fn helper() -> io::Result<(Wire, process::Child)> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new(this_program()?);
    command.arg(ARGUMENT).env_clear().stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null());
    let child = command.spawn()?;
    Ok((Wire::new(ours), child))
}

#[cfg(target_os = "linux")]
fn this_program() -> io::Result<&'static Path> {
    Ok(Path::new("/proc/self/exe"))
}

#[cfg(not(target_os = "linux"))]
fn this_program() -> io::Result<std::path::PathBuf> {
    std::env::current_exe()
}

/// The first process, which has not been waited for, so that its number is nobody else's.
#[derive(Clone, Copy)]
pub(super) struct Kept {
    pub(super) pid: Pid,
    /// Whether all the others end with it, as in a pid namespace.
    whole: bool,
}

impl Kept {
    /// Does what the runtime says; that it has gone ends the program.
    pub(super) fn obey(self, word: Option<Word>) {
        match word {
            Some(Word::Signal(number)) => self.signal(number),
            Some(Word::Mapped) => {}
            None => self.signal(Signal::KILL.as_raw()),
        }
    }

    fn signal(self, number: i32) {
        // A process that has just ended takes no signal.
        let _ = match Signal::from_named_raw(number) {
            Some(Signal::KILL) if !self.whole => kill_process_group(self.pid, Signal::KILL),
            Some(signal) => kill_process(self.pid, signal),
            None => Ok(()),
        };
    }
}

/// Makes whoever loses its parent among the program's processes a child of this one.
fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Ends what the program left behind, where the machine tells.
fn end_orphans() {
    #[cfg(target_os = "linux")]
    linux::end_children();
}
