use serde_json::json;

use super::samples::of;
use super::{change_refused, each_change_is_refused, each_is_refused, made, with};

#[test]
fn claims_are_checked() {
    let claim = ("", "v1", "persistentvolumeclaims");
    assert_eq!(made(claim, &of(claim))["spec"]["volumeMode"], "Filesystem");
    each_is_refused(
        claim,
        &of(claim),
        &[
            (
                "/spec/accessModes",
                json!([]),
                &["spec.accessModes: Required value: at least 1 access mode is required"],
            ),
            (
                "/spec/accessModes",
                json!(["ReadWriteOncePod", "ReadOnlyMany"]),
                &["spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"],
            ),
            ("/spec/resources", json!({}), &["spec.resources[storage]: Required value"]),
            (
                "/spec/resources/requests/storage",
                json!("0"),
                &["spec.resources[storage]: Invalid value: \"0\": must be greater than zero"],
            ),
            (
                "/spec/volumeMode",
                json!("Cloud"),
                &[
                    "spec.volumeMode: Unsupported value: \"Cloud\": supported values: \"Block\", \"Filesystem\"",
                ],
            ),
            (
                "/spec/dataSourceRef",
                json!({"kind": "Snapshot", "name": "s"}),
                &[
                    "spec.dataSource: Invalid value: \"Snapshot\": must be 'PersistentVolumeClaim' when referencing the default apiGroup",
                    "spec.dataSourceRef: Invalid value: \"Snapshot\": must be 'PersistentVolumeClaim' when referencing the default apiGroup",
                ],
            ),
        ],
    );
}

#[test]
fn only_a_bound_claim_grows() {
    const FIXED: &str = "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n";
    let claim = ("", "v1", "persistentvolumeclaims");
    each_change_is_refused(
        claim,
        &of(claim),
        &[
            ("/spec/volumeName", json!("v"), &[]),
            ("/spec/storageClassName", json!("fast"), &[]),
            ("/spec/resources/requests/storage", json!("2Gi"), &[FIXED]),
            ("/spec/accessModes", json!(["ReadOnlyMany"]), &[FIXED]),
        ],
    );
    let mut old = made(claim, &of(claim));
    old["status"] = json!({"phase": "Bound", "capacity": {"storage": "1Gi"}});
    let grown = with(&old, "/spec/resources/requests/storage", json!("2Gi"));
    assert!(super::rules(claim).errors_on_update(&grown, &old, true).is_empty());
    let shrunk = with(&old, "/spec/resources/requests/storage", json!("512Mi"));
    assert_eq!(
        super::messages(&super::rules(claim).errors_on_update(&shrunk, &old, true)),
        ["spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"]
    );
}

#[test]
fn volumes_are_checked() {
    let volume = ("", "v1", "persistentvolumes");
    each_is_refused(
        volume,
        &of(volume),
        &[
            (
                "/spec/nfs",
                json!({"server": "s", "path": "/"}),
                &["spec.nfs: Forbidden: may not specify more than 1 volume type"],
            ),
            ("/spec/hostPath", json!(null), &["spec: Required value: must specify a volume type"]),
            (
                "/spec/capacity",
                json!({}),
                &[
                    "spec.capacity: Required value",
                    "spec.capacity: Unsupported value: {}: supported values: \"storage\"",
                ],
            ),
            (
                "/spec/persistentVolumeReclaimPolicy",
                json!("Burn"),
                &[
                    "spec.persistentVolumeReclaimPolicy: Unsupported value: \"Burn\": supported values: \"Delete\", \"Recycle\", \"Retain\"",
                ],
            ),
        ],
    );
    let said = change_refused(volume, &of(volume), |volume| volume["spec"]["hostPath"]["path"] = json!("/y"));
    assert_eq!(
        said,
        [
            "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation\n@@ -2,7 +2,7 @@\n  \
          \"GCEPersistentDisk\": null,\n  \"AWSElasticBlockStore\": null,\n  \"HostPath\": {\n-  \"Path\": \"/x\",\n+  \
          \"Path\": \"/y\",\n   \"Type\": \"\"\n  },\n  \"Glusterfs\": null,\n"
        ]
    );
}

