//! Who serves which version of a group, as the stored APIServices say.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use kubewright_kinds::built_in::apiregistration::api_service::API_SERVICE;
use kubewright_kinds::rules::api_services::ApiService;
use kubewright_kinds::{Summary, encode};
use kubewright_store::{Revision, Snapshot};

use super::Engine;

/// All APIServices of a moment, read.
#[derive(Debug, Default)]
pub struct ApiServices {
    all: Vec<ApiService>,
    /// The places of those whose API servers are elsewhere.
    remote: Vec<usize>,
}

impl ApiServices {
    /// All of them, by name.
    #[must_use]
    pub fn all(&self) -> &[ApiService] {
        &self.all
    }

    /// Those whose API servers are elsewhere, by name.
    pub fn remote(&self) -> impl Iterator<Item = &ApiService> {
        self.remote.iter().filter_map(|place| self.all.get(*place))
    }

    /// That of a version of a group which another API server serves.
    #[must_use]
    pub fn elsewhere(&self, group: &str, version: &str) -> Option<&ApiService> {
        self.remote().find(|one| one.group == group && one.version == version)
    }
}

/// What was read last, and what the collection was changed by last then.
#[derive(Default)]
pub(super) struct Registry(ArcSwapOption<(Revision, Arc<ApiServices>)>);

impl Engine {
    /// The APIServices of a snapshot; read again when they have changed.
    #[must_use]
    pub fn api_services(&self, snapshot: &Snapshot<Summary>) -> Arc<ApiServices> {
        let modified = snapshot.modified(API_SERVICE.collection());
        if let Some(known) = self.registry.0.load().as_ref().filter(|known| known.0 == modified) {
            return Arc::clone(&known.1);
        }
        let found = Arc::new(self.read_api_services(snapshot));
        self.registry.0.store(Some(Arc::new((modified, Arc::clone(&found)))));
        found
    }

    fn read_api_services(&self, snapshot: &Snapshot<Summary>) -> ApiServices {
        let kinds = self.kinds();
        let Some(kind) = kinds.find(&API_SERVICE) else { return ApiServices::default() };
        let entries = snapshot.range(&kind.collection, "", None);
        let all: Vec<_> = entries.map(|entry| ApiService::read(&encode::value(kind, entry))).collect();
        let remote = (0..all.len()).filter(|place| all[*place].backend.is_some()).collect();
        ApiServices { all, remote }
    }
}
