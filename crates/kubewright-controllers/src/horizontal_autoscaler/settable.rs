//! Metrics that a person or a test sets, by annotations. They stand in for a metrics server and for the adapters of
//! custom and external metrics; `docs/metrics.md` tells people about them.
//!
//! | annotation | on | is |
//! |---|---|---|
//! | `kwok.x-k8s.io/usage-<resource>: 250m` | a Pod | what each of its containers uses (kwok's annotation) |
//! | `<container>.containers.kubewright.dev/usage-<resource>: 1` | a Pod | what this container uses |
//! | `metrics.kubewright.dev/<metric>: 1500m` | a Pod | a metric of type `Pods` |
//! | the same | any object | a metric of type `Object` |
//! | the same | a Namespace | a metric of type `External`, for the autoscalers in it |
//!
//! A metric may be a series of several, told apart by labels: `queue=mail: 30; queue=print: 2`. A metric's selector picks
//! among them.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ObjectMeta;
use kubewright_meta::selector::LabelSelector;

use super::quantity::milli;
use super::requests::{name, running_containers};
use super::samples::{PodUsage, Sample, Samples};
use crate::pod;

const USAGE: &str = "kwok.x-k8s.io/usage-";
const CONTAINER_USAGE: &str = ".containers.kubewright.dev/usage-";
const METRIC: &str = "metrics.kubewright.dev/";

/// Whether somebody set what a pod uses.
pub(super) fn has_usage(pod: &Pod) -> bool {
    keys(pod).any(|key| key.starts_with(USAGE) || key.contains(CONTAINER_USAGE))
}

/// Whether somebody set a metric of a pod.
pub(super) fn has_metrics(pod: &Pod) -> bool {
    keys(pod).any(|key| key.starts_with(METRIC))
}

fn keys(pod: &Pod) -> impl Iterator<Item = &String> {
    pod.metadata.annotations.iter().flatten().map(|(key, _)| key)
}

/// What the running ones of `pods` use of a resource, where it was set. It counts at once (its window is nothing).
///
/// # Errors
/// When a value is no quantity.
pub(super) fn usage(pods: &[Arc<Pod>], resource: &str, now: Timestamp) -> Result<Vec<PodUsage>, String> {
    let set = pods.iter().filter(|pod| has_usage(pod) && pod::phase(pod) == "Running");
    let usage = |pod: &Arc<Pod>| {
        let used = |container: &str| -> Result<Option<i64>, String> {
            let own = format!("{container}{CONTAINER_USAGE}{resource}");
            for key in [own, format!("{USAGE}{resource}")] {
                if let Some(text) = annotation(&pod.metadata, &key) {
                    let value = milli(text).ok_or_else(|| bad(&key, "pod", name(pod), text))?;
                    return Ok(Some(value));
                }
            }
            Ok(None)
        };
        let containers = running_containers(pod);
        let containers: Result<Vec<_>, String> =
            containers.map(|one| Ok((one.name.clone(), used(&one.name)?))).collect();
        let pod = name(pod).to_owned();
        Ok(PodUsage { pod, at: Some(now), window: SignedDuration::ZERO, containers: containers? })
    };
    set.map(usage).collect()
}

/// A metric of `pods`, of those for which it was set; where several series match `selector`, the last.
///
/// # Errors
/// When a value cannot be read.
pub(super) fn of_pods(
    pods: &[Arc<Pod>],
    metric: &str,
    selector: &LabelSelector,
    now: Timestamp,
) -> Result<Samples, String> {
    let mut samples = Samples::new();
    for pod in pods {
        let values = values(&pod.metadata, ("pod", name(pod)), metric, selector)?;
        if let Some(value) = values.and_then(|values| values.last().copied()) {
            samples
                .insert(name(pod).to_owned(), Sample { value, at: Some(now), window: SignedDuration::ZERO });
        }
    }
    Ok(samples)
}

