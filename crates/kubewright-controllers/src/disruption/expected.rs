//! How many pods a budget expects, and how many of them have to be healthy.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentSpec, ReplicaSet, ReplicaSetSpec, StatefulSet, StatefulSetSpec,
};
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::core::ApiResource;
use kubewright_objects::optional;
use kubewright_runtime::owner::controller_of;
use kubewright_runtime::{Context, Error, Key};

use crate::discovery::Catalog;

/// What a budget asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) expected: i32,
    pub(super) desired: i32,
    /// Whether nobody controls some of the pods, where that matters.
    pub(super) has_unmanaged: bool,
}

/// Counts what `budget` expects of `pods`. Where it speaks of shares, or of pods that may be missing, it expects as
/// many as their controllers want.
///
/// # Errors
/// Why that cannot be said.
pub(super) async fn count(
    ctx: &Context,
    budget: &PodDisruptionBudget,
    pods: &[Arc<Pod>],
) -> Result<Count, String> {
    let spec = budget.spec.as_ref();
    let most_missing = spec.and_then(|spec| spec.max_unavailable.as_ref());
    let least = spec.and_then(|spec| spec.min_available.as_ref());
    match (most_missing, least) {
        (Some(share), _) => {
            let (expected, has_unmanaged) = scale(ctx, pods).await?;
            let desired = expected.saturating_sub(scaled(share, expected)?).max(0);
            Ok(Count { expected, desired, has_unmanaged })
        }
        (None, Some(IntOrString::Int(desired))) => {
            let expected = i32::try_from(pods.len()).unwrap_or(i32::MAX);
            Ok(Count { expected, desired: *desired, has_unmanaged: false })
        }
        (None, Some(share)) => {
            let (expected, has_unmanaged) = scale(ctx, pods).await?;
            Ok(Count { expected, desired: scaled(share, expected)?, has_unmanaged })
        }
        (None, None) => Ok(Count { expected: 0, desired: 0, has_unmanaged: false }),
    }
}

/// A number, or so many percent of `whole`, rounded up.
fn scaled(share: &IntOrString, whole: i32) -> Result<i32, String> {
    match share {
        IntOrString::Int(number) => Ok(*number),
        IntOrString::String(text) => {
            let percent = text.strip_suffix('%').and_then(|digits| digits.parse::<i64>().ok());
            let percent = percent.ok_or("invalid type: string is not a percentage")?;
            let share = percent.saturating_mul(whole.into());
            let rounded = share.div_euclid(100) + i64::from(share.rem_euclid(100) != 0);
            i32::try_from(rounded).map_err(|error| error.to_string())
        }
    }
}

/// How many pods the controllers of `pods` want together, and whether some have none.
async fn scale(ctx: &Context, pods: &[Arc<Pod>]) -> Result<(i32, bool), String> {
    let mut scales: BTreeMap<String, i32> = BTreeMap::new();
    let mut has_unmanaged = false;
    for pod in pods {
        let Some(owner) = controller_of(&pod.metadata) else {
            has_unmanaged = true;
            continue;
        };
        if scales.contains_key(&owner.uid) {
            continue;
        }
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let (uid, replicas) = scale_of(ctx, owner, namespace).await?.ok_or_else(|| {
            format!("found no controllers for pod {:?}", pod.metadata.name.as_deref().unwrap_or_default())
        })?;
        scales.insert(uid, replicas);
    }
    Ok((scales.values().fold(0, |sum, replicas| sum.saturating_add(*replicas)), has_unmanaged))
}

