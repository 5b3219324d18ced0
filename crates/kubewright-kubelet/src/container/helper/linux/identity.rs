//! Who a program is, and what it may do beyond that.

use rustix::process::{Gid, Uid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    configure_capability_in_ambient_set, remove_capability_from_bounding_set, set_capabilities,
    set_keep_capabilities, set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

use super::super::Failure;
use crate::container::wire::Program;

/// What containerd leaves to a container that asks for nothing (`containerd/pkg/oci`'s defaults). Only root has any of it.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::MKNOD)
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETFCAP)
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SYS_CHROOT)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::AUDIT_WRITE);

/// Has the next helper do what this one may, whatever its user is called.
pub(super) fn keep_across_exec() {
    let Ok(sets) = capabilities(None) else { return };
    // Where that fails, only a user other than root loses them, and the next helper tells what it could not do.
    let _ = set_capabilities(None, CapabilitySets { inheritable: sets.permitted, ..sets });
    for capability in sets.permitted.iter() {
        let _ = configure_capability_in_ambient_set(capability, true);
    }
}

/// Becomes the program's user, who can gain nothing by what it starts.
pub(in crate::container::helper) fn assume(program: &Program) -> Result<(), Failure> {
    for capability in CapabilitySet::all().iter() {
        if !KEPT.contains(capability) {
            // Fails for those that this kernel does not know, and without the right to.
            let _ = remove_capability_from_bounding_set(capability);
        }
    }
    let _ = clear_ambient_capability_set();
    let identity = &program.identity;
    let _ = set_keep_capabilities(true);
    if program.any_user {
        let groups: Vec<Gid> = identity.groups.iter().map(|group| Gid::from_raw(*group)).collect();
        let (uid, gid) = (Uid::from_raw(identity.uid), Gid::from_raw(identity.gid));
        set_thread_groups(&groups).map_err(Failure::of("setgroups"))?;
        set_thread_res_gid(gid, gid, gid).map_err(Failure::of("setgid"))?;
        set_thread_res_uid(uid, uid, uid).map_err(Failure::of("setuid"))?;
    }
    let _ = set_keep_capabilities(false);
    let root = rustix::process::geteuid().is_root();
    let kept = if root { KEPT } else { CapabilitySet::empty() };
    let permitted = capabilities(None).map_err(Failure::of("capget"))?.permitted.intersection(kept);
    let sets = CapabilitySets { effective: permitted, permitted, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).map_err(Failure::of("capset"))?;
    set_no_new_privs(true).map_err(Failure::of("set no_new_privs"))
}
