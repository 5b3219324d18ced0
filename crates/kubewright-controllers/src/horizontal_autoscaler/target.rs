//! The scale of an autoscaler's target, whatever its kind is (`scaleForResourceMappings` in
//! `pkg/controller/podautoscaler/horizontal.go`, `k8s.io/client-go/scale`).

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::autoscaling::v2::CrossVersionObjectReference;
use kube::Client;
use kube::api::PostParams;
use kubewright_meta::selector::LabelSelector;
use kubewright_runtime::Error;
use parking_lot::Mutex;

use crate::discovery::{Catalog, Served};

/// How often a change is tried when others change the target, and with which pause (`retry.DefaultRetry`).
const ATTEMPTS: usize = 5;
const PAUSE: Duration = Duration::from_millis(10);

/// What the API server serves, as it was last asked.
#[derive(Default)]
pub(super) struct Kinds(Mutex<Arc<Catalog>>);

impl Kinds {
    /// The resource of a kind; the API server is asked again for one that is not known.
    ///
    /// # Errors
    /// When there is none, or the API server does not answer.
    pub(super) async fn find(&self, client: &Client, group: &str, kind: &str) -> Result<Served, String> {
        if let Some(served) = self.0.lock().find(group, kind) {
            return Ok(served.clone());
        }
        let catalog = Catalog::fetch(client).await.map_err(|error| Error::from(error).to_string())?;
        let found = catalog.find(group, kind).cloned();
        *self.0.lock() = Arc::new(catalog);
        found.ok_or_else(|| format!("no matches for kind {kind:?} in group {group:?}"))
    }

    /// Forgets all, so that a kind that is gone is noticed.
    fn forget(&self) {
        *self.0.lock() = Arc::default();
    }
}

/// A target, and its scale when it was last asked.
pub(super) struct Target {
    served: Served,
    namespace: String,
    name: String,
    pub(super) scale: Scale,
}

impl Target {
    /// Asks for the scale of what `reference` names.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) async fn find(
        kinds: &Kinds,
        client: &Client,
        namespace: &str,
        reference: &CrossVersionObjectReference,
    ) -> Result<Self, String> {
        let group = group(reference.api_version.as_deref().unwrap_or_default())?;
        let served = kinds.find(client, group, &reference.kind).await?;
        let scale = match get(&served, client, namespace, &reference.name).await {
            Ok(scale) => scale,
            Err(error) => {
                if is_unserved(&error) {
                    kinds.forget();
                    kinds.find(client, group, &reference.kind).await?;
                }
                return Err(error.to_string());
            }
        };
        let selector =
            scale.status.as_ref().and_then(|status| status.selector.as_deref()).unwrap_or_default();
        LabelSelector::parse(selector).map_err(|error| format!(
            "received an object from a /scale endpoint which was not convertible to autoscaling Scale: failed to parse target selector: couldn't parse the selector string {selector:?}: {error}"
        ))?;
        let (namespace, name) = (namespace.to_owned(), reference.name.clone());
        Ok(Self { served, namespace, name, scale })
    }

    /// `spec.replicas` and `status.replicas`.
    pub(super) fn replicas(&self) -> (i32, i32) {
        let spec = self.scale.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or_default();
        (spec, self.scale.status.as_ref().map(|status| status.replicas).unwrap_or_default())
    }

    /// The selector of its pods, as text.
    pub(super) fn selector(&self) -> &str {
        self.scale.status.as_ref().and_then(|status| status.selector.as_deref()).unwrap_or_default()
    }

    /// Asks for so many replicas; when somebody else was faster, again on what they left.
    ///
    /// # Errors
    /// Why that was refused.
    pub(super) async fn rescale(&mut self, client: &Client, replicas: i32) -> Result<(), String> {
        let api = self.served.api(client, Some(&self.namespace));
        let mut attempt = 1;
        loop {
            self.scale.spec.get_or_insert_default().replicas = Some(replicas);
            let written = api.replace_scale(&self.name, &PostParams::default(), &self.scale).await;
            let Err(error) = written.map_err(Error::from) else { return Ok(()) };
            if !error.is_conflict() || attempt == ATTEMPTS {
                return Err(error.to_string());
            }
            attempt += 1;
            tokio::time::sleep(PAUSE).await;
            if let Ok(latest) = get(&self.served, client, &self.namespace, &self.name).await {
                self.scale = latest;
            }
        }
    }
}

async fn get(served: &Served, client: &Client, namespace: &str, name: &str) -> Result<Scale, Error> {
    Ok(served.api(client, Some(namespace)).get_scale(name).await?)
}

/// Whether nobody serves such objects, which is another thing than that one of them is not there.
fn is_unserved(error: &Error) -> bool {
    error.status().is_some_and(|status| status.code == 404 && !status.is_not_found())
}

/// The group of an API version (`ParseGroupVersion`).
fn group(api_version: &str) -> Result<&str, String> {
    match api_version.matches('/').count() {
        0 => Ok(""),
        1 => Ok(api_version.split_once('/').map_or("", |(group, _)| group)),
        _ => Err(format!("unexpected GroupVersion string: {api_version}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_version_has_one_group_at_most() {
        assert_eq!(group("apps/v1"), Ok("apps"));
        assert_eq!(group("v1"), Ok(""));
        assert_eq!(group("a/b/c"), Err("unexpected GroupVersion string: a/b/c".into()));
    }
}
