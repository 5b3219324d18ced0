//! Which objects a controller's object takes as its own: by selector and controller reference
//! (`pkg/controller/controller_ref_manager.go`).
//!
//! An object that it controls and that its selector no longer matches is released; one that nobody controls and that
//! its selector matches is adopted. [`Claims`] is the plan; [`Selectors`] remembers who would adopt what, so that an
//! event about an object that nobody controls wakes the right ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use kube::Api;
use kube::Resource;
use kube::core::{Selector, SelectorExt};
use kubewright_runtime::owner::{controller_of, controller_reference};
use kubewright_runtime::{Context, Error, Key, Object};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// Who claims.
struct Claimant<'a> {
    uid: &'a str,
    /// A claimant that is being deleted adopts and releases nothing.
    deleting: bool,
    selector: &'a LabelSelector,
}

impl<'a> Claimant<'a> {
    fn of<O: Object>(owner: &'a O, selector: &'a LabelSelector) -> Self {
        let meta = owner.meta();
        let uid = meta.uid.as_deref().unwrap_or_default();
        Self { uid, deleting: meta.deletion_timestamp.is_some(), selector }
    }
}

/// What a claimant keeps, and what has to be written for that.
#[derive(Debug)]
struct Claims<K> {
    /// It controls these and its selector matches them.
    kept: Vec<Arc<K>>,
    /// Nobody controls these and its selector matches them.
    adopt: Vec<Arc<K>>,
    /// It controls these and its selector does not match them.
    release: Vec<Arc<K>>,
}

/// Sorts `objects` (of the claimant's namespace) into what `claimant` keeps, adopts and releases. What is no `member` is
/// none of its own, whatever its labels are.
fn plan<K>(
    claimant: &Claimant<'_>,
    objects: impl IntoIterator<Item = Arc<K>>,
    member: impl Fn(&ObjectMeta) -> bool,
) -> Claims<K>
where
    K: Resource,
{
    let selector = Selector::try_from(claimant.selector.clone()).ok();
    let matches =
        |meta: &ObjectMeta| selector.as_ref().is_some_and(|selector| selects(selector, meta)) && member(meta);
    let mut claims = Claims { kept: Vec::new(), adopt: Vec::new(), release: Vec::new() };
    for object in objects {
        let meta = object.meta();
        match controller_of(meta) {
            Some(owner) if owner.uid != claimant.uid => {}
            Some(_) if matches(meta) => claims.kept.push(object),
            Some(_) if claimant.deleting => {}
            Some(_) => claims.release.push(object),
            None if claimant.deleting || meta.deletion_timestamp.is_some() || !matches(meta) => {}
            None => claims.adopt.push(object),
        }
    }
    claims
}

/// The merge patch that adds `reference` to the object's owners, and the finalizer that comes with that. It holds only for
/// the version that was looked at.
fn adoption(meta: &ObjectMeta, reference: &OwnerReference, finalizer: Option<&str>) -> Value {
    let mut owners = meta.owner_references.clone().unwrap_or_default();
    owners.push(reference.clone());
    let mut patch = of_this_version(meta, &json!(owners));
    if let Some(finalizer) = finalizer {
        let mut finalizers = meta.finalizers.clone().unwrap_or_default();
        if !finalizers.iter().any(|has| has == finalizer) {
            finalizers.push(finalizer.to_owned());
        }
        patch["metadata"]["finalizers"] = json!(finalizers);
    }
    patch
}

/// The merge patch that removes the owner `uid` and its finalizer. It holds only for the version that was looked at.
fn release(meta: &ObjectMeta, uid: &str, finalizer: Option<&str>) -> Value {
    let none_is_null = |list: Vec<Value>| if list.is_empty() { Value::Null } else { json!(list) };
    let owners = meta.owner_references.iter().flatten().filter(|owner| owner.uid != uid);
    let mut patch = of_this_version(meta, &none_is_null(owners.map(|owner| json!(owner)).collect()));
    if let Some(finalizer) = finalizer {
        let left = meta.finalizers.iter().flatten().filter(|has| *has != finalizer);
        patch["metadata"]["finalizers"] = none_is_null(left.map(|has| json!(has)).collect());
    }
    patch
}

