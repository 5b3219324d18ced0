//! What is applied, and what that costs.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Pod, Secret, Service},
};
use kube::api::{Api, Patch, PatchParams};
use kubewright_runtime::{
    Context, Controller, Error, Key, Object, Outcome, Written,
    conditions::{NewCondition, Status},
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{
    harness::{Log, Running, does, run},
    lab::Lab,
};

/// What is to be applied next.
#[derive(Clone)]
pub(crate) struct Wanted(Arc<Mutex<Value>>);

impl Wanted {
    pub(crate) fn new(lab: &Lab, mut wanted: Value) -> Self {
        wanted["metadata"]["name"] = json!("child");
        wanted["metadata"]["namespace"] = json!(lab.namespace());
        Self(Arc::new(Mutex::new(wanted)))
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Value)) {
        change(&mut self.0.lock());
    }

    pub(crate) fn get<K: Object>(&self) -> Result<K, Error> {
        Ok(kubewright_objects::from_value(&*self.0.lock())?)
    }
}

fn told<K>(written: Written<K>) -> String {
    match written {
        Written::Created(_) => "created".to_owned(),
        Written::Updated { changed, .. } => changed,
        Written::Unchanged(_) => "unchanged".to_owned(),
    }
}

/// Applies a child for the ConfigMap `owner`, and says what came of it.
pub(crate) fn applying<K: Object>(wanted: &Wanted, log: &Log<String>) -> Controller {
    let (wanted, log) = (wanted.clone(), log.clone());
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let (wanted, log) = (wanted.clone(), log.clone());
        Box::pin(async move {
            let Some(owner) = ctx.get::<ConfigMap>(key) else { return Ok(Outcome::Done) };
            log.push(told(ctx.apply(&wanted.get::<K>()?).owned_by(&*owner).await?));
            Ok(Outcome::Done)
        })
    });
    Controller::new("test", reconciler).for_kind::<ConfigMap>().owns::<K>()
}

/// A controller that has applied a child once.
async fn applied<K: Object>(lab: &Lab, wanted: &Wanted, log: &Log<String>) -> Running {
    lab.put("configmaps", "owner", json!({})).await;
    let running = run(lab, [applying::<K>(wanted, log)]);
    lab.settle().await;
    assert_eq!(log.entries()[0], "created");
    look_again(lab, log).await;
    running
}

/// Has the controller look once more. Tells what it did, and how many requests to change something it sent.
pub(crate) async fn look_again(lab: &Lab, log: &Log<String>) -> (Vec<String>, usize) {
    log.take();
    let before = writes(lab);
    let owner = lab.stored("configmaps", "owner").await.unwrap_or_default();
    lab.put("configmaps", "owner", json!({"data": {"seen": owner["metadata"]["resourceVersion"]}})).await;
    lab.settle().await;
    (log.take(), writes(lab) - before)
}

pub(crate) fn writes(lab: &Lab) -> usize {
    lab.requests().iter().filter(|line| !line.starts_with("GET")).count()
}

fn nothing() -> (Vec<String>, usize) {
    (vec!["unchanged".to_owned()], 0)
}

fn deployment() -> Value {
    json!({"spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {
            "volumes": [{"name": "data", "emptyDir": {}}],
            "containers": [{
                "name": "web", "image": "nginx", "ports": [{"containerPort": 80}],
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            }],
        }},
    }})
}

