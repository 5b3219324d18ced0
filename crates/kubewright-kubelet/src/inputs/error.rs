//! Why a container cannot be given what it asks for.

/// Why a container cannot be given what it asks for: what its waiting state says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// What the kubelet itself finds (`generateContainerConfig`): a missing config map, a user that may not be.
    #[error("{0}")]
    Config(String),
    /// What a container runtime finds in the image: no such user, nothing to run.
    #[error("{0}")]
    Create(String),
}

impl InputError {
    /// The reason of the waiting state (`pkg/kubelet/kuberuntime`, `ErrCreateContainerConfig` and `ErrCreateContainer`).
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Config(_) => "CreateContainerConfigError",
            Self::Create(_) => "CreateContainerError",
        }
    }
}
