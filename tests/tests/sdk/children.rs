//! All that an owner has: what is applied, in which order, and what is deleted.

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, ServiceAccount};
use kube::api::ObjectMeta;
use kubewright_runtime::{Context, Controller, Desired, Key, Outcome};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    applies::writes,
    harness::{Log, does, run},
    lab::Lab,
};

fn named(namespace: &str, name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), namespace: Some(namespace.to_owned()), ..ObjectMeta::default() }
}

/// Wants a Secret and a ServiceAccount for each name in a ConfigMap.
fn applying_all(log: &Log<String>) -> Controller {
    let log = log.clone();
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let log = log.clone();
        Box::pin(async move {
            let Some(owner) = ctx.get::<ConfigMap>(key) else { return Ok(Outcome::Done) };
            let names: Vec<&String> = owner.data.iter().flatten().map(|(name, _)| name).collect();
            let named = |name: &str| kube::api::ObjectMeta {
                name: Some(name.to_owned()),
                namespace: key.namespace.clone(),
                ..kube::api::ObjectMeta::default()
            };
            let secrets = names.iter().map(|name| Secret { metadata: named(name), ..Secret::default() });
            let accounts = names
                .iter()
                .map(|name| ServiceAccount { metadata: named(name), ..ServiceAccount::default() });
            let desired = Desired::new().with_all(secrets).with_all(accounts);
            for change in ctx.apply_all(&*owner, desired).await? {
                log.push(change.to_string());
            }
            Ok(Outcome::Done)
        })
    });
    Controller::new("test", reconciler)
        .for_kind::<ConfigMap>()
        .applies::<Secret>()
        .applies::<ServiceAccount>()
}

#[tokio::test(start_paused = true)]
async fn what_is_not_desired_any_more_is_deleted_and_nothing_of_others_is() {
    let (lab, log) = (Lab::new().await, Log::new());
    let owner = lab.put("configmaps", "owner", json!({"data": {"a": "", "b": ""}})).await;
    lab.put("secrets", "unowned", json!({})).await;
    let reference = |controls: bool| json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"], "controller": controls}]);
    lab.put("secrets", "shared", json!({"metadata": {"ownerReferences": reference(false)}})).await;
    lab.put("pods", "another-kind", json!({"metadata": {"ownerReferences": reference(true)}})).await;
    let running = run(&lab, [applying_all(&log)]);
    lab.settle().await;
    let made =
        ["Created Secret a", "Created Secret b", "Created ServiceAccount a", "Created ServiceAccount b"];
    assert_eq!(log.take(), made);
    let before = writes(&lab);
    lab.put("configmaps", "owner", json!({"data": {"a": "", "b": "2"}})).await;
    lab.settle().await;
    assert_eq!((log.take(), writes(&lab)), (Vec::new(), before), "what is there is not written again");
    lab.put("configmaps", "owner", json!({"data": {"b": ""}})).await;
    lab.settle().await;
    assert_eq!(log.take(), ["Deleted ServiceAccount a", "Deleted Secret a"]);
    assert_eq!(lab.names("secrets").await, ["b", "shared", "unowned"]);
    assert_eq!(lab.names("pods").await, ["another-kind"]);
    // Somebody deletes one: it comes back.
    lab.remove("secrets", "b").await;
    lab.settle().await;
    assert_eq!(log.take(), ["Created Secret b"]);
    // A finalizer holds one that is not wanted: it is deleted once.
    lab.put(
        "secrets",
        "b",
        json!({"metadata": {"finalizers": ["example.com/held"], "ownerReferences": reference(true)}}),
    )
    .await;
    lab.settle().await;
    log.take();
    for number in ["1", "2"] {
        lab.put("configmaps", "owner", json!({"data": {}, "metadata": {"labels": {"number": number}}})).await;
        lab.settle().await;
    }
    assert_eq!(log.take(), ["Deleted ServiceAccount b", "Deleted Secret b"]);
    lab.put("secrets", "b", json!({"metadata": {"finalizers": []}})).await;
    assert_eq!(running.counters.of("test").errors, 0);
}

