//! The network of a node: what is watched, and what follows from it.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;

use futures::{Stream, StreamExt, stream};
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use kubewright_objects::ByText;
use parking_lot::RwLock;
use serde::de::DeserializeOwned;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::dns;
use crate::frontends::{Here, Protocol, frontends};
use crate::host_ports::host_ports;
use crate::proxy::{AGAIN, Proxy};
use crate::services::{Kept, Key, Services, key};
use crate::zone::Zone;

/// The port of name servers.
const DNS: u16 = 53;
/// The addresses of Services of all clusters on this machine: 127.128.0.0/9, the half of the loopback network that no pod has.
const ADDRESSES: Ipv4Addr = Ipv4Addr::new(127, 128, 0, 0);
/// How many addresses the Services of a cluster have: those of a /20.
const EACH: u32 = 1 << 12;
/// How many clusters have addresses of their own.
const CLUSTERS: u32 = 1 << 11;
/// The place of the name server among them, where installers of Kubernetes have it too.
const NAME_SERVER: u32 = 10;
/// How many changes are looked at together.
const TOGETHER: usize = 1024;

/// The network of a cluster's Services (`--service-cluster-ip-range`): one of 2,048 parts of 127.128.0.0/9, always the same for
/// the same `cluster`, whatever tells it from others, so that two clusters on a machine seldom want the same address.
#[must_use]
pub fn service_network(cluster: &str) -> String {
    // FNV-1a, as a cluster that is kept has the same addresses under each build of this program.
    let hash = cluster
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{}/20", Ipv4Addr::from_bits(ADDRESSES.to_bits() + hash % CLUSTERS * EACH))
}

/// The address of the name server in a network of Services; `None` where the network is not of this machine's loopback.
#[must_use]
pub fn name_server(first: IpAddr) -> Option<Ipv4Addr> {
    match first {
        IpAddr::V4(first) if first.is_loopback() => Some(Ipv4Addr::from_bits(first.to_bits() + NAME_SERVER)),
        _ => None,
    }
}

/// What a [`Network`] is made of.
pub struct Settings {
    /// Lists and watches Services and EndpointSlices.
    pub client: Client,
    /// The name of the node whose pods these are for.
    pub node: String,
    /// Lists and watches the pods of the node.
    pub of_node: Client,
    /// The address of the node, at which node ports and ports of pods (`hostPort`) are, as they are at 127.0.0.1.
    pub address: Ipv4Addr,
    /// Where the API server listens.
    pub api_server: SocketAddr,
    /// The last labels of the names of Services, such as `cluster.local`.
    pub domain: String,
    /// Where the name server is to listen, at port 53.
    pub name_server: Option<Ipv4Addr>,
    /// The machine's `/etc/resolv.conf`: whom to ask for other names.
    pub resolv_conf: String,
}

/// The addresses and names of Services on this machine.
pub struct Network {
    client: Client,
    of_node: Client,
    here: Here,
    zone: Arc<RwLock<Arc<Zone>>>,
    dns: Result<dns::Server, NoNames>,
}

/// Why there is no name server.
#[derive(Debug)]
enum NoNames {
    /// The Services are of no network of this machine.
    NoAddress,
    Refused(io::Error),
}

impl Network {
    /// Binds the name server; nothing else listens before it [runs](Self::run).
    pub async fn open(settings: Settings) -> Self {
        let Settings { client, node, of_node, address, api_server, domain, name_server, resolv_conf } =
            settings;
        let zone = Arc::new(RwLock::new(Arc::new(Zone::of(&Services::default(), &domain))));
        let dns = match name_server {
            None => Err(NoNames::NoAddress),
            Some(address) => dns::Server::bind((address, DNS), Arc::clone(&zone), resolvers(&resolv_conf))
                .await
                .map_err(NoNames::Refused),
        };
        Self { client, of_node, here: Here { node, address, api_server }, zone, dns }
    }

    /// Where the names of Services are answered.
    ///
    /// # Errors
    /// They are not, for this reason: most often, the port is below 1024 and this process may not listen there.
    pub fn name_server(&self) -> Result<IpAddr, String> {
        match &self.dns {
            Ok(server) => server.address().map(|address| address.ip()).map_err(|error| error.to_string()),
            Err(NoNames::NoAddress) => Err("addresses of Services are not of this machine".to_owned()),
            Err(NoNames::Refused(error)) => Err(format!("port {DNS}: {error}")),
        }
    }

