//! The addresses and names of Services on this machine, for pods that are processes of it: what kube-proxy and the DNS of a
//! cluster do elsewhere.
//!
//! Addresses of Services are of the machine's loopback network ([`service_network`]), all of which a process can listen on. For
//! each port of a Service that has endpoints there is a socket here, whose connections and datagrams go on to one of them
//! (`proxy`). The names of Services are answered by a server at port 53 of one of these addresses (`dns`). What listens
//! where (`frontends`, and `host_ports` of pods) and what a name means (`zone`) are pure functions of Services and EndpointSlices (`services`).

mod dns;
mod frontends;
mod host_ports;
mod network;
mod proxy;
mod services;
mod zone;

#[cfg(test)]
mod fixture;

pub use self::network::{Network, Settings, name_server, service_network};
