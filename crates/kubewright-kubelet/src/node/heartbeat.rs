//! Registers the node, renews its lease, and tells how it is (`pkg/kubelet/kubelet_node_status.go`).

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, OwnerReference};
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use kubewright_world::World;
use serde_json::json;
use tokio::sync::watch;

use super::object::Identity;
use crate::events::{EventRecorder, EventType};

/// How often the lease is renewed, and after how long it is over (`nodeLeaseDurationSeconds` and a quarter of it).
const BEAT: Duration = Duration::from_secs(10);
const LEASE_SECONDS: i32 = 40;
/// How often the status is told though nothing has changed (`nodeStatusReportFrequency`).
const REPORT: Duration = Duration::from_secs(300);
const LEASES: &str = "kube-node-lease";

/// Waits for the next reset; for ever where there are none.
async fn reset(resets: &mut Option<watch::Receiver<u64>>) {
    let is_reset = match resets {
        Some(resets) => resets.changed().await.is_ok(),
        None => false,
    };
    if !is_reset {
        std::future::pending::<()>().await;
    }
}

/// What keeps the node alive in the API.
pub(crate) struct Heartbeat {
    pub(crate) client: Client,
    pub(crate) world: World,
    pub(crate) identity: Identity,
    pub(crate) events: EventRecorder,
}

impl Heartbeat {
    /// Registers the node and says that it is ready.
    ///
    /// # Errors
    /// What the API server refuses.
    pub(crate) async fn register(&self) -> kube::Result<Node> {
        let api: Api<Node> = Api::all(self.client.clone());
        let wanted = self.identity.node();
        let node = match api.create(&PostParams::default(), &wanted).await {
            Err(kube::Error::Api(refusal)) if refusal.is_already_exists() => {
                // It was there before: its labels and annotations are as they are to be.
                let metadata = &wanted.metadata;
                let patch =
                    json!({"metadata": {"labels": metadata.labels, "annotations": metadata.annotations}});
                api.patch(&self.identity.name, &PatchParams::default(), &Patch::Merge(&patch)).await?
            }
            created => created?,
        };
        self.events.node(&node, EventType::Normal, "Starting", "Starting kubelet.");
        let node = self.report(&node).await?;
        self.renew(&node).await?;
        let status = "NodeReady";
        let told = format!("Node {} status is now: {status}", self.identity.name);
        self.events.node(&node, EventType::Normal, status, told);
        Ok(node)
    }

    /// Beats until it is dropped. A beat that fails is tried again with the next. When the cluster was made as it was at its start, the
    /// node registers again.
    pub(crate) async fn run(self, mut node: Node, mut resets: Option<watch::Receiver<u64>>) {
        let (mut reported, mut is_gone) = (self.now(), false);
        loop {
            tokio::select! {
                biased;
                () = reset(&mut resets) => is_gone = true,
                () = tokio::time::sleep(BEAT) => {}
            }
            let beat = async {
                if is_gone {
                    (node, reported) = (self.register().await?, self.now());
                    is_gone = false;
                    return Ok(());
                }
                let api: Api<Node> = Api::all(self.client.clone());
                let now = self.now();
                match api.get_opt(&self.identity.name).await? {
                    // Somebody deleted it: a kubelet that runs registers its node again only when it is restarted, and
                    // says nothing of one that is not there.
                    None => return Ok(()),
                    Some(current) => node = current,
                }
                self.renew(&node).await?;
                let passed = Duration::try_from(now.duration_since(reported)).unwrap_or_default();
                if passed >= REPORT || !says_ready(&node) {
                    node = self.report(&node).await?;
                    reported = now;
                }
                Ok::<_, kube::Error>(())
            };
            if let Err(error) = beat.await {
                tracing::warn!(node = %self.identity.name, %error, "the node's heartbeat was not taken");
            }
        }
    }

    async fn report(&self, node: &Node) -> kube::Result<Node> {
        let api: Api<Node> = Api::all(self.client.clone());
        let status = self.identity.status(node.status.as_ref(), self.now());
        let patch = Patch::Strategic(json!({"status": status}));
        api.patch_status(&self.identity.name, &PatchParams::default(), &patch).await
    }

    async fn renew(&self, node: &Node) -> kube::Result<()> {
        let api: Api<Lease> = Api::namespaced(self.client.clone(), LEASES);
        let now = MicroTime(microseconds(self.now()));
        match api.get_opt(&self.identity.name).await? {
            Some(mut lease) => {
                let spec = lease.spec.get_or_insert_default();
                spec.renew_time = Some(now);
                spec.holder_identity = Some(self.identity.name.clone());
                spec.lease_duration_seconds = Some(LEASE_SECONDS);
                api.replace(&self.identity.name, &PostParams::default(), &lease).await?;
            }
            None => {
                api.create(&PostParams::default(), &self.lease(node, now)).await?;
            }
        }
        Ok(())
    }

    fn lease(&self, node: &Node, now: MicroTime) -> Lease {
        let owner = OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Node".to_owned(),
            name: self.identity.name.clone(),
            uid: node.metadata.uid.clone().unwrap_or_default(),
            ..OwnerReference::default()
        };
        Lease {
            metadata: ObjectMeta {
                name: Some(self.identity.name.clone()),
                namespace: Some(LEASES.to_owned()),
                owner_references: Some(vec![owner]),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.identity.name.clone()),
                lease_duration_seconds: Some(LEASE_SECONDS),
                renew_time: Some(now),
                ..LeaseSpec::default()
            }),
        }
    }

    fn now(&self) -> Timestamp {
        self.world.clock.now()
    }
}

fn says_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|conditions| {
        conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    })
}

fn microseconds(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}
