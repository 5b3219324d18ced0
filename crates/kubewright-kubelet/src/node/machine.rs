//! What this machine is.

use std::fs;
use std::path::Path;

/// What a node tells of its machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) hostname: String,
    pub(crate) cpus: usize,
    /// In KiB.
    pub(crate) memory: u64,
    /// The file system that the files of pods are on, in KiB; 0 where nobody knows.
    pub(crate) storage: u64,
    pub(crate) kernel: String,
    pub(crate) system: String,
    pub(crate) machine_id: String,
    pub(crate) boot_id: String,
    /// In Go's words.
    pub(crate) architecture: &'static str,
}

impl Machine {
    /// As the kernel and the system tell it; what they do not tell is empty.
    pub(crate) fn read(folder: &Path) -> Self {
        let line = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let machine_id = line("/etc/machine-id");
        Self {
            hostname: line("/proc/sys/kernel/hostname").to_lowercase(),
            cpus: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            memory: memory(&line("/proc/meminfo")).unwrap_or(1 << 20),
            storage: storage(folder),
            kernel: line("/proc/sys/kernel/osrelease"),
            system: system(&line("/etc/os-release")).unwrap_or_else(|| std::env::consts::OS.to_owned()),
            machine_id,
            boot_id: line("/proc/sys/kernel/random/boot_id"),
            architecture: architecture(),
        }
    }
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    }
}

#[cfg(unix)]
fn storage(folder: &Path) -> u64 {
    let known = rustix::fs::statvfs(folder).or_else(|_| rustix::fs::statvfs("/"));
    known.map_or(0, |known| known.f_blocks.saturating_mul(known.f_frsize) / 1024)
}

#[cfg(not(unix))]
fn storage(_: &Path) -> u64 {
    0
}

fn memory(meminfo: &str) -> Option<u64> {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    total.split_whitespace().next()?.parse().ok()
}

fn system(os_release: &str) -> Option<String> {
    let name = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_linux_are_read() {
        assert_eq!(memory("MemTotal:       16384256 kB\nMemFree: 1 kB"), Some(16_384_256));
        assert_eq!(
            system("NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 13\"\n").as_deref(),
            Some("Debian GNU/Linux 13")
        );
    }
}
