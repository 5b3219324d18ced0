//! Functions that were written for kube's own controller.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
    runtime::{controller::Action, reflector::ObjectRef},
};
use kubewright_runtime::{CancellationToken, Controller, kube_rs};
use serde_json::json;

use crate::{
    harness::{Log, run},
    lab::{Lab, ROOT_CA},
};

struct Data {
    client: Client,
    log: Log<String>,
}

#[derive(Debug)]
enum Wrong {
    Later,
    Never,
    Kube(kube::Error),
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Later => f.write_str("later"),
            Self::Never => f.write_str("never"),
            Self::Kube(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Wrong {}

async fn reconcile(map: Arc<ConfigMap>, data: Arc<Data>) -> Result<Action, Wrong> {
    let name = map.name_any();
    if name == ROOT_CA {
        return Ok(Action::await_change());
    }
    data.log.push(name.clone());
    match name.as_str() {
        "later" => return Err(Wrong::Later),
        "never" => return Err(Wrong::Never),
        "hourly" => return Ok(Action::requeue(Duration::from_secs(3600))),
        _ => {}
    }
    let api: Api<ConfigMap> = Api::namespaced(data.client.clone(), &map.namespace().unwrap_or_default());
    let patch = json!({"metadata": {"labels": {"seen": "yes"}}});
    api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await.map_err(Wrong::Kube)?;
    Ok(Action::await_change())
}

fn error_policy(_: Arc<ConfigMap>, error: &Wrong, _: Arc<Data>) -> Action {
    match error {
        Wrong::Never => Action::await_change(),
        Wrong::Later | Wrong::Kube(_) => Action::requeue(Duration::from_secs(60)),
    }
}

#[tokio::test(start_paused = true)]
async fn functions_of_kubes_controller_work_as_they_are() {
    let Some(lab) = Lab::only_embedded(crate::lab::Only::LongTimes).await else { return };
    let log = Log::new();
    for name in ["a", "hourly", "later", "never"] {
        lab.put("configmaps", name, json!({})).await;
    }
    let data = Arc::new(Data { client: lab.client(), log: log.clone() });
    let ported = kube_rs::reconciler(reconcile, error_policy, data);
    let running = run(&lab, [Controller::new("ported", ported).for_kind::<ConfigMap>().all_own_events()]);
    lab.settle().await;
    let mut seen = log.take();
    seen.sort();
    assert_eq!(seen, ["a", "a", "hourly", "later", "never"], "its own write wakes it, as with kube");
    assert_eq!(
        lab.stored("configmaps", "a").await.expect("it is there")["metadata"]["labels"]["seen"],
        "yes"
    );
    lab.pass(Duration::from_secs(60)).await;
    assert_eq!(log.take(), ["later"], "after the time of the policy");
    lab.pass(Duration::from_secs(3600)).await;
    let seen = log.take();
    assert_eq!(seen.iter().filter(|name| *name == "hourly").count(), 1);
    assert_eq!(seen.iter().filter(|name| *name == "later").count(), 60);
    assert!(seen.iter().all(|name| name != "never" && name != "a"), "{seen:?}");
    lab.remove("configmaps", "a").await;
    lab.settle().await;
    assert!(log.take().iter().all(|name| name != "a"), "what is gone is not reconciled");
    assert_eq!(running.counters.of("ported").terminal_errors, 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_of_kube_has_what_the_cache_has() {
    let lab = Lab::new().await;
    lab.put("configmaps", "a", json!({"data": {"n": "1"}})).await;
    let mut manager = lab.manager();
    assert!(kube_rs::store::<ConfigMap>(manager.cache()).is_none());
    let data = Arc::new(Data { client: lab.client(), log: Log::new() });
    manager.add(
        Controller::new("ported", kube_rs::reconciler(reconcile, error_policy, data)).for_kind::<ConfigMap>(),
    );
    let store = kube_rs::store::<ConfigMap>(manager.cache()).expect("it is declared");
    assert!(store.state().is_empty());
    let stop = CancellationToken::new();
    let end = tokio::spawn(manager.run(stop.clone()));
    store.wait_until_ready().await.expect("it is filled");
    let named = |name: &str| store.get(&ObjectRef::new(name).within(lab.namespace()));
    assert!(named("a").is_some());
    lab.put("configmaps", "b", json!({})).await;
    lab.put("configmaps", "a", json!({"data": {"n": "2"}})).await;
    lab.settle().await;
    assert!(named("b").is_some());
    assert_eq!(named("a").and_then(|map| map.data.clone()?.remove("n")).as_deref(), Some("2"));
    lab.remove("configmaps", "b").await;
    lab.settle().await;
    assert!(named("b").is_none());
    stop.cancel();
    assert!(matches!(end.await, Ok(Ok(()))));
}
