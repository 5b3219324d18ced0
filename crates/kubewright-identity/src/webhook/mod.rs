//! Calling webhooks: servers that are asked over HTTPS, for admission and for the conversion of custom resources.
//!
//! A [`Target`] is what a `clientConfig` says; [`Client::post`] sends a review there and gives back the bytes of the
//! answer, or a [`Failure`] in kube-apiserver's words (`k8s.io/apiserver/pkg/util/webhook/client.go`, and what
//! `client-go/rest` does with it).
//!
//! Three ways lead to a server, tried in this order:
//!
//! 1. A [`Local`] server of this process, which needs no socket: the only one that works under a paused clock, where a
//!    wait for a socket looks like idleness and every timeout passes at once.
//! 2. A URL: a socket is opened, and TLS trusts the `caBundle` alone. Without a bundle nothing is trusted: roots of the
//!    machine are not looked at, unlike in kube-apiserver.
//! 3. A Service: it must exist and have the port. `ExternalName` names the host that is called. Nothing routes a cluster IP
//!    here, so what it leads to is looked up in the service's EndpointSlices: an endpoint that is no pod (somebody has
//!    written it there, to lead out of the cluster), or a pod on a node whose kubelet is reached from here
//!    ([`Client::reach_pods_of`]), is called; one that refuses the connection makes way for the next. Pods of other nodes
//!    are simulated: the connection is refused, which is what a cluster says of a service without endpoints, and the
//!    reason follows.

mod answer;
mod client;
mod connect;
mod remote;
mod service;
mod target;
#[cfg(test)]
mod tests;
mod trust;
mod upstream;

pub use client::{Client, Failure, Local};
pub use remote::{KubeconfigError, ReadFile, Remote};
pub use service::{Endpoint, Place, PodOfEndpoint, Resolve};
pub use target::Target;
pub use upstream::{InProcess, Route, ServiceRef, Upstream, UpstreamBody, Upstreams};
