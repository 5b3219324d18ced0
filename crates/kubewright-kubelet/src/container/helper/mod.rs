//! The processes that stand between the runtime and a container's program.
//!
//! This program starts itself again, so that one thread alone asks the kernel for namespaces and no code runs between fork
//! and exec. A *shim* makes the namespaces, starts the program in them by way of a second helper that *becomes* it,
//! passes signals on, and tells how it ended. A shim ends its container when the runtime goes, however it goes.

#[cfg(target_os = "linux")]
mod linux;
mod lookup;
mod program;
mod shim;
#[cfg(not(target_os = "linux"))]
mod watch;

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use super::wire::{Failure, Order, Report, Wire};

/// The first argument that makes a program a helper of [`ProcessRuntime`](super::ProcessRuntime).
pub const ARGUMENT: &str = "kubewright-container";

/// Is a helper of the runtime to its end, where `arguments`, which begin with the program's name, say so; `None` otherwise.
///
/// The program that is given to [`ProcessRuntime::open`](super::ProcessRuntime::open) calls this first in its `main`, while
/// it has one thread.
pub fn called_as(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    pass_nothing_on();
    let told = wire().and_then(|wire| {
        let outcome = follow(&wire);
        outcome.or_else(|failure| wire.send(&Report::Failed(failure), &[]))
    });
    Some(if told.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Keeps what was open where the runtime was started, such as a folder of this machine in a shell, out of everything that this
/// process starts: a container could leave by it. What a helper is given comes by its socket.
fn pass_nothing_on() {
    const AFTER_STANDARD_ERROR: i32 = 3;
    close_fds::set_fds_cloexec(AFTER_STANDARD_ERROR, &[]);
}

/// The socket to whoever started this process is its standard input.
fn wire() -> io::Result<Wire> {
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    Ok(Wire::new(UnixStream::from(socket)))
}

fn follow(wire: &Wire) -> Result<(), Failure> {
    let Some((order, files)) = wire.receive::<Order>().map_err(Failure::of("read the order"))? else {
        return Ok(());
    };
    match order {
        Order::Run { namespaces, mapping, sysctls, files: root, hostname, program } => {
            let container = shim::Container { namespaces, mapping, sysctls, root, hostname, program };
            shim::run(wire, container, files)
        }
        Order::Exec { namespaces, program } => shim::exec(wire, namespaces, program, files),
        Order::Become { mounts, hostname, program } => {
            program::become_program(wire, mounts, hostname.as_deref(), &program, files)
        }
        #[cfg(target_os = "linux")]
        Order::Probe { directory, mapping } => linux::probe::run(wire, &directory, mapping),
        #[cfg(target_os = "linux")]
        Order::Build { directory } => linux::probe::build(wire, &directory),
        #[cfg(not(target_os = "linux"))]
        Order::Probe { .. } | Order::Build { .. } => Err(Failure("only Linux has namespaces".to_owned())),
    }
}

impl Failure {
    /// What was tried, and the machine's answer.
    fn of<E: std::fmt::Display>(tried: impl std::fmt::Display) -> impl FnOnce(E) -> Self {
        move |error| Self(format!("{tried}: {}", Reason(error)))
    }
}

/// An error in the C library's words, as Go's programs tell it: in small letters, without its number.
struct Reason<E>(E);

impl<E: std::fmt::Display> std::fmt::Display for Reason<E> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = self.0.to_string();
        let text = text.split_once(" (os error").map_or(text.as_str(), |(text, _)| text);
        let mut letters = text.chars();
        match letters.next() {
            Some(first) => write!(formatter, "{}{}", first.to_ascii_lowercase(), letters.as_str()),
            None => Ok(()),
        }
    }
}