fn of_this_version(meta: &ObjectMeta, owners: &Value) -> Value {
    json!({"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version, "ownerReferences": owners}})
}

/// Claims `objects` (of the owner's namespace): adopts and releases what `plan` says, and gives what `owner` has then.
/// An object that is not `eligible` is neither adopted nor released, only kept.
///
/// # Errors
/// When a write fails or comes too late; the next reconcile looks again.
pub(crate) async fn claim<O, K>(
    ctx: &Context,
    owner: &O,
    selector: &LabelSelector,
    objects: Vec<Arc<K>>,
    eligible: impl Fn(&K) -> bool,
) -> Result<Vec<Arc<K>>, Error>
where
    O: Object,
    K: Object,
{
    let claims = plan(&Claimant::of(owner, selector), objects, |_| true);
    carry_out(ctx, owner, claims, eligible, None).await
}

/// Claims `objects` as [`claim`] does, all of them eligible; what is adopted gets `finalizer`, what is released loses it.
///
/// # Errors
/// As [`claim`].
pub(crate) async fn claim_with_finalizer<O, K>(
    ctx: &Context,
    owner: &O,
    selector: &LabelSelector,
    objects: Vec<Arc<K>>,
    finalizer: &str,
) -> Result<Vec<Arc<K>>, Error>
where
    O: Object,
    K: Object,
{
    let claims = plan(&Claimant::of(owner, selector), objects, |_| true);
    carry_out(ctx, owner, claims, |_| true, Some(finalizer)).await
}

/// Claims `objects` as [`claim`] does, but takes only a `member` for its own: another is released even if the selector
/// matches it.
///
/// # Errors
/// As [`claim`].
pub(crate) async fn claim_members<O, K>(
    ctx: &Context,
    owner: &O,
    selector: &LabelSelector,
    objects: Vec<Arc<K>>,
    member: impl Fn(&ObjectMeta) -> bool,
) -> Result<Vec<Arc<K>>, Error>
where
    O: Object,
    K: Object,
{
    let claims = plan(&Claimant::of(owner, selector), objects, member);
    carry_out(ctx, owner, claims, |_| true, None).await
}

/// Those of `objects` that the selector matches.
pub(crate) fn matching<K: Object>(selector: &LabelSelector, mut objects: Vec<Arc<K>>) -> Vec<Arc<K>> {
    let selector = Selector::try_from(selector.clone()).ok();
    objects.retain(|object| selector.as_ref().is_some_and(|selector| selects(selector, object.meta())));
    objects
}

/// Those of `objects` that `owner` controls and that its selector matches.
pub(crate) fn kept<O, K>(owner: &O, selector: &LabelSelector, objects: Vec<Arc<K>>) -> Vec<Arc<K>>
where
    O: Object,
    K: Object,
{
    plan(&Claimant::of(owner, selector), objects, |_| true).kept
}

async fn carry_out<O, K>(
    ctx: &Context,
    owner: &O,
    claims: Claims<K>,
    eligible: impl Fn(&K) -> bool,
    finalizer: Option<&str>,
) -> Result<Vec<Arc<K>>, Error>
where
    O: Object,
    K: Object,
{
    let uid = owner.meta().uid.as_deref().unwrap_or_default();
    let Claims { mut kept, adopt, release: estranged } = claims;
    for object in estranged.iter().filter(|object| eligible(object)) {
        forgive_absence(ctx.patch::<K>(&Key::of(&**object), release(object.meta(), uid, finalizer)).await)?;
    }
    let adopt: Vec<_> = adopt.into_iter().filter(|object| eligible(object)).collect();
    if adopt.is_empty() || !is_still_there(ctx, owner).await? {
        return Ok(kept);
    }
    let reference = controller_reference(owner);
    for object in adopt {
        let patch = adoption(object.meta(), &reference, finalizer);
        kept.extend(forgive_absence(ctx.patch::<K>(&Key::of(&*object), patch).await)?.map(Arc::new));
    }
    Ok(kept)
}

/// An object that is gone needs no owner.
fn forgive_absence<K>(written: Result<K, Error>) -> Result<Option<K>, Error> {
    match written {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Asks the API server, not the cache, before something is adopted: a claimant that was deleted meanwhile must not
/// become an owner again (`RecheckDeletionTimestamp`).
async fn is_still_there<O: Object>(ctx: &Context, owner: &O) -> Result<bool, Error> {
    let meta = owner.meta();
    let resource = kube::core::ApiResource::erase::<O>(&());
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    let api: Api<kube::core::DynamicObject> =
        Api::namespaced_with(ctx.client().clone(), namespace, &resource);
    let fresh = api.get_metadata_opt(meta.name.as_deref().unwrap_or_default()).await?;
    Ok(fresh
        .is_some_and(|fresh| fresh.metadata.uid == meta.uid && fresh.metadata.deletion_timestamp.is_none()))
}

fn selects(selector: &Selector, meta: &ObjectMeta) -> bool {
    match &meta.labels {
        Some(labels) => selector.matches(labels),
        None => selector.matches(&BTreeMap::new()),
    }
}

/// Who would adopt what: the selector of each claimant, kept up to date by its reconcile.
#[derive(Clone, Default)]
pub(crate) struct Selectors(Arc<Mutex<BTreeMap<Key, Selector>>>);

impl Selectors {
    /// Remembers the selector of `claimant`; a selector that is not valid claims nothing.
    pub(crate) fn set(&self, claimant: &Key, selector: &LabelSelector) {
        match Selector::try_from(selector.clone()) {
            Ok(selector) => self.0.lock().insert(claimant.clone(), selector),
            Err(_) => self.0.lock().remove(claimant),
        };
    }

    /// Forgets a claimant that is gone.
    pub(crate) fn forget(&self, claimant: &Key) {
        self.0.lock().remove(claimant);
    }

    /// The claimants of the object's namespace that would adopt it; none when somebody controls it.
    pub(crate) fn adopters(&self, object: &ObjectMeta) -> Vec<Key> {
        if controller_of(object).is_some() { Vec::new() } else { self.selecting(object) }
    }

    /// Those of the object's namespace that select it, whoever controls it.
    pub(crate) fn selecting(&self, object: &ObjectMeta) -> Vec<Key> {
        let selectors = self.0.lock();
        selectors
            .iter()
            .filter(|(key, selector)| key.namespace == object.namespace && selects(selector, object))
            .map(|(key, _)| key.clone())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;
    use crate::pod::tests::pod;

    fn selector() -> LabelSelector {
        LabelSelector {
            match_labels: Some(BTreeMap::from([("app".into(), "web".into())])),
            ..LabelSelector::default()
        }
    }

    fn owned_by(uid: &str, mut pod: Pod) -> Pod {
        let owner = OwnerReference { uid: uid.into(), controller: Some(true), ..OwnerReference::default() };
        pod.metadata.owner_references = Some(vec![owner]);
        pod
    }

    fn relabelled(mut pod: Pod) -> Pod {
        pod.metadata.labels = Some(BTreeMap::from([("app".into(), "debug".into())]));
        pod
    }

    fn names(pods: &[Arc<Pod>]) -> Vec<&str> {
        pods.iter().filter_map(|pod| pod.metadata.name.as_deref()).collect()
    }

    fn sample() -> Vec<Arc<Pod>> {
        [
            owned_by("me", pod("mine", "Running", None)),
            owned_by("me", relabelled(pod("estranged", "Running", None))),
            owned_by("other", pod("theirs", "Running", None)),
            pod("orphan", "Running", None),
            relabelled(pod("stranger", "Running", None)),
        ]
        .map(Arc::new)
        .to_vec()
    }

    #[test]
    fn matching_orphans_are_adopted_and_estranged_children_released() {
        let selector = selector();
        let claims = plan(&Claimant { uid: "me", deleting: false, selector: &selector }, sample(), |_| true);
        assert_eq!(names(&claims.kept), ["mine"]);
        assert_eq!(names(&claims.adopt), ["orphan"]);
        assert_eq!(names(&claims.release), ["estranged"]);
    }

    #[test]
    fn a_claimant_that_is_being_deleted_only_keeps() {
        let selector = selector();
        let claims = plan(&Claimant { uid: "me", deleting: true, selector: &selector }, sample(), |_| true);
        assert_eq!(names(&claims.kept), ["mine"]);
        assert!(claims.adopt.is_empty() && claims.release.is_empty());
    }

    #[test]
    fn what_is_no_member_is_released_though_its_labels_match() {
        let selector = selector();
        let claimant = Claimant { uid: "me", deleting: false, selector: &selector };
        let claims = plan(&claimant, sample(), |meta| meta.name.as_deref() == Some("orphan"));
        assert_eq!(names(&claims.release), ["mine", "estranged"]);
        assert_eq!((claims.kept.len(), names(&claims.adopt)), (0, vec!["orphan"]));
    }

    #[test]
    fn releasing_the_last_owner_leaves_no_empty_list() {
        let patch = release(&owned_by("me", pod("p", "Running", None)).metadata, "me", None);
        assert_eq!(
            patch,
            json!({"metadata": {"uid": "uid-p", "resourceVersion": "1", "ownerReferences": null}})
        );
    }

    #[test]
    fn an_orphan_wakes_those_of_its_namespace_that_would_adopt_it() {
        let selectors = Selectors::default();
        let here = Key::namespaced("default", "web");
        selectors.set(&here, &selector());
        selectors.set(&Key::namespaced("elsewhere", "web"), &selector());
        assert_eq!(selectors.adopters(&pod("p", "Running", None).metadata), std::slice::from_ref(&here));
        assert!(selectors.adopters(&owned_by("other", pod("p", "Running", None)).metadata).is_empty());
        selectors.forget(&here);
        assert!(selectors.adopters(&pod("p", "Running", None).metadata).is_empty());
    }
}
