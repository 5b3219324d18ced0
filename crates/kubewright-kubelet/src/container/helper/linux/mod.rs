//! What only Linux has: namespaces, and a root file system of one's own.

pub(super) mod devices;
pub(super) mod host;
pub(super) mod identity;
pub(super) mod mount;
pub(super) mod probe;
pub(super) mod root;
pub(super) mod watch;

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};

use rustix::process::{Pid, Signal, WaitOptions, kill_process};
use rustix::thread::{ThreadNameSpaceType, UnshareFlags, move_into_thread_name_spaces};

use super::Failure;
use crate::container::sysctls;
use crate::container::wire::{Mapping, Namespaces, Report, Wire, Word};

/// Makes the namespaces of a container, but the mount namespace: that one its first process makes, so that the shim still
/// sees the machine's files.
pub(super) fn separate(wire: &Wire, namespaces: Namespaces, mapping: Mapping) -> Result<(), Failure> {
    if namespaces.user {
        separate_users(wire, mapping)?;
    }
    let mut others = UnshareFlags::empty();
    others.set(UnshareFlags::NEWPID, namespaces.pid);
    others.set(UnshareFlags::NEWUTS, namespaces.uts);
    others.set(UnshareFlags::NEWIPC, namespaces.ipc);
    unshare(others).map_err(Failure::of("unshare namespaces"))?;
    identity::keep_across_exec();
    Ok(())
}

/// Sets kernel parameters of the ipc namespace that this process has made.
pub(super) fn set(sysctls: &BTreeMap<String, String>) -> Result<(), Failure> {
    for (name, value) in sysctls {
        let file = sysctls::file(name);
        fs::write(&file, value).map_err(Failure::of(format!("open {}", file.display())))?;
    }
    Ok(())
}

/// Makes a user namespace and has its users mapped.
pub(super) fn separate_users(wire: &Wire, mapping: Mapping) -> Result<(), Failure> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    unshare(UnshareFlags::NEWUSER).map_err(Failure::of("unshare user namespace"))?;
    match mapping {
        Mapping::Same => {
            wire.send(&Report::Separate, &[]).map_err(Failure::of("report"))?;
            match wire.receive::<Word>() {
                Ok(Some((Word::Mapped, _))) => Ok(()),
                Ok(_) => Err(Failure("the users of the namespace were not mapped".to_owned())),
                Err(error) => Err(Failure::of("map the users of the namespace")(error)),
            }
        }
        Mapping::Single { uid: inside, gid: group_inside } => {
            let write = |name: &str, text: String| {
                let file = format!("/proc/self/{name}");
                fs::write(&file, text).map_err(Failure::of(format!("write {file}")))
            };
            write("setgroups", "deny".to_owned())?;
            write("uid_map", format!("{inside} {} 1", uid.as_raw()))?;
            write("gid_map", format!("{group_inside} {} 1", gid.as_raw()))
        }
    }
}

#[expect(deprecated, reason = "only UnshareFlags::FILES makes it unsafe, which is never asked for")]
pub(super) fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    rustix::thread::unshare(flags)
}

/// Joins the namespaces of a container's first process, but the mount namespace.
pub(super) fn join(process: &OwnedFd, namespaces: Namespaces) -> Result<(), Failure> {
    let mut kinds = ThreadNameSpaceType::empty();
    kinds.set(ThreadNameSpaceType::USER, namespaces.user);
    kinds.set(ThreadNameSpaceType::PROCESS_ID, namespaces.pid);
    kinds.set(ThreadNameSpaceType::HOST_NAME_AND_NIS_DOMAIN_NAME, namespaces.uts);
    kinds.set(ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION, namespaces.ipc);
    if !kinds.is_empty() {
        move_into_thread_name_spaces(process.as_fd(), kinds).map_err(Failure::of("join the container"))?;
        identity::keep_across_exec();
    }
    Ok(())
}

/// Joins the mount namespace of a container's first process, whose root and folder become this process's.
pub(super) fn join_mounts(process: &OwnedFd) -> Result<(), Failure> {
    move_into_thread_name_spaces(process.as_fd(), ThreadNameSpaceType::MOUNT)
        .map_err(Failure::of("join the container's files"))
}

/// Ends all children of this process, also those that it inherited, and waits for their ends.
pub(super) fn end_children() {
    loop {
        for child in children() {
            let _ = kill_process(child, Signal::KILL);
        }
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

fn children() -> Vec<Pid> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    numbers
        .filter(|number| {
            let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
            // The name before it may hold anything, also parentheses and spaces.
            let parent =
                stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
            parent == Some(own)
        })
        .filter_map(Pid::from_raw)
        .collect()
}
