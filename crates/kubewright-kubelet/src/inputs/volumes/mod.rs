//! The volumes of a pod: what they hold ([`plan`], pure) and how that gets onto this machine ([`write()`]).
//!
//! What is not as on a real node: `emptyDir` with `medium: Memory` is a folder like any other unless root runs the node; nobody is
//! evicted for a `sizeLimit`; a claim's volume is a folder of this machine, of any size, and stays in [`Node::folder`](super::Node) when the
//! PersistentVolume is gone. What is not supported (`nfs`, `csi`, block devices, `clusterTrustBundle`, `podCertificate`, ...)
//! is an error that says so.

mod atomic;
mod claim;
mod error;
mod memory;
mod nested;
mod ownership;
mod payload;
mod plan;
mod write;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use self::atomic::Change;
pub use self::error::VolumeError;
pub use self::payload::{File, Payload};
pub use self::plan::plan;
pub use self::write::{remove, write};

/// Volumes by their names in the pod.
pub type Volumes = BTreeMap<String, Planned>;

/// What the volumes of a pod are to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Those that can be.
    pub volumes: Volumes,
    /// Why the others cannot, in the order of the pod. No container of the pod may start meanwhile.
    pub failed: Vec<VolumeError>,
}

/// What a volume is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    content: Content,
    read_only: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    /// Files that are replaced all at once.
    Files { folder: PathBuf, payload: Payload, mount_points: Vec<PathBuf> },
    /// A folder that is gone with the pod.
    Scratch { folder: PathBuf },
    /// The same in memory, of at most so many bytes.
    Memory { folder: PathBuf, most: Option<u64> },
    /// A folder that outlives the pod.
    Lasting { folder: PathBuf },
    /// Files of this machine, with what they have to be (`hostPath.type`).
    Host { path: PathBuf, kind: String },
    /// The files of an image.
    Image { root: PathBuf },
}

impl Planned {
    /// Where its files are on this machine.
    #[must_use]
    pub fn source(&self) -> &Path {
        match &self.content {
            Content::Files { folder, .. }
            | Content::Scratch { folder }
            | Content::Memory { folder, .. }
            | Content::Lasting { folder } => folder,
            Content::Host { path, .. } => path,
            Content::Image { root } => root,
        }
    }

    /// Whether no container may write to it.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Whether it has to be planned and written again while the pod runs, since what it shows changes (`RequiresRemount`).
    /// Two plans of a volume are equal when there is nothing to write.
    #[must_use]
    pub fn follows_changes(&self) -> bool {
        matches!(self.content, Content::Files { .. })
    }

    /// Whether folders may be made in it for a `subPath`.
    pub(super) fn may_be_extended(&self) -> bool {
        !matches!(self.content, Content::Image { .. })
    }
}

#[cfg(test)]
mod tests;
