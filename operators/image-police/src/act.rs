//! What is done about a plan.

use std::time::Duration;

use k8s_openapi::api::{
    admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding},
    apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
    batch::v1::{CronJob, Job},
    core::v1::{Pod, ReplicationController},
};
use kube::api::{DeleteParams, Preconditions};
use kubewright::{Context, Error, EventType, Key, Outcome};

use crate::{
    plan::{Deed, Observed, Step},
    policy::{self, Policy},
    reconciler::lists_are_current,
    workload::{Judged, Workload, WorkloadKind},
};

/// How soon a step is tried again that somebody else's write came before.
const SOON: Duration = Duration::from_secs(1);

/// Calls a function for the type of a kind.
macro_rules! of_kind {
    ($kind:expr, $function:ident($($argument:expr),*) $($rest:tt)*) => {
        match $kind {
            WorkloadKind::Deployment => $function::<Deployment>($($argument),*) $($rest)*,
            WorkloadKind::StatefulSet => $function::<StatefulSet>($($argument),*) $($rest)*,
            WorkloadKind::DaemonSet => $function::<DaemonSet>($($argument),*) $($rest)*,
            WorkloadKind::ReplicaSet => $function::<ReplicaSet>($($argument),*) $($rest)*,
            WorkloadKind::ReplicationController => $function::<ReplicationController>($($argument),*) $($rest)*,
            WorkloadKind::CronJob => $function::<CronJob>($($argument),*) $($rest)*,
            WorkloadKind::Job => $function::<Job>($($argument),*) $($rest)*,
            WorkloadKind::Pod => $function::<Pod>($($argument),*) $($rest)*,
        }
    };
}

/// Something that was done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DidThat {
    pub(crate) deed: Deed,
    /// For people.
    pub(crate) text: String,
}

/// What came of the steps.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) deeds: Vec<DidThat>,
    /// Whether somebody else's write came first.
    raced: bool,
    failed: Option<Error>,
}

impl Done {
    /// One for each deletion.
    pub(crate) fn deletions(&self) -> impl Iterator<Item = ()> {
        self.deeds.iter().filter(|did| did.deed == Deed::Delete).map(|_| ())
    }

    /// What a reconcile ends with that is to look again after `again`.
    pub(crate) fn outcome(self, again: Option<Duration>) -> Result<Outcome, Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let again = if self.raced { Some(again.map_or(SOON, |again| again.min(SOON))) } else { again };
        Ok(again.map_or(Outcome::Done, Outcome::RequeueAfter))
    }
}

/// Carries out what is planned, if the API server says that the lists are still what they were. A step that fails keeps no other
/// from being carried out, and is told in an Event.
pub(crate) async fn carry_out(ctx: &Context, observed: &Observed, steps: &[Step]) -> Done {
    let mut done = Done::default();
    if steps.is_empty() {
        return done;
    }
    match lists_are_current(ctx, observed).await {
        Ok(true) => {}
        // The cache will hear of it too.
        Ok(false) => {
            done.raced = true;
            return done;
        }
        Err(error) => {
            done.failed = Some(error);
            return done;
        }
    }
    for step in steps {
        let workload = &step.workload;
        let key = Key::namespaced(&observed.namespace, &workload.name);
        match of_kind!(workload.kind, take(ctx, &key, step).await) {
            Ok(Some(text)) => done.deeds.push(DidThat { deed: step.deed, text }),
            Ok(None) => done.raced = true,
            Err(error) if error.is_conflict() || error.is_not_found() => done.raced = true,
            Err(error) => {
                let kind = workload.kind.as_str();
                let note = format!("cannot act on it: {error}");
                event(ctx, kind, &key, EventType::Warning, "ActionFailed", &note);
                done.failed = done.failed.or(Some(error));
            }
        }
    }
    done
}

/// Takes a step on the object that is there now, if it is the one that was judged; says what was done.
async fn take<K: Judged>(ctx: &Context, key: &Key, step: &Step) -> Result<Option<String>, Error> {
    let Some(live) = ctx.live::<K>(key).await? else { return Ok(None) };
    if Workload::of(&live).as_ref() != Some(&step.workload) {
        return Ok(None);
    }
    let (kind, meta) = (K::KIND.as_str(), live.meta());
    let (reason, text) = match step.deed {
        Deed::Delete => {
            tracing::info!("Deleting {kind} {key}");
            let preconditions =
                Preconditions { uid: meta.uid.clone(), resource_version: meta.resource_version.clone() };
            ctx.delete::<K>(key, DeleteParams::background().preconditions(preconditions)).await?;
            ("Deleted", format!("Deleted {kind} {}: {}", key.name, step.why))
        }
        Deed::ScaleToZero => {
            let Some(mut patch) = live.rest() else { return Ok(None) };
            tracing::info!("Scaling {kind} {key} to zero");
            patch["metadata"]["resourceVersion"] = meta.resource_version.clone().into();
            ctx.patch::<K>(key, patch).await?;
            ("ScaledToZero", format!("Scaled {kind} {} to zero: {}", key.name, step.why))
        }
    };
    ctx.event(&live, EventType::Warning, reason, &text);
    Ok(Some(text))
}

/// Records an Event about an object that is in the cache.
pub(crate) fn event(ctx: &Context, kind: &str, key: &Key, event_type: EventType, reason: &str, note: &str) {
    let Some(kind) = WorkloadKind::named(kind) else { return };
    of_kind!(kind, event_of(ctx, key, event_type, reason, note));
}

fn event_of<K: Judged>(ctx: &Context, key: &Key, event_type: EventType, reason: &str, note: &str) {
    if let Some(object) = ctx.get::<K>(key) {
        ctx.event(&*object, event_type, reason, note);
    }
}

/// Makes the policy of a namespace be this one, or not be.
///
/// # Errors
/// What the API server refuses.
pub(crate) async fn keep_policy(
    ctx: &Context,
    namespace: &str,
    wanted: Option<&Policy>,
) -> Result<(), Error> {
    if let Some(wanted) = wanted {
        ctx.apply(&wanted.policy).await?;
        ctx.apply(&wanted.binding).await?;
        return Ok(());
    }
    let key = Key::cluster_scoped(policy::name(namespace));
    if ctx.get::<ValidatingAdmissionPolicyBinding>(&key).is_some() {
        ctx.delete::<ValidatingAdmissionPolicyBinding>(&key, DeleteParams::default()).await?;
    }
    if ctx.get::<ValidatingAdmissionPolicy>(&key).is_some() {
        ctx.delete::<ValidatingAdmissionPolicy>(&key, DeleteParams::default()).await?;
    }
    Ok(())
}
