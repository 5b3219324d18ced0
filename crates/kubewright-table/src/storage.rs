//! Volumes and what provides them.

use serde_json::Value;

use super::age::age;
use super::column::{NAME, boolean, integer, text as column};
use super::printer::Printer;
use super::value::{at, cells, count, flag, items, joined, quantity, text, text_or};

/// Prints persistent volumes.
pub const VOLUMES: Printer = Printer::new(
    &[
        NAME,
        column("Capacity"),
        column("Access Modes"),
        column("Reclaim Policy"),
        column("Status"),
        column("Claim"),
        column("StorageClass"),
        column("VolumeAttributesClass"),
        column("Reason"),
        column("Age"),
        column("VolumeMode").wide(),
    ],
    |volume, now| {
        let claim = at(volume, "/spec/claimRef")
            .map(|claim| format!("{}/{}", text(claim, "/namespace"), text(claim, "/name")));
        cells![
            text(volume, "/metadata/name"),
            quantity(volume, "/spec/capacity/storage"),
            access_modes(volume, "/spec/accessModes"),
            text(volume, "/spec/persistentVolumeReclaimPolicy"),
            phase(volume),
            claim.unwrap_or_default(),
            class(volume),
            set(volume, "/spec/volumeAttributesClassName"),
            text(volume, "/status/reason"),
            age(volume, now),
            set(volume, "/spec/volumeMode"),
        ]
    },
);

/// Prints persistent volume claims.
pub const CLAIMS: Printer = Printer::new(
    &[
        NAME,
        column("Status"),
        column("Volume"),
        column("Capacity"),
        column("Access Modes"),
        column("StorageClass"),
        column("VolumeAttributesClass"),
        column("Age"),
        column("VolumeMode").wide(),
    ],
    |claim, now| {
        let volume = text(claim, "/spec/volumeName");
        let (capacity, modes) = match volume {
            "" => (String::new(), String::new()),
            _ => (quantity(claim, "/status/capacity/storage"), access_modes(claim, "/status/accessModes")),
        };
        cells![
            text(claim, "/metadata/name"),
            phase(claim),
            volume,
            capacity,
            modes,
            class(claim),
            set(claim, "/spec/volumeAttributesClassName"),
            age(claim, now),
            set(claim, "/spec/volumeMode"),
        ]
    },
);

/// Prints storage classes.
pub const CLASSES: Printer = Printer::new(
    &[
        NAME,
        column("Provisioner"),
        column("ReclaimPolicy"),
        column("VolumeBindingMode"),
        column("AllowVolumeExpansion"),
        column("Age"),
    ],
    |class, now| {
        let annotation = |prefix: &str| {
            text(
                class,
                &format!("/metadata/annotations/storageclass.{prefix}kubernetes.io~1is-default-class"),
            )
        };
        let name = text(class, "/metadata/name");
        let default = annotation("") == "true" || annotation("beta.") == "true";
        cells![
            if default { format!("{name} (default)") } else { name.to_owned() },
            text(class, "/provisioner"),
            text_or(class, "/reclaimPolicy", "Delete"),
            text_or(class, "/volumeBindingMode", "Immediate"),
            flag(class, "/allowVolumeExpansion"),
            age(class, now),
        ]
    },
);

/// Prints volume attributes classes.
pub const ATTRIBUTES_CLASSES: Printer =
    Printer::new(&[NAME, column("DriverName"), column("Age")], |class, now| {
        cells![text(class, "/metadata/name"), text(class, "/driverName"), age(class, now)]
    });

/// Prints migrations to the storage version.
pub const MIGRATIONS: Printer =
    Printer::new(&[column("Name"), column("Resource"), column("Status")], |migration, _| {
        let resource = text(migration, "/spec/resource/resource");
        let resource = match text(migration, "/spec/resource/group") {
            "" => resource.to_owned(),
            group => format!("{resource}.{group}"),
        };
        let of_phase = ["Running", "Failed", "Succeeded"];
        let conditions = items(migration, "/status/conditions").iter();
        let mut reached =
            conditions.filter(|one| text(one, "/status") == "True").map(|one| text(one, "/type"));
        let status = reached.rfind(|phase| of_phase.contains(phase)).unwrap_or("Unknown");
        cells![text(migration, "/metadata/name"), resource, status]
    });

/// Prints volume attachments.
pub const ATTACHMENTS: Printer = Printer::new(
    &[NAME, column("Attacher").of_names(), column("PV"), column("Node"), boolean("Attached"), column("Age")],
    |attachment, now| {
        cells![
            text(attachment, "/metadata/name"),
            text(attachment, "/spec/attacher"),
            text(attachment, "/spec/source/persistentVolumeName"),
            text(attachment, "/spec/nodeName"),
            flag(attachment, "/status/attached"),
            age(attachment, now),
        ]
    },
);

