//! Which kinds of a cluster are recorded: all that can be listed and watched, as its discovery says.

use anyhow::bail;
use clap::Args;
use kube::{
    Client,
    api::ApiResource,
    discovery::{ApiCapabilities, Discovery, Scope, verbs},
};

use crate::access::refused;

/// What somebody wants to have watched.
#[derive(Args, Debug, Default)]
pub(crate) struct Wanted {
    /// Only what is in this namespace
    #[arg(long, short, value_name = "NAME")]
    namespace: Option<String>,

    /// Only these kinds, such as `deployments,pods,certificates.cert-manager.io`; by default all that can be listed and watched
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    kinds: Vec<String>,
}

/// A kind that is watched.
pub(crate) struct Watched {
    pub(crate) resource: ApiResource,
    /// Where; everywhere, if none is said.
    pub(crate) namespace: Option<String>,
    /// Which of its objects.
    pub(crate) fields: Option<String>,
}

impl Watched {
    /// As kubectl calls it: `deployments.apps`.
    pub(crate) fn called(&self) -> String {
        called(&self.resource)
    }

    /// Whether an object of this key is among those that are watched.
    pub(crate) fn has(&self, key: &str) -> bool {
        let namespace = key.split_once('/').map(|(namespace, _)| namespace);
        let is_selected = self.fields.as_ref().is_none_or(|fields| *fields == format!("metadata.name={key}"));
        is_selected && (self.namespace.is_none() || self.namespace.as_deref() == namespace)
    }

    /// `apps/deployments`, `/pods`.
    pub(crate) fn collection(&self) -> String {
        format!("{}/{}", self.resource.group, self.resource.plural)
    }
}

fn called(resource: &ApiResource) -> String {
    let dot = if resource.group.is_empty() { "" } else { "." };
    format!("{}{dot}{}", resource.plural, resource.group)
}

/// The kinds of a cluster that are wanted.
///
/// # Errors
/// When it cannot be reached, or has not one of the kinds that were named.
pub(crate) async fn find(client: &Client, wanted: &Wanted) -> anyhow::Result<Vec<Watched>> {
    let failed = |error: kube::Error| refused("the cluster does not say which kinds it has", &error);
    // All groups in two requests; servers before 1.27 need one for each group.
    let discovery = match Discovery::new(client.clone()).run_aggregated().await {
        Ok(discovery) => discovery,
        Err(_) => Discovery::new(client.clone()).run().await.map_err(failed)?,
    };
    let served = discovery.groups().flat_map(kube::discovery::ApiGroup::resources_by_stability);
    choose(served.collect(), wanted)
}

/// What of the kinds that are served is wanted.
fn choose(served: Vec<(ApiResource, ApiCapabilities)>, wanted: &Wanted) -> anyhow::Result<Vec<Watched>> {
    let can_be_watched = |capabilities: &ApiCapabilities| {
        capabilities.supports_operation(verbs::LIST) && capabilities.supports_operation(verbs::WATCH)
    };
    for name in &wanted.kinds {
        let Some((resource, capabilities)) = served.iter().find(|(resource, _)| is_called(resource, name))
        else {
            bail!("--kinds: the cluster has no kind {name}; `kubectl api-resources` lists those that it has");
        };
        if !can_be_watched(capabilities) {
            bail!("--kinds: {} cannot be listed and watched", called(resource));
        }
        if wanted.namespace.is_some() && capabilities.scope == Scope::Cluster {
            bail!("--kinds: {} are in no namespace: leave --namespace out", called(resource));
        }
    }
    let is_named = |resource: &ApiResource| wanted.kinds.iter().any(|name| is_called(resource, name));
    let mut watched = Vec::new();
    for (resource, capabilities) in served {
        // Events are served twice: this is the same objects once more.
        let is_twice = resource.group == "events.k8s.io" && !is_named(&resource);
        if !can_be_watched(&capabilities) || is_twice || !(wanted.kinds.is_empty() || is_named(&resource)) {
            continue;
        }
        let (namespace, fields) = match (wanted.namespace.as_deref(), &capabilities.scope) {
            (None, _) => (None, None),
            (Some(namespace), Scope::Namespaced) => (Some(namespace.to_owned()), None),
            // What is in a namespace needs it.
            (Some(namespace), Scope::Cluster) if called(&resource) == "namespaces" => {
                (None, Some(format!("metadata.name={namespace}")))
            }
            (Some(_), Scope::Cluster) => continue,
        };
        watched.push(Watched { resource, namespace, fields });
    }
    Ok(watched)
}

/// Whether somebody means this kind: by its kind, its plural, or its plural and its group.
fn is_called(resource: &ApiResource, name: &str) -> bool {
    let name = name.trim();
    [&resource.kind, &resource.plural, &called(resource)].iter().any(|one| one.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(
        group: &str,
        kind: &str,
        plural: &str,
        scope: Scope,
        verbs: &[&str],
    ) -> (ApiResource, ApiCapabilities) {
        let api_version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
        let [group, kind, plural] = [group, kind, plural].map(str::to_owned);
        let resource = ApiResource { group, version: "v1".to_owned(), api_version, kind, plural };
        let operations = verbs.iter().map(|&verb| verb.to_owned()).collect();
        (resource, ApiCapabilities { scope, subresources: Vec::new(), operations })
    }

    fn cluster() -> Vec<(ApiResource, ApiCapabilities)> {
        vec![
            served("", "Pod", "pods", Scope::Namespaced, &["list", "watch"]),
            served("", "Namespace", "namespaces", Scope::Cluster, &["list", "watch"]),
            served("", "Node", "nodes", Scope::Cluster, &["list", "watch"]),
            served("", "ComponentStatus", "componentstatuses", Scope::Cluster, &["list"]),
            served("events.k8s.io", "Event", "events", Scope::Namespaced, &["list", "watch"]),
        ]
    }

    fn chosen(namespace: Option<&str>, kinds: &[&str]) -> Result<Vec<String>, String> {
        let kinds: Vec<String> = kinds.iter().map(|&kind| kind.to_owned()).collect();
        let found = choose(cluster(), &Wanted { namespace: namespace.map(str::to_owned), kinds });
        found.map(|all| all.iter().map(Watched::called).collect()).map_err(|error| error.to_string())
    }

    #[test]
    fn all_kinds_that_can_be_watched_are_wanted_unless_some_are_named() {
        assert_eq!(chosen(None, &[]), Ok(vec!["pods".into(), "namespaces".into(), "nodes".into()]));
        assert_eq!(chosen(None, &["Pod"]), Ok(vec!["pods".into()]));
        assert_eq!(chosen(None, &["events.events.k8s.io"]), Ok(vec!["events.events.k8s.io".into()]));
    }

    #[test]
    fn of_a_namespace_its_objects_and_itself_are_wanted() {
        assert_eq!(chosen(Some("shop"), &[]), Ok(vec!["pods".into(), "namespaces".into()]));
    }

    #[test]
    fn a_kind_that_cannot_be_recorded_is_refused_by_name() {
        assert!(chosen(None, &["widgets"]).expect_err("there is none").contains("has no kind widgets"));
        assert!(
            chosen(None, &["componentstatuses"])
                .expect_err("no watch")
                .contains("cannot be listed and watched")
        );
        assert!(chosen(Some("shop"), &["nodes"]).expect_err("no namespace").contains("are in no namespace"));
    }
}
