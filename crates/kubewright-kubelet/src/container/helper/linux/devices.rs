//! What every container finds below `/dev` and `/proc`, as the OCI runtime specification asks for it.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::symlinkat;
use rustix::mount::MountAttrFlags;

use super::super::Failure;
use super::mount::{Detached, Numbers, bind, bind_path, new};
use crate::files::{Held, Links};

const DEVICES: &str = "/dev";

/// The machine's own, because making devices is not allowed in a user namespace.
const NODES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// Links in `/dev`, after where they lead.
const LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
    ("pts/ptmx", "ptmx"),
];

/// What tells of the machine, or changes it: with all users mapped to themselves, root inside is the machine's root to it.
const HIDDEN: [&str; 9] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/interrupts",
];
const READ_ONLY: [&str; 5] = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// The file systems of a container that are not files of an image.
pub(super) struct Devices {
    processes: Detached,
    folder: Detached,
    terminals: Detached,
    memory: Detached,
    /// The machine tells of itself only to containers without a user namespace.
    system: Option<Detached>,
    nodes: Vec<(PathBuf, Detached)>,
    /// What is laid over that which is hidden.
    nothing: Vec<(PathBuf, Detached)>,
}

/// Prepares them in the machine's sight.
pub(super) fn prepare() -> Result<Devices, Failure> {
    let quiet = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let no_devices = quiet | MountAttrFlags::MOUNT_ATTR_NODEV;
    let nodes = NODES.into_iter().map(PathBuf::from).filter(|node| node.exists());
    let nothing = HIDDEN.into_iter().map(PathBuf::from).filter(|hidden| hidden.exists());
    Ok(Devices {
        processes: mounting("proc", "/proc", new("proc", &[], no_devices))?,
        folder: mounting(
            "tmpfs",
            DEVICES,
            new("tmpfs", &[("mode", "755"), ("size", "65536k")], MountAttrFlags::MOUNT_ATTR_NOSUID),
        )?,
        terminals: mounting("devpts", "/dev/pts", terminals(quiet))?,
        memory: mounting(
            "shm",
            "/dev/shm",
            new("tmpfs", &[("mode", "1777"), ("size", "65536k")], no_devices),
        )?,
        system: new("sysfs", &[], no_devices | MountAttrFlags::MOUNT_ATTR_RDONLY).ok(),
        nodes: nodes
            .map(|node| {
                let device = mounting("device", &node.to_string_lossy(), bind_path(&node))?;
                Ok((node, device))
            })
            .collect::<Result<_, Failure>>()?,
        nothing: nothing
            .map(|hidden| {
                let cover = if hidden.is_dir() {
                    new("tmpfs", &[], no_devices | MountAttrFlags::MOUNT_ATTR_RDONLY)
                } else {
                    bind_path(Path::new("/dev/null"))
                };
                let cover = mounting("tmpfs", &hidden.to_string_lossy(), cover)?;
                Ok((hidden, cover))
            })
            .collect::<Result<_, Failure>>()?,
    })
}

/// The group `tty` owns them where it is mapped.
fn terminals(attributes: MountAttrFlags) -> io::Result<Detached> {
    let options = [("newinstance", ""), ("ptmxmode", "0666"), ("mode", "0620"), ("gid", "5")];
    let set = |options: &[(&str, &str)]| new("devpts", options, attributes);
    set(&options[1..]).or_else(|_| set(&options[1..3]))
}

impl Devices {
    /// Attaches them in the container's root, which this process is in.
    pub(super) fn attach(self, root: &Held, numbers: &Numbers) -> Result<(), Failure> {
        let at = |what: &str, tree: Detached, target: &str| {
            mounting(what, target, tree.attach(root, Path::new(target)))
        };
        at("proc", self.processes, "/proc")?;
        at("tmpfs", self.folder, DEVICES)?;
        at("devpts", self.terminals, "/dev/pts")?;
        at("shm", self.memory, "/dev/shm")?;
        if let Some(system) = self.system {
            at("sysfs", system, "/sys")?;
        }
        for (node, device) in self.nodes {
            at("device", device, &node.to_string_lossy())?;
        }
        let devices = root.find(Path::new(DEVICES), Links::Inside);
        let devices = devices.map_err(Failure::of(format!("open {DEVICES}")))?;
        for (target, link) in LINKS {
            symlinkat(target, &devices, link)
                .map_err(io::Error::from)
                .map_err(Failure::of(format!("symlink {DEVICES}/{link}")))?;
        }
        for (hidden, cover) in self.nothing {
            at("tmpfs", cover, &hidden.to_string_lossy())?;
        }
        for path in READ_ONLY {
            protect(root, numbers, path).map_err(Failure::of(format!("make {path} read-only")))?;
        }
        Ok(())
    }
}

fn protect(root: &Held, numbers: &Numbers, path: &str) -> io::Result<()> {
    match root.find(Path::new(path), Links::Inside) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        found => {
            let found = found?;
            numbers.make_read_only(&bind(&found)?.attach_on(&found)?)
        }
    }
}

/// In the words of runc.
pub(super) fn mounting<T>(source: &str, target: &str, outcome: io::Result<T>) -> Result<T, Failure> {
    outcome.map_err(Failure::of(format!("error mounting {source:?} to rootfs at {target:?}")))
}
