//! Fields of features that are off by default in Kubernetes v1.36: they are dropped from every pod and template
//! (`pkg/api/pod.DropDisabledPodFields`). As they are never stored, no update has to keep them.

use serde_json::Value;

use super::super::fill;

/// Drops them: `ContainerStopSignals`, `ClusterTrustBundleProjection`, `PodCertificateRequest`, `GenericWorkload`.
pub(super) fn drop(spec: &mut Value) {
    fill::remove(spec, "schedulingGroup");
    for list in super::defaults::CONTAINERS {
        fill::each(spec, list, |container| {
            let Some(lifecycle) = fill::present(container, "lifecycle") else { return };
            let stops = lifecycle.as_object_mut().and_then(|fields| fields.remove("stopSignal")).is_some();
            if stops && lifecycle.as_object().is_some_and(serde_json::Map::is_empty) {
                fill::remove(container, "lifecycle");
            }
        });
    }
    fill::each(spec, "volumes", |volume| {
        if let Some(projected) = fill::present(volume, "projected") {
            fill::each(projected, "sources", |source| {
                fill::remove(source, "clusterTrustBundle");
                fill::remove(source, "podCertificate");
            });
        }
    });
}
