//! The scheduler: gives every pod that has no node one (`pkg/scheduler`).
//!
//! It keeps what is on each node and who waits ([`state`]), one change at a time, and lets one waiting pod after the
//! other have its turn: [`decision`] is a pure function of that state, [`act`] writes what it says. A pod that was
//! refused waits for something that may help it, or five minutes.
//!
//! Not looked at: images, limits of attachable volumes, storage capacity, pod groups. What there is of devices, [`devices`] says.

mod act;
mod affinity;
mod cluster_state;
mod decision;
#[cfg(test)]
mod decision_tests;
mod devices;
mod filter;
mod limits;
mod listers;
mod node_state;
mod pod_info;
mod preemption;
mod queue;
mod resources;
mod score;
mod spread;
mod state;
mod volumes;
mod watching;

pub(crate) use self::pod_info::want_the_same_port;

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{
    Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, ReplicationController, Service,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use kubewright_objects::devices::{DeviceClass, ResourceClaim, ResourceSlice};
use kubewright_runtime::{Context, Controller, Error, Key, Outcome, Predicate, Reconciler};
use parking_lot::Mutex;

use self::decision::{Decision, Nomination, Refused};
use self::devices::Reservation;
use self::filter::Plugin;
use self::pod_info::PodInfo;
use self::state::State;
use self::watching::{Inbox, matters_of_node, matters_of_pod};
use crate::managed::Managed;

/// The scheduler of pods that name no other.
const NAME: &str = "default-scheduler";

/// The controller, which runs under the name of its events' source. `nodes` is how many simulated nodes there are from
/// the start: with 0, pods are placed on nodes that say that they are fake (see [`crate::simulated_nodes`]) and left
/// alone while there is none.
#[must_use]
pub fn scheduler(nodes: usize) -> Controller {
    let inbox = Inbox::default();
    let round = || vec![Key::cluster_scoped("round")];
    let managed = Managed::of(nodes);
    let (pods, nodes) = (inbox.clone(), inbox.clone());
    let helps = |plugin: Plugin| {
        let inbox = inbox.clone();
        move || {
            inbox.helped(plugin);
            vec![Key::cluster_scoped("round")]
        }
    };
    let (devices, slices, device_classes) =
        (helps(Plugin::DynamicResources), helps(Plugin::DynamicResources), helps(Plugin::DynamicResources));
    let (claims, volumes, classes, limits, namespaces) = (
        helps(Plugin::VolumeBinding),
        helps(Plugin::VolumeBinding),
        helps(Plugin::VolumeBinding),
        helps(Plugin::NodeVolumeLimits),
        helps(Plugin::InterPodAffinity),
    );
    Controller::new(NAME, Scheduler { managed, inbox: inbox.clone(), state: Mutex::default() })
        .watches(move |pod: &Pod| {
            pods.pod(pod);
            round()
        })
        .predicate(Predicate::of(matters_of_pod))
        .watches(move |node: &Node| {
            nodes.node(node);
            round()
        })
        .predicate(Predicate::of(matters_of_node))
        .watches(move |_: &PersistentVolumeClaim| claims())
        .watches(move |_: &PersistentVolume| volumes())
        .watches(move |_: &StorageClass| classes())
        .watches(move |_: &CSINode| limits())
        .watches(move |_: &Namespace| namespaces())
        .watches(move |_: &ResourceClaim| devices())
        .optional()
        .watches(move |_: &ResourceSlice| slices())
        .optional()
        .watches(move |_: &DeviceClass| device_classes())
        .optional()
        .reads::<PodDisruptionBudget>()
        .reads::<Service>()
        .reads::<ReplicationController>()
        .reads::<ReplicaSet>()
        .reads::<StatefulSet>()
}

struct Scheduler {
    managed: Managed,
    inbox: Inbox,
    state: Mutex<State>,
}

impl Reconciler for Scheduler {
    async fn reconcile(&self, ctx: &Context, _: &Key) -> Result<Outcome, Error> {
        let next_flush = loop {
            let flush = self.observe(ctx);
            let turn = self.turn(ctx);
            let Some((pod_info, decision)) = turn else { break flush };
            let acted = match decision {
                Decision::Place { node, bindings, reservations } if bindings.is_empty() => {
                    self.place(ctx, &pod_info, &node, &reservations).await
                }
                Decision::Place { node, bindings, .. } => {
                    // The claims' next events are the pod's next turn.
                    let by = BTreeSet::from([Plugin::VolumeBinding]);
                    let promise = Nomination::Node(Arc::clone(&node));
                    self.state.lock().refuse(&pod_info, by, &promise, ctx.world().clock.now());
                    act::bind_volumes(ctx, &bindings, &node).await
                }
                Decision::Hold(by) => {
                    let now = ctx.world().clock.now();
                    self.state.lock().refuse(&pod_info, by, &Nomination::Keep, now);
                    Ok(())
                }
                Decision::Refuse(refused) => self.refuse(ctx, &pod_info, refused).await,
            };
            if let Err(error) = acted {
                // It is this pod that waits, and no other (`handleSchedulingFailure`).
                self.state.lock().postpone(&pod_info, ctx.world().clock.now());
                act::failed(ctx, &pod_info, &error);
            }
        };
        Ok(next_flush.map_or(Outcome::Done, Outcome::RequeueAfter))
    }
}

impl Scheduler {
    /// Looks at what changed; says when there is somebody to try again even if nothing does.
    fn observe(&self, ctx: &Context) -> Option<std::time::Duration> {
        let events = self.inbox.take();
        let mut state = self.state.lock();
        for key in &events.nodes {
            let node = ctx.get::<Node>(key).filter(|node| self.managed.places_on(node));
            state.see_node(key, node);
        }
        for key in &events.pods {
            state.see_pod(key, ctx.get::<Pod>(key));
        }
        state.see_help(events.helped);
        state.wake(ctx, ctx.world().clock.now())
    }

    /// The pod whose turn it is; nobody's, while there are no nodes where none were asked for.
    fn turn(&self, ctx: &Context) -> Option<(Arc<PodInfo>, Decision)> {
        let mut state = self.state.lock();
        if self.managed == Managed::Fake && !state.has_nodes() {
            return None;
        }
        state.decide(ctx)
    }

    async fn place(
        &self,
        ctx: &Context,
        pod_info: &Arc<PodInfo>,
        node: &str,
        reservations: &[Reservation],
    ) -> Result<(), Error> {
        if !act::reserve(ctx, pod_info, reservations).await? {
            // Somebody else wrote to a claim: its next event is the pod's next turn.
            let by = BTreeSet::from([Plugin::DynamicResources]);
            let now = ctx.world().clock.now();
            self.state.lock().refuse(pod_info, by, &Nomination::Keep, now);
            return Ok(());
        }
        self.state.lock().assume(pod_info, node);
        let bound = act::bind(ctx, pod_info, node).await;
        if let Ok(false) = &bound {
            // The pod is gone, or somebody else gave it a node: its next event tells.
            self.state.lock().take_back(pod_info);
        }
        bound.map(|_| ())
    }

    async fn refuse(&self, ctx: &Context, pod_info: &Arc<PodInfo>, refused: Refused) -> Result<(), Error> {
        let now = ctx.world().clock.now();
        self.state.lock().refuse(pod_info, refused.by.clone(), &refused.nomination, now);
        if let Nomination::Node(node) = &refused.nomination {
            let outranked = self.state.lock().outranked(pod_info, node);
            act::take_back_promises(ctx, &outranked).await?;
            act::preempt(ctx, pod_info, node, &refused.victims).await?;
        }
        act::refuse(ctx, pod_info, &refused).await
    }
}
