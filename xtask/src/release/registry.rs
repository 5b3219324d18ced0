//! The packaged crates, and all that they need, in a folder that cargo takes for crates.io.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::run::{cargo, run, target};

/// A folder with a `CARGO_HOME` in which crates.io is a folder of packages (cargo's directory source).
pub(super) struct Registry {
    folder: PathBuf,
    /// Where projects are made; removed in the end.
    projects: PathBuf,
    /// The crates of the workspace in it.
    names: Vec<String>,
}

impl Registry {
    /// Fills a folder with the packages of the last `cargo publish --dry-run` and with what the workspace depends on.
    pub(super) fn fill(folder: &Path) -> Result<Self> {
        let projects = std::env::temp_dir().join(format!("kubewright-release-{}", std::process::id()));
        let mut registry = Self { folder: folder.to_owned(), projects, names: Vec::new() };
        let (crates, home) = (folder.join("crates"), registry.cargo_home());
        if crates.exists() {
            fs::remove_dir_all(&crates)?;
        }
        fs::create_dir_all(&home)?;
        let text = crates.to_str().context("a path that is no text")?;
        run(&mut cargo(["vendor", "--locked", "--versioned-dirs", "--quiet", text]))?;
        let packaged = target().join("package/tmp-registry");
        for index in files(&packaged.join("index"))? {
            if !index.file_name().is_some_and(|name| name.to_string_lossy().starts_with("kubewright")) {
                continue;
            }
            let entry: Value = serde_json::from_str(fs::read_to_string(&index)?.trim())?;
            let text =
                |key: &str| entry[key].as_str().with_context(|| format!("{}: no {key}", index.display()));
            let (name, checksum) = (format!("{}-{}", text("name")?, text("vers")?), text("cksum")?);
            let archive = packaged.join(format!("{name}.crate"));
            let unpacked = Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(&crates).status();
            ensure!(
                unpacked.context("cannot run tar")?.success(),
                "{} cannot be unpacked",
                archive.display()
            );
            let checksums = json!({"files": {}, "package": checksum}).to_string();
            fs::write(crates.join(&name).join(".cargo-checksum.json"), checksums)?;
            registry.names.push(text("name")?.to_owned());
        }
        let found = registry.names.len();
        ensure!(found > 20, "only {found} packages are in {}", packaged.display());
        let config = format!(
            "[source.crates-io]\nreplace-with = \"packages\"\n\n[source.packages]\ndirectory = {text:?}\n"
        );
        fs::write(home.join("config.toml"), config)?;
        Ok(registry)
    }

    /// Where all of it is.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The names of the workspace's crates.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// A folder that has nothing in it, away from the workspace: cargo would make a new project there a member.
    pub(super) fn fresh_folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.projects.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// What `CARGO_HOME` has to be for cargo to see nothing but these packages.
    pub(super) fn cargo_home(&self) -> PathBuf {
        self.folder.join("home")
    }

    /// A cargo that sees nothing but these packages, in the registry's folder; what it builds is kept from one run to the next.
    pub(super) fn cargo<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = cargo(arguments);
        command.env("CARGO_HOME", self.cargo_home()).env("CARGO_TARGET_DIR", self.folder.join("target"));
        command.current_dir(&self.folder);
        command
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.projects);
    }
}

/// The files below a folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("{}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}
