//! The kinds that a cluster serves, and which of them a word means.

use kube::Client;
use kube::core::discovery::v2::{APIGroupDiscovery, APIVersionDiscovery};

/// A kind that is served, in the version that its group prefers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServedKind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) is_namespaced: bool,
    pub(crate) is_listed: bool,
}

/// All that are served, those of the core group first.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServedKinds(Vec<ServedKind>);

impl ServedKind {
    /// The path of the collection in a namespace, or in the cluster.
    pub(crate) fn path(&self, namespace: &str) -> String {
        let Self { group, version, plural, .. } = self;
        let root =
            if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        if self.is_namespaced && !namespace.is_empty() {
            format!("{root}/namespaces/{namespace}/{plural}")
        } else {
            format!("{root}/{plural}")
        }
    }

    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `deployments.apps`.
    pub(crate) fn full_name(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Whether a word means it: a kind, its plural, singular or short name, alone or with `.group` or `.version.group`.
    fn is_meant(&self, word: &str) -> bool {
        let (name, rest) = word.split_once('.').map_or((word, None), |(name, rest)| (name, Some(rest)));
        let names = [&self.kind, &self.plural, &self.singular].into_iter().chain(&self.short_names);
        let is_named = names.into_iter().any(|one| one.eq_ignore_ascii_case(name));
        let is_of_group = rest.is_none_or(|rest| {
            rest.eq_ignore_ascii_case(&self.group)
                || rest.eq_ignore_ascii_case(&format!("{}.{}", self.version, self.group))
        });
        is_named && is_of_group
    }
}

impl ServedKinds {
    /// Asks the cluster, in two requests.
    pub(crate) async fn discover(client: &Client) -> Result<Self, kube::Error> {
        let core = client.list_core_api_versions_aggregated().await?;
        let groups = client.list_api_groups_aggregated().await?;
        Ok(Self(core.items.iter().chain(&groups.items).flat_map(of_group).collect()))
    }

    /// The kind that a word means, the first of several.
    pub(crate) fn find(&self, word: &str) -> Option<&ServedKind> {
        self.0.iter().find(|kind| kind.is_meant(word))
    }

    pub(crate) fn get(&self, group: &str, kind: &str) -> Option<&ServedKind> {
        self.0.iter().find(|one| one.kind == kind && one.group == group)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ServedKind> {
        self.0.iter()
    }

    /// Names of kinds that begin like a word, for who mistyped one.
    pub(crate) fn like(&self, word: &str) -> Vec<String> {
        let name = word.split('.').next().unwrap_or_default().to_lowercase();
        let begins = name.get(..3.min(name.len())).unwrap_or_default();
        let close = self.0.iter().filter(|one| !begins.is_empty() && one.plural.starts_with(begins));
        close.map(ServedKind::full_name).take(5).collect()
    }
}

/// The kinds of a group: each in the first version that has it.
fn of_group(group: &APIGroupDiscovery) -> Vec<ServedKind> {
    let name = group.metadata.as_ref().and_then(|metadata| metadata.name.clone()).unwrap_or_default();
    let mut found: Vec<ServedKind> = Vec::new();
    for kind in group.versions.iter().flat_map(|version| of_version(&name, version)) {
        if found.iter().all(|one| one.plural != kind.plural) {
            found.push(kind);
        }
    }
    found
}

fn of_version(group: &str, version: &APIVersionDiscovery) -> Vec<ServedKind> {
    let number = version.version.clone().unwrap_or_default();
    let resources = version.resources.iter();
    let kind = |resource: &kube::core::discovery::v2::APIResourceDiscovery| {
        Some(ServedKind {
            group: group.to_owned(),
            version: number.clone(),
            kind: resource.response_kind.as_ref()?.kind.clone()?,
            plural: resource.resource.clone()?,
            singular: resource.singular_resource.clone().unwrap_or_default(),
            short_names: resource.short_names.clone(),
            is_namespaced: resource.scope.as_deref() == Some("Namespaced"),
            is_listed: resource.verbs.iter().any(|verb| verb == "list"),
        })
    };
    resources.filter_map(kind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployments() -> ServedKind {
        ServedKind {
            group: "apps".to_owned(),
            version: "v1".to_owned(),
            kind: "Deployment".to_owned(),
            plural: "deployments".to_owned(),
            singular: "deployment".to_owned(),
            short_names: vec!["deploy".to_owned()],
            is_namespaced: true,
            is_listed: true,
        }
    }

    #[test]
    fn a_kind_is_meant_by_all_the_names_that_kubectl_takes() {
        for word in ["deploy", "deployment", "Deployments", "deployments.apps", "deploy.v1.apps"] {
            assert!(deployments().is_meant(word), "{word}");
        }
        for word in ["deplo", "deployments.batch", "deployments.v2.apps", "pods", ""] {
            assert!(!deployments().is_meant(word), "{word}");
        }
    }

    #[test]
    fn paths_are_those_of_the_api() {
        let mut kind = deployments();
        assert_eq!(kind.path("shop"), "/apis/apps/v1/namespaces/shop/deployments");
        assert_eq!(kind.path(""), "/apis/apps/v1/deployments");
        (kind.group, kind.plural) = (String::new(), "pods".to_owned());
        assert_eq!(kind.path("shop"), "/api/v1/namespaces/shop/pods");
    }
}
