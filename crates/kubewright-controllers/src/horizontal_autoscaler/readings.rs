//! What was measured for the metrics of an autoscaler: asked of the metrics APIs where they are served, or else read from
//! annotations. Where there is neither, the answer is that of a cluster without metrics server and adapters.

use std::sync::Arc;

use k8s_openapi::api::autoscaling::v2::{
    ExternalMetricSource, MetricIdentifier, MetricSpec, ObjectMetricSource,
};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector as SelectorSpec;
use kube::api::{ListParams, ObjectMeta};
use kubewright_meta::selector::LabelSelector;
use kubewright_runtime::{Context, Key};
use serde_json::json;

use super::proposal::Measured;
use super::samples::{self, Reading};
use super::served::{self, MetricsResponse};
use super::settable;
use super::target::Kinds;

/// Where an autoscaler looks.
pub(super) struct MetricsReader<'a> {
    pub(super) ctx: &'a Context,
    pub(super) kinds: &'a Kinds,
    pub(super) namespace: &'a str,
    pub(super) selector: &'a LabelSelector,
    /// The pods that the selector matches.
    pub(super) pods: &'a [Arc<Pod>],
}

const NO_CUSTOM: &str = "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered";

impl MetricsReader<'_> {
    /// What was measured for a metric.
    pub(super) async fn read(&self, spec: &MetricSpec) -> Measured {
        if let Some(source) = &spec.resource {
            self.resource(&source.name, None).await
        } else if let Some(source) = &spec.container_resource {
            self.resource(&source.name, Some(&source.container)).await
        } else if let Some(source) = &spec.pods {
            self.of_pods(&source.metric)
        } else if let Some(source) = &spec.object {
            self.object(source).await
        } else if let Some(source) = &spec.external {
            self.external(source).await
        } else {
            Err(format!("nothing is known of metrics of type {:?}", spec.type_))
        }
    }

    async fn resource(&self, resource: &str, container: Option<&str>) -> Measured {
        const API: &str = "unable to fetch metrics from resource metrics API";
        let usages = match served::usage(self.ctx.client(), self.namespace, self.selector, resource).await {
            MetricsResponse::Items(usages) => usages,
            MetricsResponse::Failed(error) => return Err(format!("{API}: {error}")),
            MetricsResponse::Absent if self.any_pod(settable::has_usage) => {
                let now = self.ctx.world().clock.now();
                settable::usage(self.pods, resource, now).map_err(|error| format!("{API}: {error}"))?
            }
            MetricsResponse::Absent => {
                return Err(format!(
                    "{API}: the server could not find the requested resource (get pods.metrics.k8s.io)"
                ));
            }
        };
        if usages.is_empty() {
            return Err("no metrics returned from resource metrics API".into());
        }
        Ok(Reading::Pods(samples::of_usage(usages, container)))
    }

    fn of_pods(&self, metric: &MetricIdentifier) -> Measured {
        if !self.any_pod(settable::has_metrics) {
            return Err(NO_CUSTOM.into());
        }
        let selector = metric_selector(metric.selector.as_ref())?.unwrap_or_default();
        let now = self.ctx.world().clock.now();
        let samples = settable::of_pods(self.pods, &metric.name, &selector, now)
            .map_err(|error| format!("unable to fetch metrics from custom metrics API: {error}"))?;
        if samples.is_empty() {
            return Err("no metrics returned from custom metrics API".into());
        }
        Ok(Reading::Pods(samples))
    }

    /// Whether something like this was set for any pod of the cluster.
    fn any_pod(&self, has: fn(&Pod) -> bool) -> bool {
        let any = |pods: &[Arc<Pod>]| pods.iter().any(|pod| has(pod));
        any(self.pods) || any(&self.ctx.list::<Pod>(None))
    }

    async fn object(&self, source: &ObjectMetricSource) -> Measured {
        const API: &str = "unable to fetch metrics from custom metrics API";
        let object = &source.described_object;
        let selector = metric_selector(source.metric.selector.as_ref())?.unwrap_or_default();
        let meta = self.described(source).await.map_err(|error| format!("{API}: {error}"))?;
        let values = meta.map(|meta| {
            settable::values(&meta, (&object.kind, &object.name), &source.metric.name, &selector)
        });
        match values.transpose().map_err(|error| format!("{API}: {error}"))?.flatten() {
            None => Err(NO_CUSTOM.into()),
            Some(values) if values.len() == 1 => Ok(Reading::Values(values)),
            Some(values) => Err(format!(
                "{API}: the custom metrics API server returned {} results when we asked for exactly one",
                values.len()
            )),
        }
    }

    /// The metadata of the object that a metric describes; of a namespace, always that of the autoscaler.
    async fn described(&self, source: &ObjectMetricSource) -> Result<Option<ObjectMeta>, String> {
        let object = &source.described_object;
        let group = object.api_version.as_deref().and_then(|version| version.split_once('/'));
        let group = group.map_or("", |(group, _)| group);
        if group.is_empty() && object.kind == "Namespace" {
            return Ok(self.own_namespace().map(|namespace| namespace.metadata.clone()));
        }
        let Ok(served) = self.kinds.find(self.ctx.client(), group, &object.kind).await else {
            return Ok(None);
        };
        // An adapter would read it by rights of its own.
        let api = served.api(self.ctx.cache().client(), Some(self.namespace));
        let named = ListParams::default().fields(&format!("metadata.name={}", object.name));
        match api.list_metadata(&named).await {
            Ok(list) => Ok(list.items.into_iter().next().map(|found| found.metadata)),
            Err(error) => Err(kubewright_runtime::Error::from(error).to_string()),
        }
    }

    async fn external(&self, source: &ExternalMetricSource) -> Measured {
        const API: &str = "unable to fetch metrics from external metrics API";
        let metric = &source.metric.name;
        let selector = metric_selector(source.metric.selector.as_ref())?.unwrap_or_default();
        let values = match served::external(self.ctx.client(), self.namespace, metric, &selector).await {
            MetricsResponse::Items(values) => values,
            MetricsResponse::Failed(error) => return Err(format!("{API}: {error}")),
            MetricsResponse::Absent => {
                let set = self.own_namespace().map(|namespace| {
                    settable::values(&namespace.metadata, ("namespace", self.namespace), metric, &selector)
                });
                let set = set.transpose().map_err(|error| format!("{API}: {error}"))?.flatten();
                set.ok_or_else(|| format!(
                    "{API}: the server could not find the requested resource (get {metric}.external.metrics.k8s.io)"
                ))?
            }
        };
        if values.is_empty() {
            return Err("no metrics returned from external metrics API".into());
        }
        Ok(Reading::Values(values))
    }

    fn own_namespace(&self) -> Option<Arc<Namespace>> {
        self.ctx.get(&Key::cluster_scoped(self.namespace))
    }
}

/// The selector of a metric; without one, nothing.
fn metric_selector(selector: Option<&SelectorSpec>) -> Result<Option<LabelSelector>, String> {
    selector.map(|selector| LabelSelector::from_object(&json!(selector))).transpose()
}
