//! What an apply holds back, beside a twin to which each apply is sent.

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, Patch, PatchParams};
use kubewright_world::Dice;
use serde_json::{Map, Value, json};

use crate::{
    applies::{Wanted, applying, look_again},
    harness::{Log, run},
    lab::Lab,
};

/// One of these.
fn one<T: Clone>(dice: &Dice, of: &[T]) -> T {
    of[dice.below(of.len())].clone()
}

/// Some of these, each with one of its values.
fn some(dice: &Dice, of: &[(&str, &[&str])]) -> Map<String, Value> {
    let chosen = of.iter().filter(|_| dice.below(2) == 0);
    chosen.map(|(name, values)| ((*name).to_owned(), json!(one(dice, values)))).collect()
}

/// A Deployment of which any part may be there or not, in the spelling of the server or in another.
fn wanted(dice: &Dice) -> Value {
    let named = |names: Map<String, Value>, field: &str| -> Value {
        names.into_iter().map(|(name, value)| json!({"name": name, field: value})).collect()
    };
    let mut labels = some(dice, &[("x", &["1", "2"]), ("y", &["1"])]);
    labels.insert("app".to_owned(), json!("web"));
    let mut web = json!({"name": "web", "image": one(dice, &["nginx", "nginx:2"])});
    web["env"] = named(some(dice, &[("A", &["1", "2"]), ("B", &["", "1"]), ("C", &["3"])]), "value");
    web["args"] = one(dice, &[json!([]), json!(["run"]), json!(["run", "fast"])]);
    web["resources"] =
        json!({"limits": some(dice, &[("cpu", &["1", "1000m", "0.5"]), ("memory", &["1Gi", "1024Mi"])])});
    web["ports"] = one(
        dice,
        &[json!([]), json!([{"containerPort": 80}]), json!([{"containerPort": 80, "protocol": "TCP"}])],
    );
    let mut spec = json!({"containers": [web], "volumes": []});
    if dice.below(2) == 0 {
        spec["volumes"] = json!([{"name": "data", "emptyDir": {}}]);
        spec["tolerations"] = one(dice, &[json!([]), json!([{"key": "gpu", "operator": "Exists"}])]);
        spec["nodeSelector"] = some(dice, &[("disk", &["ssd", "hdd"]), ("zone", &["a"])]).into();
    }
    let mut metadata = json!({"labels": some(dice, &[("x", &["1", "2"]), ("y", &[""])])});
    if dice.below(2) == 0 {
        metadata["annotations"] = some(dice, &[("note", &["short", "long"])]).into();
    }
    let mut deployment = json!({"metadata": metadata, "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": labels}, "spec": spec},
    }});
    if dice.below(2) == 0 {
        deployment["spec"]["replicas"] = json!(one(dice, &[1, 2]));
    }
    deployment
}

/// What somebody else does to an object: as whom, and what.
fn foreign(dice: &Dice) -> (PatchParams, Patch<Value>) {
    let other = PatchParams { field_manager: Some("other".to_owned()), ..PatchParams::default() };
    let pod = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
    let applied = |mut fields: Value| {
        fields["apiVersion"] = json!("apps/v1");
        fields["kind"] = json!("Deployment");
        (PatchParams::apply("applier").force(), Patch::Apply(fields))
    };
    match dice.below(8) {
        0 => (other, Patch::Merge(json!({"metadata": {"labels": {"x": "9", "theirs": "1"}}}))),
        1 => (other, Patch::Merge(json!({"metadata": {"labels": {"x": null, "y": null}}}))),
        2 => (other, Patch::Merge(json!({"spec": {"replicas": 3}}))),
        3 => {
            let env = json!([{"name": "A", "value": "9"}, {"name": "THEIRS", "value": "1"}]);
            (other, Patch::Strategic(pod(json!({"containers": [{"name": "web", "env": env}]}))))
        }
        4 => {
            let env = json!([{"name": "A", "$patch": "delete"}]);
            (other, Patch::Strategic(pod(json!({"containers": [{"name": "web", "env": env}]}))))
        }
        5 => (other, Patch::Strategic(pod(json!({"containers": [{"name": "proxy", "image": "envoy"}]})))),
        6 => applied(pod(json!({
            "tolerations": [{"key": "theirs", "operator": "Exists"}],
            "nodeSelector": {"disk": "hdd"},
        }))),
        _ => applied(json!({"metadata": {"labels": {"x": "1"}, "annotations": {"note": "short"}}})),
    }
}

