//! Claims of devices, the classes of these, and the slices of a node that has some.

use serde_json::{Value, json};

use crate::controllers::make::Making;
use crate::controllers::story::{STRATEGIC, Step};

const DRIVER: &str = "differ.example.com";

/// Devices are looked at again after a while where one was missing.
const LOOKED: u64 = 4000;

pub(super) fn devices(making: &mut Making) {
    making.quiet = making.quiet.max(LOOKED);
    class(making);
    slice(making);
    template(making);
    if making.chance(0.6) {
        claim(making);
    }
    pod(making);
}

fn class(making: &mut Making) {
    let selectors = making.value(&[
        json!([{"cel": {"expression": "device.driver == 'differ.example.com' && device.attributes['differ.example.com'].story == '@run@'"}}]),
        json!([{"cel": {"expression": "device.attributes['differ.example.com'].story == '@run@'"}}]),
    ]);
    making.step(Step::object("DeviceClass", "@run@", json!({"spec": {"selectors": selectors}})));
}

fn slice(making: &mut Making) {
    let devices: Vec<Value> = (0..making.number(1, 3))
        .map(|at| {
            let size = ["1Gi", "2Gi", "4Gi"][usize::try_from(at).unwrap_or_default()];
            json!({"name": format!("d{at}"), "attributes": {"story": {"string": "@run@"}, "index": {"int": at}},
                "capacity": {"memory": {"value": size}}})
        })
        .collect();
    making.step(Step::object(
        "ResourceSlice",
        "@run@-s",
        json!({"spec": {"driver": DRIVER, "nodeName": "@run@-a", "pool": {"name": "@run@", "generation": 1, "resourceSliceCount": 1}, "devices": devices}}),
    ));
}

fn request(making: &mut Making) -> Value {
    let exactly = making.value(&[
        json!({"deviceClassName": "@run@"}),
        json!({"deviceClassName": "@run@"}),
        json!({"deviceClassName": "@run@", "count": 2}),
        json!({"deviceClassName": "@run@", "allocationMode": "All"}),
        json!({"deviceClassName": "@run@-none"}),
        json!({"deviceClassName": "@run@", "selectors": [{"cel": {"expression": "device.attributes['differ.example.com'].index == 1"}}]}),
        json!({"deviceClassName": "@run@", "selectors": [{"cel": {"expression": "device.capacity['differ.example.com'].memory.compareTo(quantity('2Gi')) >= 0"}}]}),
        Value::Null,
    ]);
    if exactly.is_null() {
        return json!({"devices": {"requests": [{"name": "r", "firstAvailable": [
            {"name": "big", "deviceClassName": "@run@", "count": 3}, {"name": "small", "deviceClassName": "@run@"}]}]}});
    }
    json!({"devices": {"requests": [{"name": "r", "exactly": exactly}]}})
}

fn template(making: &mut Making) {
    let spec = request(making);
    making.step(Step::object(
        "ResourceClaimTemplate",
        "each",
        json!({"spec": {"metadata": {"labels": {"app": "dev"}}, "spec": spec}}),
    ));
}

fn claim(making: &mut Making) {
    let name = making.word(&["shared", "shared", "own"]);
    let spec = request(making);
    making.step(Step::object("ResourceClaim", name, json!({"spec": spec})));
}

fn pod(making: &mut Making) {
    let name = making.word(&["dev1", "dev2", "dev3"]);
    let template = making.template("dev");
    let mut spec = template["spec"].clone();
    let claims = making.value(&[
        json!([{"name": "c", "resourceClaimTemplateName": "each"}]),
        json!([{"name": "c", "resourceClaimName": "shared"}]),
        json!([{"name": "c", "resourceClaimTemplateName": "each"}]),
        json!([{"name": "c", "resourceClaimName": "own"}]),
        json!([{"name": "c", "resourceClaimTemplateName": "none"}]),
        json!([{"name": "c", "resourceClaimTemplateName": "each"}, {"name": "d", "resourceClaimName": "shared"}]),
    ]);
    spec["resourceClaims"] = claims;
    spec["containers"][0]["resources"] = json!({"claims": [{"name": "c"}]});
    spec["nodeSelector"] = json!({"differ": "@run@"});
    spec["tolerations"] = json!([{"key": "differ", "operator": "Exists"}]);
    making.step(Step::object("Pod", name, json!({"metadata": {"labels": {"app": "dev"}}, "spec": spec})));
}

pub(super) fn change_devices(making: &mut Making) {
    let name = making.word(&["dev1", "dev2", "dev3"]);
    match making.number(0, 9) {
        0..=2 => pod(making),
        3 => claim(making),
        4 => making.step(Step::delete("Pod", name, None)),
        5 => {
            let pick = making.picked("ResourceClaim", None);
            making.step(Step::delete("ResourceClaim", "@pick@", None).picking(pick));
        }
        6 => {
            let step = match making.number(0, 2) {
                0 => Step::delete("ResourceClaimTemplate", "each", None),
                1 => Step::delete("DeviceClass", "@run@", None),
                _ => Step::delete("ResourceSlice", "@run@-s", None),
            };
            let what = step.what.clone();
            making.step(step);
            if making.chance(0.7) {
                match what.as_str() {
                    "ResourceClaimTemplate/delete" => template(making),
                    "DeviceClass/delete" => class(making),
                    _ => slice(making),
                }
            }
        }
        7 => {
            let phase = making.word(&["Succeeded", "Failed"]);
            let status = json!({"status": {"phase": phase}});
            making.step(Step::patch("Pod", "end", name, status).sub("status").media(STRATEGIC).quiet(4000));
        }
        8 => {
            // Somebody reserves a claim for what is not there.
            let reserved = json!([{"resource": "pods", "name": "nobody", "uid": "11111111-1111-1111-1111-111111111111"}]);
            let status = json!({"status": {"reservedFor": reserved}});
            making.step(Step::patch("ResourceClaim", "reserve", "shared", status).sub("status"));
        }
        _ => super::cluster::change_node(making),
    }
}
