//! The folders that setup-envtest keeps, one a version (`store/store.go` and `store/helpers.go` there).

use std::{
    env, fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::Context;

use super::{links, selector::Release};

/// Where versions are, as `setup-envtest --bin-dir` means it.
pub(super) struct Store {
    k8s: PathBuf,
}

/// A version that is there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) release: Release,
    pub(super) folder: PathBuf,
    /// Whether its programs are this one; they may be real ones.
    pub(super) is_ours: bool,
}

impl Store {
    /// The one in this folder, or setup-envtest's own.
    ///
    /// # Errors
    /// When nothing says where that is.
    pub(super) fn at(dir: Option<&Path>) -> anyhow::Result<Self> {
        let dir = match dir {
            Some(dir) => dir.to_owned(),
            None => default_store()?,
        };
        Ok(Self { k8s: std::path::absolute(dir.join("k8s"))? })
    }

    /// The folder of a version for this machine.
    pub(super) fn folder(&self, release: Release) -> PathBuf {
        self.k8s.join(format!("{release}-{}-{}", os(), architecture()))
    }

    /// What is there for this machine, the newest first.
    ///
    /// # Errors
    /// When the file system refuses.
    pub(super) fn items(&self) -> anyhow::Result<Vec<Item>> {
        let context = || format!("cannot read {}", self.k8s.display());
        let entries = match fs::read_dir(&self.k8s) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).with_context(context),
        };
        let mut items = Vec::new();
        for entry in entries {
            let folder = entry.with_context(context)?.path();
            let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Some(release) = name.split('-').next().and_then(|version| version.parse().ok()) else {
                continue;
            };
            if folder.is_dir() && folder == self.folder(release) {
                items.push(Item { release, is_ours: links::has_ours(&folder), folder });
            }
        }
        items.sort_by_key(|item| std::cmp::Reverse(item.release));
        Ok(items)
    }
}

/// As setup-envtest writes it: `linux/amd64`.
pub(super) fn platform() -> String {
    format!("{}/{}", os(), architecture())
}

fn default_store() -> anyhow::Result<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || set("HOME").context("HOME is not set: say where with --dir");
    if cfg!(target_os = "macos") {
        return Ok(home()?.join("Library/Application Support/io.kubebuilder.envtest"));
    }
    let data = match set("XDG_DATA_HOME") {
        Some(data) => data,
        None => home()?.join(".local/share"),
    };
    Ok(data.join("kubebuilder-envtest"))
}

/// As Go calls the operating system.
fn os() -> &'static str {
    match env::consts::OS {
        "macos" => "darwin",
        os => os,
    }
}

/// As Go calls the processor.
fn architecture() -> &'static str {
    match env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        architecture => architecture,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_told_the_newest_first_and_what_is_no_version_for_this_machine_is_not() {
        let dir = env::temp_dir().join(format!("kubewright-store-{}", std::process::id()));
        let store = Store::at(Some(&dir)).expect("a store");
        assert_eq!(store.items().expect("nothing is there"), []);
        let of = |text: &str| text.parse::<Release>().expect("a release");
        for release in ["1.35.4", "1.37.0", "1.35.10"] {
            fs::create_dir_all(store.folder(of(release))).expect("made");
        }
        for other in ["1.36-linux-amd64", "1.36.0-plan9-mips", "notes"] {
            fs::create_dir_all(store.k8s.join(other)).expect("made");
        }
        let program = store.folder(of("1.35.4"));
        for name in ["etcd", "kube-apiserver"] {
            std::os::unix::fs::symlink("/somewhere/kubewright", program.join(name)).expect("linked");
        }
        let items = store.items().expect("readable");
        let found: Vec<_> = items.iter().map(|item| (item.release.to_string(), item.is_ours)).collect();
        let expected = [("1.37.0", false), ("1.35.10", false), ("1.35.4", true)];
        assert_eq!(found, expected.map(|(release, ours)| (release.to_owned(), ours)));
        let _ = fs::remove_dir_all(&dir);
    }
}
