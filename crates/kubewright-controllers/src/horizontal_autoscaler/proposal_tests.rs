use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use std::sync::Arc;

use super::*;
use crate::horizontal_autoscaler::calculator::Tolerances;
use crate::horizontal_autoscaler::samples::Sample;

fn pods() -> Vec<Arc<Pod>> {
    let requests = json!({"cpu": "100m", "memory": "100Mi"});
    let pod = |name: &str| {
        let status = json!({"phase": "Running", "startTime": "2026-01-01T00:00:00Z",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:01Z"}]});
        let containers: Vec<Value> = ["c", "d"]
            .iter()
            .map(|name| json!({"name": name, "resources": {"requests": requests}}))
            .collect();
        let pod = json!({"metadata": {"name": name}, "spec": {"containers": containers}, "status": status});
        Arc::new(kubewright_objects::from_value(pod).expect("a pod"))
    };
    ["x", "y", "z"].map(pod).to_vec()
}

fn propose(metric: Value, measured: &Measured) -> Result<Proposal, MetricFailure> {
    propose_in(Version::V1_36, metric, measured)
}

fn propose_in(kubernetes: Version, metric: Value, measured: &Measured) -> Result<Proposal, MetricFailure> {
    let pods = pods();
    let scene = Scene {
        pods: &pods,
        spec_replicas: 3,
        status_replicas: 3,
        tolerances: Tolerances { down: 0.1, up: 0.1 },
        now: Timestamp::constant(1_800_000_000, 0),
        kubernetes,
    };
    of_metric(&kubewright_objects::from_value(metric).expect("a metric"), measured, &scene, "shop")
}

fn used(values: [i64; 3]) -> Measured {
    let at = Some(Timestamp::constant(1_800_000_000, 0));
    let sample = |value| Sample { value, at, window: SignedDuration::ZERO };
    let names = ["x", "y", "z"].map(str::to_owned);
    Ok(Reading::Pods(names.into_iter().zip(values.map(sample)).collect()))
}

fn resource(name: &str, target: &Value) -> Value {
    json!({"type": "Resource", "resource": {"name": name, "target": target}})
}

fn external(target: &Value, selector: &Value) -> Value {
    json!({"type": "External", "external": {"metric": {"name": "q", "selector": selector}, "target": target}})
}

fn object(target: &Value) -> Value {
    let described = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"});
    json!({"type": "Object", "object": {"metric": {"name": "hits"}, "describedObject": described, "target": target}})
}

/// What kube-controller-manager v1.36.3 made of the same numbers.
#[test]
fn proposals_read_as_those_of_kube_controller_manager() {
    let percent = json!({"type": "Utilization", "averageUtilization": 50});
    for (metric, measured, replicas, name, current) in [
        (
            resource("cpu", &percent),
            used([400; 3]),
            12,
            "cpu resource utilization (percentage of request)",
            json!({"averageUtilization": 200, "averageValue": "400m"}),
        ),
        (
            resource("memory", &json!({"type": "AverageValue", "averageValue": "200Mi"})),
            used([125_829_120_000, 146_800_640_000, 127_926_272_000]),
            2,
            "memory resource",
            json!({"averageValue": "133518677333m"}),
        ),
        (
            json!({"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c", "target": percent}}),
            used([333; 3]),
            20,
            "cpu container resource utilization (percentage of request)",
            json!({"averageUtilization": 333, "averageValue": "333m"}),
        ),
        (
            json!({"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "1k"}}}),
            used([2_000_000; 3]),
            6,
            "pods metric rps",
            json!({"averageValue": "2k"}),
        ),
        (
            external(&json!({"type": "Value", "value": "10"}), &Value::Null),
            Ok(Reading::Values(vec![30_000, 5500])),
            11,
            "external metric q(nil)",
            json!({"value": "35500m"}),
        ),
        (
            external(
                &json!({"type": "AverageValue", "averageValue": "10"}),
                &json!({"matchLabels": {"queue": "b"}}),
            ),
            Ok(Reading::Values(vec![5500])),
            1,
            "external metric q(&LabelSelector{MatchLabels:map[string]string{queue: b,},MatchExpressions:[]LabelSelectorRequirement{},})",
            json!({"averageValue": "1834m"}),
        ),
        (
            object(&json!({"type": "Value", "value": "2k"})),
            Ok(Reading::Values(vec![4_000_000])),
            6,
            "Ingress metric hits",
            json!({"value": "4k"}),
        ),
    ] {
        let proposal = propose(metric, &measured).expect("a proposal");
        assert_eq!((proposal.replicas, proposal.name.as_str()), (replicas, name));
        let status = json!(proposal.status);
        let type_ = status["type"].as_str().expect("a type");
        let key = format!("{}{}", type_[..1].to_lowercase(), &type_[1..]);
        assert_eq!(status[key]["current"], current);
    }
}

/// The words of kube-controller-manager v1.36.3 where nobody serves metrics.
#[test]
fn failures_read_as_those_of_kube_controller_manager() {
    let no_api = "unable to fetch metrics from resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)";
    let percent = json!({"type": "Utilization", "averageUtilization": 50});
    let average = json!({"type": "AverageValue", "averageValue": "30"});
    for (metric, measured, reason, why, prefix) in [
        (
            resource("cpu", &percent),
            no_api,
            "FailedGetResourceMetric",
            format!("failed to get cpu utilization: unable to get metrics for resource cpu: {no_api}"),
            "failed to get cpu resource metric value: ",
        ),
        (
            resource("memory", &average),
            no_api,
            "FailedGetResourceMetric",
            format!("failed to get memory usage: unable to get metrics for resource memory: {no_api}"),
            "failed to get memory resource metric value: ",
        ),
        (
            json!({"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c", "target": percent}}),
            no_api,
            "FailedGetContainerResourceMetric",
            format!("failed to get cpu utilization: unable to get metrics for resource cpu: {no_api}"),
            "failed to get c container metric value: ",
        ),
        (
            object(&json!({"type": "Value", "value": "2k"})),
            "no API",
            "FailedGetObjectMetric",
            "unable to get metric hits: Ingress on shop main/no API".into(),
            "failed to get object metric value: ",
        ),
        (
            object(&json!({"type": "AverageValue", "averageValue": "2k"})),
            "no API",
            "FailedGetObjectMetric",
            "unable to get metric hits: Ingress on shop main/no API".into(),
            "failed to get object metric value: failed to get hits object metric: ",
        ),
        (
            external(&average, &Value::Null),
            "no API",
            "FailedGetExternalMetric",
            "unable to get external metric shop/q/nil: no API".into(),
            "failed to get q external metric value: failed to get q external metric: ",
        ),
        (
            external(&json!({"type": "Value", "value": "1"}), &Value::Null),
            "no API",
            "FailedGetExternalMetric",
            "unable to get external metric shop/q/nil: no API".into(),
            "failed to get q external metric value: failed to get external metric q: ",
        ),
    ] {
        let failure = propose(metric, &Err(measured.to_owned())).expect_err("a failure");
        let error = format!("{prefix}{why}");
        assert_eq!(failure, MetricFailure { reason, why, error });
    }
}

#[test]
fn from_v1_37_on_the_metric_of_an_object_is_told_in_order() {
    let metric = object(&json!({"type": "Value", "value": "2k"}));
    let failure = propose_in(Version::V1_37, metric, &Err("no API".into())).expect_err("nobody serves it");
    assert_eq!(failure.why, "unable to get metric hits on Ingress shop/main: no API");
}