/// The controller that counts (of a ReplicaSet that has one, the Deployment) and the replicas that it wants.
async fn scale_of(
    ctx: &Context,
    owner: &OwnerReference,
    namespace: &str,
) -> Result<Option<(String, i32)>, String> {
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    let key = Key::namespaced(namespace, &*owner.name);
    let is_it = |uid: &Option<String>| uid.as_deref() == Some(&owner.uid);
    let found = match (group, owner.kind.as_str()) {
        ("apps", "ReplicaSet") => match ctx.get::<ReplicaSet>(&key).filter(|set| is_it(&set.metadata.uid)) {
            Some(set) => of_set(ctx, &set, namespace),
            None => None,
        },
        ("apps", "StatefulSet") => {
            let set = ctx.get::<StatefulSet>(&key).filter(|set| is_it(&set.metadata.uid));
            set.map(|set| {
                (
                    owner.uid.clone(),
                    optional::<StatefulSetSpec>(&set.spec).and_then(|spec| spec.replicas).unwrap_or(1),
                )
            })
        }
        ("", "ReplicationController") => {
            let found = ctx.get::<ReplicationController>(&key).filter(|found| is_it(&found.metadata.uid));
            found.map(|found| {
                (owner.uid.clone(), found.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1))
            })
        }
        _ => None,
    };
    match found {
        Some(found) => Ok(Some(found)),
        None => of_scale(ctx, owner, group, namespace).await,
    }
}

fn of_set(ctx: &Context, set: &ReplicaSet, namespace: &str) -> Option<(String, i32)> {
    let own = || {
        Some((
            set.metadata.uid.clone()?,
            optional::<ReplicaSetSpec>(&set.spec).and_then(|spec| spec.replicas).unwrap_or(1),
        ))
    };
    let Some(owner) = controller_of(&set.metadata).filter(|owner| owner.kind == "Deployment") else {
        return own();
    };
    let deployment = ctx.get::<Deployment>(&Key::namespaced(namespace, &*owner.name))?;
    let is_it = deployment.metadata.uid.as_deref() == Some(&owner.uid);
    is_it.then(|| {
        (
            owner.uid.clone(),
            optional::<DeploymentSpec>(&deployment.spec).and_then(|spec| spec.replicas).unwrap_or(1),
        )
    })
}

/// What the scale subresource of a controller of any kind says.
async fn of_scale(
    ctx: &Context,
    owner: &OwnerReference,
    group: &str,
    namespace: &str,
) -> Result<Option<(String, i32)>, String> {
    let catalog = Catalog::fetch(ctx.client()).await.map_err(|error| error.to_string())?;
    let Some(served) = catalog.find(group, &owner.kind) else {
        return Err(format!("no matches for kind {:?} in group {group:?}", owner.kind));
    };
    let api = served.api(ctx.client(), Some(namespace));
    match api.get_scale(&owner.name).await.map_err(Error::from) {
        Ok(scale) => {
            let replicas = scale.spec.and_then(|spec| spec.replicas).unwrap_or_default();
            let uid = scale.metadata.uid.filter(|uid| *uid == owner.uid);
            Ok(uid.map(|uid| (uid, replicas)))
        }
        // The object is gone, or its kind has no scale.
        Err(error) if error.is_not_found() => match implements_scale(ctx, &served.resource).await {
            Ok(true) => Ok(None),
            Ok(false) => {
                let name = served.name();
                Err(format!("{} does not implement the scale subresource", name.trim_end_matches('.')))
            }
            Err(error) => Err(error.to_string()),
        },
        Err(error) => Err(error.to_string()),
    }
}

/// Whether a scale is served, by discovery: the controller may read scales, and not all objects that have none.
async fn implements_scale(ctx: &Context, resource: &ApiResource) -> Result<bool, kube::Error> {
    let listed = if resource.group.is_empty() {
        ctx.client().list_core_api_resources(&resource.version).await?
    } else {
        ctx.client().list_api_group_resources(&resource.api_version).await?
    };
    let name = format!("{}/scale", resource.plural);
    Ok(listed.resources.iter().any(|served| served.name == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_up() {
        let text = |text: &str| IntOrString::String(text.into());
        assert_eq!(scaled(&text("50%"), 3), Ok(2));
        assert_eq!(scaled(&text("0%"), 3), Ok(0));
        assert_eq!(scaled(&text("100%"), 3), Ok(3));
        assert_eq!(scaled(&IntOrString::Int(7), 3), Ok(7));
        assert!(scaled(&text("half"), 3).is_err());
    }
}
