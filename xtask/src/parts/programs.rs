//! The real programs, where they were built.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use crate::run::find;

/// The release that the conversations were recorded with.
pub(crate) const RECORDED: &str = "1.36.3";
/// What both ways need.
const NAMES: [&str; 6] =
    ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok"];

/// A folder with all of them, of one release.
pub(crate) struct Programs {
    pub(super) release: &'static str,
    home: PathBuf,
}

impl Programs {
    /// Those of a release: in `KUBE_REFERENCE`, `~/.cache/kube-reference` or `~/.cache/kube-reference-<release>`; or the reason why there
    /// are none.
    pub(crate) fn find(release: &'static str) -> Result<Self, String> {
        let cache = env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
        let cached = ["kube-reference".to_owned(), format!("kube-reference-{release}")]
            .map(|name| cache.as_ref().map(|cache| cache.join(name)));
        let given = env::var_os("KUBE_REFERENCE").map(PathBuf::from);
        if find("openssl").is_none() {
            return Err("there is no openssl".to_owned());
        }
        let found =
            [given].into_iter().chain(cached).flatten().find(|home| is_whole(&home.join("bin"), release));
        found.map(|home| Self { release, home }).ok_or_else(|| {
            format!(
                "neither KUBE_REFERENCE nor ~/.cache/kube-reference-{release} has {} of Kubernetes v{release} in its bin",
                NAMES.join(", ")
            )
        })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.home.join("bin").join(name)
    }

    /// The stages of kwok's module, by which nodes and pods become ready at once.
    pub(super) fn stages(&self) -> Option<PathBuf> {
        let module = self.home.join("module-kwok");
        let list = ["list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok"];
        let said =
            Command::new("go").args(list).env("GOFLAGS", "-mod=mod").current_dir(module).output().ok()?;
        let folder = PathBuf::from(String::from_utf8(said.stdout).ok()?.trim()).join("kustomize/stage");
        folder.is_dir().then_some(folder)
    }
}

fn is_whole(bin: &Path, release: &str) -> bool {
    let said = Command::new(bin.join("kube-apiserver")).arg("--version").output();
    NAMES.iter().all(|name| bin.join(name).is_file())
        && said.is_ok_and(|said| {
            String::from_utf8_lossy(&said.stdout).trim() == format!("Kubernetes v{release}")
        })
}
