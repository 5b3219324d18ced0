use serde_json::json;

use super::super::cluster_state::ClusterState;
use super::super::decision::{Decider, Decision};
use super::super::listers::tests::FakeListers;
use super::*;

fn of_json<T: serde::de::DeserializeOwned + serde::Serialize>(value: &Value) -> Arc<T> {
    Arc::new(kubewright_objects::from_value(value).expect("an object"))
}

/// A cluster of these nodes.
fn cluster(nodes: &[&str]) -> ClusterState {
    let mut cluster = ClusterState::default();
    for name in nodes {
        let node = json!({"metadata": {"name": name, "labels": {"zone": name}},
            "status": {"allocatable": {"cpu": "4", "pods": "10"}}});
        cluster.set_node(&kubewright_objects::from_value(&node).expect("a node"));
    }
    cluster
}

/// A slice that is a whole pool of devices on a node.
fn slice(node: &str, devices: &Value) -> Arc<ResourceSlice> {
    of_json(&json!({"metadata": {"name": node}, "spec": {
        "driver": "gpu.example.com", "nodeName": node, "devices": devices,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}}}))
}

fn claim(name: &str, devices: &Value) -> Arc<ResourceClaim> {
    of_json(
        &json!({"metadata": {"name": name, "namespace": "shop", "uid": name}, "spec": {"devices": devices}}),
    )
}

/// A request for so many devices of the class `gpu`, with more said of it.
fn request(count: i64, more: &Value) -> Value {
    let mut exactly = json!({"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count});
    for (field, value) in more.as_object().into_iter().flatten() {
        exactly[field] = value.clone();
    }
    json!({"name": "r", "exactly": exactly})
}

fn pod_info(claims: &[&str]) -> PodInfo {
    let claims: Vec<Value> =
        claims.iter().map(|name| json!({"name": name, "resourceClaimName": name})).collect();
    PodInfo::of(of_json(&json!({"metadata": {"name": "p", "namespace": "shop", "uid": "u"},
        "spec": {"containers": [], "resourceClaims": claims}})))
}

/// A class of devices whose attribute `kind` is `gpu`, and what the listers have besides.
fn given(slices: Vec<Arc<ResourceSlice>>, claims: Vec<Arc<ResourceClaim>>) -> FakeListers {
    let selector = "device.driver == 'gpu.example.com'";
    FakeListers {
        resource_slices: slices,
        resource_claims: claims,
        device_classes: vec![of_json(&json!({"metadata": {"name": "gpu"},
            "spec": {"selectors": [{"cel": {"expression": selector}}]}}))],
        ..FakeListers::default()
    }
}

fn decide(given: &FakeListers, nodes: &[&str], claims: &[&str]) -> Decision {
    Decider::default().decide(&pod_info(claims), &cluster(nodes), given)
}

/// The node and the devices that a pod with the claim `c` gets.
fn placed(given: &FakeListers, nodes: &[&str]) -> (String, Vec<String>) {
    let Decision::Place { node, reservations, .. } = decide(given, nodes, &["c"]) else {
        panic!("not placed")
    };
    let results = reservations.iter().filter_map(|one| one.allocation.as_ref());
    let results = results.flat_map(|one| one["devices"]["results"].as_array().cloned().unwrap_or_default());
    (node.to_string(), results.map(|one| one["device"].as_str().unwrap_or_default().to_owned()).collect())
}

fn refused(given: &FakeListers, nodes: &[&str]) -> String {
    let Decision::Refuse(refused) = decide(given, nodes, &["c"]) else { panic!("not refused") };
    refused.message
}

fn plain(names: &[&str]) -> Value {
    names.iter().map(|name| json!({"name": name})).collect()
}

#[test]
fn a_pod_goes_where_there_are_devices_for_it() {
    let one = claim("c", &json!({"requests": [request(2, &json!({}))]}));
    let given = given(vec![slice("a", &plain(&["g0"])), slice("b", &plain(&["g0", "g1"]))], vec![one]);
    assert_eq!(placed(&given, &["a", "b"]), ("b".to_owned(), vec!["g0".to_owned(), "g1".to_owned()]));
}

#[test]
fn an_allocation_says_on_which_node_it_is() {
    let one = claim("c", &json!({"requests": [request(1, &json!({}))]}));
    let given = given(vec![slice("a", &plain(&["g0"]))], vec![one]);
    let Decision::Place { reservations, .. } = decide(&given, &["a"], &["c"]) else { panic!("not placed") };
    let allocation = reservations[0].allocation.as_ref().expect("an allocation");
    assert_eq!(
        allocation["nodeSelector"],
        json!({"nodeSelectorTerms": [{"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": ["a"]}]}]})
    );
    assert_eq!(allocation["devices"]["results"][0]["request"], "r");
}

