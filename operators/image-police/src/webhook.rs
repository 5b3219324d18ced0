//! The webhook: refuses up front, where lists say Deny, what the police would report afterwards.

use std::sync::Arc;

use k8s_openapi::{
    api::{
        admissionregistration::v1::RuleWithOperations,
        apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
        batch::v1::{CronJob, Job},
        core::v1::{Namespace, Pod, ReplicationController},
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement},
};
use kubewright::{
    Cache, Manager, World,
    webhook::{Denied, FailurePolicy, Handler, Request, Response, Webhook},
};
use parking_lot::Mutex;
use serde_json::Value;

use crate::{
    ClusterWhiteList, WhiteList,
    image::Image,
    judge::judge,
    plan::{Police, granted},
    policy::{self, NOT_BY_CONTROLLERS},
    regime::{Regime, SYSTEM},
    rules::Rules,
    scope::Scope,
    workload::{Judged, Workload, WorkloadKind},
};

/// The path that it is served under.
pub const PATH: &str = "/deny";
/// Its name, which clients read in refusals.
pub const NAME: &str = "images.police.foo.bar";

/// By this every namespace is labelled with its own name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// What the webhook looks at: the lists in a manager's cache, once there is one. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct View(Arc<Mutex<Option<Seen>>>);

#[derive(Clone, Debug)]
struct Seen {
    cache: Cache,
    world: World,
}

impl View {
    /// Looks at the cache of this manager from now on.
    pub fn open(&self, manager: &Manager) {
        *self.0.lock() = Some(Seen { cache: manager.cache().clone(), world: manager.world().clone() });
    }

    fn seen(&self) -> Option<Seen> {
        self.0.lock().clone()
    }
}

/// The webhook. It is not asked about kube-system, kube-node-lease and the police's own namespace, so that it cannot keep itself
/// from being replaced, whatever whoever installs it sets; and what it cannot answer goes on unless they say otherwise: the police
/// finds it afterwards.
#[must_use]
pub fn webhook(view: View, police: Police) -> Webhook {
    let elsewhere = LabelSelectorRequirement {
        key: NAME_LABEL.to_owned(),
        operator: "NotIn".to_owned(),
        values: Some(SYSTEM.map(str::to_owned).to_vec()),
    };
    let namespaces = LabelSelector { match_expressions: Some(vec![elsewhere]), ..LabelSelector::default() };
    let webhook = Webhook::validating_with(PATH, NAME, Deny { view, police });
    let rules: Vec<RuleWithOperations> = kubewright::object::from_value(policy::rules()).unwrap_or_default();
    rules
        .into_iter()
        .fold(webhook, Webhook::rule)
        .in_namespaces(namespaces)
        .sparing_its_own_namespace()
        .when("not-by-controllers", NOT_BY_CONTROLLERS)
        .failure_policy(FailurePolicy::Ignore)
}

/// Refuses images that no list allows.
struct Deny {
    view: View,
    police: Police,
}

impl Handler for Deny {
    async fn handle(&self, request: &Request) -> Response {
        match self.judge(request) {
            Ok(()) => Response::allowed(),
            Err(denied) => Response::denied(denied),
        }
    }
}

impl Deny {
    fn judge(&self, request: &Request) -> Result<(), Denied> {
        let seen = self.view.seen().filter(|seen| knows_lists(&seen.cache));
        let Some(Seen { cache, world }) = seen else {
            // What is let through now is found afterwards.
            return Ok(());
        };
        let scope = Scope::of(&cache, &request.namespace);
        let lists = scope.lists(&request.namespace);
        let compiled: Vec<_> = scope.specs().map(Rules::compile).collect();
        let regime = Regime::new(&lists, &compiled, &request.namespace, &self.police);
        let kind = WorkloadKind::named(&request.kind.kind);
        let (true, Some(kind), Some(object)) = (regime.denies(), kind, &request.object) else {
            return Ok(());
        };
        let Some(workload) = read(kind, object)? else { return Ok(()) };
        let now = world.clock.now();
        if regime.may_exempt && granted(&workload, now).is_some() {
            return Ok(());
        }
        let old = request.old_object.as_ref().map(|old| read(kind, old)).transpose()?.flatten();
        let before = old.map(|old| old.uses).unwrap_or_default();
        let rules: Vec<&Rules> = compiled.iter().flatten().collect();
        let illegal = workload.uses.iter().filter(|one| {
            // What was there before is reported, so that labels and status can still be written.
            !before.iter().any(|old| old.image == one.image) && judge(&one.image, &rules).is_err()
        });
        let names: Vec<String> = illegal
            .map(|one| {
                format!("container {:?}: image {}", one.container, Image::read(&one.image).normalized())
            })
            .collect();
        if names.is_empty() {
            return Ok(());
        }
        let verb = if names.len() == 1 { "is" } else { "are" };
        Err(Denied::forbidden(format!("{} {verb} not allowed by {}", names.join(", "), regime.judges())))
    }
}

/// Whether the lists of the cluster are known.
fn knows_lists(cache: &Cache) -> bool {
    let known = |synced: Option<bool>| synced.unwrap_or(false);
    known(cache.informer::<WhiteList>().map(|informer| informer.is_synced()))
        && known(cache.informer::<ClusterWhiteList>().map(|informer| informer.is_synced()))
        && known(cache.informer::<Namespace>().map(|informer| informer.is_synced()))
}

/// What counts of an object of this kind.
fn read(kind: WorkloadKind, object: &Value) -> Result<Option<Workload>, Denied> {
    match kind {
        WorkloadKind::Deployment => of::<Deployment>(object),
        WorkloadKind::StatefulSet => of::<StatefulSet>(object),
        WorkloadKind::DaemonSet => of::<DaemonSet>(object),
        WorkloadKind::ReplicaSet => of::<ReplicaSet>(object),
        WorkloadKind::ReplicationController => of::<ReplicationController>(object),
        WorkloadKind::CronJob => of::<CronJob>(object),
        WorkloadKind::Job => of::<Job>(object),
        WorkloadKind::Pod => of::<Pod>(object),
    }
}

fn of<K: Judged>(object: &Value) -> Result<Option<Workload>, Denied> {
    let object: K = kubewright::object::from_value(object)
        .map_err(|error| Denied::with_code(400, format!("it is no {}: {error}", K::KIND.as_str())))?;
    Ok(Workload::of(&object))
}
