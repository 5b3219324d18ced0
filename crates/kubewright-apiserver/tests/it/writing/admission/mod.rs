//! The built-in admission plugins, asked through the service.

mod behind_services;
mod pods;
mod quota;
mod services;
mod switches;

use serde_json::{Value, json};

use crate::support::Api;

pub(crate) const NAMESPACE: &str = "/api/v1/namespaces/default";
pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(crate) const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";

/// A server whose default namespace has its service account.
pub(crate) async fn started() -> Api {
    let api = Api::start().await;
    let account = json!({"metadata": {"name": "default"}});
    api.post(&format!("{NAMESPACE}/serviceaccounts"), account).await.expect(201);
    api
}

/// A pod whose only container has these resources.
pub(crate) fn pod(name: &str, resources: &Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [
        {"name": "c", "image": "nginx:1", "resources": resources}]}})
}