#[test]
fn a_pod_whose_claims_are_not_there_waits_and_nothing_is_said() {
    let given = given(vec![slice("a", &plain(&["g0"]))], vec![]);
    assert!(matches!(decide(&given, &["a"], &["c"]), Decision::Hold(_)));
}

#[test]
fn devices_that_are_somebodys_are_nobody_elses() {
    let one = claim("c", &json!({"requests": [request(1, &json!({}))]}));
    let other: Arc<ResourceClaim> = of_json(&json!({"metadata": {"name": "o", "namespace": "x", "uid": "o"},
        "status": {"allocation": {"devices": {"results": [
            {"request": "r", "driver": "gpu.example.com", "pool": "a", "device": "g0"}]}}}}));
    let taken = given(vec![slice("a", &plain(&["g0"]))], vec![Arc::clone(&one), other]);
    let message = refused(&taken, &["a"]);
    assert!(message.starts_with("0/1 nodes are available: 1 cannot allocate all claims."), "{message}");
    let admin = claim("c", &json!({"requests": [request(1, &json!({"adminAccess": true}))]}));
    let looks = given(taken.resource_slices.clone(), vec![admin, Arc::clone(&taken.resource_claims[1])]);
    assert_eq!(placed(&looks, &["a"]).1, ["g0"], "an administrator may look at any");
}

#[test]
fn a_class_that_is_not_there_is_told() {
    let mut one = request(1, &json!({}));
    one["exactly"]["deviceClassName"] = "tpu".into();
    let given = given(vec![slice("a", &plain(&["g0"]))], vec![claim("c", &json!({"requests": [one]}))]);
    let message = refused(&given, &["a"]);
    assert!(
        message.starts_with("0/1 nodes are available: request r: device class tpu does not exist."),
        "{message}"
    );
}

#[test]
fn selectors_choose_by_attributes_and_capacity() {
    let devices = json!([
        {"name": "small", "attributes": {"model": {"string": "t4"}}, "capacity": {"memory": {"value": "16Gi"}}},
        {"name": "large", "attributes": {"model": {"string": "a100"}}, "capacity": {"memory": {"value": "80Gi"}}},
    ]);
    let expression = "device.attributes['gpu.example.com'].model == 'a100' && device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('40Gi'))";
    let wanted = request(1, &json!({"selectors": [{"cel": {"expression": expression}}]}));
    let given = given(vec![slice("a", &devices)], vec![claim("c", &json!({"requests": [wanted]}))]);
    assert_eq!(placed(&given, &["a"]).1, ["large"]);
}

#[test]
fn a_selector_that_fails_says_so() {
    let wanted = request(
        1,
        &json!({"selectors": [{"cel": {"expression": "device.attributes['gpu.example.com'].model == 'x'"}}]}),
    );
    let given = given(vec![slice("a", &plain(&["g0"]))], vec![claim("c", &json!({"requests": [wanted]}))]);
    let message = refused(&given, &["a"]);
    assert!(
        message.contains("claim shop/c: selector #0: CEL runtime error: no such key: model"),
        "{message}"
    );
}

#[test]
fn taints_keep_off_who_does_not_tolerate_them() {
    let devices = json!([{"name": "g0", "taints": [{"key": "broken", "effect": "NoSchedule"}]}]);
    let of = |more: &Value| {
        let wanted = json!({"requests": [request(1, more)]});
        given(vec![slice("a", &devices)], vec![claim("c", &wanted)])
    };
    assert!(refused(&of(&json!({})), &["a"]).contains("cannot allocate all claims"));
    let tolerant = of(&json!({"tolerations": [{"key": "broken", "operator": "Exists"}]}));
    assert_eq!(placed(&tolerant, &["a"]).1, ["g0"]);
}

#[test]
fn constraints_hold_between_the_devices_of_a_claim() {
    let devices: Value = [("g0", "x"), ("g1", "y"), ("g2", "y")]
        .iter()
        .map(|(name, board)| json!({"name": name, "attributes": {"board": {"string": board}}}))
        .collect();
    let of = |constraint: &str| {
        let wanted = json!({"requests": [request(2, &json!({}))], "constraints": [{constraint: "gpu.example.com/board"}]});
        given(vec![slice("a", &devices)], vec![claim("c", &wanted)])
    };
    assert_eq!(placed(&of("matchAttribute"), &["a"]).1, ["g1", "g2"]);
    assert_eq!(placed(&of("distinctAttribute"), &["a"]).1, ["g0", "g1"]);
}

