//! The roles that are made of others. On the reference nothing fills them, as a controller does that.

use anyhow::Result;
use http::Request;
use serde_json::json;

use crate::side::Side;

/// Gives the reference the rules that its aggregated roles would have with a controller, as ours have them.
///
/// # Errors
/// Where a server does not answer.
pub(crate) async fn fill(reference: &Side, ours: &Side) -> Result<()> {
    for name in ["admin", "edit", "view"] {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}");
        let rules = ours.json(&path, "application/json").await?["rules"].clone();
        if rules.is_null() {
            continue;
        }
        let patch = json!({"rules": rules}).to_string().into_bytes();
        let request =
            Request::patch(&path).header("Content-Type", "application/merge-patch+json").body(patch)?;
        reference.send(request).await?;
    }
    Ok(())
}
