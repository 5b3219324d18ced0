//! Observe, plan, act: one namespace at a time.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::{
    admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding},
    apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
    batch::v1::{CronJob, Job},
    core::v1::{Namespace, Pod, ReplicationController},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{
    Api, ResourceExt,
    api::ListParams,
    core::{Expression, Selector},
};
use kubewright::{
    Context, Controller, Error, Event, EventType, Key, Outcome, Predicate, Reconciler, rbac::Verb,
};

use crate::{
    ClusterWhiteList, ClusterWhiteListStatus, LastAction, WhiteList,
    act::{self, Done},
    board::Board,
    counts::Counts,
    plan::{Known, Observed, Plan, Police, plan},
    policy::LABEL,
    rules::Rules,
    scope::Scope,
    status,
    workload::{self, Judged, Workload},
};

/// The key of every namespace: no namespace is called so.
const EVERYWHERE: &str = "*";

/// The controller: the key of a reconcile is a namespace, which is looked at when its lists or its workloads change. (A key for
/// each list and each workload in one queue was how the original lost lists that were called like a Deployment.)
#[must_use]
pub fn controller(police: &Police, counts: &Counts) -> Controller {
    let reconciler = ImagePolice { police: police.clone(), counts: counts.clone(), board: Board::default() };
    let everywhere = |_: &ClusterWhiteList| vec![Key::cluster_scoped(EVERYWHERE)];
    let changed = || {
        Predicate::of_metadata(|event| match event {
            Event::Update { old, new } => old.generation != new.generation,
            Event::Create(_) | Event::Delete(_) | Event::Generic(_) => true,
        })
    };
    let relabelled = Predicate::of_metadata(|event| match event {
        Event::Update { old, new } => old.labels != new.labels,
        Event::Create(_) | Event::Delete(_) | Event::Generic(_) => true,
    });
    let of_label = |meta: &kube::api::ObjectMeta| {
        let namespace = meta.labels.as_ref().and_then(|labels| labels.get(LABEL));
        namespace.map(Key::cluster_scoped).into_iter().collect::<Vec<_>>()
    };
    let ours = || Expression::Exists(LABEL.to_owned());
    let mut controller = Controller::new("image-police", reconciler)
        .watches(|list: &WhiteList| namespace_of(list))
        .predicate(changed())
        .watches(everywhere)
        .predicate(changed())
        .watches(|namespace: &Namespace| vec![Key::cluster_scoped(namespace.name_any())])
        .predicate(relabelled)
        .watches(move |policy: &ValidatingAdmissionPolicy| of_label(&policy.metadata))
        .labelled(ours())
        .predicate(changed())
        .watches(move |binding: &ValidatingAdmissionPolicyBinding| of_label(&binding.metadata))
        .labelled(ours())
        .predicate(changed());
    controller = judges::<Deployment>(controller);
    controller = judges::<StatefulSet>(controller);
    controller = judges::<DaemonSet>(controller);
    controller = judges::<ReplicaSet>(controller);
    controller = judges::<ReplicationController>(controller);
    controller = judges::<CronJob>(controller);
    controller = judges::<Job>(controller);
    controller = judges::<Pod>(controller);
    let keep = [Verb::Create, Verb::Patch, Verb::Delete];
    controller
        .writes::<ValidatingAdmissionPolicy>(keep)
        .writes::<ValidatingAdmissionPolicyBinding>(keep)
        .writes_status::<WhiteList>()
        .writes_status::<ClusterWhiteList>()
}

/// Looks at a kind, keeps only what is judged of it, and may act on it.
fn judges<K: Judged>(controller: Controller) -> Controller {
    let matters = Predicate::of::<K>(|event| match event {
        Event::Update { old, new } => Workload::of(*old) != Workload::of(*new),
        Event::Create(_) | Event::Delete(_) | Event::Generic(_) => true,
    });
    let verbs: &[Verb] =
        if K::KIND.can_rest() { &[Verb::Get, Verb::Delete, Verb::Patch] } else { &[Verb::Get, Verb::Delete] };
    controller
        .watches(|object: &K| namespace_of(object))
        .projected(workload::project::<K>)
        .predicate(matters)
        .writes::<K>(verbs.iter().copied())
}

fn namespace_of<K: kubewright::Object>(object: &K) -> Vec<Key> {
    object.meta().namespace.as_deref().map(Key::cluster_scoped).into_iter().collect()
}

