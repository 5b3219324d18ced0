//! What holds of the tables of all kinds.

use jiff::Timestamp;
use kubewright_spec::{Version, columns_of};
use serde_json::{Value, json};

use crate::{Kinds, Verbs};

#[test]
fn every_built_in_kind_has_a_cell_for_each_column() {
    for kind in Kinds::built_in().iter() {
        for object in [Value::Null, json!({}), json!({"spec": [], "status": 3})] {
            let cells = kind.columns.cells(&object, Timestamp::UNIX_EPOCH);
            let definitions = kind.columns.definitions();
            // The real server's IP addresses have an age that no column names.
            let unnamed = usize::from(kind.plural == "ipaddresses");
            assert_eq!(cells.len(), definitions.len() + unnamed, "{kind:?}");
        }
    }
}

#[test]
fn each_column_is_that_of_the_version() {
    for version in Version::ALL {
        for kind in Kinds::of_version(version).iter() {
            let of_version = columns_of(version, &kind.api_version(), &kind.plural).map(|column| {
                json!({"name": column.name, "type": column.kind, "format": column.format, "priority": column.priority,
                    "description": column.description()})
            });
            let of_version: Vec<Value> = of_version.collect();
            if kind.verbs != Verbs::CreateOnly {
                assert_eq!(kind.columns.definitions(), of_version, "{kind:?} of v{version}");
            }
        }
    }
}

#[test]
fn columns_of_metadata_are_described_as_the_api_describes_its_fields() {
    let mut types = std::collections::BTreeMap::new();
    let name = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    let _ = kubewright_schema::Schema::built_in(name).openapi(Version::DEFAULT, &mut types);
    let fields = &types[name]["properties"];
    assert_eq!(fields["name"]["description"], kubewright_table::NAME_DESCRIPTION);
    assert_eq!(fields["creationTimestamp"]["description"], kubewright_table::CREATION_DESCRIPTION);
}

#[test]
fn an_autoscaler_of_the_old_version_prints_all_its_metrics() {
    let kinds = Kinds::built_in();
    let kind = kinds.get("autoscaling", "v1", "horizontalpodautoscalers").expect("a kind");
    let metrics = r#"[{"type":"Object","object":{"target":{"kind":"Service","name":"s"},"metricName":"o","targetValue":"5"}}]"#;
    let object = json!({
        "metadata": {"name": "a", "annotations": {"autoscaling.alpha.kubernetes.io/metrics": metrics}},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 3, "targetCPUUtilizationPercentage": 80},
        "status": {"currentCPUUtilizationPercentage": 20, "currentReplicas": 2},
    });
    let cells = kind.columns.cells(&kind.in_storage(&object), Timestamp::UNIX_EPOCH);
    assert_eq!(cells[2], "<unknown>/5, cpu: <unknown>/80%");
}
