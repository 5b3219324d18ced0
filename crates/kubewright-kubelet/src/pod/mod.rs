//! The life of a pod on a node: what happens next is decided by pure functions ([`decision`], [`report`]); a [`worker`] for
//! each pod carries it out.

pub(crate) mod admission;
mod backoff;
mod conditions;
mod decision;
mod ending;
mod hook;
mod launch;
mod phase;
mod pod_containers;
mod prepare;
mod report;
mod state;
pub(crate) mod sysctls;
mod view;
mod worker;

pub(crate) use self::conditions::seconds;
pub(crate) use self::pod_containers::PodContainer;
pub(crate) use self::prepare::Preparer;
pub(crate) use self::view::View;
pub(crate) use self::worker::{NodeContext, PodWorker};
