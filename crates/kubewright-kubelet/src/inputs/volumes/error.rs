//! Why a volume cannot be had.

/// Why a volume cannot be had: the message of the kubelet's event `FailedMount`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VolumeError {
    /// It is known where it would come from, but it could not be set up (`operation_generator.go`).
    #[error("MountVolume.SetUp failed for volume {volume:?} : {message}")]
    SetUp {
        /// Its name in the pod.
        volume: String,
        /// Why.
        message: String,
    },
    /// It is not known where it would come from (`desired_state_of_world_populator.go`).
    #[error(
        "Unable to attach or mount volumes: unmounted volumes=[{volume}], unattached volumes=[], \
         failed to process volumes=[{volume}]: {message}"
    )]
    Process {
        /// Its name in the pod.
        volume: String,
        /// Why.
        message: String,
    },
}

impl VolumeError {
    pub(super) fn set_up(volume: &str, message: impl Into<String>) -> Self {
        Self::SetUp { volume: volume.to_owned(), message: message.into() }
    }

    pub(super) fn process(volume: &str, message: impl Into<String>) -> Self {
        Self::Process { volume: volume.to_owned(), message: message.into() }
    }
}
