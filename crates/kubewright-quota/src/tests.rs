use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn pod(cpu: u32, memory: u32) -> Value {
    json!({"spec": {"containers": [{"name": "c", "resources": {
        "requests": {"cpu": format!("{cpu}m")}, "limits": {"memory": format!("{memory}Ki")}}}]}})
}

fn quota(hard: &Value, used: &Value) -> Value {
    json!({"metadata": {"name": "q"}, "spec": {"hard": hard}, "status": {"hard": hard, "used": used}})
}

fn charged(quota: &Value, object: &Value, old: Option<&Value>) -> Result<Charge, String> {
    let evaluator = Evaluator::of("", "pods");
    Change { evaluator: &evaluator, object, old, always: false, now: NOW }.charge(quota)
}

#[test]
fn names_tell_what_is_counted() {
    let hard = json!({"pods": "1", "count/deployments.apps": "1", "secrets": "1", "requests.example.com/gpu": "1",
        "gold.storageclass.storage.k8s.io/requests.storage": "1", "count/things.example.com": "1", "count/events": "1", "bogus.example.com/x": "1"});
    let told: Vec<String> =
        counted(&hard).into_iter().map(|(group, plural)| format!("{plural}.{group}")).collect();
    assert_eq!(
        told,
        ["persistentvolumeclaims.", "pods.", "secrets.", "deployments.apps", "things.example.com"]
    );
}

#[test]
fn a_pod_uses_what_its_containers_and_its_runtime_need() {
    let pod = json!({"spec": {"overhead": {"cpu": "50m"},
        "initContainers": [{"name": "i", "resources": {"requests": {"cpu": "1"}}},
            {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}}],
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "200m", "example.com/gpu": "1"}}}]}});
    let usage = Evaluator::of("", "pods").usage(&pod, NOW).to_value();
    assert_eq!(
        usage,
        json!({"count/pods": "1", "pods": "1", "cpu": "1050m", "requests.cpu": "1050m", "requests.example.com/gpu": "1"})
    );
    let mut ended = pod;
    ended["status"] = json!({"phase": "Succeeded"});
    assert_eq!(Evaluator::of("", "pods").usage(&ended, NOW).to_value(), json!({"count/pods": "1"}));
}

#[test]
fn a_pod_that_shrinks_is_charged_for_what_it_still_has() {
    let mut pod = pod(100, 0);
    pod["status"] = json!({"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "300m"}}}]});
    assert_eq!(
        Evaluator::of("", "pods").usage(&pod, NOW).get("cpu").map(|cpu| cpu.to_string()).as_deref(),
        Some("300m")
    );
    pod["status"]["conditions"] = json!([{"type": "PodResizePending", "reason": "Infeasible"}]);
    pod["status"]["containerStatuses"][0]["resources"]["requests"]["cpu"] = json!("50m");
    assert_eq!(
        Evaluator::of("", "pods").usage(&pod, NOW).get("cpu").map(|cpu| cpu.to_string()).as_deref(),
        Some("50m")
    );
}

#[test]
fn a_claim_is_charged_to_its_class_in_whole_bytes() {
    let claim =
        json!({"spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "1500m"}}}});
    assert_eq!(
        Evaluator::of("", "persistentvolumeclaims").usage(&claim, NOW).to_value(),
        json!({"count/persistentvolumeclaims": "1", "persistentvolumeclaims": "1", "requests.storage": "2",
            "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
            "gold.storageclass.storage.k8s.io/requests.storage": "2"})
    );
}

#[test]
fn only_what_a_change_adds_is_charged() {
    let hard = json!({"requests.cpu": "500m"});
    let quota = quota(&hard, &json!({"requests.cpu": "400m"}));
    let (old, new) = (pod(400, 0), pod(500, 0));
    assert_eq!(charged(&quota, &new, Some(&old)), Ok(Charge::Used(json!({"requests.cpu": "500m"}))));
    assert_eq!(charged(&quota, &old, Some(&new)), Ok(Charge::None));
    assert_eq!(
        charged(&quota, &new, None),
        Err("exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=400m, limited: requests.cpu=500m".to_owned())
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let keys = prop::sample::select(vec![
        "metadata",
        "spec",
        "status",
        "containers",
        "initContainers",
        "resources",
        "requests",
        "limits",
        "cpu",
        "hard",
        "used",
        "scopes",
        "scopeSelector",
        "matchExpressions",
        "name",
        "securityContext",
        "volumes",
        "phase",
        "annotations",
        "x",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[0-9a-zA-Z.%-]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(keys.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn charging_one_after_the_other_is_counting_all(pods in prop::collection::vec((0_u32..5000, 0_u32..5000), 0..12)) {
        let hard = json!({"pods": "100", "requests.cpu": "1k", "limits.memory": "1Ti", "count/pods": "100"});
        let none = json!({"pods": "0", "requests.cpu": "0", "limits.memory": "0", "count/pods": "0"});
        let objects: Vec<Value> = pods.iter().map(|(cpu, memory)| pod(*cpu, *memory)).collect();
        let mut charging = quota(&hard, &none);
        for object in &objects {
            if let Charge::Used(used) = charged(&charging, object, None).expect("it fits") {
                charging["status"]["used"] = used;
            }
        }
        let all = BTreeMap::from([((String::new(), "pods".to_owned()), objects)]);
        let counted = status(&quota(&hard, &none), &all, NOW);
        prop_assert_eq!(Resources::of(&charging["status"]["used"]), Resources::of(&counted["used"]));
    }

    #[test]
    fn no_json_makes_counting_panic(object in any_json(), quota in any_json()) {
        for plural in ["pods", "services", "persistentvolumeclaims", "secrets"] {
            let evaluator = Evaluator::of("", plural);
            let _ = evaluator.usage(&object, NOW);
            let _ = Change { evaluator: &evaluator, object: &object, old: Some(&quota), always: false, now: NOW }.charge(&quota);
        }
        let _ = status(&quota, &BTreeMap::from([((String::new(), "pods".to_owned()), vec![object])]), NOW);
    }
}
