//! Kinds: those that a Rust type is of, and those that are known only at run time.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{
    Client,
    api::{ApiResource, DynamicObject},
    core::gvk::GroupVersion,
    discovery::{self, Scope},
};

use crate::{Cached, Error, Object, Owner};

/// A kind, as a Rust type or a program at run time has it.
pub(crate) struct KindOf<K: Cached> {
    pub(crate) kind: K::DynamicType,
    pub(crate) is_namespaced: bool,
}

impl<K: Object> KindOf<K> {
    /// The kind of the type.
    pub(crate) fn typed() -> Self {
        Self { kind: (), is_namespaced: K::is_namespaced() }
    }
}

impl<K: Cached> KindOf<K> {
    /// The namespace of a request about this kind.
    pub(crate) fn namespace<'a>(&self, namespace: Option<&'a str>) -> Option<&'a str> {
        namespace.filter(|_| self.is_namespaced)
    }
}

impl<K: Cached> Clone for KindOf<K> {
    fn clone(&self) -> Self {
        Self { kind: self.kind.clone(), is_namespaced: self.is_namespaced }
    }
}

/// A kind that is known only at run time: from a configuration, say, or from an object that names another.
///
/// ```
/// use kubewright_runtime::DynamicKind;
/// # async fn example(client: &kube::Client) -> Result<(), kubewright_runtime::Error> {
/// let Some(kind) = DynamicKind::discover(client, "cert-manager.io/v1", "Certificate").await? else {
///     return Ok(()); // it is not served
/// };
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct DynamicKind {
    resource: ApiResource,
    is_namespaced: bool,
}

impl DynamicKind {
    /// A kind that lives in namespaces.
    #[must_use]
    pub fn namespaced(resource: ApiResource) -> Self {
        Self { resource, is_namespaced: true }
    }

    /// A kind of the cluster.
    #[must_use]
    pub fn cluster_scoped(resource: ApiResource) -> Self {
        Self { resource, is_namespaced: false }
    }

    /// The kind of this name (`Certificate`) in this group and version (`cert-manager.io/v1`, `v1`), as the API server tells it; `None` when it does
    /// not serve it. What apimachinery's `RESTMapper` finds.
    ///
    /// # Errors
    /// What is no group and version; what the server refuses.
    pub async fn discover(client: &Client, api_version: &str, kind: &str) -> Result<Option<Self>, Error> {
        let version: GroupVersion = api_version.parse().map_err(Error::terminal)?;
        match discovery::pinned_kind(client, &version.with_kind(kind)).await {
            Ok((resource, about)) => {
                Ok(Some(Self { resource, is_namespaced: about.scope == Scope::Namespaced }))
            }
            Err(kube::Error::Discovery(_)) => Ok(None),
            // A group that there is not is answered in words.
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Group, version, kind and plural.
    #[must_use]
    pub fn resource(&self) -> &ApiResource {
        &self.resource
    }

    /// Whether its objects live in namespaces.
    #[must_use]
    pub fn is_namespaced(&self) -> bool {
        self.is_namespaced
    }

    /// An object of this kind as the owner of others ([`Apply::owned_by`](crate::Apply::owned_by)).
    #[must_use]
    pub fn owner<'a>(&'a self, object: &'a DynamicObject) -> DynamicOwner<'a> {
        DynamicOwner { kind: self, object }
    }

    pub(crate) fn of_objects(&self) -> KindOf<DynamicObject> {
        KindOf { kind: self.resource.clone(), is_namespaced: self.is_namespaced }
    }
}

impl fmt::Debug for DynamicKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicKind")
            .field("api_version", &self.resource.api_version)
            .field("kind", &self.resource.kind)
            .field("is_namespaced", &self.is_namespaced)
            .finish()
    }
}

/// An object of a [`DynamicKind`] that owns others.
#[derive(Clone, Copy, Debug)]
pub struct DynamicOwner<'a> {
    kind: &'a DynamicKind,
    object: &'a DynamicObject,
}

impl Owner for DynamicOwner<'_> {
    fn controller_reference(&self) -> Result<OwnerReference, Error> {
        let (resource, meta) = (&self.kind.resource, &self.object.metadata);
        match (&meta.name, &meta.uid) {
            (Some(name), Some(uid)) => Ok(OwnerReference {
                api_version: resource.api_version.clone(),
                kind: resource.kind.clone(),
                name: name.clone(),
                uid: uid.clone(),
                controller: Some(true),
                block_owner_deletion: Some(true),
            }),
            _ => Err(Error::new(format!(
                "a {} without name and uid cannot own anything: it was never stored",
                resource.kind
            ))),
        }
    }

    fn namespace(&self) -> Option<&str> {
        self.object.metadata.namespace.as_deref().filter(|_| self.kind.is_namespaced)
    }
}
