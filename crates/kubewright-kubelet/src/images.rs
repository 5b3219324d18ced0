//! Images for containers: from the store of this machine, or, where there is none and the user allows it, the commands of
//! this machine itself (`pkg/kubelet/images`). Nothing is pulled.

use kubewright_image::{Config, Reference, Store};

use crate::container::Root;
use crate::inputs::Image;

/// What an image is looked up in.
#[derive(Clone, Debug)]
pub(crate) struct Images {
    pub(crate) store: Option<Store>,
    /// Whether commands of this machine stand in for an image that is not in the store.
    pub(crate) host_commands: bool,
}

/// What a container is run from.
#[derive(Clone, Debug)]
pub(crate) struct ContainerImage {
    pub(crate) image: Image,
    /// What the status calls it; empty for commands of this machine.
    pub(crate) id: String,
}

impl ContainerImage {
    pub(crate) fn is_host(&self) -> bool {
        self.image.root == Root::Host
    }
}

/// Why there is no image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// It cannot be the name of one.
    Invalid(String),
    /// The pod does not want it to be pulled.
    Never(String),
    /// It would have to be pulled.
    NotThere(String),
    /// It is there, and cannot be used.
    Broken(String),
}

impl Images {
    /// The image of this name for a container with this `imagePullPolicy`.
    pub(crate) async fn find(&self, name: &str, policy: Option<&str>) -> Result<ContainerImage, Missing> {
        let reference = Reference::parse(name).map_err(|error| {
            Missing::Invalid(format!(
                "Failed to apply default image tag \"{name}\": couldn't parse image name \"{name}\": {error}"
            ))
        })?;
        if let Some(store) = self.store.clone() {
            let found = blocking(move || look_up(&store, &reference)).await;
            if let Some(found) = found.map_err(Missing::Broken)? {
                return Ok(found);
            }
        }
        if self.host_commands {
            let image = Image { root: Root::Host, config: Config::default() };
            return Ok(ContainerImage { image, id: String::new() });
        }
        if policy == Some("Never") {
            return Err(Missing::Never(format!(
                "Container image \"{name}\" is not present with pull policy of Never"
            )));
        }
        Err(Missing::NotThere(format!(
            "{name} is not in the image store of this machine, and kubewright does not pull images: \
             put it there with `kubewright image load FILE` (an OCI layout, or what `docker save` writes)"
        )))
    }
}

fn look_up(store: &Store, reference: &Reference) -> Result<Option<ContainerImage>, String> {
    let Some(image) = store.get(reference).map_err(|error| error.to_string())? else { return Ok(None) };
    let root = store.root(&image).map_err(|error| error.to_string())?;
    let digest = image.repo_digests.first().map(ToString::to_string);
    let id = digest.unwrap_or_else(|| image.id.to_string());
    Ok(Some(ContainerImage { image: Image { root: Root::Image(root), config: image.config }, id }))
}

/// Runs what waits for the disk on a thread that may wait: unpacking an image takes seconds.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    #[expect(clippy::disallowed_methods, reason = "files of this machine are not part of a simulation")]
    let work = tokio::task::spawn_blocking(work);
    work.await.map_err(|error| error.to_string())?
}
