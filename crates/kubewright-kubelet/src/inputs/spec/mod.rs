//! All that a container is given, put together (`GenerateRunContainerOptions`, `generateContainerConfig`).

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Container, Pod};
use kubewright_image::Config;

use super::fetched::Fetched;
use super::hosts::{self, HostName};
use super::place::{self, PodPlace};
use super::resolv::resolv_conf;
use super::users::{self, Accounts};
use super::volumes::Volumes;
use super::{InputError, command, environment, inside, mounts, termination};
use crate::container::{Mount, Root, Spec};
use crate::files::{self, Held, Links};
use crate::newer::FileKey;

const HOSTS: &str = "/etc/hosts";
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// The most bytes that are read of a file that an image or a container brought.
const LONGEST_FILE: u64 = 4 * 1024 * 1024;

/// What a container is run from.
#[derive(Clone, Debug)]
pub struct Image {
    /// Its files.
    pub root: Root,
    /// What it says of how it is to be run; nothing, for commands of this machine.
    pub config: Config,
}

/// What all containers of a pod are given theirs from.
#[derive(Clone, Copy, Debug)]
pub struct PodInputs<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// Where it is.
    pub place: PodPlace<'a>,
    /// What was fetched for it.
    pub fetched: &'a Fetched,
    /// Its volumes, [written](super::volumes::write).
    pub volumes: &'a Volumes,
}

impl PodInputs<'_> {
    /// What to run for a container, and makes the files that are its own: `/etc/hosts`, `/etc/resolv.conf`, the one for
    /// its termination message, and missing folders of a `subPath`. `run` counts its runs in this pod from 0 (the count of
    /// its restarts).
    ///
    /// # Errors
    /// What it asks for is not there or makes no sense: try again later, as the kubelet does.
    pub fn container_spec(&self, container: &Container, run: u32, image: &Image) -> Result<Spec, InputError> {
        let Self { pod, place, fetched, volumes } = *self;
        let called = HostName::of(pod, &place.node.cluster_domain)?;
        let hostname = called.for_kernel(pod)?;
        let read = |selector: FileKey<'_>| self.read_variable(selector);
        let made =
            environment::environment(pod, container, fetched, place, read).map_err(InputError::Config)?;
        let mut mounts = mounts::mounts(container, volumes, &made).map_err(InputError::Config)?;
        let user = users::user(pod, container, &image.config.user, &accounts(&image.root))?;
        let command = command::command(container, &image.config, &made)?;
        self.add_own_files(container, run, &called, &mut mounts).map_err(|error| {
            InputError::Config(format!("cannot make the files of container {}: {error}", container.name))
        })?;
        // An outer mount would hide those inside it that came before.
        mounts.sort_by_key(|mount| mount.target.components().count());
        Ok(Spec {
            id: format!("{}_{}_{run}", place::uid(pod), container.name),
            root: image.root.clone(),
            read_only_root: container
                .security_context
                .as_ref()
                .and_then(|context| context.read_only_root_filesystem)
                .unwrap_or_default(),
            command,
            environment: environment::complete(made, container, &image.config, &hostname, &user.home),
            working_directory: working_directory(container, &image.config),
            identity: user.identity,
            hostname,
            sysctls: super::sysctls(pod).into_iter().collect(),
            mounts,
            stdin: container.stdin.unwrap_or_default(),
            stdin_once: container.stdin_once.unwrap_or_default(),
            tty: container.tty.unwrap_or_default(),
            log: place.node.log(pod, &container.name, run),
        })
    }

    /// The value of a `fileKeyRef`; nothing when it is optional and not there.
    fn read_variable(&self, selector: FileKey<'_>) -> Result<Option<String>, String> {
        let FileKey { key, optional, path, volume_name } = selector;
        let volume = self
            .volumes
            .get(volume_name)
            .ok_or_else(|| format!("cannot find the volume {volume_name:?} referenced by FileKeyRef"))?;
        let unreadable = || "couldn't parse env file".to_owned();
        let held = Held::open(volume.source()).map_err(|_| unreadable())?;
        let bytes = held.read(Path::new(path), Links::Inside, LONGEST_FILE).map_err(|_| unreadable())?;
        let text = String::from_utf8_lossy(&bytes);
        let value = environment::value_of(key, &text).map_err(|_| unreadable())?;
        match value.is_empty() {
            false => Ok(Some(value)),
            true if optional => Ok(None),
            true => {
                let file = volume.source().join(path).display().to_string();
                Err(format!("environment variable key {key:?} not found in file {file:?}"))
            }
        }
    }

    /// Adds what the kubelet and the runtime put into every container that does not mount something of its own there.
    fn add_own_files(
        &self,
        container: &Container,
        run: u32,
        called: &HostName,
        mounts: &mut Vec<Mount>,
    ) -> io::Result<()> {
        let Self { pod, place, .. } = *self;
        let is_mounted =
            |mounts: &[Mount], target: &str| mounts.iter().any(|mount| mount.target == Path::new(target));
        let folder = place.node.pod_folder(pod);
        let has_address = !place.pod_ips.is_empty() || hosts::is_on_host_network(pod);
        if has_address && !is_mounted(mounts, HOSTS) {
            let text = hosts::hosts_file(pod, called, place, &text_of(Path::new(HOSTS)));
            mounts.push(own_file(folder.join("etc-hosts"), HOSTS.into(), text.as_bytes(), 0o644)?);
        }
        if !is_mounted(mounts, RESOLV_CONF) {
            let text = resolv_conf(pod, place.node, &text_of(Path::new(RESOLV_CONF)));
            mounts.push(own_file(folder.join("resolv.conf"), RESOLV_CONF.into(), text.as_bytes(), 0o644)?);
        }
        let message = container.termination_message_path.as_deref().unwrap_or_default();
        if !message.is_empty() {
            let file = termination::file(place.node, pod, container, run);
            mounts.push(own_file(file, inside::clean(&Path::new("/").join(message)), &[], 0o666)?);
        }
        Ok(())
    }
}

/// A file of a container, written where it is not yet as it should be: other containers of the pod may have it open.
fn own_file(source: PathBuf, target: PathBuf, data: &[u8], mode: u32) -> io::Result<Mount> {
    if let Some(folder) = source.parent() {
        fs::create_dir_all(folder)?;
    }
    if files::read(&source, LONGEST_FILE).ok().as_deref() != Some(data) {
        fs::write(&source, data)?;
    }
    fs::set_permissions(&source, Permissions::from_mode(mode))?;
    Ok(Mount { source, sub_path: PathBuf::new(), target, read_only: false })
}

/// What the image knows of users. A file that cannot be read knows nobody.
fn accounts(root: &Root) -> Accounts {
    let root = match root {
        Root::Image(root) => root.as_path(),
        Root::Host => Path::new("/"),
    };
    let read = |path: &str| Held::open(root)?.read(Path::new(path), Links::Inside, LONGEST_FILE);
    Accounts { passwd: text(read("etc/passwd")), group: text(read("etc/group")) }
}

/// What a file of this machine says.
fn text_of(path: &Path) -> String {
    text(files::read(path, LONGEST_FILE))
}

fn text(read: io::Result<Vec<u8>>) -> String {
    read.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

fn working_directory(container: &Container, image: &Config) -> PathBuf {
    let own = container.working_dir.as_deref().filter(|folder| !folder.is_empty());
    Path::new("/").join(own.unwrap_or(&image.working_dir))
}

#[cfg(test)]
mod tests;