/// Judges namespaces.
#[derive(Debug)]
pub struct ImagePolice {
    police: Police,
    counts: Counts,
    board: Board,
}

impl Reconciler for ImagePolice {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let outcome = if key.name == EVERYWHERE {
            self.everywhere(ctx).await
        } else {
            self.namespace(ctx, &key.name).await
        };
        self.report_wide(ctx).await?;
        outcome
    }
}

impl ImagePolice {
    /// Looks at each namespace; one that fails keeps no other from being looked at.
    async fn everywhere(&self, ctx: &Context) -> Result<Outcome, Error> {
        let (mut failed, mut again) = (None, None);
        for namespace in ctx.list::<Namespace>(None) {
            match self.namespace(ctx, &namespace.name_any()).await {
                Ok(Outcome::RequeueAfter(wait)) => {
                    again = Some(again.map_or(wait, |known: std::time::Duration| known.min(wait)));
                }
                Ok(_) => {}
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        match failed {
            Some(error) => Err(error),
            None => Ok(again.map_or(Outcome::Done, Outcome::RequeueAfter)),
        }
    }

    async fn namespace(&self, ctx: &Context, namespace: &str) -> Result<Outcome, Error> {
        let observed = self.observe(ctx, namespace);
        if !observed.scope.is_judged() {
            self.counts.found(namespace, None);
            self.board.forget(namespace);
            act::keep_policy(ctx, namespace, None).await?;
            return Ok(Outcome::Done);
        }
        let plan = plan(&observed);
        self.counts.found(namespace, Some(plan.violations.len()));
        record_events(ctx, &observed, &plan);
        let kept = act::keep_policy(ctx, namespace, plan.policy.as_ref()).await;
        if let (Err(error), Some(list)) = (&kept, observed.scope.lists.first()) {
            ctx.event(&**list, EventType::Warning, "PolicyNotKept", &error.to_string());
        }
        let done = act::carry_out(ctx, &observed, &plan.steps).await;
        for deed in &done.deeds {
            self.counts.did(namespace, deed.deed);
        }
        let deleted: Vec<Timestamp> = done.deletions().map(|()| observed.now).collect();
        self.board.keep(namespace, &plan, observed.known.clone(), &deleted);
        self.report(ctx, &observed, &plan, &done).await?;
        kept?;
        done.outcome(plan.again)
    }

    fn observe(&self, ctx: &Context, namespace: &str) -> Observed {
        let scope = Scope::of(ctx.cache(), namespace);
        let now = ctx.world().clock.now();
        Observed {
            namespace: namespace.to_owned(),
            workloads: if scope.is_judged() { workloads(ctx, namespace) } else { Vec::new() },
            known: self.known(namespace, &scope.lists, now),
            scope,
            police: self.police.clone(),
            now,
        }
    }

    fn known(&self, namespace: &str, lists: &[Arc<WhiteList>], now: Timestamp) -> Known {
        self.board.known(namespace, lists.iter().map(|list| &**list), now)
    }

    /// Writes the statuses that are others than there are.
    async fn report(
        &self,
        ctx: &Context,
        observed: &Observed,
        plan: &Plan,
        done: &Done,
    ) -> Result<(), Error> {
        for (list, status) in observed.scope.lists.iter().zip(&plan.statuses) {
            let mut status = status.clone();
            status.actions += i64::try_from(done.deeds.len()).unwrap_or(i64::MAX);
            if let Some(last) = done.deeds.last() {
                let text = last.text.clone();
                status.last_action = Some(LastAction { time: Time(observed.now), text });
            }
            match ctx.status(&**list).set(|told| *told = status).await {
                Err(error) if error.is_not_found() => {}
                written => drop(written?),
            }
        }
        Ok(())
    }

    /// Writes the statuses of the lists of the cluster, where they changed.
    async fn report_wide(&self, ctx: &Context) -> Result<(), Error> {
        let now = ctx.world().clock.now();
        for list in ctx.list::<ClusterWhiteList>(None) {
            let sum = self.board.sum(&list.name_any());
            let rules = check(&list);
            let wanted = |status: &mut ClusterWhiteListStatus| {
                status.namespaces = sum.namespaces;
                status.violation_count = sum.violations;
                status::accept(&mut status.conditions, &rules, &*list, now);
            };
            match ctx.status(&*list).set(wanted).await {
                Err(error) if error.is_not_found() => {}
                written => drop(written?),
            }
        }
        Ok(())
    }
}

/// The rules of a list of the cluster, or what is wrong with it, its selector included.
fn check(list: &ClusterWhiteList) -> Result<Rules, Vec<String>> {
    let rules = Rules::compile(&list.spec.list);
    let selector = list.spec.namespace_selector.clone();
    match selector.map(Selector::try_from) {
        Some(Err(error)) => {
            let mut mistakes = rules.err().unwrap_or_default();
            mistakes.push(format!("spec.namespaceSelector: {error}"));
            Err(mistakes)
        }
        Some(Ok(_)) | None => rules,
    }
}

/// All workloads of a namespace, on their way out or not judged ones not among them.
fn workloads(ctx: &Context, namespace: &str) -> Vec<Workload> {
    fn of<K: Judged>(ctx: &Context, namespace: &str, all: &mut Vec<Workload>) {
        all.extend(ctx.list::<K>(Some(namespace)).iter().filter_map(|object| Workload::of(&**object)));
    }
    let mut all = Vec::new();
    of::<Deployment>(ctx, namespace, &mut all);
    of::<StatefulSet>(ctx, namespace, &mut all);
    of::<DaemonSet>(ctx, namespace, &mut all);
    of::<ReplicaSet>(ctx, namespace, &mut all);
    of::<ReplicationController>(ctx, namespace, &mut all);
    of::<CronJob>(ctx, namespace, &mut all);
    of::<Job>(ctx, namespace, &mut all);
    of::<Pod>(ctx, namespace, &mut all);
    all
}

/// Tells of violations and exemptions that nobody was told of, and of lists that became impossible to understand.
fn record_events(ctx: &Context, observed: &Observed, plan: &Plan) {
    for found in &plan.found {
        let key = Key::namespaced(&observed.namespace, &found.name);
        tracing::info!("Checking {} {key}", found.kind);
        tracing::info!("Image {}", found.written.as_ref().unwrap_or(&found.image));
        tracing::info!("Found! Illegal container image!");
        let note = format!(
            "container {:?}: image {} is not allowed by {}",
            found.container, found.image, plan.judges
        );
        act::event(ctx, &found.kind, &key, EventType::Warning, "IllegalImage", &note);
    }
    for exempt in &plan.released {
        let key = Key::namespaced(&observed.namespace, &exempt.name);
        let note = format!("exempt from {} until {}: {}", plan.judges, exempt.until.0, exempt.reason);
        tracing::warn!("{} {key} is {note}", exempt.kind);
        act::event(ctx, &exempt.kind, &key, EventType::Warning, "Exempt", &note);
    }
    for (list, status) in observed.scope.lists.iter().zip(&plan.statuses) {
        let before = list.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        for condition in status.conditions.iter().filter(|condition| is_alarming(&condition.reason)) {
            let known = before.iter().any(|known| {
                known.type_ == condition.type_
                    && known.reason == condition.reason
                    && known.message == condition.message
            });
            if !known {
                ctx.event(&**list, EventType::Warning, &condition.reason, &condition.message);
            }
        }
    }
}

/// Whether a person should hear of a condition that has this reason.
fn is_alarming(reason: &str) -> bool {
    matches!(reason, "InvalidRules" | "DeletionCapReached" | "VersionsNeedTheWebhook" | "SystemNamespace")
}

/// Whether the lists that were observed are still what the API server has: nothing is destroyed by what a cache says alone.
///
/// # Errors
/// When the API server cannot be asked; then nothing may be destroyed.
pub(crate) async fn lists_are_current(ctx: &Context, observed: &Observed) -> Result<bool, Error> {
    let everything = ListParams::default();
    let lists: Api<WhiteList> = Api::namespaced(ctx.client().clone(), &observed.namespace);
    let wide: Api<ClusterWhiteList> = Api::all(ctx.client().clone());
    let now = lists.list(&everything).await?.items;
    let now_wide = wide.list(&everything).await?.items;
    let same = now.iter().map(identity).eq(observed.scope.lists.iter().map(|list| identity(&**list)));
    let same_wide =
        now_wide.iter().map(identity).eq(observed.scope.wide.iter().map(|wide| identity(&*wide.list)));
    Ok(same && same_wide)
}

fn identity<K: kubewright::Object>(list: &K) -> (Option<String>, Option<i64>) {
    (list.meta().uid.clone(), list.meta().generation)
}
