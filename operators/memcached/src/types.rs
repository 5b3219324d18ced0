//! The Memcached kind.
#![expect(unreachable_pub, reason = "the derive of KubeSchema repeats each struct inside a function")]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// What a user asks for: as few fields as possible.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "cache.example.com",
    version = "v1alpha1",
    kind = "Memcached",
    plural = "memcacheds",
    category = "cache",
    namespaced,
    status = "MemcachedStatus",
    derive = "PartialEq",
    doc = "A Memcached is a number of memcached pods behind a Service of its name.",
    scale(
        spec_replicas_path = ".spec.size",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    validation = Rule::new("self.metadata.name.matches('^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')").message("the name is that of a Service too: it begins with a letter and has at most 63 letters, digits and dashes"),
    printcolumn(name = "Size", type_ = "integer", json_path = ".spec.size"),
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas"),
    printcolumn(name = "Available", type_ = "string", json_path = ".status.conditions[?(@.type=='Available')].status"),
    printcolumn(name = "Image", type_ = "string", json_path = ".spec.image", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(
    validation = Rule::new("!self.extraArgs.exists(arg, arg.matches('^(-[dlpsUuxmcM]|--(daemon|listen|port|udp-port|user|memory-limit|conn-limit)).*'))").message("extraArgs cannot set address, port, user, memory or connections, nor detach: memory and connections are fields of their own")
)]
#[serde(rename_all = "camelCase")]
pub struct MemcachedSpec {
    /// The number of pods.
    #[schemars(range(min = 0, max = 1000))]
    pub size: i32,
    /// The image; by digest (`memcached@sha256:...`) it never changes.
    #[serde(default = "image")]
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^\S+$"))]
    pub image: String,
    /// How much memory each pod has for items, in mebibytes.
    #[serde(default = "memory")]
    #[schemars(range(min = 8, max = 65536))]
    pub memory_megabytes: i32,
    /// How many connections each pod takes.
    #[serde(default = "connections")]
    #[schemars(range(min = 1, max = 100_000))]
    pub max_connections: i32,
    /// Further arguments of memcached, such as `-o` and `modern`.
    #[serde(default)]
    #[schemars(length(max = 32), inner(length(min = 1, max = 128), regex(pattern = r"^[!-~]+$")))]
    pub extra_args: Vec<String>,
    /// Whether each pod is asked for its `stats`, over the network of the pods; the condition `Answering` tells what they say.
    #[serde(default)]
    pub check_stats: bool,
}

fn image() -> String {
    "memcached:1.6-alpine".to_owned()
}

fn memory() -> i32 {
    64
}

fn connections() -> i32 {
    1024
}

/// What the operator last saw.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemcachedStatus {
    /// The names of the pods that are ready, sorted; the first hundred.
    #[serde(default)]
    pub nodes: Vec<String>,
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
    /// `Available`, `Progressing`, `Degraded`, and `Answering` where that is checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}