/// An object without what two of them cannot have alike: which one it is, and when and how often it was written.
fn comparable(mut object: Value) -> Value {
    for field in ["name", "uid", "resourceVersion", "generation", "creationTimestamp", "ownerReferences"] {
        object["metadata"][field].take();
    }
    let entries = object["metadata"]["managedFields"].as_array_mut().into_iter().flatten();
    for entry in entries {
        entry["time"].take();
        if let Some(metadata) = entry["fieldsV1"]["f:metadata"].as_object_mut() {
            metadata.remove("f:ownerReferences");
        }
    }
    // The order of those who wrote is that of the times at which they did.
    if let Some(entries) = object["metadata"]["managedFields"].as_array_mut() {
        entries.retain(|entry| entry["subresource"].is_null());
        entries.sort_by_key(Value::to_string);
    }
    object["status"].take();
    object
}

/// What is applied to the twin of an object.
fn twin_of(child: &Deployment) -> Value {
    let mut body = kubewright_objects::to_value(child).expect("JSON");
    body["metadata"]["name"] = json!("twin");
    body["apiVersion"] = json!("apps/v1");
    body["kind"] = json!("Deployment");
    body.as_object_mut().expect("an object").remove("status");
    body
}

/// The server's rules of merging are the judge: it gets each apply of the twin, and only those of the child that are not held back.
#[tokio::test(start_paused = true)]
async fn an_apply_that_is_held_back_would_have_changed_nothing() {
    const STEPS: usize = 12;
    let mut held_back = 0;
    for seed in 0..20 {
        let Some(lab) = Lab::without_rollouts().await else { return };
        let (log, dice) = (Log::new(), Dice::from_seed(seed));
        let child = Wanted::new(&lab, wanted(&dice));
        lab.put("configmaps", "owner", json!({})).await;
        let _running = run(&lab, [applying::<Deployment>(&child, &log)]);
        lab.settle().await;
        let api = Api::<Deployment>::namespaced(lab.admin(), lab.namespace());
        let mut told = Vec::new();
        let apply_twin = async || {
            let body = twin_of(&child.get::<Deployment>().expect("one"));
            let apply = PatchParams::apply("test").force();
            api.patch("twin", &apply, &Patch::Apply(&body)).await.expect("it is applied");
        };
        for step in 0..STEPS {
            if step > 0 && dice.below(2) == 0 {
                let (params, patch) = foreign(&dice);
                told.push(format!("{step}: {patch:?}"));
                for name in ["child", "twin"] {
                    api.patch(name, &params, &patch).await.expect("it is patched");
                }
                // As the controller does.
                apply_twin().await;
                lab.settle().await;
            }
            if step > 0 && dice.below(3) == 0 {
                let next = wanted(&dice);
                told.push(format!("{step}: wanted {next}"));
                child.change(|wanted| {
                    wanted["spec"] = next["spec"].clone();
                    wanted["metadata"]["labels"] = next["metadata"]["labels"].clone();
                    wanted["metadata"]["annotations"] = next["metadata"]["annotations"].clone();
                });
            }
            let (_, writes) = look_again(&lab, &log).await;
            held_back += usize::from(writes == 0);
            apply_twin().await;
            let stored = async |name| comparable(lab.stored("deployments", name).await.unwrap_or_default());
            assert_eq!(stored("child").await, stored("twin").await, "seed {seed}, step {step}, {told:#?}");
        }
    }
    assert!(held_back > 20, "only {held_back} were held back");
}
