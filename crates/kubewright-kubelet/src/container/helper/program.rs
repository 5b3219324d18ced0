//! The second helper: builds the container's view from inside and becomes its program.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{self, Command, Stdio};
use std::sync::Arc;

use rustix::fs::fchown;
use rustix::process::{Gid, Uid, fchdir};
use rustix::pty::{OpenptFlags, grantpt, openpt, unlockpt};

#[cfg(target_os = "linux")]
use super::linux;
use super::{Failure, Reason, lookup};
use crate::container::wire::{Mounts, Program, Report, Wire};
use crate::files::Held;
#[cfg(target_os = "linux")]
use crate::files::{Links, Missing};

/// What runc ends with where the kernel does not take a program that is there.
const NOT_EXECUTED: i32 = 255;

/// Becomes the program; returns only where that fails.
pub(super) fn become_program(
    wire: &Wire,
    mounts: Mounts,
    hostname: Option<&str>,
    program: &Program,
    files: Vec<OwnedFd>,
) -> Result<(), Failure> {
    hide();
    end_with_shim();
    ignore_nothing();
    let mut files = files.into_iter();
    enter(mounts, &mut files)?;
    #[cfg(target_os = "linux")]
    if let Some(hostname) = hostname {
        rustix::system::sethostname(hostname.as_bytes()).map_err(Failure::of("sethostname"))?;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = hostname;
    rustix::process::setsid().map_err(Failure::of("setsid"))?;
    let streams = if program.tty { terminal(wire)? } else { given(&mut files)? };
    drop(files);
    own(&streams, program);
    let directory = working_directory(&program.working_directory)?;
    #[cfg(target_os = "linux")]
    linux::identity::assume(program)?;
    end_with_shim();
    fchdir(&directory).map_err(|error| {
        let directory = program.working_directory.display();
        Failure(format!(
            "chdir to cwd ({:?}) set in config.json failed: {}",
            directory.to_string(),
            Reason(io::Error::from(error))
        ))
    })?;
    let (name, arguments) =
        program.command.split_first().ok_or_else(|| Failure("no command is given".to_owned()))?;
    let file = lookup::program(name, program.environment.get("PATH").map(String::as_str))?;
    wire.send(&Report::Ready, &[]).map_err(Failure::of("report"))?;
    let [stdin, stdout, stderr] = streams.map(Stdio::from);
    let mut command = Command::new(&file);
    command.arg0(name).args(arguments).env_clear().envs(&program.environment);
    let error = command.stdin(stdin).stdout(stdout).stderr(stderr).exec();
    // By now standard error is the program's.
    let _ = writeln!(io::stderr(), "exec {}: {}", file.display(), Reason(error));
    process::exit(NOT_EXECUTED)
}

fn enter(mounts: Mounts, files: &mut impl Iterator<Item = OwnedFd>) -> Result<(), Failure> {
    match mounts {
        Mounts::Machine => Ok(()),
        #[cfg(target_os = "linux")]
        Mounts::Own(root) => linux::root::enter(&root),
        #[cfg(target_os = "linux")]
        Mounts::Joined => {
            let process = files.next().ok_or_else(|| Failure("there is no process to join".to_owned()))?;
            linux::join_mounts(&process)
        }
        #[cfg(not(target_os = "linux"))]
        Mounts::Own(_) | Mounts::Joined => {
            let _ = files;
            Err(Failure("only Linux has mount namespaces".to_owned()))
        }
    }
}

/// Keeps this process, its descriptors and its program file from what runs in the container already, perhaps as the same user
/// (CVE-2016-9962, CVE-2019-5736). The kernel takes that back at the exec.
fn hide() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// Has the kernel end this process when its shim ends. Changes of the user undo that.
fn end_with_shim() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
}

/// Has the program begin with what signals do by default. A script that starts something with `&`, and `nohup`, have it ignore
/// some, which goes on to whatever it starts; but a signal that is handled here has its default again in what this process
/// becomes.
fn ignore_nothing() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU};
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU] {
        // Where it cannot be handled it stays as it was.
        let _ = signal_hook::flag::register(signal, Arc::default());
    }
}

fn given(files: &mut impl Iterator<Item = OwnedFd>) -> Result<[OwnedFd; 3], Failure> {
    match (files.next(), files.next(), files.next()) {
        (Some(stdin), Some(stdout), Some(stderr)) => Ok([stdin, stdout, stderr]),
        _ => Err(Failure("the program has no standard streams".to_owned())),
    }
}

/// A terminal of the container, which the session of this process is led from.
fn terminal(wire: &Wire) -> Result<[OwnedFd; 3], Failure> {
    let open = || -> io::Result<[OwnedFd; 3]> {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        rustix::io::fcntl_setfd(&ours, rustix::io::FdFlags::CLOEXEC)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let theirs = other_end(&ours)?;
        rustix::process::ioctl_tiocsctty(&theirs)?;
        wire.send(&Report::Terminal, &[ours.as_fd()])?;
        Ok([theirs.try_clone()?, theirs.try_clone()?, theirs])
    };
    open().map_err(Failure::of("open a terminal"))
}

/// The program's end of a terminal, by no path: a volume may lie over `/dev/pts`.
#[cfg(target_os = "linux")]
fn other_end(ours: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    Ok(rustix::pty::ioctl_tiocgptpeer(ours, flags)?)
}

#[cfg(not(target_os = "linux"))]
fn other_end(ours: &OwnedFd) -> io::Result<OwnedFd> {
    use rustix::fs::{Mode, OFlags};
    let name = rustix::pty::ptsname(ours, Vec::new())?;
    Ok(rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Gives the streams to the program's user, so that it can open `/dev/stdout`.
fn own(streams: &[OwnedFd; 3], program: &Program) {
    let user = Uid::from_raw(program.identity.uid);
    for stream in streams {
        let Ok(found) = rustix::fs::fstat(stream) else { continue };
        let kind = rustix::fs::FileType::from_raw_mode(found.st_mode);
        let device = kind.is_char_device() && !program.tty;
        if !device && found.st_uid != user.as_raw() {
            // Without the right to give it away it stays this user's, who the program then is.
            let _ = fchown(stream, Some(user), None::<Gid>);
        }
    }
}

/// The folder that the program starts in, made where it is missing. It is held, and cannot be one that this process has open.
#[cfg(target_os = "linux")]
fn working_directory(directory: &Path) -> Result<Held, Failure> {
    let made =
        Held::open(Path::new("/")).and_then(|root| root.make(directory, Links::Inside, Missing::Folder));
    made.map_err(Failure::of(format!("mkdir {}", directory.display())))
}

#[cfg(not(target_os = "linux"))]
fn working_directory(directory: &Path) -> Result<Held, Failure> {
    let made = std::fs::create_dir_all(directory).and_then(|()| Held::open(directory));
    made.map_err(Failure::of(format!("mkdir {}", directory.display())))
}
