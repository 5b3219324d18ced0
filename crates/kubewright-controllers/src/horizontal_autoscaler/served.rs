//! The metrics APIs that the cluster serves (`pkg/controller/podautoscaler/metrics/client.go`): `metrics.k8s.io` and
//! `external.metrics.k8s.io`, by custom resources of these groups. No custom resources can be at the paths of
//! `custom.metrics.k8s.io`.

use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::api::{ListParams, Request};
use kubewright_meta::selector::LabelSelector;
use serde_json::Value;

use super::quantity::milli;
use super::samples::PodUsage;

/// What an API answered.
pub(super) enum MetricsResponse<T> {
    Items(Vec<T>),
    /// Nobody serves it.
    Absent,
    Failed(String),
}

/// What pods use of a resource, of `metrics.k8s.io`.
pub(super) async fn usage(
    client: &Client,
    namespace: &str,
    selector: &LabelSelector,
    resource: &str,
) -> MetricsResponse<PodUsage> {
    let path = format!("/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods");
    list(client, path, selector, |item| pod_usage(item, resource)).await
}

/// The values of an external metric, in thousandths.
pub(super) async fn external(
    client: &Client,
    namespace: &str,
    metric: &str,
    selector: &LabelSelector,
) -> MetricsResponse<i64> {
    let metric = path_segment(metric);
    let path = format!("/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/{metric}");
    list(client, path, selector, |item| item["value"].as_str().and_then(milli).unwrap_or_default()).await
}

async fn list<T>(
    client: &Client,
    path: String,
    selector: &LabelSelector,
    read: impl Fn(&Value) -> T,
) -> MetricsResponse<T> {
    let params = ListParams::default().labels(&selector.to_string());
    let request = match Request::new(path).list(&params) {
        Ok(request) => request,
        Err(error) => return MetricsResponse::Failed(error.to_string()),
    };
    match client.request::<Value>(request).await {
        Ok(list) => {
            MetricsResponse::Items(list["items"].as_array().into_iter().flatten().map(read).collect())
        }
        Err(kube::Error::Api(status)) if status.code == 404 => MetricsResponse::Absent,
        Err(kube::Error::Api(status)) => MetricsResponse::Failed(status.message),
        Err(error) => MetricsResponse::Failed(error.to_string()),
    }
}

/// A segment of a path: names of metrics may have any characters but slashes and percent signs.
fn path_segment(segment: &str) -> String {
    segment.bytes().fold(String::new(), |mut path, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            path.push(char::from(byte));
        } else {
            path.push_str(&format!("%{byte:02X}"));
        }
        path
    })
}

/// Reads a `PodMetrics`.
fn pod_usage(item: &Value, resource: &str) -> PodUsage {
    let containers = item["containers"].as_array().into_iter().flatten().map(|container| {
        let name = container["name"].as_str().unwrap_or_default().to_owned();
        (name, container["usage"][resource].as_str().and_then(milli))
    });
    PodUsage {
        pod: item["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
        at: item["timestamp"].as_str().and_then(|time| time.parse::<Timestamp>().ok()),
        window: item["window"].as_str().and_then(go_duration).unwrap_or_default(),
        containers: containers.collect(),
    }
}

/// Reads a duration as Go writes it: `30s`, `1m0.5s`.
fn go_duration(text: &str) -> Option<SignedDuration> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pod_metrics_are_read() {
        let item = json!({"metadata": {"name": "p"}, "timestamp": "2026-01-01T00:00:00Z", "window": "1m0.5s",
            "containers": [{"name": "c", "usage": {"cpu": "1500u", "memory": "1Mi"}}, {"name": "d", "usage": {}}]});
        let usage = pod_usage(&item, "cpu");
        assert_eq!(usage.containers, [("c".to_owned(), Some(2)), ("d".to_owned(), None)]);
        assert_eq!(usage.window, SignedDuration::from_millis(60_500));
        assert_eq!(usage.at, Some("2026-01-01T00:00:00Z".parse().expect("a time")));
    }

    #[test]
    fn a_name_is_one_segment_of_a_path() {
        assert_eq!(path_segment("a b|c.d"), "a%20b%7Cc.d");
    }
}