#[tokio::test(start_paused = true)]
async fn a_child_of_a_kind_that_nobody_would_take_away_is_refused() {
    let (lab, log) = (Lab::new().await, Log::new());
    let seen = log.clone();
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let seen = seen.clone();
        Box::pin(async move {
            let Some(owner) = ctx.get::<ConfigMap>(key) else { return Ok(Outcome::Done) };
            let mut secret = Secret::default();
            secret.metadata.name = Some("child".to_owned());
            secret.metadata.namespace.clone_from(&key.namespace);
            let refused = ctx.apply_all(&*owner, Desired::new().with(secret)).await;
            seen.push(refused.map_or_else(|error| error.to_string(), |_| "done".to_owned()));
            Ok(Outcome::Done)
        })
    });
    lab.put("configmaps", "owner", json!({})).await;
    let controller = Controller::new("test", reconciler).for_kind::<ConfigMap>().owns::<Secret>();
    let _running = run(&lab, [controller]);
    lab.settle().await;
    let told = format!(
        "the controller test wants Secret {}/child but does not apply this kind: add .applies::<Secret>()",
        lab.namespace()
    );
    assert_eq!(log.take(), [told]);
    assert!(lab.names("secrets").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_later_wave_waits_until_the_one_before_is_ready_and_nothing_is_deleted_meanwhile() {
    let (lab, log) = (Lab::new().await, Log::new());
    let seen = log.clone();
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let seen = seen.clone();
        Box::pin(async move {
            let Some(owner) = ctx.get::<ConfigMap>(key) else { return Ok(Outcome::Done) };
            let namespace = key.namespace.as_deref().unwrap_or_default();
            let has = |name: &str| owner.data.as_ref().is_some_and(|data| data.contains_key(name));
            let pod: Pod = kubewright_objects::from_value(json!({
                "metadata": {"name": "first", "namespace": namespace},
                "spec": {"containers": [{"name": "main", "image": "nothing"}]},
            }))?;
            let account = ServiceAccount { metadata: named(namespace, "second"), ..Default::default() };
            let secret = |name| Secret { metadata: named(namespace, name), ..Default::default() };
            let is_open = |account: &ServiceAccount| account.metadata.labels.is_some();
            let first = Desired::new().with(pod).with_all(has("old").then(|| secret("old"))).then();
            let desired = match has("none") {
                true => first,
                false => {
                    let second = first.with_ready(account, is_open).then();
                    second.with_all((!has("old")).then(|| secret("new")))
                }
            };
            let applied = ctx.apply_all(&*owner, desired).await?;
            assert_eq!(applied.is_complete(), applied.waits_for.is_empty());
            applied.waits_for.iter().for_each(|waits| seen.push(format!("waits for {waits}")));
            applied.into_iter().for_each(|change| seen.push(change.to_string()));
            Ok(Outcome::Done)
        })
    });
    lab.put("configmaps", "owner", json!({"data": {"old": ""}})).await;
    let controller = Controller::new("test", reconciler)
        .for_kind::<ConfigMap>()
        .applies::<Pod>()
        .applies::<ServiceAccount>()
        .applies::<Secret>();
    let running = run(&lab, [controller]);
    lab.settle().await;
    let waits = "waits for Pod first: it is not Ready yet";
    assert_eq!(log.take()[..3], [waits, "Created Pod first", "Created Secret old"]);
    // What is not wanted any more stays as long as the first wave is not ready, also where nothing comes behind it.
    lab.put("configmaps", "owner", json!({"data": {"none": ""}})).await;
    lab.settle().await;
    assert_eq!(lab.names("secrets").await, ["old"]);
    lab.put("configmaps", "owner", json!({"data": {}})).await;
    lab.settle().await;
    assert_eq!(log.take().last().map(String::as_str), Some(waits));
    assert_eq!(lab.names("secrets").await, ["old"]);
    let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    let mut pod = lab.stored("pods", "first").await.unwrap_or_default();
    pod["status"] = ready;
    lab.put("pods", "first", pod).await;
    lab.settle().await;
    let waits = "waits for ServiceAccount second: it is not ready yet";
    assert_eq!(log.take(), [waits, "Created ServiceAccount second"]);
    assert_eq!(lab.names("secrets").await, ["old"]);
    let accounts = kube::Api::<ServiceAccount>::namespaced(lab.admin(), lab.namespace());
    let open = kube::api::Patch::Merge(json!({"metadata": {"labels": {"is": "open"}}}));
    accounts.patch("second", &kube::api::PatchParams::default(), &open).await.expect("patched");
    lab.settle().await;
    assert_eq!(log.take(), ["Created Secret new", "Deleted Secret old"]);
    assert_eq!(running.counters.of("test").errors, 0);
}

