//! The AppService kind.
#![expect(unreachable_pub, reason = "the derive of KubeSchema repeats each struct inside a function")]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a user asks for.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "app.example.com",
    version = "v1alpha1",
    kind = "AppService",
    plural = "appservices",
    category = "app",
    namespaced,
    status = "AppServiceStatus",
    derive = "PartialEq",
    doc = "An AppService is a number of pods.",
    scale(
        spec_replicas_path = ".spec.size",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    validation = Rule::new("self.metadata.name.size() <= 63").message("the name is a label of its pods too: it has at most 63 characters"),
    printcolumn(name = "Size", type_ = "integer", json_path = ".spec.size"),
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Healthy", type_ = "string", json_path = ".status.conditions[?(@.type=='Healthy')].status", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct AppServiceSpec {
    /// The number of pods.
    #[serde(default = "size")]
    #[schemars(range(min = 0, max = 500))]
    pub size: i32,
    /// The image of their one container.
    #[serde(default = "image")]
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^\S+$"))]
    pub image: String,
    /// Its command.
    #[serde(default = "command")]
    #[schemars(length(max = 64))]
    pub command: Vec<String>,
    /// Whether a container that ends is started again, and a pod that has ended made anew.
    #[serde(default)]
    pub restart_policy: RestartPolicy,
    /// How the pods are asked whether they are well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Check>,
}

fn size() -> i32 {
    1
}

fn image() -> String {
    "busybox".to_owned()
}

fn command() -> Vec<String> {
    ["sleep", "3600"].map(str::to_owned).to_vec()
}

/// What becomes of a container, and of a pod, that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub enum RestartPolicy {
    /// It is started again, however it ended.
    #[default]
    Always,
    /// It is started again when it failed.
    OnFailure,
    /// It stays as it is.
    Never,
}

/// How pods are asked: by one of the two.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = Rule::new("has(self.exec) != has(self.http)").message("a check is either `exec` or `http`"))]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// A command in the container that ends with 0 when all is well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub exec: Option<Vec<String>>,
    /// A GET that is answered with 200 to 399 when all is well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpCheck>,
}

/// A GET.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpCheck {
    /// The port of the pods.
    #[schemars(range(min = 1, max = 65535))]
    pub port: u16,
    /// The path.
    #[serde(default = "path")]
    #[schemars(length(max = 256), regex(pattern = r"^/[!-~]*$"))]
    pub path: String,
}

fn path() -> String {
    "/".to_owned()
}

/// What the operator last saw.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppServiceStatus {
    /// `Pending`, `Running`, `Degraded`, `Completed` or `Conflict`.
    #[serde(default)]
    pub phase: String,
    /// The names of its pods, sorted; the first hundred.
    #[serde(default)]
    pub pod_names: Vec<String>,
    /// How many pods there are.
    #[serde(default)]
    pub replicas: i32,
    /// How many of them are ready.
    #[serde(default)]
    pub ready_replicas: i32,
    /// Which pods they are, for autoscalers.
    #[serde(default)]
    pub selector: String,
    /// The `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready`, and `Healthy` where that is checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}
