//! The node of this machine (`up --runtime process`): its runtime, its images, and where its files are.

use std::{
    env, fs,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, anyhow};
use kubewright_cluster::ProcessSettings;
use kubewright_image::Store;
use kubewright_kubelet::container::{Isolation, ProcessRuntime, Runtime};
use kubewright_kubelet::files;
use kubewright_world::World;

use crate::args::UpArgs;

/// Where the node's files are in the folder of a cluster that is kept.
const FOLDER: &str = "node";

/// What pods share with this machine whatever it allows.
const SHARED: &str = "the network, CPU and memory without limits";

/// What the node of this machine is made of.
pub(crate) struct Machine {
    runtime: Arc<ProcessRuntime>,
    images: Store,
    folder: PathBuf,
    /// Whether the folder goes with the cluster.
    is_temporary: bool,
    host_access: bool,
}

impl Machine {
    /// Opens the image store and the runtime.
    ///
    /// # Errors
    /// When a folder cannot be had, or no container can be started on this machine.
    pub(crate) async fn open(args: &UpArgs, world: &World) -> anyhow::Result<Self> {
        let store = match &args.image_store {
            Some(folder) => folder.clone(),
            None => Store::default_path()?,
        };
        let images = Store::open(&store).map_err(|error| {
            anyhow!("{error}; name another place with --image-store or KUBEWRIGHT_IMAGES")
        })?;
        let (folder, is_temporary) = match &args.data {
            Some(data) => (std::path::absolute(data)?.join(FOLDER), false),
            None => (env::temp_dir().join(format!("kubewright-{}", world.dice.suffix(10))), true),
        };
        make_private(&folder, is_temporary)
            .with_context(|| format!("cannot make {} for the files of pods", folder.display()))?;
        let launcher = env::current_exe().context("--runtime process has to start kubewright again")?;
        let runtime = ProcessRuntime::open(&folder.join("runtime"), launcher, world.clock)
            .await
            .context("--runtime process")?;
        let host_access = args.allow_host_commands;
        Ok(Self { runtime: Arc::new(runtime), images, folder, is_temporary, host_access })
    }

    pub(crate) fn settings(&self) -> ProcessSettings {
        ProcessSettings {
            name: None,
            runtime: Arc::clone(&self.runtime) as Arc<dyn Runtime>,
            images: Some(self.images.clone()),
            folder: self.folder.clone(),
            host_access: self.host_access,
        }
    }

    /// One line: what keeps pods apart from this machine, and what does not.
    pub(crate) fn greeting(&self) -> String {
        describe(&self.runtime.isolation(), self.host_access)
    }

    /// Ends what still runs; of a cluster that is not kept nothing stays.
    pub(crate) async fn close(self) {
        self.runtime.close().await;
        if self.is_temporary {
            // Volumes are in there, which pods may have made any depth. What cannot be removed stays.
            let _ = files::remove(&self.folder);
        }
    }
}

/// Secrets of pods are in there: only this user may look.
fn make_private(folder: &Path, is_new: bool) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let mut builder = fs::DirBuilder::new();
    builder.mode(0o700).recursive(!is_new).create(folder)
}

/// Why a name server may have no port, as the system words it when it wants more rights.
const FORBIDDEN: &str = "denied";

/// One line: what of Services this machine answers.
pub(crate) fn describe_services(names: &Result<IpAddr, String>) -> String {
    match names {
        Ok(address) => {
            format!(
                "Services answer at their addresses on this machine, and their names in pods (by {address})"
            )
        }
        Err(reason) => {
            let remedy = match reason.contains(FORBIDDEN) {
                true => {
                    "; nor are ports below 1024, which takes root or `sysctl net.ipv4.ip_unprivileged_port_start=0`"
                }
                false => "",
            };
            format!(
                "Services answer at their addresses on this machine; their names are not answered in pods ({reason}){remedy}"
            )
        }
    }
}

fn describe(isolation: &Isolation, host_access: bool) -> String {
    let apart = match &isolation.namespaces[..] {
        [] => "nothing keeps them apart from it".to_owned(),
        names => format!("in namespaces of their own ({})", names.join(", ")),
    };
    let missing = match &isolation.missing[..] {
        [] => String::new(),
        missing => format!("; not kept apart: {}", missing.join(", ")),
    };
    let host = if host_access { "; pods may run its commands and see its files" } else { "" };
    format!("pods run as processes of this machine, {apart}{missing}; they share with it {SHARED}{host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_answered_of_services_is_said() {
        let answered = describe_services(&Ok(IpAddr::from([127, 128, 0, 10])));
        assert!(answered.ends_with("their names in pods (by 127.128.0.10)"), "{answered}");
        let refused = describe_services(&Err("port 53: Permission denied (os error 13)".to_owned()));
        assert!(refused.contains("not answered in pods (port 53: Permission denied"), "{refused}");
        assert!(refused.contains("ip_unprivileged_port_start"), "{refused}");
        let taken = describe_services(&Err("port 53: Address already in use (os error 98)".to_owned()));
        assert!(!taken.contains("below 1024"), "{taken}");
    }

    #[test]
    fn what_is_not_kept_apart_is_said() {
        let isolation = Isolation {
            namespaces: vec!["user", "mount"],
            missing: vec!["pid (operation not permitted)".to_owned()],
        };
        assert_eq!(
            describe(&isolation, false),
            "pods run as processes of this machine, in namespaces of their own (user, mount); not kept apart: \
             pid (operation not permitted); they share with it the network, CPU and memory without limits"
        );
        let nothing = describe(&Isolation { namespaces: Vec::new(), missing: Vec::new() }, true);
        assert!(
            nothing.contains("nothing keeps them apart") && nothing.ends_with("see its files"),
            "{nothing}"
        );
    }
}
