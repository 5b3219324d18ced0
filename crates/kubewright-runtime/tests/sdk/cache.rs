//! The watches behind the cache, and the caches of kinds that are known only at run time.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ApiResource, DynamicObject, PartialObjectMeta};
use kubewright_runtime::{Change, Informer, Key};
use serde_json::json;

use crate::{
    harness::{Log, logging, run, settle},
    server::{Cut, Server},
};

#[tokio::test(start_paused = true)]
async fn a_watch_that_was_cut_goes_on_without_losing_anything() {
    for cut in [Cut::Connection, Cut::History, Cut::HistoryByStatus] {
        let (server, log) = (Server::new(), Log::new());
        server.put("configmaps", "goes", json!({}));
        server.put("configmaps", "changes", json!({}));
        server.put("configmaps", "stays", json!({}));
        let running = run(&server, [logging(&log).for_kind::<ConfigMap>()]);
        settle().await;
        log.take();
        // What happens now is behind the cut.
        server.delay_watches(Duration::from_secs(1));
        server.remove("configmaps", "goes");
        server.put("configmaps", "changes", json!({"data": {"n": "1"}}));
        server.put("configmaps", "comes", json!({}));
        server.cut_watches(cut);
        server.delay_watches(Duration::ZERO);
        tokio::time::sleep(Duration::from_secs(5)).await;
        let mut reconciled = log.take();
        reconciled.sort();
        assert_eq!(reconciled, ["default/changes", "default/comes", "default/goes"]);
        assert!(running.cache.get::<ConfigMap>(&Key::namespaced("default", "goes")).is_none());
        server.put("configmaps", "stays", json!({"data": {"n": "1"}}));
        settle().await;
        assert_eq!(log.take(), ["default/stays"], "it watches again");
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_known_at_run_time_is_watched_as_long_as_somebody_holds_it() {
    let (server, log) = (Server::new(), Log::new());
    let owner = server.put("configmaps", "owner", json!({}));
    let reference =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}]);
    server.put("secrets", "child", json!({"metadata": {"ownerReferences": reference}, "type": "x"}));
    let running = run(&server, [logging(&log).for_kind::<ConfigMap>()]);
    settle().await;

    type Metadata = PartialObjectMeta<DynamicObject>;
    let kind = ApiResource::erase::<k8s_openapi::api::core::v1::Secret>(&());
    let informer: Informer<Metadata> = running.cache.watch(&kind);
    informer.synced().await;
    let owned = informer.owned_by(owner["metadata"]["uid"].as_str().unwrap_or_default());
    assert_eq!(owned.iter().map(|object| Key::of(&**object).name).collect::<Vec<_>>(), ["child"]);

    let changes = Log::new();
    let heard = changes.clone();
    informer.subscribe(move |change: &Change<Metadata>| {
        heard.push(match change {
            Change::Created(new) => format!("created {}", Key::of(&**new)),
            Change::Updated { new, .. } => format!("updated {}", Key::of(&**new)),
            Change::Deleted(last) => format!("deleted {}", Key::of(&**last)),
        });
    });
    let same: Informer<Metadata> = running.cache.watch(&kind);
    server.remove("secrets", "child");
    settle().await;
    assert_eq!(changes.take(), ["created default/child", "deleted default/child"]);
    let watches = server.requests().iter().filter(|request| request.contains("secrets")).count();
    assert_eq!(watches, 2, "one list and one watch for both");

    drop(informer);
    server.put("secrets", "one", json!({}));
    settle().await;
    assert_eq!(changes.take(), ["created default/one"], "the other clone keeps it");
    drop(same);
    settle().await;
    server.put("secrets", "two", json!({}));
    settle().await;
    assert!(changes.take().is_empty());
}
