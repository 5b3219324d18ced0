//! Kernel parameters that a pod asks for (`securityContext.sysctls`).

use k8s_openapi::api::core::v1::Pod;

use crate::container::sysctls::normal;

/// What each container of a pod is to find, by names with dots, in the pod's order.
pub(crate) fn sysctls(pod: &Pod) -> Vec<(String, String)> {
    let context = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
    let asked = context.and_then(|context| context.sysctls.as_deref()).unwrap_or_default();
    asked.iter().map(|sysctl| (normal(&sysctl.name), sysctl.value.clone())).collect()
}
