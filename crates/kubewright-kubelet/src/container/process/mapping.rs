//! Which users of the machine a container's users are.

use std::fs;
use std::io;

use crate::container::Identity;
use crate::container::wire::{Mapping, Namespaces};

/// Whether this process may map any user.
pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// How a container's users are mapped.
pub(super) fn of(identity: &Identity, any_user: bool) -> Mapping {
    if any_user { Mapping::Same } else { Mapping::Single { uid: identity.uid, gid: identity.gid } }
}

/// Whether a container's program can become any user, on a machine where this user has such namespaces.
pub(super) fn may_become_any(namespaces: Namespaces, same: bool) -> bool {
    if namespaces.user { same } else { may_change_user() }
}

#[cfg(target_os = "linux")]
fn may_change_user() -> bool {
    use rustix::thread::{CapabilitySet, capabilities};
    let wanted = CapabilitySet::SETUID | CapabilitySet::SETGID;
    capabilities(None).is_ok_and(|sets| sets.permitted.contains(wanted))
}

#[cfg(not(target_os = "linux"))]
fn may_change_user() -> bool {
    is_root()
}

/// Maps all users that this process knows to themselves in the user namespace of a process.
pub(super) fn write(process: u32) -> io::Result<()> {
    for map in ["uid_map", "gid_map"] {
        let known = fs::read_to_string(format!("/proc/self/{map}"))?;
        fs::write(format!("/proc/{process}/{map}"), same(&known))?;
    }
    Ok(())
}

/// Of a map, all that is inside, mapped to itself.
fn same(known: &str) -> String {
    let ranges = known.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        let (inside, _, count) = (fields.next()?, fields.next()?, fields.next()?);
        Some(format!("{inside} {inside} {count}\n"))
    });
    ranges.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_mapped_to_itself() {
        assert_eq!(same("         0          0 4294967295\n"), "0 0 4294967295\n");
        assert_eq!(same("0 1000 1\n1 100000 65536\n"), "0 0 1\n1 1 65536\n");
    }
}
