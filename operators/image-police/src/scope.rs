//! Which lists hold in a namespace.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use kube::{
    ResourceExt,
    core::{Selector, SelectorExt},
};
use kubewright::{Cache, Key};

use crate::{ClusterWhiteList, WhiteList, WhiteListSpec, regime::List};

/// A ClusterWhiteList, and whether it is enforced in the namespace.
#[derive(Clone, Debug)]
pub struct Wide {
    /// The list.
    pub list: Arc<ClusterWhiteList>,
    /// Whether its selector has the namespace.
    pub is_enforced: bool,
}

/// The lists that hold in a namespace.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Its own, sorted by name.
    pub lists: Vec<Arc<WhiteList>>,
    /// Those of the cluster, sorted by name.
    pub wide: Vec<Wide>,
}

impl Scope {
    /// The lists that hold in `namespace`, from the cache.
    pub(crate) fn of(cache: &Cache, namespace: &str) -> Self {
        let found = cache.get::<Namespace>(&Key::cluster_scoped(namespace));
        let labels = found.map(|namespace| namespace.labels().clone()).unwrap_or_default();
        let selects = |list: &ClusterWhiteList| {
            let selector = list.spec.namespace_selector.clone();
            let selector = selector.and_then(|selector| Selector::try_from(selector).ok());
            selector.is_some_and(|selector| selector.matches(&labels))
        };
        let wide = cache.list::<ClusterWhiteList>(None).into_iter();
        Self {
            lists: cache.list::<WhiteList>(Some(namespace)),
            wide: wide.map(|list| Wide { is_enforced: selects(&list), list }).collect(),
        }
    }

    /// Whether anybody judges.
    pub(crate) fn is_judged(&self) -> bool {
        !self.lists.is_empty() || self.wide.iter().any(|wide| wide.is_enforced)
    }

    /// What they say, the namespace's own before those of the cluster.
    pub(crate) fn specs(&self) -> impl Iterator<Item = &WhiteListSpec> {
        let wide = self.wide.iter().map(|wide| &wide.list.spec.list);
        self.lists.iter().map(|list| &list.spec).chain(wide)
    }

    /// The same, with what a regime is made of.
    pub(crate) fn lists(&self, namespace: &str) -> Vec<List<'_>> {
        let own = self.lists.iter().map(|list| List {
            title: format!("WhiteList {namespace}/{}", list.name_any()),
            spec: &list.spec,
            created: list.metadata.creation_timestamp.as_ref().map(|time| time.0),
            is_enforced: true,
        });
        let wide = self.wide.iter().map(|wide| List {
            title: format!("ClusterWhiteList {}", wide.list.name_any()),
            spec: &wide.list.spec.list,
            created: wide.list.metadata.creation_timestamp.as_ref().map(|time| time.0),
            is_enforced: wide.is_enforced,
        });
        own.chain(wide).collect()
    }
}
