//! A busybox as its authors have it: the images of the tests have such a one.
//!
//! Debian's differs where a test looks: its shell does not hand on variables like `data-1`. So it is built from the sources in
//! Debian's package, less what Debian changed of them, as the sources' own defaults have it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{run::run, tools::tools};

/// The one of the images that the tests ask for, and the Debian that has its sources.
const VERSION: &str = "1.37.0";
const DEBIAN: &str = "trixie";
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A static busybox, which is built (with make, a C compiler and its static library) unless it is there.
///
/// # Errors
/// When its sources cannot be had, or do not compile.
pub(super) fn upstream() -> Result<PathBuf> {
    let folder = tools().join(format!("busybox-{VERSION}"));
    let sources = folder.join(format!("busybox-{VERSION}"));
    let busybox = folder.join("busybox");
    if busybox.is_file() {
        return Ok(busybox);
    }
    fetch(&folder)?;
    run(Command::new("tar").args(["-xf", &format!("busybox_{VERSION}.orig.tar.bz2")]).current_dir(&folder))?;
    run(Command::new("make").args(["--quiet", "defconfig"]).current_dir(&sources))?;
    let settings = sources.join(".config");
    fs::write(&settings, chosen(&fs::read_to_string(&settings)?))?;
    run(Command::new("make").args(["--quiet", "-j2", "busybox"]).current_dir(&sources))
        .context("busybox needs make, a C compiler and libc6-dev")?;
    fs::copy(sources.join("busybox"), &busybox)?;
    fs::remove_dir_all(&sources)?;
    Ok(busybox)
}

/// Has apt fetch the sources from a Debian that need not be this machine's.
fn fetch(folder: &Path) -> Result<()> {
    let apt = folder.join("apt");
    for part in ["lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(apt.join(part))?;
    }
    let list = apt.join("sources.list");
    fs::write(&list, format!("deb-src [signed-by={KEYS}] http://deb.debian.org/debian {DEBIAN} main\n"))?;
    let settings = [
        format!("Dir::Etc::sourcelist={}", list.display()),
        "Dir::Etc::sourceparts=-".to_owned(),
        format!("Dir::State::lists={}", apt.join("lists").display()),
        format!("Dir::Cache={}", apt.join("cache").display()),
    ];
    for arguments in [&["update"][..], &["source", "--download-only", "busybox"]] {
        let mut get = Command::new("apt-get");
        for setting in &settings {
            get.args(["-o", setting]);
        }
        run(get.args(arguments).current_dir(folder))?;
    }
    Ok(())
}

/// The defaults, as a program without libraries. `tc` speaks of what newer kernels have no more.
fn chosen(defaults: &str) -> String {
    let line = |line: &str| match line {
        "# CONFIG_STATIC is not set" => "CONFIG_STATIC=y\n".to_owned(),
        "CONFIG_TC=y" => "# CONFIG_TC is not set\n".to_owned(),
        line => format!("{line}\n"),
    };
    defaults.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_defaults_stay_but_what_has_to_change() {
        let defaults = "# CONFIG_STATIC is not set\nCONFIG_ASH=y\nCONFIG_TC=y\n";
        assert_eq!(chosen(defaults), "CONFIG_STATIC=y\nCONFIG_ASH=y\n# CONFIG_TC is not set\n");
    }
}
