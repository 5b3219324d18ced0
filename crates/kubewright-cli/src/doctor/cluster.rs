//! The cluster of the kubeconfig, and what may be done there.

use std::time::Duration;

use kube::Client;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::Finding;
use crate::access::{ClusterArgs, refused};

/// How long a cluster may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What `install` and `deploy` create, and in which group it is.
const CREATED: [(&str, &str); 5] = [
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("", "namespaces"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("apps", "deployments"),
];

/// Whether there is a cluster, which it is, and whether an operator may be installed there.
pub(super) async fn cluster(args: &ClusterArgs) -> Vec<Finding> {
    const REMEDY: &str = "`kubewright up` starts a control plane, and `kubewright run` one of its own";
    let access = match args.access().await {
        Ok(access) => access,
        Err(error) => return vec![Finding::warning("cluster", format!("{error:#}"), REMEDY)],
    };
    let request = http::Request::get("/version").body(Vec::new());
    let Ok(request) = request else { return Vec::new() };
    let server = access.server.to_string();
    let version: Value = match timeout(PATIENCE, access.client.request(request)).await {
        Ok(Ok(version)) => version,
        Ok(Err(error)) => {
            let why = format!("{:#}", refused(&server, &error));
            return vec![Finding::warning("cluster", why, REMEDY)];
        }
        Err(_) => {
            let why = format!("{server} does not answer within {} s", PATIENCE.as_secs());
            return vec![Finding::warning("cluster", why, REMEDY)];
        }
    };
    let version = version["gitVersion"].as_str().unwrap_or("of an unknown version").to_owned();
    let mut findings = vec![Finding::ok("cluster", format!("Kubernetes {version} at {server}"))];
    findings.push(rights(&access.client).await);
    findings
}

/// Whether whoever the kubeconfig is of may create what an operator needs.
async fn rights(client: &Client) -> Finding {
    let mut lacking = Vec::new();
    for (group, resource) in CREATED {
        match may_create(client, group, resource).await {
            Ok(true) => {}
            Ok(false) => lacking.push(resource),
            Err(error) => {
                let why = format!("{:#}", refused("your rights cannot be asked for", &error));
                return Finding::warning("rights", why, "kubectl auth can-i --list");
            }
        }
    }
    match lacking.is_empty() {
        true => Finding::ok("rights", "you may install operators"),
        false => Finding::missing(
            "rights",
            format!("you may not create {}", lacking.join(", ")),
            "have an administrator of the cluster give you these rights, or apply what `kubewright generate` writes",
        ),
    }
}

async fn may_create(client: &Client, group: &str, resource: &str) -> kube::Result<bool> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"group": group, "resource": resource, "verb": "create"}},
    });
    let request = http::Request::post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(review.to_string().into_bytes())
        .map_err(kube::Error::HttpError)?;
    let answer: Value = client.request(request).await?;
    Ok(answer["status"]["allowed"] == true)
}
