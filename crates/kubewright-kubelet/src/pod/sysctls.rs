//! Whether a pod may have the kernel parameters that it asks for (`pkg/kubelet/sysctl`).

use k8s_openapi::api::core::v1::{Pod, PodSpec};

use super::state::PodFailure;
use crate::inputs::sysctls;

/// What a kubelet allows that was not told to allow more: parameters of a namespace, which touch nobody outside of the pod.
const SAFE: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
];

/// Whether a pod may have the parameters that it asks for; the reason why not. `has_ipc` says whether containers here have an ipc
/// namespace of their own. Nobody here has a network of its own, so that what belongs to one is refused too.
pub(crate) fn admit(pod: &Pod, has_ipc: bool) -> Result<(), PodFailure> {
    let host = |is: fn(&PodSpec) -> Option<bool>| pod.spec.as_ref().and_then(is).unwrap_or_default();
    let (host_ipc, host_network) = (host(|spec| spec.host_ipc), host(|spec| spec.host_network));
    for (name, _) in sysctls(pod) {
        let is_network = name.starts_with("net.");
        let why = if !SAFE.contains(&name.as_str()) {
            "not allowlisted"
        } else if is_network && host_network {
            "not allowed with host net enabled"
        } else if is_network {
            "not allowed: pods of this node share the network of its machine"
        } else if host_ipc {
            "not allowed with host ipc enabled"
        } else if !has_ipc {
            "not allowed: pods of this node have no ipc namespace of their own"
        } else {
            continue;
        };
        return Err(PodFailure {
            reason: "SysctlForbidden".to_owned(),
            message: format!("forbidden sysctl: {name:?} {why}"),
            rejected: true,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(spec: &Value) -> Pod {
        kubewright_objects::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).expect("a pod")
    }

    fn asking(name: &str) -> Value {
        json!({"containers": [], "securityContext": {"sysctls": [{"name": name, "value": "1"}]}})
    }

    fn refusal(spec: &Value, has_ipc: bool) -> Option<String> {
        admit(&pod(spec), has_ipc).err().map(|failure| {
            assert_eq!((failure.reason.as_str(), failure.rejected), ("SysctlForbidden", true));
            failure.message
        })
    }

    #[test]
    fn what_is_not_known_as_safe_is_forbidden() {
        assert_eq!(refusal(&json!({"containers": []}), false), None);
        assert_eq!(refusal(&asking("kernel.shm_rmid_forced"), true), None);
        assert_eq!(refusal(&asking("kernel/shm_rmid_forced"), true), None);
        for (name, told) in [("kernel.msgmax", "kernel.msgmax"), ("fs/mqueue/msg_max", "fs.mqueue.msg_max")] {
            assert_eq!(
                refusal(&asking(name), true),
                Some(format!("forbidden sysctl: {told:?} not allowlisted"))
            );
        }
    }

    #[test]
    fn what_the_pod_shares_with_the_machine_is_not_its_to_change() {
        let because = |spec: &Value, has_ipc| refusal(spec, has_ipc).expect("it is refused");
        let mut ipc = asking("kernel.shm_rmid_forced");
        assert!(because(&ipc, false).ends_with("have no ipc namespace of their own"));
        ipc["hostIPC"] = json!(true);
        assert_eq!(
            because(&ipc, true),
            "forbidden sysctl: \"kernel.shm_rmid_forced\" not allowed with host ipc enabled"
        );
        let mut net = asking("net.ipv4.tcp_syncookies");
        assert!(because(&net, true).ends_with("share the network of its machine"));
        net["hostNetwork"] = json!(true);
        assert!(because(&net, true).ends_with("not allowed with host net enabled"));
    }
}