async fn patch<K>(lab: &Lab, params: &PatchParams, patch: &Patch<Value>) -> Value
where
    K: Object + kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
{
    let api = Api::<K>::namespaced(lab.admin(), lab.namespace());
    let stored = api.patch("child", params, patch).await.expect("it is patched");
    lab.settle().await;
    kubewright_objects::to_value(&stored).expect("JSON")
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_not_wanted_any_more_is_removed_and_those_of_others_stay() {
    let (lab, log) = (Lab::new().await, Log::new());
    let wanted =
        Wanted::new(&lab, json!({"stringData": {"a": "1", "b": "1"}, "metadata": {"labels": {"x": "y"}}}));
    let _running = applied::<Secret>(&lab, &wanted, &log).await;
    let theirs = json!({"data": {"theirs": "eA=="}, "metadata": {"labels": {"theirs": "x"}}});
    patch::<Secret>(&lab, &PatchParams::default(), &Patch::Merge(theirs)).await;
    wanted.change(|wanted| {
        wanted["stringData"] = json!({"a": "1"});
        wanted["metadata"]["labels"] = json!({});
    });
    let (did, writes) = look_again(&lab, &log).await;
    assert_eq!(
        (did, writes),
        (vec![r#"data.b: "4 characters" -> (none); metadata.labels.x: "y" -> (none)"#.to_owned()], 1)
    );
    let stored = lab.stored("secrets", "child").await.unwrap_or_default();
    assert_eq!(stored["data"], json!({"a": "MQ==", "theirs": "eA=="}));
    assert_eq!(stored["metadata"]["labels"], json!({"theirs": "x"}));
    assert_eq!(look_again(&lab, &log).await, nothing());
}

#[tokio::test(start_paused = true)]
async fn a_sidecar_a_volume_and_a_label_of_others_stay_and_cost_nothing() {
    let (lab, log) = (Lab::new().await, Log::new());
    let wanted = Wanted::new(&lab, deployment());
    let _running = applied::<Deployment>(&lab, &wanted, &log).await;
    let injected = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {
        "metadata": {"labels": {"injected": "yes"}},
        "spec": {
            "containers": [
                {"name": "proxy", "image": "envoy"},
                {"name": "web", "env": [{"name": "PROXY", "value": "1"}]},
            ],
            "volumes": [{"name": "certificates", "emptyDir": {}}],
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
        },
    }}});
    patch::<Deployment>(&lab, &PatchParams::apply("injector"), &Patch::Apply(injected)).await;
    assert_eq!(look_again(&lab, &log).await, nothing());
    wanted.change(|wanted| {
        wanted["spec"]["template"]["spec"]["containers"][0]["image"] = json!("nginx:2");
        wanted["spec"]["template"]["spec"]["volumes"] = json!([]);
        wanted["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = json!([]);
    });
    let (did, writes) = look_again(&lab, &log).await;
    assert!(did[0].contains(r#"containers[web].image: "nginx" -> "nginx:2""#), "{did:?}");
    assert!(did[1..].iter().all(|did| did == "unchanged"), "what comes of the rollout: {did:?}");
    assert_eq!(writes, 1);
    let api = Api::<Deployment>::namespaced(lab.admin(), lab.namespace());
    let stored = kubewright_objects::to_value(&api.get("child").await.expect("it is there")).expect("JSON");
    let template = &stored["spec"]["template"];
    let names = |list: &str| -> Vec<String> {
        let items = template["spec"][list].as_array().into_iter().flatten();
        items.filter_map(|item| item["name"].as_str().map(str::to_owned)).collect()
    };
    let mut containers = names("containers");
    containers.sort();
    assert_eq!(containers, ["proxy", "web"]);
    assert_eq!(names("volumes"), ["certificates"]);
    assert_eq!(template["spec"]["tolerations"][0]["key"], "gpu");
    assert_eq!(template["metadata"]["labels"]["injected"], "yes");
    assert_eq!(look_again(&lab, &log).await, nothing());
}

/// Admission gives a Pod the volume of its account's token, with a mount in each container, and tolerations.
#[tokio::test(start_paused = true)]
async fn a_pod_that_admission_extended_is_left_as_it_is() {
    let (lab, log) = (Lab::new().await, Log::new());
    let wanted = Wanted::new(
        &lab,
        json!({"spec": {
            "volumes": [{"name": "scratch", "emptyDir": {}}],
            "tolerations": [{"key": "gpu", "effect": "NoSchedule"}],
            "containers": [{
                "name": "web", "image": "nginx", "env": [{"name": "A", "value": "1"}],
                "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
            }],
        }}),
    );
    let running = applied::<Pod>(&lab, &wanted, &log).await;
    let stored = lab.stored("pods", "child").await.unwrap_or_default();
    let number_of = |list: &str| stored["spec"][list].as_array().map_or(0, Vec::len);
    assert_eq!((number_of("volumes"), number_of("tolerations")), (2, 3), "{stored}");
    assert_eq!(look_again(&lab, &log).await, nothing());
    assert_eq!(running.counters.of("test").writes, 1);
    assert_eq!(running.counters.of("test").errors, 0);
}

#[tokio::test(start_paused = true)]
async fn what_the_server_spells_in_another_way_is_written_once() {
    let (lab, log) = (Lab::new().await, Log::new());
    let mut spelled = deployment();
    spelled["spec"]["template"]["spec"]["containers"][0]["resources"] =
        json!({"limits": {"cpu": "1000m", "memory": "1024Mi"}});
    let wanted = Wanted::new(&lab, spelled);
    let running = applied::<Deployment>(&lab, &wanted, &log).await;
    let api = Api::<Deployment>::namespaced(lab.admin(), lab.namespace());
    let stored = kubewright_objects::to_value(&api.get("child").await.expect("it is there")).expect("JSON");
    let limits = &stored["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"];
    assert_eq!(limits, &json!({"cpu": "1", "memory": "1Gi"}));
    assert_eq!(look_again(&lab, &log).await, nothing());
    assert_eq!(running.counters.of("test").writes, 1);
    // Somebody else wants more of it: put back, however it is spelled.
    let more = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "web", "resources": {"limits": {"cpu": "2"}}},
    ]}}}});
    patch::<Deployment>(&lab, &PatchParams::default(), &Patch::Strategic(more)).await;
    let did = log.take();
    assert!(did[0].contains("limits") && did[1..].iter().all(|did| did == "unchanged"), "{did:?}");
    assert_eq!(look_again(&lab, &log).await, nothing());
    assert_eq!(running.counters.of("test").writes, 2);
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_nothing_is_sent_but_for_what_is_spelled_in_another_way() {
    for (limit, requests) in [("1", 0), ("1000m", 1)] {
        let (lab, log) = (Lab::new().await, Log::new());
        let mut spelled = deployment();
        spelled["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({"limits": {"cpu": limit}});
        spelled["spec"]["template"]["spec"]["containers"][0]["ports"] =
            json!([{"containerPort": 80, "protocol": "TCP"}]);
        let wanted = Wanted::new(&lab, spelled);
        let running = applied::<Deployment>(&lab, &wanted, &log).await;
        running.shutdown.cancel();
        running.end.await.expect("it ends").expect("well");
        log.take();
        let before = writes(&lab);
        let _again = run(&lab, [applying::<Deployment>(&wanted, &log)]);
        lab.settle().await;
        assert_eq!((log.take(), writes(&lab) - before), (vec!["unchanged".to_owned()], requests), "{limit}");
        assert_eq!(look_again(&lab, &log).await, nothing());
    }
}

#[tokio::test(start_paused = true)]
async fn a_foreign_change_of_an_owned_field_is_put_back_and_one_of_another_is_not() {
    let (lab, log) = (Lab::new().await, Log::new());
    let wanted = Wanted::new(&lab, json!({"data": {"a": "MQ=="}}));
    let running = applied::<Secret>(&lab, &wanted, &log).await;
    let merged = async |change: Value| {
        log.take();
        let before = running.counters.of("test").writes;
        patch::<Secret>(&lab, &PatchParams::default(), &Patch::Merge(change)).await;
        (log.take(), running.counters.of("test").writes - before)
    };
    let put_back = |told: &str| (vec![told.to_owned()], 1);
    assert_eq!(merged(json!({"data": {"b": "Mg=="}, "immutable": false})).await, nothing_of(0));
    assert_eq!(merged(json!({"data": {"a": "Mg=="}})).await.1, 1);
    assert_eq!(merged(json!({"data": {"a": null}})).await, put_back(r#"data.a: (none) -> "4 characters""#));
    let (did, sent) = merged(json!({"metadata": {"ownerReferences": null}})).await;
    assert!(sent == 1 && did[0].starts_with("metadata.ownerReferences"), "the owner before is told: {did:?}");
    // Who owns which field is forgotten: the next apply says it again, so that a key that is not wanted any more can go.
    assert_eq!(merged(json!({"metadata": {"managedFields": [{}]}})).await.1, 1);
    assert_eq!(look_again(&lab, &log).await, nothing());
    // Somebody gives it another value and takes that back at once.
    log.take();
    let api = Api::<Secret>::namespaced(lab.admin(), lab.namespace());
    for value in ["Mg==", "MQ=="] {
        let change = Patch::Merge(json!({"data": {"a": value}}));
        api.patch("child", &PatchParams::default(), &change).await.expect("it is patched");
    }
    lab.settle().await;
    let fields = lab.stored("secrets", "child").await.unwrap_or_default()["metadata"]["managedFields"].take();
    let of_test =
        fields.as_array().and_then(|all| all.iter().find(|entry| entry["manager"] == "test").cloned());
    assert!(of_test.is_some_and(|entry| !entry["fieldsV1"]["f:data"]["f:a"].is_null()), "{fields}");
    assert_eq!(look_again(&lab, &log).await, nothing());
}

/// A Service's port is known by its number: another number is another port, and two of one name, or without any, cannot be.
#[tokio::test(start_paused = true)]
async fn an_item_of_somebody_else_goes_where_what_is_wanted_cannot_stand_beside_it() {
    for port in [json!({"name": "http", "port": 80}), json!({"port": 80})] {
        let (lab, log) = (Lab::new().await, Log::new());
        let wanted = Wanted::new(&lab, json!({"spec": {"selector": {"app": "web"}, "ports": [port]}}));
        let _running = applied::<Service>(&lab, &wanted, &log).await;
        let theirs = kubewright_objects::from_value(json!([
            {"op": "replace", "path": "/spec/ports/0/port", "value": 81},
            {"op": "add", "path": "/spec/externalName", "value": "theirs"},
        ]));
        let theirs = Patch::Json::<Value>(theirs.expect("a patch"));
        patch::<Service>(&lab, &PatchParams::default(), &theirs).await;
        let stored = lab.stored("services", "child").await.unwrap_or_default();
        let ports: Vec<&Value> =
            stored["spec"]["ports"].as_array().into_iter().flatten().map(|port| &port["port"]).collect();
        assert_eq!(ports, [80], "{port}");
        assert_eq!(stored["spec"]["externalName"], "theirs", "what stands in nobody's way stays");
        assert_eq!(look_again(&lab, &log).await, nothing());
    }
}

/// The same in a list of an item: the ports of a container.
#[tokio::test(start_paused = true)]
async fn an_item_of_a_list_in_an_item_goes_and_what_can_stand_beside_stays() {
    let (lab, log) = (Lab::new().await, Log::new());
    let mut wanted = deployment();
    wanted["spec"]["template"]["spec"]["containers"][0]["ports"] =
        json!([{"name": "http", "containerPort": 80}]);
    let wanted = Wanted::new(&lab, wanted);
    let _running = applied::<Deployment>(&lab, &wanted, &log).await;
    let ports = "/spec/template/spec/containers/0/ports";
    let theirs = kubewright_objects::from_value(json!([
        {"op": "replace", "path": format!("{ports}/0/containerPort"), "value": 81},
        {"op": "add", "path": format!("{ports}/-"), "value": {"name": "metrics", "containerPort": 90}},
        {"op": "add", "path": "/spec/template/spec/containers/-", "value": {"name": "theirs", "image": "x"}},
    ]));
    patch::<Deployment>(&lab, &PatchParams::default(), &Patch::Json::<Value>(theirs.expect("a patch"))).await;
    let stored = lab.stored("deployments", "child").await.unwrap_or_default();
    let containers = &stored["spec"]["template"]["spec"]["containers"];
    let names: Vec<&Value> = containers.as_array().into_iter().flatten().map(|one| &one["name"]).collect();
    assert_eq!(names, ["web", "theirs"]);
    let has_port = |number: u16| {
        containers[0]["ports"]
            .as_array()
            .is_some_and(|all| all.iter().any(|port| port["containerPort"] == number))
    };
    assert!(has_port(80) && !has_port(81) && has_port(90));
    assert_eq!(look_again(&lab, &log).await, nothing());
}

fn nothing_of(writes: u64) -> (Vec<String>, u64) {
    (vec!["unchanged".to_owned()], writes)
}

#[tokio::test(start_paused = true)]
async fn a_field_of_somebody_else_is_left_to_them_where_that_is_said() {
    let (lab, log) = (Lab::new().await, Log::new());
    let (seen, wanted) = (log.clone(), Wanted::new(&lab, json!({"data": {"a": "MQ=="}})));
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let (seen, wanted) = (seen.clone(), wanted.clone());
        Box::pin(async move {
            if ctx.get::<ConfigMap>(key).is_none() {
                return Ok(Outcome::Done);
            }
            let wanted = wanted.get::<Secret>()?;
            seen.push(match ctx.apply(&wanted).unforced().await {
                Err(error) if error.is_conflict() => "conflict".to_owned(),
                written => told(written?),
            });
            seen.push(told(ctx.apply(&wanted).dry_run().await?));
            Ok(Outcome::Done)
        })
    });
    let controller = Controller::new("test", reconciler).for_kind::<ConfigMap>().reads::<Secret>();
    let theirs = lab.put("secrets", "child", json!({"data": {"a": "Mg=="}})).await;
    lab.put("configmaps", "owner", json!({})).await;
    let running = run(&lab, [controller]);
    lab.settle().await;
    // What a dry run would take over has the same length.
    assert_eq!(log.take(), ["conflict", "unchanged"]);
    let stored = lab.stored("secrets", "child").await.unwrap_or_default();
    assert_eq!(stored["metadata"]["resourceVersion"], theirs["metadata"]["resourceVersion"]);
    assert_eq!(running.cache.get::<Secret>(&lab.key("child")).and_then(|secret| secret.data.clone()), {
        let theirs: Secret = kubewright_objects::from_value(theirs).expect("a Secret");
        theirs.data
    });
}

#[tokio::test(start_paused = true)]
async fn what_a_predecessor_wrote_is_taken_away_like_what_the_controller_applied() {
    takes_over_from("manager").await;
}

#[tokio::test(start_paused = true)]
async fn what_it_wrote_by_updates_under_its_own_name_is_taken_away_as_well() {
    takes_over_from("test").await;
}

/// The controller `test` applies to what this field manager made by an update.
async fn takes_over_from(predecessor: &str) {
    let (lab, log) = (Lab::new().await, Log::new());
    let secrets = Api::<Secret>::namespaced(lab.admin(), lab.namespace());
    // An operator in Go made it by updates, and somebody else set a key of its own.
    let made = |data: Value| {
        let secret = json!({"metadata": {"name": "child", "namespace": lab.namespace()}, "data": data});
        kubewright_objects::from_value::<Secret>(secret).expect("a Secret")
    };
    let manager = kube::api::PostParams { field_manager: Some(predecessor.into()), ..Default::default() };
    secrets.create(&manager, &made(json!({"a": "eA==", "b": "eA=="}))).await.expect("created");
    let theirs = Patch::Merge(json!({"data": {"theirs": "eA=="}}));
    patch::<Secret>(&lab, &PatchParams::default(), &theirs).await;
    let wanted = Wanted::new(&lab, json!({"data": {"a": "eA=="}}));
    lab.put("configmaps", "owner", json!({})).await;
    let controller = applying::<Secret>(&wanted, &log).takes_over_from([predecessor]);
    let _running = run(&lab, [controller]);
    lab.settle().await;
    let stored = lab.stored("secrets", "child").await.unwrap_or_default();
    assert_eq!(stored["data"], json!({"a": "eA==", "theirs": "eA=="}), "{:?}", log.entries());
    let owners: Vec<_> = stored["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| (entry["manager"].clone(), entry["operation"].clone()))
        .collect();
    assert!(owners.contains(&(json!("test"), json!("Apply"))), "{owners:?}");
    assert!(!owners.contains(&(json!(predecessor), json!("Update"))), "{owners:?}");
    assert_eq!(look_again(&lab, &log).await, nothing());
}

#[tokio::test(start_paused = true)]
async fn conditions_are_written_at_once_and_what_was_written_before_is_no_conflict() {
    let (lab, log) = (Lab::new().await, Log::new());
    let seen = log.clone();
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let seen = seen.clone();
        Box::pin(async move {
            let Some(pod) = ctx.get::<Pod>(key) else { return Ok(Outcome::Done) };
            let condition = |type_: &str, is: bool| NewCondition::new(type_, Status::from(is), "Because");
            ctx.add_finalizer(&*pod, "example.com/held").await?;
            let both =
                ctx.status(&*pod).condition(condition("Ready", true)).condition(condition("Bright", false));
            seen.push(both.await?.is_changed());
            // With the object as it was before all this.
            seen.push(ctx.set_condition(&*pod, &condition("Third", true)).await?.is_changed());
            ctx.remove_finalizer(&*pod, "example.com/held").await?;
            let again =
                ctx.status(&*pod).condition(condition("Bright", false)).condition(condition("Ready", true));
            seen.push(again.await?.is_changed());
            Ok(Outcome::Done)
        })
    });
    lab.put("pods", "a", json!({})).await;
    let running = run(&lab, [Controller::new("test", reconciler).for_kind::<Pod>()]);
    lab.until(Duration::from_secs(2), || log.entries().len() >= 3).await;
    lab.settle().await;
    assert_eq!(log.take(), [true, true, false]);
    let counts = running.counters.of("test");
    assert_eq!((counts.writes, counts.errors), (4, 0));
    let stored = lab.stored("pods", "a").await.unwrap_or_default();
    let types: Vec<&str> = ["Ready", "Bright", "Third"].to_vec();
    let conditions = stored["status"]["conditions"].as_array().cloned().unwrap_or_default();
    for type_ in types {
        let condition = conditions.iter().find(|condition| condition["type"] == type_);
        assert_eq!(
            condition.map(|condition| condition["reason"].clone()),
            Some(json!("Because")),
            "{stored}"
        );
    }
}
