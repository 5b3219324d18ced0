//! Writes each object of a resource once more, as it is (`storageversionmigrator.go`).

use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use kube::core::DynamicObject;
use kubewright_runtime::{Context, Error};
use serde_json::json;

use super::NAME;
use crate::discovery::Served;

/// How many objects are asked for at once.
const PAGE: u32 = 500;

/// What became of it.
pub(super) enum Rewritten {
    /// All that was older than the version is stored anew.
    All { total: usize },
    /// It may go on later.
    Interrupted { left: usize, total: usize, error: Error },
    /// It will not.
    Refused { left: usize, total: usize, error: Error },
}

/// The version of the cluster as a list of a resource tells it: what is written later is stored in today's version.
pub(super) async fn newest_version(ctx: &Context, served: &Served) -> Result<String, Error> {
    let list = served.api(ctx.client(), None).list_metadata(&ListParams::default().limit(1)).await?;
    Ok(list.metadata.resource_version.unwrap_or_default())
}

/// Writes all objects that are not newer than a version.
///
/// # Errors
/// When they cannot be listed.
pub(super) async fn rewrite(ctx: &Context, served: &Served, version: &str) -> Result<Rewritten, Error> {
    let objects = served.api(ctx.client(), None);
    let (old, total) = not_newer(&objects, version).await?;
    let params = PatchParams { field_manager: Some(NAME.to_owned()), ..PatchParams::default() };
    for (done, object) in old.iter().enumerate() {
        let patch = Patch::Merge(json!({
            "apiVersion": served.resource.api_version,
            "kind": served.resource.kind,
            "metadata": {"resourceVersion": object.version},
        }));
        let of_namespace = served.api(ctx.client(), object.namespace.as_deref());
        let left = old.len() - done;
        match of_namespace.patch_metadata(&object.name, &params, &patch).await.map_err(Error::from) {
            Ok(_) => {}
            // Somebody else has written it since, or it is gone.
            Err(error) if error.is_conflict() || error.is_not_found() => {}
            Err(error) if may_go_on(&error) => return Ok(Rewritten::Interrupted { left, total, error }),
            Err(error) => return Ok(Rewritten::Refused { left, total, error }),
        }
    }
    Ok(Rewritten::All { total })
}

/// An object, and the version that it was seen in.
struct Old {
    namespace: Option<String>,
    name: String,
    version: String,
}

/// The objects that are not newer than a version, and how many there are in all.
async fn not_newer(objects: &Api<DynamicObject>, version: &str) -> Result<(Vec<Old>, usize), Error> {
    let limit = number(version);
    let (mut old, mut total) = (Vec::new(), 0);
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = objects.list_metadata(&params).await?;
        for object in page.items {
            total += 1;
            let version = object.metadata.resource_version.unwrap_or_default();
            if number(&version) <= limit {
                let (namespace, name) = (object.metadata.namespace, object.metadata.name.unwrap_or_default());
                old.push(Old { namespace, name, version });
            }
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok((old, total)),
        }
    }
}

fn number(version: &str) -> u64 {
    version.parse().unwrap_or_default()
}

/// Whether the API server may answer otherwise soon.
fn may_go_on(error: &Error) -> bool {
    error.status().is_none_or(|status| matches!(status.code, 429 | 500 | 503 | 504))
}
