//! What the containers of a pod are given: environment, command, user, volumes, names, tokens; as Kubernetes' kubelet
//! decides it (`pkg/kubelet/kubelet_pods.go`, `pkg/volume`).
//!
//! The way through it, for each pod:
//!
//! 1. [`Needs::of`] says what has to be fetched, [`Fetched`] is what was;
//! 2. [`volumes::plan`] decides what each volume holds, [`volumes::write`] makes it so. Doing both again, with what is
//!    fetched anew, is how changes reach a running pod;
//! 3. [`PodInputs::container_spec`] makes a container's [`Spec`](crate::container::Spec), and the files of its own.
//!
//! Decisions are pure functions; files are touched by [`volumes::write`] and [`volumes::remove`], by `container_spec` and by
//! [`termination::read`] alone; those that a container may change, by way of [`files`](crate::files). Nothing here needs root: owners that this machine's user may not give away stay as they are.

mod command;
mod environment;
mod error;
mod expansion;
mod fetched;
mod fields;
#[cfg(test)]
pub(crate) mod fixture;
pub mod hosts;
mod inside;
mod mounts;
mod needs;
mod place;
mod resolv;
mod resources;
mod spec;
mod sysctls;
pub mod termination;
mod token;
mod users;
pub mod volumes;

pub use self::error::InputError;
pub use self::fetched::Fetched;
pub use self::needs::Needs;
pub use self::place::{Node, PodPlace};
pub use self::spec::{Image, PodInputs};
pub(crate) use self::sysctls::sysctls;
pub use self::token::{Token, TokenNeed};