/// The values of those series of a metric of an object that `selector` matches; nothing where the metric was not set.
///
/// # Errors
/// When a value cannot be read.
pub(super) fn values(
    meta: &ObjectMeta,
    (kind, object): (&str, &str),
    metric: &str,
    selector: &LabelSelector,
) -> Result<Option<Vec<i64>>, String> {
    let key = format!("{METRIC}{metric}");
    let Some(text) = annotation(meta, &key) else { return Ok(None) };
    let series = series(text).ok_or_else(|| bad(&key, kind, object, text))?;
    let matching = series.into_iter().filter(|(labels, _)| selector.matches(labels));
    Ok(Some(matching.map(|(_, value)| value).collect()))
}

fn annotation<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(key).map(String::as_str)
}

fn bad(key: &str, kind: &str, object: &str, text: &str) -> String {
    format!("the annotation {key} of {kind} {object} is no quantity: {text:?}")
}

type Series = (BTreeMap<String, String>, i64);

/// Reads `30`, or `queue=mail,kind=a: 30; queue=print: 2`, in thousandths.
fn series(text: &str) -> Option<Vec<Series>> {
    let one = |part: &str| {
        let (labels, value) = part.rsplit_once(':').unwrap_or(("", part));
        let labels = labels.split(',').map(str::trim).filter(|label| !label.is_empty());
        let label = |label: &str| {
            let (key, value) = label.split_once('=')?;
            Some((key.trim().to_owned(), value.trim().to_owned()))
        };
        Some((labels.map(label).collect::<Option<_>>()?, milli(value.trim())?))
    };
    text.split(';').map(str::trim).filter(|part| !part.is_empty()).map(one).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, annotations: &Value) -> Arc<Pod> {
        let pod = json!({"metadata": {"name": name, "annotations": annotations}, "status": {"phase": "Running"},
            "spec": {"containers": [{"name": "c"}, {"name": "d"}]}});
        Arc::new(kubewright_objects::from_value(pod).expect("a pod"))
    }

    fn used(annotations: &Value) -> Result<Vec<(String, Option<i64>)>, String> {
        let usages = usage(&[pod("p", annotations)], "cpu", Timestamp::UNIX_EPOCH)?;
        Ok(usages.into_iter().flat_map(|usage| usage.containers).collect())
    }

    #[test]
    fn a_usage_is_that_of_each_container_unless_it_has_its_own() {
        let annotations =
            json!({"kwok.x-k8s.io/usage-cpu": "100m", "d.containers.kubewright.dev/usage-cpu": "2"});
        assert_eq!(used(&annotations), Ok(vec![("c".into(), Some(100)), ("d".into(), Some(2000))]));
        let memory = json!({"kwok.x-k8s.io/usage-memory": "1Gi"});
        assert_eq!(used(&memory), Ok(vec![("c".into(), None), ("d".into(), None)]));
        assert_eq!(used(&json!({"other": "1"})), Ok(Vec::new()));
    }

    #[test]
    fn a_value_that_is_no_quantity_is_told() {
        assert_eq!(
            used(&json!({"kwok.x-k8s.io/usage-cpu": "much"})),
            Err("the annotation kwok.x-k8s.io/usage-cpu of pod p is no quantity: \"much\"".into())
        );
    }

    #[test]
    fn a_selector_picks_among_series() {
        let meta = pod(
            "p",
            &json!({"metrics.kubewright.dev/length": "queue=mail: 30; queue=print,urgent=yes: 2500m; 7"}),
        );
        let picked = |selector: &str| {
            let selector = LabelSelector::parse(selector).expect("a selector");
            values(&meta.metadata, ("pod", "p"), "length", &selector).expect("values").expect("set")
        };
        assert_eq!(picked(""), [30_000, 2500, 7000]);
        assert_eq!(picked("queue=mail"), [30_000]);
        assert_eq!(picked("queue,queue!=mail"), [2500]);
        assert_eq!(picked("queue=none"), [0_i64; 0]);
        assert_eq!(values(&meta.metadata, ("pod", "p"), "other", &LabelSelector::default()), Ok(None));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,60}") {
            let _ = series(&text);
        }
    }
}
