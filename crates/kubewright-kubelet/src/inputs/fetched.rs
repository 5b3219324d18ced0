//! What was fetched for a pod.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolume, PersistentVolumeClaim, Secret, Service};

use super::token::{Token, TokenNeed};

/// What was fetched of what a pod [needs](super::Needs). Of each kind, by name: what is there; the API server's message
/// where it would not say; what is not in the map is not there. `Debug` tells names only: much of it is secret.
#[derive(Clone, Default)]
pub struct Fetched {
    /// Config maps of the pod's namespace.
    pub config_maps: BTreeMap<String, Result<Arc<ConfigMap>, String>>,
    /// Secrets of the pod's namespace.
    pub secrets: BTreeMap<String, Result<Arc<Secret>, String>>,
    /// Claims of the pod's namespace.
    pub claims: BTreeMap<String, Result<Arc<PersistentVolumeClaim>, String>>,
    /// The volumes that [`Self::claims`] are bound to (`spec.volumeName`).
    pub persistent_volumes: BTreeMap<String, Result<Arc<PersistentVolume>, String>>,
    /// Tokens, fresh: [`Token::is_due`] says when one has to be fetched anew. The message of a refusal is the API server's.
    pub tokens: BTreeMap<TokenNeed, Result<Token, String>>,
    /// The Services of the pod's namespace, for their environment variables; others are passed over.
    pub services: Vec<Arc<Service>>,
    /// The unpacked files of the images that volumes show, by reference; the message where there are none.
    pub images: BTreeMap<String, Result<PathBuf, String>>,
}

impl std::fmt::Debug for Fetched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fetched")
            .field("config_maps", &self.config_maps.keys())
            .field("secrets", &self.secrets.keys())
            .field("claims", &self.claims.keys())
            .field("persistent_volumes", &self.persistent_volumes.keys())
            .field("tokens", &self.tokens)
            .field("services", &self.services.len())
            .field("images", &self.images)
            .finish()
    }
}

/// What was found of one name: nothing when it is not there.
pub(super) fn find<'a, T>(
    found: &'a BTreeMap<String, Result<Arc<T>, String>>,
    name: &str,
) -> Result<Option<&'a T>, String> {
    match found.get(name) {
        Some(Ok(object)) => Ok(Some(object)),
        Some(Err(message)) => Err(message.clone()),
        None => Ok(None),
    }
}

/// As [`find`], for what must be there unless it is `optional`. `kind` is the word for it in the kubelet's messages
/// (`pkg/kubelet/configmap`, `pkg/kubelet/secret`).
pub(super) fn find_or_refuse<'a, T>(
    found: &'a BTreeMap<String, Result<Arc<T>, String>>,
    kind: &str,
    name: &str,
    optional: bool,
) -> Result<Option<&'a T>, String> {
    let object = find(found, name)?;
    if object.is_none() && !optional {
        return Err(format!("{kind} {name:?} not found"));
    }
    Ok(object)
}