/// Prints CSI nodes.
pub const CSI_NODES: Printer = Printer::new(&[NAME, integer("Drivers"), column("Age")], |node, now| {
    cells![text(node, "/metadata/name"), count(node, "/spec/drivers"), age(node, now)]
});

/// Prints CSI drivers.
pub const DRIVERS: Printer = Printer::new(
    &[
        NAME,
        boolean("AttachRequired"),
        boolean("PodInfoOnMount"),
        boolean("StorageCapacity"),
        column("TokenRequests"),
        boolean("RequiresRepublish"),
        column("Modes"),
        column("Age"),
    ],
    |driver, now| {
        let audiences = at(driver, "/spec/tokenRequests").map(|_| {
            let requests = items(driver, "/spec/tokenRequests").iter();
            requests.map(|request| text(request, "/audience")).collect::<Vec<_>>().join(",")
        });
        let modes = joined(driver, "/spec/volumeLifecycleModes", ",");
        cells![
            text(driver, "/metadata/name"),
            at(driver, "/spec/attachRequired").and_then(Value::as_bool).unwrap_or(true),
            flag(driver, "/spec/podInfoOnMount"),
            flag(driver, "/spec/storageCapacity"),
            audiences.unwrap_or_else(|| "<unset>".to_owned()),
            flag(driver, "/spec/requiresRepublish"),
            if modes.is_empty() { "<none>".to_owned() } else { modes },
            age(driver, now),
        ]
    },
);

fn phase(object: &Value) -> &str {
    match text(object, "/metadata/deletionTimestamp") {
        "" => text(object, "/status/phase"),
        _ => "Terminating",
    }
}

/// The storage class: in an old annotation, or where it belongs.
fn class(object: &Value) -> &str {
    let annotation = at(object, "/metadata/annotations/volume.beta.kubernetes.io~1storage-class");
    annotation.and_then(Value::as_str).unwrap_or_else(|| text(object, "/spec/storageClassName"))
}

fn set<'a>(object: &'a Value, pointer: &str) -> &'a str {
    at(object, pointer).and_then(Value::as_str).unwrap_or("<unset>")
}

/// The access modes, abbreviated, in a fixed order.
fn access_modes(object: &Value, pointer: &str) -> String {
    let modes = items(object, pointer);
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let named = known.iter().filter(|(mode, _)| modes.iter().any(|one| one == mode));
    named.map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_claim_shows_what_it_got_once_it_is_bound() {
        let mut claim = json!({
            "metadata": {"name": "c"},
            "spec": {"storageClassName": "fast", "volumeMode": "Filesystem", "accessModes": ["ReadWriteOnce"]},
            "status": {"phase": "Pending"},
        });
        let row = |claim: &Value| (CLAIMS.cells)(claim, Timestamp::UNIX_EPOCH);
        assert_eq!(
            row(&claim),
            cells!["c", "Pending", "", "", "", "fast", "<unset>", "<unknown>", "Filesystem"]
        );
        claim["spec"]["volumeName"] = json!("v");
        let modes = ["ReadOnlyMany", "ReadWriteOnce"];
        claim["status"] = json!({"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": modes});
        assert_eq!(row(&claim)[1..5], cells!["Bound", "v", "1Gi", "RWO,ROX"]);
    }

    #[test]
    fn a_volume_names_its_claim() {
        let volume = json!({
            "metadata": {"name": "v", "deletionTimestamp": "x"},
            "spec": {"capacity": {"storage": "5Gi"}, "claimRef": {"namespace": "n", "name": "c"}},
            "status": {"phase": "Bound"},
        });
        let row = (VOLUMES.cells)(&volume, Timestamp::UNIX_EPOCH);
        assert_eq!((&row[1], &row[4], &row[5]), (&json!("5Gi"), &json!("Terminating"), &json!("n/c")));
    }

    #[test]
    fn defaults_of_classes_and_drivers_are_shown() {
        let annotations = json!({"storageclass.kubernetes.io/is-default-class": "true"});
        let class = json!({"metadata": {"name": "s", "annotations": annotations}, "provisioner": "p"});
        assert_eq!(
            (CLASSES.cells)(&class, Timestamp::UNIX_EPOCH)[..5],
            cells!["s (default)", "p", "Delete", "Immediate", false]
        );
        assert_eq!(
            (DRIVERS.cells)(&json!({}), Timestamp::UNIX_EPOCH)[1..7],
            cells![true, false, false, "<unset>", false, "<none>"]
        );
    }
}
