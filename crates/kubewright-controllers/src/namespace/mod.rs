//! The namespace controller: empties a namespace that is being deleted, then lets it go
//! (`pkg/controller/namespace/deletion/namespaced_resources_deleter.go`).

mod conditions;

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::core::{DynamicObject, PartialObjectMeta};
use kube::{Api, Client};
use kubewright_runtime::{Context, Controller, Error, Key, Outcome, Reconciler};
use parking_lot::Mutex;

use self::conditions::{Findings, conditions};
use crate::discovery::{Catalog, Served};

/// The finalizer, in `spec.finalizers`, that this controller answers for.
const FINALIZER: &str = "kubernetes";
/// How soon a namespace that is not empty is looked at again: doubled each time, for content with finalizers goes when
/// others let it go, and nobody tells when.
const FIRST_WAIT: Duration = Duration::from_millis(5);
const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// The controller.
#[must_use]
pub(crate) fn controller() -> Controller {
    Controller::new("namespace-controller", Termination::default()).for_kind::<Namespace>()
}

#[derive(Default)]
struct Termination {
    /// How often each terminating namespace was found not empty.
    passes: Mutex<BTreeMap<Key, u32>>,
}

impl Reconciler for Termination {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let terminating = ctx.get::<Namespace>(key).filter(|namespace| is_to_be_finalized(namespace));
        let Some(namespace) = terminating else {
            self.passes.lock().remove(key);
            return Ok(Outcome::Done);
        };
        let findings = empty(ctx.client(), &key.name).await?;
        let namespace = match with_conditions(&namespace, &findings, ctx.world().clock.now()) {
            Some(changed) => ctx.update_status(&changed).await?,
            None => (*namespace).clone(),
        };
        if findings.is_empty_namespace() {
            self.passes.lock().remove(key);
            finalize(ctx.client(), namespace).await?;
            return Ok(Outcome::Done);
        }
        let mut passes = self.passes.lock();
        let pass = passes.entry(key.clone()).or_default();
        *pass = pass.saturating_add(1);
        Ok(Outcome::RequeueAfter(wait(*pass)))
    }
}

/// How long to wait after the `pass`th look at a namespace that was not empty.
fn wait(pass: u32) -> Duration {
    FIRST_WAIT.saturating_mul(1 << pass.saturating_sub(1).min(20)).min(LONGEST_WAIT)
}

/// Whether the namespace is being deleted and waits for this controller.
fn is_to_be_finalized(namespace: &Namespace) -> bool {
    let finalizers = namespace.spec.as_ref().and_then(|spec| spec.finalizers.as_ref());
    namespace.metadata.deletion_timestamp.is_some()
        && finalizers.is_some_and(|finalizers| finalizers.iter().any(|finalizer| finalizer == FINALIZER))
}

/// `namespace` with the conditions for `findings`, if they differ from those that it has. A namespace that was empty at
/// the first look goes without any.
fn with_conditions(namespace: &Namespace, findings: &Findings, now: jiff::Timestamp) -> Option<Namespace> {
    let mut changed = namespace.clone();
    let status = changed.status.get_or_insert_default();
    let before = status.conditions.take().unwrap_or_default();
    if before.is_empty() && findings.is_empty_namespace() {
        return None;
    }
    let after = conditions(&before, findings, now);
    if after == before {
        return None;
    }
    status.conditions = Some(after);
    Some(changed)
}

/// Deletes what is in the namespace, pods first: nothing else goes before the last of them, for they may need it to end
/// in good order. Tells what is left.
async fn empty(client: &Client, namespace: &str) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    let catalog = match Catalog::fetch(client).await {
        Ok(catalog) => catalog,
        Err(error) => {
            findings.undiscovered = Some(error.to_string());
            return Ok(findings);
        }
    };
    // What is known is deleted all the same.
    findings.undiscovered = undiscovered(&Catalog::stale(client).await?);
    let (pods, others): (Vec<_>, Vec<_>) = catalog.namespaced_content().partition(|served| is_pods(served));
    for served in pods {
        empty_of(client, namespace, served, &mut findings).await;
    }
    if !findings.is_emptied() {
        findings.waits_for_pods = true;
        return Ok(findings);
    }
    for served in others {
        empty_of(client, namespace, served, &mut findings).await;
    }
    Ok(findings)
}

/// What is said of versions whose API servers do not answer (`k8s.io/client-go/discovery`, `ErrGroupDiscoveryFailed`).
fn undiscovered(stale: &[String]) -> Option<String> {
    if stale.is_empty() {
        return None;
    }
    let each: Vec<_> =
        stale.iter().map(|version| format!("{version}: stale GroupVersion discovery: {version}")).collect();
    Some(format!(
        "Discovery failed for some groups, {} failing: unable to retrieve the complete list of server APIs: {}",
        stale.len(),
        each.join(", ")
    ))
}

fn is_pods(served: &Served) -> bool {
    served.resource.group.is_empty() && served.resource.kind == "Pod"
}

