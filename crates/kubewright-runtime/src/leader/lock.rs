//! Requests about Leases, each with a limit to its time.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, ObjectList, PostParams, Preconditions},
};

use crate::error::describe;

/// The Leases of a namespace.
#[derive(Clone)]
pub(crate) struct Leases {
    api: Api<Lease>,
    timeout: Duration,
}

/// Why a request about a Lease failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LeaseError {
    /// The API server had another state than the request was about: read, and decide anew.
    #[error("{}", describe(.0))]
    Outdated(kube::Error),
    /// It was refused for another reason, or the API server could not be reached.
    #[error("{}", describe(.0))]
    Request(kube::Error),
    #[error("no answer within {0:?}")]
    Timeout(Duration),
}

impl From<kube::Error> for LeaseError {
    fn from(error: kube::Error) -> Self {
        match &error {
            kube::Error::Api(status)
                if status.is_conflict() || status.is_not_found() || status.is_already_exists() =>
            {
                Self::Outdated(error)
            }
            _ => Self::Request(error),
        }
    }
}

impl Leases {
    pub(crate) fn new(client: Client, namespace: &str, timeout: Duration) -> Self {
        Self { api: Api::namespaced(client, namespace), timeout }
    }

    pub(crate) async fn get(&self, name: &str) -> Result<Option<Lease>, LeaseError> {
        self.bounded(self.api.get_opt(name)).await
    }

    /// All that have a label, as they are at one moment.
    pub(crate) async fn list(&self, selector: &str) -> Result<ObjectList<Lease>, LeaseError> {
        self.bounded(self.api.list(&ListParams::default().labels(selector))).await
    }

    pub(crate) async fn create(&self, lease: &Lease) -> Result<Lease, LeaseError> {
        self.bounded(self.api.create(&PostParams::default(), lease)).await
    }

    /// Writes `lease`, if nobody has written it since it was read.
    pub(crate) async fn replace(&self, lease: &Lease) -> Result<Lease, LeaseError> {
        let name = lease.metadata.name.as_deref().unwrap_or_default();
        self.bounded(self.api.replace(name, &PostParams::default(), lease)).await
    }

    /// Deletes `lease`, if nobody has written it since it was read.
    pub(crate) async fn delete(&self, lease: &Lease) -> Result<(), LeaseError> {
        let meta = &lease.metadata;
        let as_read =
            Preconditions { uid: meta.uid.clone(), resource_version: meta.resource_version.clone() };
        let params = DeleteParams::default().preconditions(as_read);
        let name = meta.name.as_deref().unwrap_or_default();
        self.bounded(self.api.delete(name, &params)).await.map(|_| ())
    }

    async fn bounded<T>(&self, request: impl Future<Output = kube::Result<T>>) -> Result<T, LeaseError> {
        match tokio::time::timeout(self.timeout, request).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(LeaseError::Timeout(self.timeout)),
        }
    }
}
