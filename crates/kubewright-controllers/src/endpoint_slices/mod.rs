//! The endpoint slice controller: the addresses of a Service's pods, as EndpointSlices of at most a hundred each
//! (`pkg/controller/endpointslice`, `staging/src/k8s.io/endpointslice/reconciler.go`). Hints of the old annotation
//! `service.kubernetes.io/topology-mode` are not given.

pub(crate) mod desired;
mod hints;
pub(crate) mod plan;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use kube::api::DeleteParams;
use kubewright_objects::optional;
use kubewright_runtime::{Context, Controller, Error, Event, EventType, Key, Outcome, Predicate, Reconciler};

use self::plan::Plan;
use crate::is_namespace_terminating;
use crate::services::{self, Followed, Look, TRIGGER_TIME};

/// Of which Service a slice is.
pub(crate) const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// Who keeps a slice.
pub(crate) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGER: &str = "endpointslice-controller.k8s.io";

/// The controller.
#[must_use]
pub(crate) fn controller() -> Controller {
    let followed = Followed::default();
    let services = followed.selectors();
    Controller::new("endpoint-slice-controller", Slices { followed })
        .for_kind::<Service>()
        .watches(move |pod: &Pod| services.selecting(&pod.metadata))
        .predicate(services::changes_endpoints())
        .watches(|slice: &EndpointSlice| service_of(slice, MANAGER).into_iter().collect())
        .predicate(changes_slices())
        .watches(|_: &Node| Vec::new())
        .predicate(Predicate::of(|_: &Event<'_, Node>| false))
}

/// The Service of a slice that `manager` keeps.
pub(crate) fn service_of(slice: &EndpointSlice, manager: &str) -> Option<Key> {
    let labels = slice.metadata.labels.as_ref()?;
    let service = labels.get(SERVICE_NAME).filter(|name| !name.is_empty())?;
    let is_kept = labels.get(MANAGED_BY).is_some_and(|name| name == manager);
    is_kept.then(|| Key::new(slice.metadata.namespace.clone(), service))
}

/// A change of a slice that is worth a look: of what it says or of whom it is, and not of its other labels, its annotations or
/// its owners (`onEndpointSliceUpdate`).
pub(crate) fn changes_slices() -> Predicate {
    let label = |slice: &EndpointSlice, name: &str| slice.metadata.labels.as_ref()?.get(name).cloned();
    Predicate::of(move |event: &Event<'_, EndpointSlice>| match event {
        Event::Update { old, new } => {
            old.metadata.generation != new.metadata.generation
                || [SERVICE_NAME, MANAGED_BY].iter().any(|name| label(old, name) != label(new, name))
        }
        Event::Create(_) | Event::Delete(_) | Event::Generic(_) => true,
    })
}

/// The slices of the Service `key` that `manager` keeps and that are not being deleted.
pub(crate) fn slices_of(ctx: &Context, key: &Key, manager: &str) -> Vec<Arc<EndpointSlice>> {
    let all = ctx.list::<EndpointSlice>(key.namespace.as_deref()).into_iter();
    all.filter(|slice| {
        slice.metadata.deletion_timestamp.is_none() && service_of(slice, manager).as_ref() == Some(key)
    })
    .collect()
}

/// The endpoints of a slice.
pub(crate) fn endpoints(slice: &EndpointSlice) -> &[Endpoint] {
    optional::<Vec<Endpoint>>(&slice.endpoints).map_or(&[], Vec::as_slice)
}

/// The endpoints of a slice, to be changed; `None` where it has no list of them.
fn endpoints_mut(slice: &mut EndpointSlice) -> Option<&mut Vec<Endpoint>> {
    (&mut slice.endpoints).into()
}

struct Slices {
    followed: Followed,
}

impl Reconciler for Slices {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(Look { service, pods, trigger }) = self.followed.look(ctx, key) else {
            return Ok(Outcome::Done);
        };
        let node = |name: &str| ctx.get::<Node>(&Key::cluster_scoped(name));
        let (desired, lost) = desired::of(&service, &pods, node);
        let plan = plan::plan(&service, desired, slices_of(ctx, key, MANAGER), MANAGER);
        let acted = act(ctx, plan, service.metadata.deletion_timestamp.is_none(), trigger).await;
        let result = acted.and_then(|()| lost.map_or(Ok(()), |why| Err(Error::new(why))));
        // That a Service went in the meantime is nothing to tell it of.
        if let Err(error) = &result
            && !matches!(error, Error::OwnerGone(_))
        {
            let note = format!("Error updating Endpoint Slices for Service {key}: {error}");
            ctx.event(&*service, EventType::Warning, "FailedToUpdateEndpointSlices", &note);
        }
        result.map(|()| Outcome::Done)
    }
}

/// Writes what the plan says. Nothing is created for an owner that is going away.
pub(crate) async fn act(
    ctx: &Context,
    plan: Plan,
    creates: bool,
    trigger: Option<Timestamp>,
) -> Result<(), Error> {
    let with_trigger = |mut slice: EndpointSlice| {
        let annotations = slice.metadata.annotations.get_or_insert_default();
        match trigger {
            Some(time) => annotations.insert(TRIGGER_TIME.into(), time.to_string()),
            None => annotations.remove(TRIGGER_TIME),
        };
        slice
    };
    for slice in plan.create.into_iter().filter(|_| creates) {
        match ctx.create(&with_trigger(slice)).await {
            Err(error) if is_namespace_terminating(&error) => return Ok(()),
            written => drop(written?),
        }
    }
    for slice in plan.update {
        ctx.update(&with_trigger(slice)).await?;
    }
    for slice in plan.delete {
        ctx.delete::<EndpointSlice>(&Key::of(&*slice), DeleteParams::default()).await?;
    }
    Ok(())
}