#[test]
fn all_devices_are_all_of_them_and_the_first_alternative_that_does_is_taken() {
    let all =
        json!({"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}]});
    let slices = vec![slice("a", &plain(&["g0", "g1", "g2"]))];
    assert_eq!(placed(&given(slices.clone(), vec![claim("c", &all)]), &["a"]).1.len(), 3);
    let one = |name: &str, count: i64| json!({"name": name, "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count});
    let either = json!({"requests": [{"name": "r", "firstAvailable": [one("many", 4), one("two", 2)]}]});
    let given = given(slices, vec![claim("c", &either)]);
    let Decision::Place { reservations, .. } = decide(&given, &["a"], &["c"]) else { panic!("not placed") };
    let results = &reservations[0].allocation.as_ref().expect("an allocation")["devices"]["results"];
    assert_eq!(results[1]["request"], "r/two");
    assert_eq!(results.as_array().map(Vec::len), Some(2));
}

#[test]
fn parts_of_a_device_take_of_the_same_counters() {
    let part = |name: &str, memory: &str| json!({"name": name, "consumesCounters": [{"counterSet": "gpu", "counters": {"memory": {"value": memory}}}]});
    let mut counters = (*slice("a", &json!([]))).clone();
    counters.spec["devices"] = Value::Null;
    counters.spec["sharedCounters"] = json!([{"name": "gpu", "counters": {"memory": {"value": "40Gi"}}}]);
    let mut parts =
        (*slice("a", &json!([part("whole", "40Gi"), part("half", "20Gi"), part("other", "20Gi")]))).clone();
    for one in [&mut counters, &mut parts] {
        one.spec["pool"]["resourceSliceCount"] = 2.into();
    }
    let two = claim("c", &json!({"requests": [request(2, &json!({}))]}));
    let given = given(vec![Arc::new(counters), Arc::new(parts)], vec![two]);
    assert_eq!(placed(&given, &["a"]).1, ["half", "other"]);
}

#[test]
fn claims_share_a_device_as_far_as_it_goes() {
    let devices =
        json!([{"name": "g0", "allowMultipleAllocations": true, "capacity": {"memory": {"value": "40Gi"}}}]);
    let wanted = |memory: &str| {
        let of = json!({"capacity": {"requests": {"memory": memory}}});
        claim("c", &json!({"requests": [request(1, &of)]}))
    };
    let other: Arc<ResourceClaim> = of_json(&json!({"metadata": {"name": "o", "namespace": "x", "uid": "o"},
        "status": {"allocation": {"devices": {"results": [
            {"request": "r", "driver": "gpu.example.com", "pool": "a", "device": "g0", "shareID": "s",
             "consumedCapacity": {"memory": "30Gi"}}]}}}}));
    let of = |memory: &str| given(vec![slice("a", &devices)], vec![wanted(memory), Arc::clone(&other)]);
    assert!(refused(&of("20Gi"), &["a"]).contains("cannot allocate all claims"));
    let Decision::Place { reservations, .. } = decide(&of("10Gi"), &["a"], &["c"]) else {
        panic!("not placed")
    };
    let result = &reservations[0].allocation.as_ref().expect("an allocation")["devices"]["results"][0];
    assert_eq!((&result["consumedCapacity"]["memory"], &result["shareID"]), (&json!("10Gi"), &json!("")));
}

#[test]
fn a_pool_that_is_not_whole_gives_no_devices() {
    let mut half = (*slice("a", &plain(&["g0"]))).clone();
    half.spec["pool"]["resourceSliceCount"] = 2.into();
    let one = claim("c", &json!({"requests": [request(1, &json!({}))]}));
    assert!(refused(&given(vec![Arc::new(half)], vec![one]), &["a"]).contains("cannot allocate all claims"));
}

#[test]
fn an_allocated_claim_is_used_where_it_is() {
    let mut one = (*claim("c", &json!({"requests": [request(1, &json!({}))]}))).clone();
    one.status = json!({"allocation": {"devices": {}, "nodeSelector": {"nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}]}}});
    let given = given(vec![], vec![Arc::new(one)]);
    assert_eq!(placed(&given, &["a", "b"]).0, "b");
    assert!(refused(&given, &["a"]).contains("1 resourceclaim not available on the node"));
}
