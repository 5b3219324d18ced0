//! Which version of Kubernetes a program stands in for.

use std::{
    env,
    path::{Component, Path},
};

use anyhow::anyhow;
use kubewright_spec::Version;

use crate::say;

/// Says it for whoever cannot give a flag.
const VARIABLE: &str = "KUBEWRIGHT_KUBERNETES_VERSION";

/// The version that `KUBEWRIGHT_KUBERNETES_VERSION` says, or that the folder is called by from which this program was started, as
/// setup-envtest calls its folders (`k8s/1.35.4-linux-amd64`); else the default.
///
/// # Errors
/// When the variable says none that is supported. A folder of another version is warned of.
pub(crate) fn version() -> anyhow::Result<Version> {
    if let Some(said) = env::var(VARIABLE).ok().filter(|said| !said.is_empty()) {
        return said.parse().map_err(|why| anyhow!("{VARIABLE}: {why}"));
    }
    let started = env::args_os().next().unwrap_or_default();
    match of_folder(Path::new(&started)) {
        Some(Ok(version)) => Ok(version),
        Some(Err(why)) => {
            say(&format!("Warning: {why}: v{} is served", Version::DEFAULT));
            Ok(Version::DEFAULT)
        }
        None => Ok(Version::DEFAULT),
    }
}

/// The version that a folder of this path is called by; none where no folder is called by one.
fn of_folder(program: &Path) -> Option<Result<Version, String>> {
    let folders = program.parent()?.components().rev().filter_map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    folders
        .map(|name| name.split('-').next().unwrap_or_default())
        .find(|name| is_release(name))
        .map(str::parse)
}

/// Whether it is three numbers, such as 1.35.4.
fn is_release(name: &str) -> bool {
    let parts: Vec<&str> = name.split('.').collect();
    parts.len() == 3
        && parts.iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_setup_envtest_says_the_version() {
        let of = |path: &str| of_folder(Path::new(path));
        assert_eq!(of("/home/me/bin/k8s/1.35.4-linux-amd64/kube-apiserver"), Some(Ok(Version::V1_35)));
        assert_eq!(of("bin/k8s/1.37.0-darwin-arm64/etcd"), Some(Ok(Version::V1_37)));
        for without in
            ["/usr/bin/kube-apiserver", "kube-apiserver", "/opt/1.36/kube-apiserver", "/opt/v2-linux/etcd"]
        {
            assert_eq!(of(without), None, "{without}");
        }
        let old = of("/k8s/1.30.0-linux-amd64/etcd").unwrap().unwrap_err();
        assert!(old.contains("supported are 1.35, 1.36, 1.37"), "{old}");
    }
}
