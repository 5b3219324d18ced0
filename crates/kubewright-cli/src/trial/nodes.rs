//! Nodes that are lost, as an administrator, a kubelet that is silent, or the built-in controllers bring it about.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context, bail};
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{Node, Pod},
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, EvictParams, ListParams, Patch, PatchParams, PostParams},
};
use kubewright_meta::well_known::{KUBELET_STOPPED, MAX_GRACE_PERIOD, PROBE_DELAYS_IGNORED};
use kubewright_trial::plan::NodeLoss;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::access::refused;

/// Where the Leases of nodes are.
const LEASES: &str = "kube-node-lease";
/// How long the Lease of a kubelet lasts that is stopped, in seconds.
const LAST_LEASE: i32 = 40;
/// How long it is waited for a kubelet that stops, and for budgets that let pods be evicted.
const LONGEST: Duration = Duration::from_secs(3);
/// How long between two looks.
const AGAIN: Duration = Duration::from_millis(100);

/// Makes the pods of all nodes ready as soon as they run, and end soon when they are deleted: what probes and programs wait for is nothing
/// that can go wrong, and a step would take as long, once for each of several pods that are replaced one after the other.
///
/// # Errors
/// When the control plane refuses, or has not so many nodes in time.
pub(super) async fn hurry(client: &Client, count: usize, deadline: Instant) -> anyhow::Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let (ignored, yes) = PROBE_DELAYS_IGNORED;
    let patch = Patch::Merge(json!({"metadata": {"annotations": {ignored: yes, MAX_GRACE_PERIOD: "2s"}}}));
    loop {
        let there = nodes.list(&ListParams::default()).await.map_err(|error| refused("nodes", &error))?;
        if there.items.len() >= count {
            for node in there {
                let patched = nodes.patch(&node.name_any(), &PatchParams::default(), &patch).await;
                patched.map_err(|error| refused("a node", &error))?;
            }
            return Ok(());
        }
        if Instant::now() >= deadline {
            bail!("the control plane has {} of {count} nodes", there.items.len());
        }
        sleep(AGAIN).await;
    }
}

/// A node that is lost, until it is given back.
pub(super) struct Lost {
    client: Client,
    loss: NodeLoss,
    node: Node,
}

impl Lost {
    /// Loses one of the nodes on which pods are; a number says which. None where no pod is on a node.
    ///
    /// # Errors
    /// When the control plane refuses.
    pub(super) async fn begin(client: &Client, loss: NodeLoss, seed: u64) -> anyhow::Result<Option<Self>> {
        let nodes: Api<Node> = Api::all(client.clone());
        let names: BTreeSet<String> = pods(client).await?.iter().filter_map(node_of).collect();
        let Some(place) = usize::try_from(seed).unwrap_or_default().checked_rem(names.len()) else {
            return Ok(None);
        };
        let Some(name) = names.into_iter().nth(place) else { return Ok(None) };
        let node = nodes.get(&name).await.map_err(|error| refused("a node", &error))?;
        let lost = Self { client: client.clone(), loss, node };
        match loss {
            NodeLoss::Deleted => lost.delete().await?,
            NodeLoss::NotReady => lost.silence().await?,
            NodeLoss::Drained => lost.drain().await?,
        }
        Ok(Some(lost))
    }

    /// The node is back.
    ///
    /// # Errors
    /// When the control plane refuses.
    pub(super) async fn end(self) -> anyhow::Result<()> {
        match self.loss {
            NodeLoss::Deleted => {
                let node = registered_again(&self.node)?;
                let created = self.nodes().create(&PostParams::default(), &node).await;
                created.map(drop).map_err(|error| refused("a node", &error))
            }
            NodeLoss::NotReady => {
                self.patch(json!({"metadata": {"annotations": {KUBELET_STOPPED.0: null}}})).await
            }
            NodeLoss::Drained => self.patch(json!({"spec": {"unschedulable": null}})).await,
        }
    }

    fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    async fn patch(&self, patch: Value) -> anyhow::Result<()> {
        let name = self.node.name_any();
        let patched = self.nodes().patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.map(drop).map_err(|error| refused("a node", &error))
    }

    /// Its pods.
    async fn pods(&self) -> anyhow::Result<Vec<Pod>> {
        let mut pods = pods(&self.client).await?;
        pods.retain(|pod| node_of(pod) == self.node.metadata.name);
        Ok(pods)
    }

