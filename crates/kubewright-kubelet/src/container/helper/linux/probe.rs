//! What this machine allows, found out by trying.

use std::fs;
use std::path::Path;

use rustix::thread::UnshareFlags;

use super::super::{Failure, Reason, shim};
use super::mount::Numbers;
use super::{devices, identity, root, separate_users, unshare};
use crate::container::wire::{Mapping, Order, Probed, Report, Wire};
use crate::files::Held;

/// Tries one namespace after the other, and a root file system in them.
pub(in crate::container::helper) fn run(
    wire: &Wire,
    directory: &Path,
    mapping: Mapping,
) -> Result<(), Failure> {
    let mut probed = Probed::default();
    match separate_users(wire, mapping) {
        Ok(()) => probed.namespaces.user = true,
        Err(Failure(reason)) => probed.missing.push(format!("user: {reason}")),
    }
    let kinds = [("pid", UnshareFlags::NEWPID), ("uts", UnshareFlags::NEWUTS), ("ipc", UnshareFlags::NEWIPC)];
    let tried = kinds.map(|(name, flag)| match unshare(flag) {
        Ok(()) => true,
        Err(error) => {
            probed.missing.push(format!("{name}: {}", Reason(std::io::Error::from(error))));
            false
        }
    });
    [probed.namespaces.pid, probed.namespaces.uts, probed.namespaces.ipc] = tried;
    identity::keep_across_exec();
    match trial(directory) {
        Ok(built) => {
            probed.namespaces.mount = true;
            probed.overlay = built.overlay;
            probed.missing.extend(built.missing);
        }
        Err(Failure(reason)) => probed.missing.push(format!("mount: {reason}")),
    }
    wire.send(&Report::Probed(probed), &[]).map_err(Failure::of("report"))
}

/// Has a second helper build a root, as that of a container does.
fn trial(directory: &Path) -> Result<Probed, Failure> {
    let (wire, mut child) = shim::helper().map_err(Failure::of("start a helper"))?;
    let order = Order::Build { directory: directory.to_owned() };
    let answer = wire.send(&order, &[]).and_then(|()| wire.receive::<Report>());
    let ended = child.wait().map_err(Failure::of("wait"))?;
    match answer {
        Ok(Some((Report::Probed(probed), _))) => Ok(probed),
        Ok(Some((Report::Failed(failure), _))) => Err(failure),
        Ok(_) => Err(Failure(format!("the trial ended: {ended}"))),
        Err(error) => Err(Failure::of("try")(error)),
    }
}

/// Builds a root in which nothing runs.
pub(in crate::container::helper) fn build(wire: &Wire, directory: &Path) -> Result<(), Failure> {
    root::apart().map_err(Failure::of("unshare"))?;
    let devices = devices::prepare()?;
    let numbers = Numbers::open().map_err(Failure::of("open /proc/self/fd"))?;
    let (lower, target) = (directory.join("lower"), directory.join("root"));
    for folder in [&lower, &target] {
        fs::create_dir_all(folder).map_err(Failure::of("mkdir"))?;
    }
    let mut probed = Probed { overlay: true, ..Probed::default() };
    if let Err(error) = root::overlay(&lower, &directory.join("writes"), &target) {
        probed.overlay = false;
        probed.missing.push(format!("overlay: {}; images are copied for each container", Reason(error)));
        rustix::mount::mount_bind_recursive(&target, &target).map_err(Failure::of("bind"))?;
    }
    root::change_root(&target).map_err(Failure::of("pivot_root"))?;
    let root = Held::open(Path::new("/")).map_err(Failure::of("open /"))?;
    devices.attach(&root, &numbers)?;
    wire.send(&Report::Probed(probed), &[]).map_err(Failure::of("report"))
}
