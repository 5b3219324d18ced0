//! Pod status and containers as the worker of the pod published them last: for logs, commands and ports.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodStatus};
use parking_lot::Mutex;

use crate::container::Container;

/// Pod as its worker published it last. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct View(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    pod: Arc<Pod>,
    status: PodStatus,
    address: Option<IpAddr>,
    containers: BTreeMap<String, Arc<dyn Container>>,
    over: bool,
}

impl View {
    pub(crate) fn new(pod: Arc<Pod>) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            pod,
            status: PodStatus::default(),
            address: None,
            containers: BTreeMap::new(),
            over: false,
        })))
    }

    pub(super) fn publish(&self, pod: Arc<Pod>, status: PodStatus, address: Option<IpAddr>, over: bool) {
        let mut inner = self.0.lock();
        (inner.pod, inner.status, inner.address, inner.over) = (pod, status, address, over);
    }

    pub(super) fn runs(&self, name: &str, container: Option<Arc<dyn Container>>) {
        let containers = &mut self.0.lock().containers;
        match container {
            Some(container) => containers.insert(name.to_owned(), container),
            None => containers.remove(name),
        };
    }

    pub(crate) fn pod(&self) -> Arc<Pod> {
        Arc::clone(&self.0.lock().pod)
    }

    /// Its address, while it has containers.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        let inner = self.0.lock();
        inner.address.filter(|_| !inner.over)
    }

    /// Whether its containers have ended for good: what it had of the node is free.
    pub(crate) fn is_over(&self) -> bool {
        self.0.lock().over
    }

    /// A container that runs.
    pub(crate) fn container(&self, name: &str) -> Option<Arc<dyn Container>> {
        self.0.lock().containers.get(name).cloned()
    }

    pub(crate) fn status_of(&self, name: &str) -> Option<ContainerStatus> {
        let inner = self.0.lock();
        let status = &inner.status;
        let lists = [
            &status.container_statuses,
            &status.init_container_statuses,
            &status.ephemeral_container_statuses,
        ];
        lists.into_iter().flatten().flatten().find(|status| status.name == name).cloned()
    }
}
