//! The two groups that serve the kind At, which differ in their group alone.

use kube::{CustomResource, core::object::HasStatus};
use kubewright::Object;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::types::{AtSpec, AtStatus};

/// An At of either group: what the operator knows of it.
pub trait AtKind: Object + HasStatus<Status = AtStatus> {
    /// What is asked for.
    fn asked(&self) -> &AtSpec;
}

/// The kind At in a group.
macro_rules! at {
    ($group:literal, $name:literal, $at:ident, $(#[$doc:meta])* $spec:ident) => {
        $(#[$doc])*
        #[derive(CustomResource, JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[kube(
            group = $group,
            version = "v1alpha1",
            kind = "At",
            root = $name,
            plural = "ats",
            singular = "at",
            category = "cnat",
            namespaced,
            status = "AtStatus",
            derive = "PartialEq",
            doc = "An At runs one command at one time, once.",
            printcolumn(name = "Schedule", type_ = "string", json_path = ".spec.schedule"),
            printcolumn(name = "Command", type_ = "string", json_path = ".spec.command"),
            printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
            printcolumn(name = "Due", type_ = "string", json_path = ".status.scheduledTime", priority = 1),
            printcolumn(name = "Exit", type_ = "integer", json_path = ".status.exitCode", priority = 1),
            printcolumn(name = "Pod", type_ = "string", json_path = ".status.podName", priority = 1),
            printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", priority = 1)
        )]
        #[serde(transparent)]
        pub struct $spec(pub AtSpec);

        impl AtKind for $at {
            fn asked(&self) -> &AtSpec {
                &self.spec.0
            }
        }
    };
}

at!(
    "cnat.study.jayground8",
    "At",
    At,
    /// What a user asks for.
    StudyAtSpec
);

at!(
    "cnat.programming-kubernetes.info",
    "BookAt",
    BookAt,
    /// What a user asks for, in the group of the book that the kind comes from.
    BookAtSpec
);

#[cfg(test)]
mod tests {
    use kube::CustomResourceExt;
    use serde_json::{Value, json};

    use super::*;

    fn crds() -> [Value; 2] {
        [At::crd(), BookAt::crd()].map(|crd| kubewright::object::to_value(&crd).expect("a CRD is JSON"))
    }

    /// AT-24: two groups, one schema.
    #[test]
    fn at_24_both_groups_have_the_same_kind_and_schema() {
        let [study, book] = crds();
        assert_eq!(study["metadata"]["name"], "ats.cnat.study.jayground8");
        assert_eq!(book["metadata"]["name"], "ats.cnat.programming-kubernetes.info");
        assert_eq!(study["spec"]["names"], book["spec"]["names"]);
        let specs = [&study, &book].map(|crd| {
            let mut version = crd["spec"]["versions"][0].clone();
            let root = version["schema"]["openAPIV3Schema"].as_object_mut().expect("a schema");
            root["properties"]["spec"].as_object_mut().expect("spec").remove("description");
            root.remove("title");
            version
        });
        assert_eq!(specs[0], specs[1]);
        assert_eq!(specs[0]["subresources"], json!({"status": {}}));
    }

    /// AT-02, AT-03: what the schema says is what the API server's messages are made of.
    /// KB-36, KB-37, OS-07.
    #[test]
    fn at_03_schedule_and_command_are_required_and_the_schedule_has_the_pattern() {
        for crd in crds() {
            let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
            assert_eq!(spec["required"], json!(["command", "schedule"]));
            let pattern = r"^\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\d";
            assert_eq!(spec["properties"]["schedule"]["pattern"], pattern);
            assert!(
                !crd.to_string().contains("x-kubernetes-validations"),
                "their hint would add to AT-02's message"
            );
        }
    }

    /// AT-04: the columns that are shown without being asked for.
    #[test]
    fn at_04_the_columns_are_schedule_command_and_phase() {
        for crd in crds() {
            let columns =
                crd["spec"]["versions"][0]["additionalPrinterColumns"].as_array().expect("columns").clone();
            let of = |wide: bool| -> Vec<String> {
                let wanted = columns.iter().filter(|column| (column["priority"] == json!(1)) == wide);
                wanted.map(|column| column["name"].as_str().expect("a name").to_owned()).collect()
            };
            assert_eq!(of(false), ["Schedule", "Command", "Phase"]);
            assert_eq!(of(true), ["Due", "Exit", "Pod", "Age"]);
        }
    }
}
