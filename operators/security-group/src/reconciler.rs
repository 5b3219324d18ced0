//! From a key to a pass over its group.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::{Node, Secret};
use kubewright::{
    Context, Controller, Error, Guarded, Key, Outcome, Reconciler, finalizer, rbac::Verb,
    workqueue::RateLimit,
};

use crate::{
    Clouds, SecurityGroup, cleanup,
    cloud::Neutron,
    clouds::NoSession,
    interest::{self, Interest},
    pass::Pass,
    status::Trouble,
};

/// What keeps a SecurityGroup until its group is cleaned up.
pub const FINALIZER: &str = "finalizer.securitygroups.openstack.repl.info";
/// How many SecurityGroups are worked on at the same time.
const WORKERS: usize = 4;
/// How soon, and how late, one comes back whose pass failed at the API server, or whose cleanup failed.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(120));

/// The SecurityGroup controller, with the clouds of this machine.
#[must_use]
pub fn controller() -> Controller {
    controller_in(Clouds::of_this_machine())
}

/// The SecurityGroup controller: one is reconciled when it changes, when a node that it selects does, when a group that its
/// rules name gets its ID, and as often as it asks for.
#[must_use]
pub fn controller_in(clouds: Clouds) -> Controller {
    let interest = Arc::new(Interest::default());
    let (of_nodes, of_groups) = (Arc::clone(&interest), Arc::clone(&interest));
    Controller::new("security-group", SecurityGroupReconciler { clouds, interest })
        .for_kind::<SecurityGroup>()
        .watches(move |node: &Node| of_nodes.in_node(node))
        .predicate(interest::node_changed())
        .projected(keep_what_counts)
        .watches(move |group: &SecurityGroup| of_groups.in_group(group))
        .predicate(interest::id_changed())
        .writes::<SecurityGroup>([Verb::Patch])
        .writes_status::<SecurityGroup>()
        .writes::<Secret>([Verb::Get])
        .concurrency(WORKERS)
        .rate_limit(RateLimit::per_key(BACK_OFF.0, BACK_OFF.1))
}

/// Of a node, its labels and which machine it is are looked at; the images that it has are most of it.
fn keep_what_counts(node: &mut Node) {
    node.metadata.annotations = None;
    if let Some(status) = &mut node.status {
        let info = status.node_info.take();
        *status = k8s_openapi::api::core::v1::NodeStatus { node_info: info, ..Default::default() };
    }
}

struct SecurityGroupReconciler {
    clouds: Clouds,
    interest: Arc<Interest>,
}

impl Reconciler for SecurityGroupReconciler {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(object) = ctx.get::<SecurityGroup>(key) else {
            self.interest.forget(key);
            tracing::info!(securitygroup = %key, "instance not found");
            return Ok(Outcome::Done);
        };
        let is_deleted = object.metadata.deletion_timestamp.is_some();
        if is_deleted && !finalizer::has(&*object, FINALIZER) {
            return Ok(Outcome::Done);
        }
        self.interest.note(key, &object.spec);
        let session = match self.clouds.session(ctx, &object).await {
            Ok(session) => Ok(session),
            Err(NoSession::Unknown(error)) => return Err(error),
            // Nothing is guarded before there is a cloud: such an object can be deleted like any other.
            Err(NoSession::Misconfigured(reason, message)) if !is_deleted => {
                let trouble = Trouble::lasting(reason, message);
                return Pass::without_cloud(ctx, object, trouble).await;
            }
            Err(NoSession::Misconfigured(_, message)) => Err(message),
        };
        let cleanup = || async {
            let session = session.clone().map_err(Error::new)?;
            cleanup::clean_up(ctx, &object, &Neutron::new(session)).await
        };
        if ctx.guard(&*object, FINALIZER, cleanup).await? == Guarded::Cleaned {
            return Ok(Outcome::Done);
        }
        let (Ok(session), Some(object)) = (session, ctx.get::<SecurityGroup>(key)) else {
            return Ok(Outcome::Done);
        };
        Pass::new(ctx, object, Neutron::new(session)).run().await
    }
}