async fn empty_of(client: &Client, namespace: &str, served: &Served, findings: &mut Findings) {
    let api = served.api(client, Some(namespace));
    match delete_all(client, &api, served).await {
        Ok(left) if left.is_empty() => {}
        Ok(left) => {
            findings.remaining.insert(served.name(), left.len());
            for finalizer in left.into_iter().filter_map(|object| object.metadata.finalizers).flatten() {
                *findings.finalizers.entry(finalizer).or_default() += 1;
            }
        }
        // The kind went away since it was discovered, and its objects with it.
        Err(error) if error.is_not_found() => {}
        Err(error) => findings.errors.push(error.to_string()),
    }
}

/// Deletes every object of a kind; gives those that are there still.
async fn delete_all(
    client: &Client,
    api: &Api<DynamicObject>,
    served: &Served,
) -> Result<Vec<PartialObjectMeta<DynamicObject>>, Error> {
    let there = api.list_metadata(&ListParams::default()).await?.items;
    if there.iter().all(|object| object.metadata.deletion_timestamp.is_some()) {
        return Ok(there);
    }
    let background = DeleteParams::background();
    if served.supports(&["deletecollection"]) {
        delete_collection(client, api, &background).await?;
    } else {
        for name in there.into_iter().filter_map(|object| object.metadata.name) {
            match api.delete(&name, &background).await.map_err(Error::from) {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
        }
    }
    Ok(api.list_metadata(&ListParams::default()).await?.items)
}

/// Deletes a collection, and reads past what was deleted: decoded, it is many times as large as the namespace was.
async fn delete_collection(
    client: &Client,
    api: &Api<DynamicObject>,
    params: &DeleteParams,
) -> Result<(), Error> {
    let request = kube::core::Request::new(api.resource_url());
    let request =
        request.delete_collection(params, &ListParams::default()).map_err(kube::Error::BuildRequest)?;
    let deleted = client.request_stream(request).await?;
    futures::io::copy(deleted, &mut futures::io::sink()).await.map_err(kube::Error::ReadEvents)?;
    Ok(())
}

/// Takes this controller's finalizer off; the API server removes a namespace that has none left.
async fn finalize(client: &Client, mut namespace: Namespace) -> Result<(), Error> {
    if let Some(finalizers) = namespace.spec.as_mut().and_then(|spec| spec.finalizers.as_mut()) {
        finalizers.retain(|finalizer| finalizer != FINALIZER);
    }
    let name = namespace.metadata.name.clone().unwrap_or_default();
    let api = Api::<Namespace>::all(client.clone());
    let finalized = api.replace_subresource("finalize", &name, &PostParams::default(), &namespace).await;
    match finalized.map_err(Error::from) {
        Err(error) if error.is_not_found() => Ok(()),
        finalized => finalized.map(|_| ()),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use kubewright_world::SIMULATION_START as NOW;

    use super::*;
    use crate::tests::namespace;

    fn terminating() -> Namespace {
        let mut namespace = namespace("Terminating");
        namespace.metadata.deletion_timestamp = Some(Time(NOW));
        namespace
    }

    #[test]
    fn only_a_deleted_namespace_that_has_the_finalizer_is_emptied() {
        assert!(is_to_be_finalized(&terminating()));
        assert!(!is_to_be_finalized(&namespace("Active")));
        let mut finalized = terminating();
        finalized.spec.as_mut().unwrap().finalizers = Some(vec!["example.com/mine".into()]);
        assert!(!is_to_be_finalized(&finalized));
    }

    #[test]
    fn an_empty_namespace_goes_without_conditions_and_a_full_one_gets_them_once() {
        assert_eq!(with_conditions(&terminating(), &Findings::default(), NOW), None);
        let full = Findings { remaining: BTreeMap::from([("pods.".into(), 1)]), ..Findings::default() };
        let terminating = with_conditions(&terminating(), &full, NOW).expect("conditions");
        assert_eq!(terminating.status.as_ref().unwrap().phase.as_deref(), Some("Terminating"));
        assert_eq!(with_conditions(&terminating, &full, NOW + Duration::from_secs(9)), None);
        assert!(with_conditions(&terminating, &Findings::default(), NOW).is_some());
    }

    #[test]
    fn versions_that_are_not_known_are_told_by_name() {
        assert_eq!(undiscovered(&[]), None);
        let both = undiscovered(&["a.example.com/v1".to_owned(), "b.example.com/v2".to_owned()]);
        let expected = "Discovery failed for some groups, 2 failing: unable to retrieve the complete list of server APIs: \
            a.example.com/v1: stale GroupVersion discovery: a.example.com/v1, \
            b.example.com/v2: stale GroupVersion discovery: b.example.com/v2";
        assert_eq!(both.as_deref(), Some(expected));
    }

    #[test]
    fn waits_grow_to_a_quarter_of_a_minute() {
        assert_eq!([1, 2, 3, 100].map(wait).map(|wait| wait.as_millis()), [5, 10, 20, 15_000]);
    }
}
