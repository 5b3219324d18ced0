//! What this machine has.

use std::{
    ffi::OsStr,
    net::{Ipv4Addr, TcpListener},
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;

use super::Finding;
use crate::project::{Project, cargo};

/// What `build` makes images of: a program that needs no C library.
const STATIC_TARGET: &str = concat_target();
/// How much a build of an operator takes, in GiB.
const ROOM: u64 = 4;
/// The port of `up`.
const PORT: u16 = 6443;

const fn concat_target() -> &'static str {
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-musl" } else { "x86_64-unknown-linux-musl" }
}

/// What a program prints, where it is there and ends well.
fn asked(mut command: Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn command<S: AsRef<OsStr>>(program: &str, arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// Cargo, the compiler, and its targets.
pub(super) fn toolchain(project: Option<&Project>) -> Vec<Finding> {
    const RUST: &str = "install Rust, see https://rustup.rs";
    let mut version = cargo();
    version.arg("--version");
    let mut findings = vec![match asked(version) {
        Some(version) => Finding::ok("cargo", version),
        None => Finding::missing("cargo", "it cannot be run", RUST),
    }];
    let wanted = project.and_then(|project| project.rust_version.as_deref());
    let wanted = wanted.unwrap_or(env!("CARGO_PKG_RUST_VERSION"));
    findings.push(match asked(command("rustc", ["--version"])) {
        None => Finding::missing("rustc", "it cannot be run", RUST),
        Some(version) if is_at_least(&version, wanted) => Finding::ok("rustc", version),
        Some(version) => {
            Finding::missing("rustc", format!("{version}, and {wanted} is needed"), "rustup update")
        }
    });
    let targets = asked(command("rustup", ["target", "list", "--installed"]));
    findings.push(match targets {
        Some(targets) if targets.lines().any(|target| target == STATIC_TARGET) => {
            Finding::ok("static target", STATIC_TARGET)
        }
        _ => Finding::warning(
            "static target",
            format!("{STATIC_TARGET} is not installed; `build` makes images of it"),
            format!("rustup target add {STATIC_TARGET}"),
        ),
    });
    findings
}

/// Whether `rustc 1.95.0 (...)` is no older than `1.94`.
fn is_at_least(reported: &str, wanted: &str) -> bool {
    let numbers = |text: &str| -> Vec<u64> {
        let text = text.split(['-', '+']).next().unwrap_or_default();
        text.split('.').map_while(|number| number.parse().ok()).collect()
    };
    reported.split_whitespace().nth(1).is_some_and(|version| numbers(version) >= numbers(wanted))
}

/// kubectl, the port of a control plane, and the room on the disk.
pub(super) fn machine(project: Option<&Project>) -> Vec<Finding> {
    let kubectl = asked(command("kubectl", ["version", "--client", "--output=json"]));
    let version = kubectl.and_then(|reported| serde_json::from_str::<Value>(&reported).ok());
    let version =
        version.and_then(|reported| Some(reported["clientVersion"]["gitVersion"].as_str()?.to_owned()));
    let kubectl = match version {
        Some(version) => Finding::ok("kubectl", version),
        None => Finding::warning(
            "kubectl",
            "it cannot be run",
            "see https://kubernetes.io/docs/tasks/tools; kubewright itself does not need it",
        ),
    };
    let port = match TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)) {
        Ok(_) => Finding::ok("port", format!("{PORT} is free")),
        Err(error) => Finding::warning(
            "port",
            format!("{PORT}: {error}"),
            "name another one for `kubewright up`: --port 0 takes a free one",
        ),
    };
    let folder = project.map_or_else(|| Path::new("."), |project| project.root.as_path());
    let mut findings = vec![kubectl, port];
    if let Ok(disk) = rustix::fs::statvfs(folder) {
        let free = disk.f_bavail.saturating_mul(disk.f_frsize) >> 30;
        findings.push(match free >= ROOM {
            true => Finding::ok("disk", format!("{free} GiB free")),
            false => Finding::warning(
                "disk",
                format!("{free} GiB free; a build takes up to {ROOM}"),
                "make room, or set CARGO_TARGET_DIR to a folder elsewhere",
            ),
        });
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        let rustc = |version: &str| format!("rustc {version} (59807616e 2026-04-14)");
        for (found, wanted, good) in [
            ("1.95.0", "1.95", true),
            ("1.100.0", "1.95", true),
            ("1.94.1", "1.95", false),
            ("1.96.0-nightly", "1.95.2", true),
        ] {
            assert_eq!(is_at_least(&rustc(found), wanted), good, "{found} {wanted}");
        }
        assert!(!is_at_least("", "1.95"));
    }
}