    /// Answers and carries until `shutdown` is cancelled. Connections that are there then end with the process.
    pub async fn run(self, shutdown: CancellationToken) {
        let Self { client, of_node, here, zone, dns } = self;
        let names = async {
            match dns {
                Ok(server) => server.run().await,
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = shutdown.cancelled() => {}
            () = follow(client, of_node, &here, &zone) => {}
            () = names => {}
        }
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network").field("here", &self.here).finish_non_exhaustive()
    }
}

/// A change of what is there.
enum Change {
    Services(Part<Service>),
    Slices(Part<EndpointSlice>),
    Pods(Part<Pod>),
}

enum Part<K> {
    Listed(Vec<K>),
    Applied(Box<K>),
    Deleted(Box<K>),
}

/// Does what follows from Services, EndpointSlices and the pods of the node, for as long as they are watched.
async fn follow(client: Client, of_node: Client, here: &Here, zone: &RwLock<Arc<Zone>>) {
    let all = watcher::Config::default();
    let own = watcher::Config::default().fields(&format!("spec.nodeName={}", here.node));
    let changes = stream::select(
        stream::select(
            changes::<Service>(&client, all.clone()).map(Change::Services),
            changes::<EndpointSlice>(&client, all).map(Change::Slices),
        ),
        changes::<Pod>(&of_node, own).map(Change::Pods),
    );
    let mut changes = pin!(changes.ready_chunks(TOGETHER));
    let mut services = Services::default();
    let mut pods: BTreeMap<Key, Pod> = BTreeMap::new();
    // Nothing follows from one half of what there is.
    let mut listed = (false, false);
    let mut proxy = Proxy::default();
    loop {
        tokio::select! {
            Some(changes) = changes.next() => {
                for change in changes {
                    match change {
                        Change::Services(part) => listed.0 |= part.take_part(&mut services),
                        Change::Slices(part) => listed.1 |= part.take_part(&mut services),
                        Change::Pods(part) => part.keep(&mut pods),
                    }
                }
                if listed == (true, true) {
                    let names = Zone::of(&services, zone.read().domain());
                    *zone.write() = Arc::new(names);
                }
            }
            () = sleep(AGAIN), if proxy.is_incomplete() => {}
        }
        if listed != (true, true) {
            continue;
        }
        let mut sockets = host_ports(pods.values(), here);
        sockets.extend(frontends(&services, here));
        for (socket, owner, reason) in proxy.apply(sockets).await {
            let protocol = match socket.protocol {
                Protocol::Tcp => "TCP",
                Protocol::Udp => "UDP",
            };
            tracing::warn!(address = %socket.address, protocol, reason, "{owner} has no socket");
        }
    }
}

impl<K: Kept> Part<K> {
    /// Says whether it was all that there is.
    fn take_part(self, services: &mut Services) -> bool {
        match self {
            Self::Listed(all) => {
                services.replace(all);
                return true;
            }
            Self::Applied(object) => services.apply(*object),
            Self::Deleted(object) => services.delete(&*object),
        }
        false
    }
}

impl Part<Pod> {
    fn keep(self, pods: &mut BTreeMap<Key, Pod>) {
        match self {
            Self::Listed(all) => *pods = all.into_iter().map(|pod| (key(&pod.metadata), pod)).collect(),
            Self::Applied(pod) => drop(pods.insert(key(&pod.metadata), *pod)),
            Self::Deleted(pod) => drop(pods.remove(&key(&pod.metadata))),
        }
    }
}

/// What is watched of a kind.
fn changes<K>(client: &Client, config: watcher::Config) -> impl Stream<Item = Part<K>> + use<K>
where
    K: kube::Resource<DynamicType = ()> + DeserializeOwned + Clone + fmt::Debug + Send + 'static,
{
    let events = watcher(Api::<ByText<K>>::all(client.clone()), config).default_backoff();
    let mut listing = Vec::new();
    events.filter_map(move |event| {
        let part = match event {
            Ok(Event::Init) => {
                listing = Vec::new();
                None
            }
            Ok(Event::InitApply(ByText(object))) => {
                listing.push(object);
                None
            }
            Ok(Event::InitDone) => Some(Part::Listed(std::mem::take(&mut listing))),
            Ok(Event::Apply(ByText(object))) => Some(Part::Applied(Box::new(object))),
            Ok(Event::Delete(ByText(object))) => Some(Part::Deleted(Box::new(object))),
            Err(error) => {
                tracing::warn!(%error, "Services, or the pods of the node, cannot be watched");
                None
            }
        };
        std::future::ready(part)
    })
}

/// The name servers that a `/etc/resolv.conf` names.
fn resolvers(resolv_conf: &str) -> Vec<SocketAddr> {
    let servers = resolv_conf.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some("nameserver")).then(|| words.next())??.parse::<IpAddr>().ok()
    });
    servers.map(|server| SocketAddr::new(server, DNS)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn clusters_have_addresses_of_their_own() {
        let networks: BTreeSet<String> =
            (0..100).map(|number| service_network(&format!("/tmp/{number}"))).collect();
        assert!(networks.len() > 90, "{networks:?}");
        for network in &networks {
            let (first, bits) = network.split_once('/').expect("a network");
            let first: Ipv4Addr = first.parse().expect("an address");
            assert!(
                first >= ADDRESSES
                    && first.is_loopback()
                    && first.to_bits().is_multiple_of(EACH)
                    && bits == "20"
            );
        }
        assert_eq!(service_network("/tmp/1"), service_network("/tmp/1"));
    }

    #[test]
    fn the_name_server_has_the_tenth_address() {
        assert_eq!(name_server(IpAddr::from([127, 128, 16, 0])), Some(Ipv4Addr::new(127, 128, 16, 10)));
        assert_eq!(name_server(IpAddr::from([10, 0, 0, 0])), None);
    }

    #[test]
    fn the_machine_says_who_knows_other_names() {
        let text = "# a\nnameserver 10.0.0.2\nsearch a.org\nnameserver fe80::1\nnameserver x\n";
        let servers: Vec<String> = resolvers(text).iter().map(ToString::to_string).collect();
        assert_eq!(servers, ["10.0.0.2:53", "[fe80::1]:53"]);
    }
}
