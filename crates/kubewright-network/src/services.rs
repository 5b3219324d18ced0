//! The Services of a cluster and where they lead: what the watches have said, by name.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{Service, ServiceSpec};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};

/// The label of a slice with the name of its Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Namespace and name.
pub(crate) type Key = (String, String);

/// What is there now.
#[derive(Debug, Default)]
pub(crate) struct Services {
    services: BTreeMap<Key, Service>,
    slices: BTreeMap<Key, EndpointSlice>,
}

/// A kind of object that is kept.
pub(crate) trait Kept: Sized {
    fn kept(all: &mut Services) -> &mut BTreeMap<Key, Self>;
    fn key(&self) -> Key;
}

impl Kept for Service {
    fn kept(all: &mut Services) -> &mut BTreeMap<Key, Self> {
        &mut all.services
    }

    fn key(&self) -> Key {
        key(&self.metadata)
    }
}

impl Kept for EndpointSlice {
    fn kept(all: &mut Services) -> &mut BTreeMap<Key, Self> {
        &mut all.slices
    }

    fn key(&self) -> Key {
        key(&self.metadata)
    }
}

pub(crate) fn key(metadata: &kube::api::ObjectMeta) -> Key {
    let text = |of: &Option<String>| of.clone().unwrap_or_default();
    (text(&metadata.namespace), text(&metadata.name))
}

/// An endpoint that may be asked, with the ports of its slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backend<'a> {
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) address: IpAddr,
    slice: &'a EndpointSlice,
}

impl Services {
    pub(crate) fn apply<K: Kept>(&mut self, object: K) {
        K::kept(self).insert(object.key(), object);
    }

    pub(crate) fn delete<K: Kept>(&mut self, object: &K) {
        K::kept(self).remove(&object.key());
    }

    /// These are all that there are.
    pub(crate) fn replace<K: Kept>(&mut self, objects: Vec<K>) {
        *K::kept(self) = objects.into_iter().map(|object| (object.key(), object)).collect();
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &ServiceSpec)> {
        self.services.iter().filter_map(|(key, service)| Some((key, service.spec.as_ref()?)))
    }

    /// The namespaces that have a Service.
    pub(crate) fn namespaces(&self) -> BTreeSet<&str> {
        self.services.keys().map(|(namespace, _)| &**namespace).collect()
    }

    /// The endpoints of each Service, whatever their state.
    pub(crate) fn backends(&self) -> BTreeMap<(&str, &str), Vec<Backend<'_>>> {
        let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for ((namespace, _), slice) in &self.slices {
            let labels = slice.metadata.labels.as_ref();
            let Some(service) = labels.and_then(|labels| labels.get(SERVICE_NAME)) else { continue };
            // An endpoint has one address; others that a slice may name are not used by anybody.
            let backends = slice.endpoints.iter().flatten().filter_map(|endpoint| {
                let address = endpoint.addresses.first()?.parse().ok()?;
                Some(Backend { endpoint, address, slice })
            });
            all.entry((&**namespace, &**service)).or_default().extend(backends);
        }
        all
    }
}

impl Backend<'_> {
    /// Unknown is ready.
    pub(crate) fn is_ready(&self) -> bool {
        self.condition(|conditions| conditions.ready).unwrap_or(true)
    }

    /// It ends, but still answers.
    pub(crate) fn serves_while_it_ends(&self) -> bool {
        let serving = self.condition(|conditions| conditions.serving);
        let terminating = self.condition(|conditions| conditions.terminating);
        serving.unwrap_or_else(|| self.is_ready()) && terminating.unwrap_or_default()
    }

    fn condition(
        &self,
        of: impl Fn(&k8s_openapi::api::discovery::v1::EndpointConditions) -> Option<bool>,
    ) -> Option<bool> {
        self.endpoint.conditions.as_ref().and_then(of)
    }

    /// The number of its port with this name and protocol.
    pub(crate) fn port(&self, name: &str, protocol: &str) -> Option<u16> {
        let ports = self.slice.ports.iter().flatten();
        let mut named = ports.filter(|port| {
            port.name.as_deref().unwrap_or_default() == name
                && port.protocol.as_deref().unwrap_or("TCP") == protocol
        });
        named.find_map(|port| port.port).and_then(|port| u16::try_from(port).ok())
    }

    /// Its ports: name, protocol, number.
    pub(crate) fn ports(&self) -> impl Iterator<Item = (&str, &str, u16)> {
        self.slice.ports.iter().flatten().filter_map(|port| {
            let number = u16::try_from(port.port?).ok()?;
            Some((
                port.name.as_deref().unwrap_or_default(),
                port.protocol.as_deref().unwrap_or("TCP"),
                number,
            ))
        })
    }
}