#[tokio::test(start_paused = true)]
async fn children_in_another_namespace_are_known_by_a_label_and_go_when_they_are_not_wanted() {
    const LABEL: &str = "shops.example.com/owner";
    let (mut lab, log) = (Lab::new().await, Log::new());
    let other = lab.another_namespace("other").await;
    let (seen, there) = (log.clone(), other.clone());
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let (seen, there) = (seen.clone(), there.clone());
        Box::pin(async move {
            let Some(owner) = ctx.get::<ConfigMap>(key) else { return Ok(Outcome::Done) };
            let names = owner.data.iter().flatten().map(|(name, _)| name);
            let secrets = names.map(|name| Secret { metadata: named(&there, name), ..Default::default() });
            match ctx.apply_all(&*owner, Desired::new().with_all(secrets)).await {
                Ok(applied) => applied.into_iter().for_each(|change| seen.push(change.to_string())),
                Err(error) => seen.push(error.to_string()),
            }
            Ok(Outcome::Done)
        })
    });
    let owner = lab.put("configmaps", "owner", json!({"data": {"a": "", "b": ""}})).await;
    lab.put_in(&other, "secrets", "unowned", json!({})).await;
    let mut manager = lab.manager();
    manager.watch_namespaces([lab.namespace().to_owned(), other.clone()]);
    let controller =
        Controller::new("test", reconciler).for_kind::<ConfigMap>().applies_labelled::<Secret>(LABEL);
    manager.add(controller);
    let running = tokio::spawn(manager.run(CancellationToken::new()));
    lab.settle().await;
    assert_eq!(log.take(), ["Created Secret a", "Created Secret b"]);
    let secrets = kube::Api::<Secret>::namespaced(lab.admin(), &other);
    let made = secrets.get("a").await.expect("it is there").metadata;
    assert_eq!(made.labels.unwrap_or_default()[LABEL], owner["metadata"]["uid"].as_str().unwrap_or_default());
    assert_eq!(made.annotations.unwrap_or_default()[LABEL], format!("{}/owner", lab.namespace()));
    assert_eq!(made.owner_references, None);
    // Somebody deletes one: its event leads to the owner, in the other namespace.
    secrets.delete("a", &kube::api::DeleteParams::default()).await.expect("deleted");
    lab.settle().await;
    assert_eq!(log.take(), ["Created Secret a"]);
    let before = writes(&lab);
    lab.put("configmaps", "owner", json!({"data": {"a": "", "b": "2"}})).await;
    lab.settle().await;
    assert_eq!((log.take(), writes(&lab)), (Vec::new(), before), "what is there is not written again");
    lab.put("configmaps", "owner", json!({"data": {"b": ""}})).await;
    lab.settle().await;
    assert_eq!(log.take(), ["Deleted Secret a"]);
    // What is another owner's is left to it.
    lab.put("configmaps", "thief", json!({"data": {"b": ""}})).await;
    lab.settle().await;
    let namespace = lab.namespace();
    assert_eq!(
        log.take(),
        [format!("Secret b is that of {namespace}/owner, not of ConfigMap {namespace}/thief ({LABEL})")]
    );
    let left: Vec<_> = secrets
        .list(&kube::api::ListParams::default())
        .await
        .expect("listed")
        .items
        .into_iter()
        .filter_map(|secret| secret.metadata.name)
        .collect();
    assert_eq!(left, ["b", "unowned"]);
    running.abort();
}