    fn pods_of(&self, pod: &Pod) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default())
    }

    /// The node goes, and its pods with it: the pod garbage collector would come for them after 40 seconds.
    async fn delete(&self) -> anyhow::Result<()> {
        let pods = self.pods().await?;
        let deleted = self.nodes().delete(&self.node.name_any(), &DeleteParams::default()).await;
        deleted.map_err(|error| refused("a node", &error))?;
        for pod in pods {
            let at_once = DeleteParams::default().grace_period(0);
            match self.pods_of(&pod).delete(&pod.name_any(), &at_once).await {
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                deleted => drop(deleted.map_err(|error| refused("a pod", &error))?),
            }
        }
        Ok(())
    }

    /// The kubelet stops, its Lease is long over, and nobody knows how the node is: what follows is the node lifecycle controller's,
    /// which would have waited for 50 seconds.
    async fn silence(&self) -> anyhow::Result<()> {
        let name = self.node.name_any();
        let (kubelet, stopped) = KUBELET_STOPPED;
        self.patch(json!({"metadata": {"annotations": {kubelet: stopped}}})).await?;
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), LEASES);
        let deadline = Instant::now() + LONGEST;
        let is_last = |lease: &Lease| {
            lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds) == Some(LAST_LEASE)
        };
        while Instant::now() < deadline
            && !leases.get_opt(&name).await.is_ok_and(|lease| lease.as_ref().is_some_and(is_last))
        {
            sleep(AGAIN).await;
        }
        let over = Patch::Merge(json!({"spec": {"renewTime": "2000-01-01T00:00:00.000000Z"}}));
        let over = leases.patch(&name, &PatchParams::default(), &over).await;
        over.map_err(|error| refused("the Lease of a node", &error))?;
        let now = self.nodes().get(&name).await.map_err(|error| refused("a node", &error))?;
        let unknown = Patch::Merge(json!({"status": {"conditions": conditions(&now)?}}));
        let written = self.nodes().patch_status(&name, &PatchParams::default(), &unknown).await;
        written.map(drop).map_err(|error| refused("the status of a node", &error))
    }

    /// It takes no more pods, and those on it are evicted, but for those of DaemonSets. What a budget protects for longer stays.
    async fn drain(&self) -> anyhow::Result<()> {
        self.patch(json!({"spec": {"unschedulable": true}})).await?;
        let mut pods = self.pods().await?;
        pods.retain(|pod| !pod.owner_references().iter().any(|owner| owner.kind == "DaemonSet"));
        let deadline = Instant::now() + LONGEST;
        while !pods.is_empty() && Instant::now() < deadline {
            let mut protected = Vec::new();
            for pod in pods {
                match self.pods_of(&pod).evict(&pod.name_any(), &EvictParams::default()).await {
                    Ok(_) => {}
                    Err(kube::Error::Api(status)) if status.code == 404 => {}
                    Err(kube::Error::Api(status)) if status.code == 429 => protected.push(pod),
                    Err(error) => return Err(refused("a pod cannot be evicted", &error)),
                }
            }
            pods = protected;
            sleep(AGAIN).await;
        }
        Ok(())
    }
}

async fn pods(client: &Client) -> anyhow::Result<Vec<Pod>> {
    let all = Api::<Pod>::all(client.clone()).list(&ListParams::default()).await;
    Ok(all.map_err(|error| refused("pods", &error))?.items)
}

/// The node on which a pod is.
fn node_of(pod: &Pod) -> Option<String> {
    pod.spec.as_ref()?.node_name.clone()
}

/// The conditions of a node of which nobody knows how it is.
fn conditions(node: &Node) -> anyhow::Result<Value> {
    let all = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let mut all = serde_json::to_value(all).context("conditions")?;
    for condition in all.as_array_mut().into_iter().flatten().filter(|one| one["status"] != "Unknown") {
        condition["status"] = "Unknown".into();
        condition["reason"] = "NodeStatusUnknown".into();
        condition["message"] = "Kubelet stopped posting node status.".into();
    }
    Ok(all)
}

/// What the kubelet of the same machine registers when it is back.
fn registered_again(node: &Node) -> anyhow::Result<Node> {
    let metadata = json!({"name": node.metadata.name, "labels": node.metadata.labels, "annotations": node.metadata.annotations});
    kubewright_objects::from_value(json!({"metadata": metadata})).context("a node")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_knows_how_a_node_is_whose_kubelet_is_silent() {
        let node = json!({"metadata": {"name": "n", "uid": "1", "labels": {"a": "b"}}, "status": {"conditions": [
            {"type": "Ready", "status": "True", "reason": "KubeletReady"}]}});
        let node: Node = kubewright_objects::from_value(node).expect("a node");
        let conditions = conditions(&node).expect("conditions");
        assert_eq!((&conditions[0]["type"], &conditions[0]["status"]), (&json!("Ready"), &json!("Unknown")));
        let again = registered_again(&node).expect("a node");
        assert_eq!((again.metadata.uid, again.status), (None, None));
        assert_eq!(again.metadata.labels, node.metadata.labels);
    }
}
