use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A page on the web.
#[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Website",
    namespaced,
    status = "WebsiteStatus",
    printcolumn(name = "Wanted", type_ = "integer", json_path = ".spec.replicas"),
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.ready")
)]
pub struct WebsiteSpec {
    /// What is served, as HTML.
    pub page: String,
    /// How many servers there are.
    #[serde(default = "one")]
    pub replicas: i32,
}

/// How the website is.
#[derive(JsonSchema, Clone, Debug, Default, Serialize, Deserialize)]
pub struct WebsiteStatus {
    /// How many servers answer.
    pub ready: i32,
}

fn one() -> i32 {
    1
}
