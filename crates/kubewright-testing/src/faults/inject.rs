//! Injects faults into a cluster, where a rule of the API server does not do it alone.

use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{Node, NodeSpec, NodeStatus, Pod};
use kube::api::{DeleteParams, EvictParams, ListParams, PostParams};
use kube::core::ObjectMeta;
use kube::{Api, Client, Resource, ResourceExt};
use kubewright_cluster::User;
use kubewright_cluster::admin::{Admin, ApiFault, NoAnswer, Rule, Schedule, WatchEnd};

use super::{Fault, operators};
use crate::{Cluster, Deployed};

/// Who evicts pods and takes nodes away.
const USER: &str = "kubewright:faults";

impl Cluster {
    /// Injects a fault for so long; returns when it is over.
    ///
    /// ```no_run
    /// # async fn example(cluster: kubewright_testing::Cluster) {
    /// use std::time::Duration;
    ///
    /// use kubewright_testing::faults::Fault;
    ///
    /// cluster.inject(Fault::Restart, Duration::from_secs(20)).await;
    /// # }
    /// ```
    pub async fn inject(&self, fault: Fault, lasting: Duration) {
        let Some(admin) = self.admin() else { return };
        let _injected = self.injector().begins();
        match fault {
            Fault::Rule(rule) => {
                under(admin, [rule], lasting).await;
                self.restart_ended().await;
            }
            Fault::Restart => {
                let cut = ApiFault::Timeout { done: false, answer: NoAnswer::Cut };
                let requests = Rule::new(cut).on(operators()).at(Schedule::always());
                let watches = Rule::new(ApiFault::DropWatch { how: WatchEnd::Reset }).on(operators());
                under(admin, [requests, watches], lasting).await;
                self.restart_ended().await;
            }
            Fault::Crash { after } => self.crash(after, lasting).await,
            Fault::ClockSkew(by) => {
                self.injector().skew(by);
                tokio::time::sleep(lasting).await;
                self.injector().skew(SignedDuration::ZERO);
            }
            Fault::WebhookDown => {
                self.plug_webhooks(false);
                tokio::time::sleep(lasting).await;
                self.plug_webhooks(true);
            }
            // Pods and nodes may go meanwhile, or be protected: then nothing happens.
            Fault::Evict(number) => drop(evict(self.by_faults(), number).await),
            Fault::NodeGone(number) => drop(node_gone(self.by_faults(), number, lasting).await),
        }
    }

    /// What [`Self::inject`] was called.
    #[deprecated(since = "0.1.0", note = "is called `inject`")]
    pub async fn befall(&self, fault: Fault, lasting: Duration) {
        self.inject(fault, lasting).await;
    }

    fn by_faults(&self) -> Client {
        self.client_as(User::new(USER, ["system:masters"]))
    }

    async fn crash(&self, after: u64, lasting: Duration) {
        let mut operators = self.operators();
        operators.retain(Deployed::is_running);
        operators.iter().for_each(|operator| operator.crash_after(after));
        tokio::time::sleep(lasting).await;
        for operator in operators {
            if operator.is_running() {
                // It did not write so often; it lives.
                operator.crash_after(u64::MAX);
            } else {
                operator.crash().await;
                operator.restart().await;
            }
        }
    }

    /// Starts the operators again that have ended by themselves, as a Deployment would.
    pub(crate) async fn restart_ended(&self) {
        for operator in self.operators().iter().filter(|operator| operator.failure().is_some()) {
            operator.crash().await;
            operator.restart().await;
        }
    }
}

/// Has rules in force for a while.
async fn under<const N: usize>(admin: &Admin, rules: [Rule; N], lasting: Duration) {
    let rules = rules.map(|rule| admin.inject(rule));
    tokio::time::sleep(lasting).await;
    for rule in rules {
        admin.remove_fault(rule);
    }
}

async fn evict(client: Client, number: usize) -> kube::Result<()> {
    let pods = Api::<Pod>::all(client.clone()).list(&ListParams::default()).await?.items;
    if let Some(pod) = pods.get(number % pods.len().max(1)) {
        let api: Api<Pod> = Api::namespaced(client, pod.namespace().as_deref().unwrap_or_default());
        api.evict(&pod.name_any(), &EvictParams::default()).await?;
    }
    Ok(())
}

async fn node_gone(client: Client, number: usize, lasting: Duration) -> kube::Result<()> {
    let nodes: Api<Node> = Api::all(client);
    let all = nodes.list(&ListParams::default()).await?.items;
    let Some(node) = all.get(number % all.len().max(1)) else { return Ok(()) };
    nodes.delete(&node.name_any(), &DeleteParams::default()).await?;
    tokio::time::sleep(lasting).await;
    nodes.create(&PostParams::default(), &registered_again(node)).await.map(drop)
}

/// What the kubelet of this node's machine registers when it is back: the machine is the same one.
fn registered_again(node: &Node) -> Node {
    let ObjectMeta { name, labels, annotations, .. } = node.meta().clone();
    let spec = node.spec.clone().unwrap_or_default();
    let status = node.status.clone().unwrap_or_default();
    Node {
        metadata: ObjectMeta { name, labels, annotations, ..ObjectMeta::default() },
        spec: Some(NodeSpec { provider_id: spec.provider_id, ..NodeSpec::default() }),
        status: Some(NodeStatus { node_info: status.node_info, ..NodeStatus::default() }),
    }
}
