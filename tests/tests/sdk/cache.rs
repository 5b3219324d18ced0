//! The watches behind the cache, and the caches of kinds that are known only at run time.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ApiResource, DynamicObject, PartialObjectMeta};
use kubewright_runtime::{Change, Informer, Key};
use serde_json::json;

use crate::{
    harness::{Log, logging, run},
    lab::Lab,
    link::Cut,
};

#[tokio::test(start_paused = true)]
async fn a_watch_that_was_cut_goes_on_without_losing_anything() {
    for cut in [Cut::Connection, Cut::History, Cut::HistoryByStatus] {
        let (lab, log) = (Lab::new().await, Log::new());
        lab.put("configmaps", "goes", json!({})).await;
        lab.put("configmaps", "changes", json!({})).await;
        lab.put("configmaps", "stays", json!({})).await;
        let running = run(&lab, [logging(&log).for_kind::<ConfigMap>()]);
        lab.settle().await;
        log.take();
        // What happens now is behind the cut.
        lab.link().delay_watches(Duration::from_secs(1));
        lab.remove("configmaps", "goes").await;
        lab.put("configmaps", "changes", json!({"data": {"n": "1"}})).await;
        lab.put("configmaps", "comes", json!({})).await;
        lab.link().cut_watches(cut);
        lab.link().delay_watches(Duration::ZERO);
        lab.until(Duration::from_secs(5), || log.entries().len() >= 3).await;
        lab.settle().await;
        let mut reconciled = log.take();
        reconciled.sort();
        assert_eq!(reconciled, ["changes", "comes", "goes"]);
        assert!(running.cache.get::<ConfigMap>(&lab.key("goes")).is_none());
        lab.put("configmaps", "stays", json!({"data": {"n": "1"}})).await;
        lab.settle().await;
        assert_eq!(log.take(), ["stays"], "it watches again");
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_known_at_run_time_is_watched_as_long_as_somebody_holds_it() {
    let (lab, log) = (Lab::new().await, Log::new());
    let owner = lab.put("configmaps", "owner", json!({})).await;
    let reference =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}]);
    lab.put("secrets", "child", json!({"metadata": {"ownerReferences": reference}})).await;
    let running = run(&lab, [logging(&log).for_kind::<ConfigMap>()]);
    lab.settle().await;

    type Metadata = PartialObjectMeta<DynamicObject>;
    let kind = ApiResource::erase::<k8s_openapi::api::core::v1::Secret>(&());
    let informer: Informer<Metadata> = running.cache.watch(&kind);
    informer.synced().await;
    let owned = informer.owned_by(owner["metadata"]["uid"].as_str().unwrap_or_default());
    assert_eq!(owned.iter().map(|object| Key::of(&**object).name).collect::<Vec<_>>(), ["child"]);

    let changes = Log::new();
    let (heard, namespace) = (changes.clone(), lab.namespace().to_owned());
    informer.subscribe(move |change: &Change<Metadata>| {
        let (Change::Created(object) | Change::Updated { new: object, .. } | Change::Deleted(object)) =
            change;
        // Whether a kind has namespaces is not known, so that all are watched.
        if object.metadata.namespace.as_ref() != Some(&namespace) {
            return;
        }
        heard.push(match change {
            Change::Created(new) => format!("created {}", Key::of(&**new).name),
            Change::Updated { new, .. } => format!("updated {}", Key::of(&**new).name),
            Change::Deleted(last) => format!("deleted {}", Key::of(&**last).name),
        });
    });
    let same: Informer<Metadata> = running.cache.watch(&kind);
    lab.remove("secrets", "child").await;
    lab.settle().await;
    assert_eq!(changes.take(), ["created child", "deleted child"]);
    assert_eq!(lab.reads_of("secrets"), 2, "one list and one watch for both");

    drop(informer);
    lab.put("secrets", "one", json!({})).await;
    lab.settle().await;
    assert_eq!(changes.take(), ["created one"], "the other clone keeps it");
    drop(same);
    lab.settle().await;
    lab.put("secrets", "two", json!({})).await;
    lab.settle().await;
    assert!(changes.take().is_empty());
}
