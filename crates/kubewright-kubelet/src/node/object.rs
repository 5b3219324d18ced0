//! The Node that stands for this machine (`pkg/kubelet/kubelet_node_status.go`, `pkg/kubelet/nodestatus`).

use std::collections::BTreeMap;
use std::net::IpAddr;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    DaemonEndpoint, Node, NodeAddress, NodeCondition, NodeDaemonEndpoints, NodeStatus, NodeSystemInfo,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ObjectMeta;

use super::machine::Machine;
use crate::pod::seconds;

/// Which node this is.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) name: String,
    pub(crate) machine: Machine,
    pub(crate) address: IpAddr,
    pub(crate) max_pods: usize,
}

impl Identity {
    /// The object as it is registered, without a status.
    pub(crate) fn node(&self) -> Node {
        let labels = [
            ("beta.kubernetes.io/arch", self.machine.architecture),
            ("beta.kubernetes.io/os", "linux"),
            ("kubernetes.io/arch", self.machine.architecture),
            ("kubernetes.io/hostname", &self.name),
            ("kubernetes.io/os", "linux"),
        ];
        let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let annotations = [
            kubewright_meta::well_known::PROCESS_NODE,
            ("volumes.kubernetes.io/controller-managed-attach-detach", "true"),
        ];
        Node {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                labels: Some(labels.map(own).into()),
                annotations: Some(annotations.map(own).into()),
                ..ObjectMeta::default()
            },
            ..Node::default()
        }
    }

    /// Its status at `now`; a condition that said the same in `before` keeps its time.
    pub(crate) fn status(&self, before: Option<&NodeStatus>, now: Timestamp) -> NodeStatus {
        let room = allocatable(&self.machine, self.max_pods);
        NodeStatus {
            addresses: Some(vec![
                NodeAddress { type_: "InternalIP".to_owned(), address: self.address.to_string() },
                NodeAddress { type_: "Hostname".to_owned(), address: self.name.clone() },
            ]),
            allocatable: Some(room.clone()),
            capacity: Some(room),
            conditions: Some(conditions(before, now)),
            // Nothing listens there: the API server reaches this kubelet within its process.
            daemon_endpoints: Some(NodeDaemonEndpoints {
                kubelet_endpoint: Some(DaemonEndpoint { port: 0 }),
            }),
            node_info: Some(self.info()),
            ..NodeStatus::default()
        }
    }

    fn info(&self) -> NodeSystemInfo {
        let version = env!("CARGO_PKG_VERSION");
        let machine = &self.machine;
        NodeSystemInfo {
            architecture: machine.architecture.to_owned(),
            boot_id: machine.boot_id.clone(),
            container_runtime_version: format!("kubewright://{version}"),
            kernel_version: machine.kernel.clone(),
            kube_proxy_version: String::new(),
            kubelet_version: format!("kubewright-v{version}"),
            machine_id: machine.machine_id.clone(),
            operating_system: "linux".to_owned(),
            os_image: machine.system.clone(),
            ..NodeSystemInfo::default()
        }
    }
}

/// What pods may use of the machine: all of it, as nothing is set aside.
pub(crate) fn allocatable(machine: &Machine, max_pods: usize) -> BTreeMap<String, Quantity> {
    let quantity = |name: &str, value: String| (name.to_owned(), Quantity(value));
    [
        quantity("cpu", machine.cpus.to_string()),
        quantity("ephemeral-storage", format!("{}Ki", machine.storage)),
        quantity("memory", format!("{}Ki", machine.memory)),
        quantity("pods", max_pods.to_string()),
    ]
    .into()
}

fn conditions(before: Option<&NodeStatus>, now: Timestamp) -> Vec<NodeCondition> {
    let said = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ];
    let now = Some(Time(seconds(now)));
    let known = |kind: &str| {
        let conditions = before.and_then(|before| before.conditions.as_ref());
        conditions.and_then(|conditions| conditions.iter().find(|condition| condition.type_ == kind))
    };
    said.into_iter()
        .map(|(kind, status, reason, message)| NodeCondition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_heartbeat_time: now.clone(),
            last_transition_time: known(kind)
                .filter(|known| known.status == status)
                .and_then(|known| known.last_transition_time.clone())
                .or_else(|| now.clone()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_keeps_its_time_while_it_says_the_same() {
        let start: Timestamp = Timestamp::constant(1_767_225_600, 0);
        let identity = Identity {
            name: "n".to_owned(),
            machine: Machine::read(std::path::Path::new("/")),
            address: IpAddr::from([127, 0, 0, 1]),
            max_pods: 110,
        };
        let first = identity.status(None, start);
        let second = identity.status(Some(&first), start + std::time::Duration::from_secs(300));
        let ready = |status: &NodeStatus| status.conditions.as_ref().expect("conditions")[3].clone();
        assert_eq!(ready(&first).last_transition_time, ready(&second).last_transition_time);
        assert_ne!(ready(&first).last_heartbeat_time, ready(&second).last_heartbeat_time);
    }
}