#[test]
fn classes_and_drivers_are_checked() {
    let class = ("storage.k8s.io", "v1", "storageclasses");
    assert_eq!(made(class, &of(class))["reclaimPolicy"], "Delete");
    each_is_refused(
        class,
        &of(class),
        &[
            ("/provisioner", json!(""), &["provisioner: Required value"]),
            (
                "/volumeBindingMode",
                json!("Never"),
                &[
                    "volumeBindingMode: Unsupported value: \"Never\": supported values: \"Immediate\", \"WaitForFirstConsumer\"",
                ],
            ),
        ],
    );
    let said = change_refused(class, &of(class), |class| class["provisioner"] = json!("example.com/other"));
    assert_eq!(said, ["provisioner: Invalid value: \"example.com/other\": field is immutable"]);
    let driver = ("storage.k8s.io", "v1", "csidrivers");
    each_is_refused(
        driver,
        &of(driver),
        &[
            (
                "/spec/fsGroupPolicy",
                json!("All"),
                &[
                    "spec.fsGroupPolicy: Unsupported value: \"All\": supported values: \"File\", \"None\", \"ReadWriteOnceWithFSType\"",
                ],
            ),
            (
                "/spec/nodeAllocatableUpdatePeriodSeconds",
                json!(5),
                &[
                    "spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 5: must be greater than or equal to 10 seconds",
                ],
            ),
        ],
    );
    let attachment = ("storage.k8s.io", "v1", "volumeattachments");
    each_is_refused(
        attachment,
        &of(attachment),
        &[(
            "/spec/source",
            json!({}),
            &[
                "spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName",
            ],
        )],
    );
    let node = ("storage.k8s.io", "v1", "csinodes");
    each_is_refused(
        node,
        &of(node),
        &[("/spec/drivers/0/nodeID", json!(""), &["spec.drivers[0].nodeID: Required value"])],
    );
    let capacity = ("storage.k8s.io", "v1", "csistoragecapacities");
    assert_eq!(made(capacity, &of(capacity))["capacity"], "1Gi");
    each_is_refused(
        capacity,
        &of(capacity),
        &[(
            "/capacity",
            json!("-1"),
            &["capacity: Invalid value: \"-1\": must be greater than or equal to 0"],
        )],
    );
}

#[test]
fn the_source_of_a_volume_is_the_same_with_a_list_without_entries() {
    let volume = ("", "v1", "persistentvolumes");
    let channel = with(&of(volume), "/spec/hostPath", json!(null));
    let channel = with(&channel, "/spec/fc", json!({"targetWWNs": ["a"], "lun": 1}));
    let said = |list| change_refused(volume, &channel, |volume| volume["spec"]["fc"]["wwids"] = list);
    assert_eq!(said(json!([])), Vec::<String>::new());
    assert_eq!(said(json!(["b"])).len(), 2, "{:?}", said(json!(["b"])));
}

#[test]
fn the_group_of_a_source_is_checked_of_new_claims_and_of_those_that_had_none() {
    let claim = ("", "v1", "persistentvolumeclaims");
    let source = |group: &str| json!({"apiGroup": group, "kind": "Snapshot", "name": "s"});
    let wrong = |said: Vec<String>| said.iter().any(|said| said.contains("apiGroup: Invalid value"));
    let named = with(&of(claim), "/spec/dataSourceRef", source("example.com"));
    assert!(wrong(super::refused(claim, &with(&named, "/spec/dataSourceRef/apiGroup", json!("A_b")))));
    assert!(wrong(change_refused(claim, &of(claim), |claim| claim["spec"]["dataSourceRef"] = source("A_b"))));
    assert!(!wrong(change_refused(claim, &named, |claim| claim["spec"]["dataSourceRef"] = source("A_b"))));
}
