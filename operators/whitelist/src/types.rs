//! The WhiteList kind.
#![expect(unreachable_pub, reason = "the derive of KubeSchema repeats each struct inside a function")]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a user asks for.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "sample.foo.bar",
    version = "v1beta1",
    kind = "WhiteList",
    plural = "whitelists",
    shortname = "wl",
    category = "sample",
    namespaced,
    status = "WhiteListStatus",
    derive = "PartialEq",
    doc = "A WhiteList keeps one nginx Deployment as it is meant to be.",
    printcolumn(name = "Ready", type_ = "boolean", json_path = ".status.ready"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct WhiteListSpec {
    /// A field of the scaffold that the sample carries; nothing reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foo: Option<String>,
    /// While true the operator leaves the Deployment alone, so that a human can edit it.
    #[serde(default)]
    pub paused: bool,
    /// How much of the Deployment's spec is the operator's.
    #[serde(default)]
    pub enforce: Enforce,
}

/// How much of the Deployment's spec is the operator's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub enum Enforce {
    /// All of it: whatever somebody changes is undone.
    #[default]
    WholeSpec,
    /// Selector, labels of the pods, and the image of the container `nginx`, by server-side apply: replicas that an autoscaler sets,
    /// annotations that kubectl leaves and containers that somebody adds stay.
    OwnFields,
}

/// What the operator last saw.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WhiteListStatus {
    /// Whether the Deployment is this WhiteList's, is as it should be, and is available.
    #[serde(default)]
    pub ready: bool,
    /// The `metadata.generation` of the WhiteList that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Available`, `Conflict` and `Paused`, each at most once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

#[cfg(test)]
mod tests {
    use kube::CustomResourceExt;
    use serde_json::json;

    use super::*;

    fn crd() -> serde_json::Value {
        kubewright::object::to_value(&WhiteList::crd()).expect("a CRD is JSON")
    }

    /// WL-14: the group is the sample's own, so that the image police, whose WhiteList is another kind, can be beside it.
    #[test]
    fn wl_14_the_crd_has_the_names_and_columns_that_users_type_and_see() {
        let crd = crd();
        assert_eq!(crd["metadata"]["name"], "whitelists.sample.foo.bar");
        assert_eq!(crd["spec"]["scope"], "Namespaced");
        assert_eq!(crd["spec"]["names"]["shortNames"], json!(["wl"]));
        let version = &crd["spec"]["versions"][0];
        assert_eq!(version["name"], "v1beta1");
        assert_eq!(version["subresources"], json!({"status": {}}));
        let columns: Vec<_> = version["additionalPrinterColumns"]
            .as_array()
            .expect("columns")
            .iter()
            .map(|column| column["name"].as_str().expect("a name"))
            .collect();
        assert_eq!(columns, ["Ready", "Age"]);
    }

    #[test]
    fn conditions_are_a_list_map_by_type() {
        let crd = crd();
        let conditions = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
            ["conditions"];
        assert_eq!(conditions["x-kubernetes-list-type"], "map");
        assert_eq!(conditions["x-kubernetes-list-map-keys"], json!(["type"]));
    }

    /// WL-15: the scaffold's sample carries `spec.foo`, so a strict server must know the field.
    #[test]
    fn wl_15_spec_foo_is_an_optional_string_of_the_schema() {
        let crd = crd();
        let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        assert_eq!(spec["properties"]["foo"]["type"], "string");
        assert_eq!(spec.get("required"), None);
    }
}
