//! A package for Debian and what descends from it.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use anyhow::{Context, Result, bail};

use super::Release;
use crate::run::{find, run};

/// Makes it of a folder with the programs, their completions and manual pages; where there is no `dpkg-deb` it says so.
pub(super) fn write(release: &Release, folder: &Path, platform: &str) -> Result<()> {
    let Some(dpkg) = find("dpkg-deb") else {
        eprintln!("== the Debian package WAS NOT MADE: there is no dpkg-deb");
        return Ok(());
    };
    let Some((_, architecture)) = platform.split_once('/') else { bail!("{platform} is no platform") };
    let root = release.output.join("debian");
    let places = [
        ("kubewright", "usr/bin/kubewright", 0o755),
        ("kubewright-envtest", "usr/bin/kubewright-envtest", 0o755),
        ("LICENSE", "usr/share/doc/kubewright/copyright", 0o644),
        ("completions/kubewright.bash", "usr/share/bash-completion/completions/kubewright", 0o644),
        ("completions/_kubewright", "usr/share/zsh/vendor-completions/_kubewright", 0o644),
        ("completions/kubewright.fish", "usr/share/fish/vendor_completions.d/kubewright.fish", 0o644),
    ];
    for (from, to, mode) in places {
        put(&folder.join(from), &root.join(to), mode)?;
    }
    for entry in fs::read_dir(folder.join("man"))? {
        let page = entry?;
        put(&page.path(), &root.join("usr/share/man/man1").join(page.file_name()), 0o644)?;
    }
    let control = format!(
        "Package: kubewright\nVersion: {}\nArchitecture: {architecture}\nMaintainer: The Kubewright authors \
         <https://github.com/kubewright/kubewright>\nSection: devel\nPriority: optional\nHomepage: \
         https://github.com/kubewright/kubewright\nDescription: build, test and run Kubernetes operators\n The command kubewright has \
         a Kubernetes control plane in it, for operators in any\n language; kubewright-envtest is kube-apiserver and etcd for test suites.\n",
        release.version
    );
    let place = root.join("DEBIAN");
    fs::create_dir_all(&place)?;
    fs::write(place.join("control"), control)?;
    let package = release.output.join(format!("kubewright_{}_{architecture}.deb", release.version));
    let mut build = Command::new(dpkg);
    build.args(["--root-owner-group", "-Zxz", "--build"]).arg(&root).arg(package);
    run(build.env("SOURCE_DATE_EPOCH", &release.time))?;
    Ok(fs::remove_dir_all(&root)?)
}

fn put(from: &Path, to: &Path, mode: u32) -> Result<()> {
    fs::create_dir_all(to.parent().context("a folder")?)?;
    fs::copy(from, to).with_context(|| format!("{}", from.display()))?;
    Ok(fs::set_permissions(to, fs::Permissions::from_mode(mode))?)
}
