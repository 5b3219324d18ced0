//! Fields of features that are off by default: they are dropped from every pod and template
//! (`pkg/api/pod.DropDisabledPodFields`). As they are never stored, no update has to keep them.

use serde_json::Value;

use super::super::{fill, version};

/// The feature gates, and where in a pod's spec their fields are. A `*` stands for each item of a list.
const FIELDS: [(&str, &[&str]); 10] = [
    ("GenericWorkload", &["schedulingGroup"]),
    ("EvictionRequestAPI", &["evictionResponders"]),
    ("ClusterTrustBundleProjection", &["volumes.*.projected.sources.*.clusterTrustBundle"]),
    ("PodCertificateRequest", &["volumes.*.projected.sources.*.podCertificate"]),
    ("EmptyDirVolumeMode", &["volumes.*.emptyDir.mode"]),
    (
        "AtomicWriteVolumeUserFields",
        &[
            "volumes.*.secret.defaultUser",
            "volumes.*.secret.items.*.user",
            "volumes.*.configMap.defaultUser",
            "volumes.*.configMap.items.*.user",
            "volumes.*.downwardAPI.defaultUser",
            "volumes.*.downwardAPI.items.*.user",
            "volumes.*.projected.defaultUser",
            "volumes.*.projected.sources.*.secret.items.*.user",
            "volumes.*.projected.sources.*.configMap.items.*.user",
            "volumes.*.projected.sources.*.downwardAPI.items.*.user",
            "volumes.*.projected.sources.*.serviceAccountToken.user",
            "volumes.*.projected.sources.*.clusterTrustBundle.user",
            "volumes.*.projected.sources.*.podCertificate.user",
        ],
    ),
    ("ContainerStopSignals", &["<containers>.*.lifecycle.stopSignal"]),
    ("VolumeBindMountOptions", &["<containers>.*.volumeMounts.*.bindMountOptions"]),
    (
        "H2CContainerProbe",
        &[
            "<containers>.*.livenessProbe.httpGet.protocol",
            "<containers>.*.readinessProbe.httpGet.protocol",
            "<containers>.*.startupProbe.httpGet.protocol",
            "<containers>.*.lifecycle.postStart.httpGet.protocol",
            "<containers>.*.lifecycle.preStop.httpGet.protocol",
        ],
    ),
    (
        "GRPCContainerProbeTLS",
        &[
            "<containers>.*.livenessProbe.grpc.mode",
            "<containers>.*.readinessProbe.grpc.mode",
            "<containers>.*.startupProbe.grpc.mode",
        ],
    ),
];

/// The same of a pod's status (`dropDisabledPodStatusFields`). `<statuses>` stands for each list of statuses of containers.
const STATUS_FIELDS: [(&str, &str); 5] = [
    ("DRAExtendedResource", "extendedResourceClaimStatus"),
    ("DRANodeAllocatableResources", "nodeAllocatableResourceClaimStatuses"),
    ("ImageVolumeWithDigest", "<statuses>.*.volumeMounts.*.volumeStatus"),
    ("ResourceHealthStatus", "<statuses>.*.allocatedResourcesStatus"),
    ("ResourceHealthStatusMessage", "<statuses>.*.allocatedResourcesStatus.*.resources.*.message"),
];

/// The lists of statuses of containers.
const STATUSES: [&str; 3] = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];

/// Drops the fields of a status that are of features that the version does not have.
pub(super) fn drop_of_status(status: &mut Value) {
    for (_, field) in STATUS_FIELDS.iter().filter(|(gate, _)| !version::has_feature(gate)) {
        match field.strip_prefix("<statuses>.*.") {
            None => remove(status, field),
            Some(field) => {
                STATUSES.iter().for_each(|list| fill::each(status, list, |one| remove(one, field)));
            }
        }
    }
}

/// Drops the fields of the features that the version does not have.
pub fn drop(spec: &mut Value) {
    for (_, fields) in FIELDS.iter().filter(|(gate, _)| !version::has_feature(gate)) {
        for field in *fields {
            match field.strip_prefix("<containers>.*.") {
                None => remove(spec, field),
                Some(field) => {
                    for list in super::defaults::CONTAINERS {
                        fill::each(spec, list, |container| remove(container, field));
                    }
                }
            }
        }
    }
}

/// Removes the field at a path. A container that has nothing left to do at its start and end has no lifecycle.
fn remove(parent: &mut Value, path: &str) {
    let Some((first, rest)) = path.split_once('.') else { return fill::remove(parent, path) };
    if let Some(rest) = rest.strip_prefix("*.") {
        return fill::each(parent, first, |item| remove(item, rest));
    }
    let Some(child) = fill::present(parent, first) else { return };
    let was_empty = is_empty(child);
    remove(child, rest);
    if first == "lifecycle" && !was_empty && is_empty(child) {
        fill::remove(parent, first);
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty)
}

#[cfg(test)]
mod tests {
    use kubewright_spec::{Version, is_gate};
    use serde_json::json;

    use super::*;

    #[test]
    fn the_fields_of_a_feature_are_dropped_up_to_the_version_that_has_it() {
        let sent = json!({
            "schedulingGroup": {"podGroupName": "a"},
            "containers": [{"name": "a", "lifecycle": {"stopSignal": "SIGTERM"},
                "volumeMounts": [{"name": "v", "bindMountOptions": ["noexec"]}]}],
            "volumes": [{"name": "v", "projected": {"sources": [{"clusterTrustBundle": {"path": "p", "user": 1}}]}}],
        });
        let after = |kubernetes| {
            let mut spec = sent.clone();
            version::judged_by(kubernetes, || drop(&mut spec));
            spec
        };
        let bundle = |spec: &Value| spec["volumes"][0]["projected"]["sources"][0].clone();
        for kubernetes in Version::ALL {
            let spec = after(kubernetes);
            assert_eq!(spec.get("schedulingGroup"), None);
            assert_eq!(spec["containers"], json!([{"name": "a", "volumeMounts": [{"name": "v"}]}]));
        }
        assert_eq!(bundle(&after(Version::V1_36)), json!({}));
        assert_eq!(bundle(&after(Version::V1_37)), json!({"clusterTrustBundle": {"path": "p"}}));
    }

    #[test]
    fn a_status_has_no_fields_of_features_that_are_off() {
        let mut status = json!({
            "phase": "Running",
            "nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "a"}],
            "initContainerStatuses": [{"name": "a", "volumeMounts": [{"name": "v", "volumeStatus": {"image": {}}}]}],
        });
        drop_of_status(&mut status);
        let left = json!({"phase": "Running", "initContainerStatuses": [{"name": "a", "volumeMounts": [{"name": "v"}]}]});
        assert_eq!(status, left);
    }

    #[test]
    fn each_feature_is_one_that_a_version_knows() {
        let gates = FIELDS.iter().map(|(gate, _)| gate).chain(STATUS_FIELDS.iter().map(|(gate, _)| gate));
        for gate in gates {
            assert!(is_gate(gate), "{gate}");
        }
    }
}
