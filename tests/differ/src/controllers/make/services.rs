//! Services with their EndpointSlices and Endpoints, and Endpoints that a user writes.

use serde_json::{Value, json};

use crate::controllers::make::{Making, pods};
use crate::controllers::story::{STRATEGIC, Step};

fn ports(making: &mut Making) -> Value {
    let target = making.value(&[Value::Null, json!(8080), json!("http"), json!("none")]);
    let mut ports = json!([{"name": "one", "port": 80, "targetPort": target}]);
    if making.chance(0.3) {
        let protocol = making.word(&["TCP", "UDP"]);
        ports = json!([{"name": "one", "port": 80, "targetPort": target}, {"name": "two", "port": 443, "protocol": protocol, "appProtocol": "https"}]);
    }
    ports
}

pub(super) fn service(making: &mut Making) {
    let mut spec = json!({"selector": {"app": making.app()}, "ports": ports(making)});
    match making.number(0, 6) {
        0 => spec["clusterIP"] = json!("None"),
        1 => spec["type"] = json!("NodePort"),
        2 => spec["publishNotReadyAddresses"] = json!(true),
        3 => spec["selector"] = Value::Null,
        4 if making.chance(0.4) => spec = json!({"type": "ExternalName", "externalName": "example.com"}),
        _ => {}
    }
    if making.chance(0.1) {
        spec["sessionAffinity"] = json!("ClientIP");
    }
    if making.chance(0.1) {
        spec["internalTrafficPolicy"] = json!("Local");
    }
    if making.chance(0.15) {
        spec["trafficDistribution"] = json!(making.word(&["PreferSameZone", "PreferSameNode"]));
    }
    let labels = if making.chance(0.3) { json!({"team": "x"}) } else { Value::Null };
    making.step(Step::create("Service", json!({"kind": "Service", "apiVersion": "v1", "metadata": {"name": "svc", "labels": labels}, "spec": spec})));
    if making.chance(0.7) {
        pods::pod(making);
    }
}

pub(super) fn change_service(making: &mut Making) {
    match making.number(0, 14) {
        13 => {
            let name = making.word(&["PreferSameZone", "PreferSameNode", "PreferClose"]);
            let spec =
                making.value(&[json!({"trafficDistribution": name}), json!({"trafficDistribution": null})]);
            making.set("Service", "traffic", "svc", spec);
        }
        14 => {
            let labels = making.value(&[
                json!({"labels": {"team": "y"}}),
                json!({"labels": {"service.kubernetes.io/headless": ""}}),
                json!({"labels": null}),
                json!({"annotations": {"endpoints.kubernetes.io/last-change-trigger-time": "x", "note": "1"}}),
            ]);
            making.step(Step::patch("Service", "label", "svc", json!({"metadata": labels})));
        }
        0 => {
            let selector = making.value(&[
                json!({"app": "a"}),
                json!({"app": "b"}),
                json!({"app": null}),
                json!({"tier": "front"}),
            ]);
            making.set("Service", "selector", "svc", json!({"selector": selector}));
        }
        1 | 2 => {
            let ports = ports(making);
            making.set("Service", "ports", "svc", json!({"ports": ports}));
        }
        3 => {
            let publish = making.chance(0.5);
            making.set("Service", "publish", "svc", json!({"publishNotReadyAddresses": publish}));
        }
        4 => {
            let pick = making.picked("EndpointSlice", None);
            making.step(Step::delete("EndpointSlice", "@pick@", None).picking(pick));
        }
        5 => {
            let pick = making.picked("EndpointSlice", None);
            let patch = making.value(&[
                json!({"metadata": {"labels": {"extra": "1"}}}),
                json!({"metadata": {"annotations": {"note": "1"}}}),
                json!({"endpoints": []}),
                json!({"ports": []}),
            ]);
            making.step(Step::patch("EndpointSlice", "spoil", "@pick@", patch).picking(pick));
        }
        6 => {
            let kind = making.word(&["ClusterIP", "NodePort", "ExternalName"]);
            let spec = if kind == "ExternalName" {
                json!({"type": kind, "externalName": "example.org"})
            } else {
                json!({"type": kind})
            };
            making.set("Service", "type", "svc", spec);
        }
        7 => {
            let patch = making.value(&[
                json!({"subsets": null}),
                json!({"metadata": {"labels": {"extra": "1"}}}),
                json!({"metadata": {"annotations": {"note": "1"}}}),
            ]);
            making.step(Step::patch("Endpoints", "spoil", "svc", patch));
        }
        8 => making.step(Step::delete("Endpoints", "svc", None)),
        9 => making.common("Service", "svc", service),
        10 => pods::pod(making),
        _ => pods::any(making),
    }
}

fn subsets(making: &mut Making) -> Value {
    let ready = making.value(&[
        json!([{"ip": "10.7.0.1"}]),
        json!([{"ip": "10.7.0.1"}, {"ip": "10.7.0.2", "hostname": "h"}]),
        Value::Null,
    ]);
    let unready = making.value(&[Value::Null, json!([{"ip": "10.7.0.3"}])]);
    let ports = making.value(&[
        json!([{"port": 80}]),
        json!([{"name": "one", "port": 80}, {"name": "two", "port": 81, "protocol": "UDP"}]),
        Value::Null,
    ]);
    if ready.is_null() && unready.is_null() {
        return json!([]);
    }
    json!([{"addresses": ready, "notReadyAddresses": unready, "ports": ports}])
}

/// A Service without a selector, whose Endpoints a user writes.
pub(super) fn endpoints(making: &mut Making) {
    making.step(Step::create("Service", json!({"kind": "Service", "apiVersion": "v1", "metadata": {"name": "own"}, "spec": {"ports": [{"name": "one", "port": 80}]}})));
    write(making);
}

fn write(making: &mut Making) {
    let subsets = subsets(making);
    let labels = making.value(&[
        Value::Null,
        json!({"team": "x"}),
        json!({"endpointslice.kubernetes.io/skip-mirror": "true"}),
    ]);
    making.step(Step::create("Endpoints", json!({"kind": "Endpoints", "apiVersion": "v1", "metadata": {"name": "own", "labels": labels}, "subsets": subsets})));
}

pub(super) fn change_endpoints(making: &mut Making) {
    match making.number(0, 7) {
        0 | 1 => {
            let subsets = subsets(making);
            making.step(Step::patch("Endpoints", "subsets", "own", json!({"subsets": subsets})));
        }
        2 => {
            let skip = making.value(&[Value::Null, json!("true"), json!("false")]);
            let patch = json!({"metadata": {"labels": {"endpointslice.kubernetes.io/skip-mirror": skip}}});
            making.step(Step::patch("Endpoints", "skip", "own", patch));
        }
        3 => {
            let patch = making.value(&[
                json!({"metadata": {"labels": {"extra": "1"}}}),
                json!({"metadata": {"annotations": {"note": "1"}}}),
            ]);
            making.step(Step::patch("Endpoints", "label", "own", patch).media(STRATEGIC));
        }
        4 => {
            making.step(Step::delete("Endpoints", "own", None));
            if making.chance(0.5) {
                write(making);
            }
        }
        5 => {
            let selector = making.value(&[json!({"app": "a"}), Value::Null]);
            making.set("Service", "selector", "own", json!({"selector": selector}));
        }
        6 => making.common("Service", "own", endpoints),
        _ => {
            let pick = making.picked("EndpointSlice", None);
            making.step(Step::delete("EndpointSlice", "@pick@", None).picking(pick));
        }
    }
}
