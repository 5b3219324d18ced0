//! What other API servers have said of what they serve.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use kubewright_engine::ApiServices;
use kubewright_views::discovery::Elsewhere;
use parking_lot::Mutex;
use serde_json::{Map, Value};

/// What one of them has said, by which of the answers are known again.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Said {
    /// The resources of the version; none where they are not known.
    pub(super) resources: Option<Value>,
    /// Whether it has just said so.
    pub(super) is_current: bool,
    /// The part of its OpenAPI v2 that is about the version.
    pub(super) swagger: Option<Value>,
    /// The tag of the whole.
    pub(super) swagger_tag: String,
    /// Its index of OpenAPI v3.
    pub(super) index: Map<String, Value>,
}

/// What all have said, by the names of APIServices.
#[derive(Default)]
pub(in crate::http) struct Known {
    said: Mutex<BTreeMap<String, Said>>,
    published: ArcSwap<Published>,
}

/// What stands in the documents of this server.
#[derive(Debug, Default, PartialEq)]
pub(in crate::http) struct Published {
    /// For aggregated discovery.
    pub(in crate::http) elsewhere: Vec<Elsewhere>,
    /// For OpenAPI v2.
    pub(in crate::http) swagger: Vec<Value>,
    /// For the index of OpenAPI v3.
    pub(in crate::http) index: BTreeMap<String, Value>,
    /// Who has each document of that: the name of an APIService.
    owners: BTreeMap<String, String>,
}

impl Published {
    /// The name of the APIService whose API server has a document of OpenAPI v3.
    pub(in crate::http) fn owner(&self, document: &str) -> Option<&str> {
        self.owners.get(document).map(String::as_str)
    }
}

impl Known {
    /// What stands in the documents now. It stays the same value until something changes.
    pub(in crate::http) fn published(&self) -> Arc<Published> {
        self.published.load_full()
    }

    /// What one has said so far.
    pub(super) fn said(&self, name: &str) -> Said {
        self.said.lock().get(name).cloned().unwrap_or_default()
    }

    /// Keeps what one has said.
    pub(super) fn keep(&self, name: &str, said: Said, services: &ApiServices) {
        self.said.lock().insert(name.to_owned(), said);
        self.publish(services);
    }

    /// These are the APIServices now: what others have said is forgotten.
    pub(super) fn publish(&self, services: &ApiServices) {
        let mut said = self.said.lock();
        let mut published = Published::default();
        said.retain(|name, _| services.remote().any(|one| one.name == *name));
        let mut remote: Vec<_> = services.remote().collect();
        remote.sort_by_key(|one| (std::cmp::Reverse(one.group_priority), &one.name));
        for one in remote {
            let said = said.entry(one.name.clone()).or_default();
            published.elsewhere.push(Elsewhere {
                group: one.group.clone(),
                version: one.version.clone(),
                priorities: (one.group_priority, one.version_priority),
                resources: said.resources.clone(),
                is_current: said.is_current,
            });
            published.swagger.extend(said.swagger.clone());
            for (path, item) in &said.index {
                if !published.index.contains_key(path) {
                    published.index.insert(path.clone(), item.clone());
                    published.owners.insert(path.clone(), one.name.clone());
                }
            }
        }
        if **self.published.load() != published {
            self.published.store(Arc::new(published));
        }
    }
}
