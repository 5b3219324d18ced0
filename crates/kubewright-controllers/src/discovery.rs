//! What the API server serves, as the controllers that work on every kind need it.

use std::collections::BTreeMap;

use kube::core::discovery::v2::{ACCEPT_AGGREGATED_DISCOVERY_V2, APIGroupDiscoveryList};
use kube::core::{ApiResource, DynamicObject};
use kube::discovery::{Discovery, Scope, verbs};
use kube::{Api, Client};

/// A served resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) resource: ApiResource,
    pub(crate) namespaced: bool,
    /// What its collection and objects can be asked to do.
    verbs: Vec<String>,
}

impl Served {
    /// Whether it has all of these verbs.
    pub(crate) fn supports(&self, verbs: &[&str]) -> bool {
        verbs.iter().all(|verb| self.verbs.iter().any(|has| has == verb))
    }

    /// Its objects in `namespace`; of a cluster-scoped kind all of them.
    pub(crate) fn api(&self, client: &Client, namespace: Option<&str>) -> Api<DynamicObject> {
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &self.resource),
            None => Api::all_with(client.clone(), &self.resource),
        }
    }

    /// `plural.group`, as Kubernetes names a resource to people; of the core group `plural.`.
    pub(crate) fn name(&self) -> String {
        format!("{}.{}", self.resource.plural, self.resource.group)
    }
}

/// All served resources, each in its group's preferred version, by group and kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Catalog(BTreeMap<(String, String), Served>);

impl Catalog {
    /// Asks the API server, in two requests.
    ///
    /// # Errors
    /// When it does not answer, or not in the aggregated form.
    pub(crate) async fn fetch(client: &Client) -> Result<Self, kube::Error> {
        let discovery = Discovery::new(client.clone()).run_aggregated().await?;
        let served = discovery.groups_alphabetical().into_iter().flat_map(|group| {
            // Newest first, then the preferred version: what comes later wins.
            let mut versions: Vec<_> = group.versions().map(str::to_owned).collect();
            versions.reverse();
            versions.extend(group.preferred_version().map(str::to_owned));
            versions.into_iter().flat_map(|version| group.versioned_resources(&version)).collect::<Vec<_>>()
        });
        Ok(served
            .map(|(resource, capabilities)| Served {
                resource,
                namespaced: capabilities.scope == Scope::Namespaced,
                verbs: capabilities.operations,
            })
            .collect())
    }

    /// The versions whose API servers do not say what they serve, as `group/version`, sorted.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub(crate) async fn stale(client: &Client) -> Result<Vec<String>, kube::Error> {
        let request =
            http::Request::get("/apis").header(http::header::ACCEPT, ACCEPT_AGGREGATED_DISCOVERY_V2);
        let request = request.body(Vec::new()).map_err(kube::core::request::Error::BuildRequest);
        let document = client.request_text(request.map_err(kube::Error::BuildRequest)?).await?;
        // Mostly there are none: the document need not be read for that.
        Ok(if document.contains(r#""Stale""#) { stale_versions(&document) } else { Vec::new() })
    }

    /// The resource of a kind.
    pub(crate) fn find(&self, group: &str, kind: &str) -> Option<&Served> {
        self.0.get(&(group.to_owned(), kind.to_owned()))
    }

    /// The resource of a plural, where its objects can be listed, watched and deleted.
    pub(crate) fn find_plural(&self, group: &str, plural: &str) -> Option<&Served> {
        self.collectable().find(|served| served.resource.group == group && served.resource.plural == plural)
    }

    /// The resource of a plural, whatever can be done with it.
    pub(crate) fn of_plural(&self, group: &str, plural: &str) -> Option<&Served> {
        self.0.values().find(|served| served.resource.group == group && served.resource.plural == plural)
    }

    /// Those whose objects can be listed, watched and deleted.
    pub(crate) fn collectable(&self) -> impl Iterator<Item = &Served> {
        self.0.values().filter(|served| served.supports(&[verbs::LIST, verbs::WATCH, verbs::DELETE]))
    }

    /// Those whose objects live in namespaces and can be deleted.
    pub(crate) fn namespaced_content(&self) -> impl Iterator<Item = &Served> {
        self.0.values().filter(|served| served.namespaced && served.supports(&[verbs::LIST, verbs::DELETE]))
    }
}

/// The stale versions of a document of aggregated discovery.
fn stale_versions(document: &str) -> Vec<String> {
    let Ok(list) = kubewright_objects::from_json::<APIGroupDiscoveryList>(document) else {
        return Vec::new();
    };
    let mut stale: Vec<String> = list
        .items
        .into_iter()
        .flat_map(|group| {
            let name = group.metadata.and_then(|metadata| metadata.name).unwrap_or_default();
            let stale = group.versions.into_iter().filter(|one| one.freshness.as_deref() == Some("Stale"));
            stale.map(move |one| format!("{name}/{}", one.version.unwrap_or_default())).collect::<Vec<_>>()
        })
        .collect();
    stale.sort();
    stale
}

impl FromIterator<Served> for Catalog {
    fn from_iter<I: IntoIterator<Item = Served>>(served: I) -> Self {
        let key = |served: &Served| (served.resource.group.clone(), served.resource.kind.clone());
        Self(served.into_iter().map(|served| (key(&served), served)).collect())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use kube::core::GroupVersionKind;

    use super::*;

    /// A served resource with the usual verbs.
    pub(crate) fn served(api_version: &str, kind: &str, namespaced: bool) -> Served {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let verbs =
            ["create", "delete", "get", "list", "patch", "update", "watch"].map(str::to_owned).to_vec();
        Served { resource, namespaced, verbs }
    }

    #[test]
    fn a_kind_is_found_by_its_group() {
        let catalog: Catalog =
            [served("v1", "Pod", true), served("apps/v1", "Deployment", true)].into_iter().collect();
        let found = catalog.find("apps", "Deployment").map(|served| served.resource.api_version.as_str());
        assert_eq!(found, Some("apps/v1"));
        assert_eq!(catalog.find("apps", "Pod"), None);
        assert_eq!(catalog.find("", "Pod").map(Served::name).as_deref(), Some("pods."));
    }

    #[test]
    fn what_cannot_be_deleted_or_has_no_namespace_is_no_content() {
        let mut review = served("v1", "Review", true);
        review.verbs = vec!["create".into()];
        let catalog: Catalog =
            [review, served("v1", "Node", false), served("v1", "Pod", true)].into_iter().collect();
        let content: Vec<_> =
            catalog.namespaced_content().map(|served| served.resource.kind.as_str()).collect();
        assert_eq!(content, ["Pod"]);
        assert_eq!(catalog.collectable().count(), 2);
    }
}
