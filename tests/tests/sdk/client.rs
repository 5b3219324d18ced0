//! Requests of a context: how they are sent, lists of what is selected, parts of objects, and layers of its client.

use std::{collections::BTreeMap, time::Duration};

use futures::future::BoxFuture;
use k8s_openapi::api::{
    apps::v1::Deployment,
    authentication::v1::TokenRequest,
    autoscaling::v1::Scale,
    core::v1::{ConfigMap, Pod, Secret, ServiceAccount},
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, ObjectMeta, Patch, PatchParams};
use kubewright_runtime::{
    ClientLayer, Context, Controller, DeleteParams, Error, Expression, JsonPatch, Key, ListOptions, Outcome,
    Selector, ValidationDirective, Written,
};
use serde_json::{Value, json};

use crate::{
    harness::{Log, Running, does, run},
    lab::Lab,
};

/// Runs `body` once, as the reconcile of the ConfigMap `start`, which it makes.
async fn once<F>(lab: &Lab, shape: impl FnOnce(Controller) -> Controller, body: F) -> Running
where
    F: for<'a> Fn(&'a Context, &'a Key) -> BoxFuture<'a, Result<(), Error>> + Send + Sync + 'static,
{
    lab.put("configmaps", "start", json!({})).await;
    let done = Log::new();
    let ended = done.clone();
    let body = std::sync::Arc::new(body);
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let (ended, body) = (ended.clone(), body.clone());
        Box::pin(async move {
            if key.name == "start" && ended.entries().is_empty() {
                let result = body(ctx, key).await;
                ended.push(result.as_ref().err().map(ToString::to_string));
                result?;
            }
            Ok(Outcome::Done)
        })
    });
    let running = run(lab, [shape(Controller::new("test", reconciler).for_kind::<ConfigMap>())]);
    lab.until(Duration::from_secs(5), || {
        assert_eq!(running.counters.of("test").panics, 0, "see the log");
        !done.entries().is_empty()
    })
    .await;
    assert_eq!(done.entries(), [None]);
    running
}

fn map(key: &Key, name: &str, value: &str) -> ConfigMap {
    let metadata =
        ObjectMeta { name: Some(name.into()), namespace: key.namespace.clone(), ..ObjectMeta::default() };
    ConfigMap { metadata, data: Some(BTreeMap::from([("a".into(), value.into())])), ..ConfigMap::default() }
}

fn named(key: &Key, name: &str) -> Key {
    key.sibling(name)
}

#[tokio::test(start_paused = true)]
async fn of_a_dry_run_the_server_tells_and_nobody_sees_it() {
    let lab = Lab::new().await;
    let running = once(
        &lab,
        |controller| controller,
        |ctx, key| {
            Box::pin(async move {
                let would_be = ctx.create(&map(key, "a", "1")).dry_run().await?;
                assert!(would_be.metadata.uid.is_some());
                let here = named(key, "start");
                let patched = ctx.patch::<ConfigMap>(&here, json!({"data": {"a": "1"}})).dry_run().await?;
                assert_eq!(patched.data.unwrap_or_default().len(), 1);
                let start = ctx.get::<ConfigMap>(&here).ok_or("it is there").map_err(Error::new)?;
                assert!(start.data.is_none());
                let mut changed = (*start).clone();
                changed.data = Some(BTreeMap::from([("b".into(), "2".into())]));
                assert!(ctx.update(&changed).dry_run().await?.data.is_some());
                assert!(ctx.merge_from(&*start, &changed).dry_run().await?.is_changed());
                assert!(ctx.get::<ConfigMap>(&here).is_some_and(|start| start.data.is_none()));
                let params = DeleteParams { dry_run: true, ..DeleteParams::default() };
                ctx.delete_all::<ConfigMap>(&ListOptions::in_namespace(ctx_namespace(key)), &params).await?;
                assert!(ctx.get::<ConfigMap>(&here).is_some());
                Ok(())
            })
        },
    )
    .await;
    lab.settle().await;
    assert!(lab.stored("configmaps", "a").await.is_none());
    assert!(lab.stored("configmaps", "start").await.is_some_and(|start| start["data"].is_null()));
    assert_eq!(running.counters.of("test").writes, 0);
}

fn ctx_namespace(key: &Key) -> String {
    key.namespace.clone().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_controller_in_a_dry_run_writes_nothing_and_its_cache_knows() {
    let lab = Lab::new().await;
    lab.put("configmaps", "old", json!({})).await;
    let running = once(&lab, Controller::dry_run, |ctx, key| {
        Box::pin(async move {
            assert!(ctx.is_dry_run());
            ctx.create(&map(key, "a", "1")).await?;
            ctx.apply(&map(key, "b", "1")).await?;
            ctx.patch::<ConfigMap>(key, json!({"data": {"a": "1"}})).await?;
            let old = named(key, "old");
            ctx.delete::<ConfigMap>(&old, DeleteParams::default()).await?;
            ctx.delete_all::<ConfigMap>(
                &ListOptions::in_namespace(ctx_namespace(key)),
                &DeleteParams::default(),
            )
            .await?;
            assert!(
                ctx.get::<ConfigMap>(&named(key, "a")).is_none()
                    && ctx.get::<ConfigMap>(&named(key, "b")).is_none()
            );
            assert!(ctx.get::<ConfigMap>(&old).is_some());
            assert!(ctx.get::<ConfigMap>(key).is_some_and(|start| start.data.is_none()));
            let start = ctx.live::<ConfigMap>(key).await?;
            ctx.event(
                &start.unwrap_or_default(),
                kubewright_runtime::EventType::Normal,
                "Tried",
                "nothing came of it",
            );
            Ok(())
        })
    })
    .await;
    lab.settle().await;
    assert!(lab.stored("configmaps", "old").await.is_some());
    assert!(lab.stored("configmaps", "a").await.is_none() && lab.stored("configmaps", "b").await.is_none());
    assert!(lab.events_of("test", "events").await.is_empty());
    assert_eq!(running.counters.of("test").writes, 0);
}

#[tokio::test(start_paused = true)]
async fn fields_are_their_owners_that_the_write_names() {
    let lab = Lab::new().await;
    once(
        &lab,
        |controller| controller,
        |ctx, key| {
            Box::pin(async move {
                ctx.create(&map(key, "a", "1")).field_owner("maker").await?;
                let key = &named(key, "a");
                ctx.patch::<ConfigMap>(key, json!({"data": {"b": "1"}})).field_owner("patcher").await?;
                ctx.apply(&map(key, "a", "1")).field_owner("applier").await?;
                let mut map = ctx.live::<ConfigMap>(key).await?.unwrap_or_default();
                map.data.get_or_insert_default().insert("c".into(), "1".into());
                ctx.update(&map).field_owner("updater").await?;
                Ok(())
            })
        },
    )
    .await;
    let stored = lab.stored("configmaps", "a").await.unwrap_or_default();
    let mut owners: Vec<_> = stored["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| entry["manager"].as_str().unwrap_or_default().to_owned())
        .collect();
    owners.sort();
    assert_eq!(owners, ["applier", "maker", "patcher", "updater"]);
}

#[tokio::test(start_paused = true)]
async fn a_field_that_there_is_not_is_refused_where_that_is_asked_for() {
    let lab = Lab::new().await;
    once(
        &lab,
        |controller| controller,
        |ctx, key| {
            Box::pin(async move {
                let patch = json!({"immutabel": true});
                ctx.patch::<ConfigMap>(key, patch.clone()).await?;
                let refused =
                    ctx.patch::<ConfigMap>(key, patch).validation(ValidationDirective::Strict).await;
                let refused = refused.expect_err("there is no such field").to_string();
                assert!(refused.contains("unknown field \"immutabel\""), "{refused}");
                let fine = ctx.create(&map(key, "a", "1")).validation(ValidationDirective::Strict).await?;
                ctx.update(&fine).validation(ValidationDirective::Strict).field_owner("x").await?;
                Ok(())
            })
        },
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_json_patch_is_refused_whole_when_its_test_fails() {
    let lab = Lab::new().await;
    once(
        &lab,
        |controller| controller,
        |ctx, key| {
            Box::pin(async move {
                ctx.create(&map(key, "a", "1")).await?;
                let key = &named(key, "a");
                let patch = |was: &str, is: &str| -> Result<JsonPatch, Error> {
                    Ok(serde_json::from_value(json!([
                        {"op": "test", "path": "/data/a", "value": was},
                        {"op": "replace", "path": "/data/a", "value": is},
                    ]))?)
                };
                ctx.patch_json::<ConfigMap>(key, patch("1", "2")?).await?;
                assert!(
                    ctx.get::<ConfigMap>(key)
                        .is_some_and(|map| map.data.as_ref().is_some_and(|data| data["a"] == "2"))
                );
                let refused = ctx.patch_json::<ConfigMap>(key, patch("1", "3")?).await.expect_err("it is 2");
                assert_eq!(refused.status().map(|status| status.code), Some(422), "{refused}");
                Ok(())
            })
        },
    )
    .await;
    assert_eq!(lab.stored("configmaps", "a").await.unwrap_or_default()["data"], json!({"a": "2"}));
}

#[tokio::test(start_paused = true)]
async fn a_merge_from_two_states_leaves_what_others_changed_and_locks_when_it_is_told_to() {
    let lab = Lab::new().await;
    let running = once(
        &lab,
        |controller| controller,
        |ctx, key| {
            Box::pin(async move {
                let before = ctx.create(&map(key, "a", "1")).await?;
                let key = &named(key, "a");
                assert!(matches!(ctx.merge_from(&before, &before).await?, Written::Unchanged(_)));
                ctx.patch::<ConfigMap>(key, json!({"data": {"others": "1"}})).await?;
                let mut after = before.clone();
                after.data.get_or_insert_default().insert("mine".into(), "1".into());
                after.metadata.labels = Some(BTreeMap::from([("x".into(), "y".into())]));
                let conflict =
                    ctx.merge_from(&before, &after).optimistic_lock().await.expect_err("it was changed");
                assert!(conflict.is_conflict(), "{conflict}");
                let Written::Updated { object, changed } = ctx.merge_from(&before, &after).await? else {
                    return Err(Error::new("it differs"));
                };
                assert_eq!(changed, r#"{"data":{"mine":"1"},"metadata":{"labels":{"x":"y"}}}"#);
                assert_eq!(object.data.as_ref().map(BTreeMap::len), Some(3));
                let mut without = (*object).clone();
                without.data.get_or_insert_default().remove("mine");
                ctx.merge_from(&*object, &without).optimistic_lock().await?;
                assert!(ctx.merge_from(&before, &map(key, "other", "1")).await.is_err(), "two objects");
                Ok(())
            })
        },
    )
    .await;
    let stored = lab.stored("configmaps", "a").await.unwrap_or_default();
    assert_eq!(stored["data"], json!({"a": "1", "others": "1"}));
    assert_eq!(running.counters.of("test").writes, 4, "what is the same is not sent");
}

#[tokio::test(start_paused = true)]
async fn a_list_has_what_labels_and_fields_select_in_the_cache_as_on_the_server() {
    let lab = Lab::new().await;
    for (name, app, kind) in [("a", "web", "x"), ("b", "web", "y"), ("c", "db", "x")] {
        let body = json!({"metadata": {"labels": {"app": app}}, "type": format!("example.com/{kind}")});
        lab.put("secrets", name, body).await;
    }
    once(&lab, Controller::reads::<Secret>, |ctx, key| {
        Box::pin(async move {
            let all = ListOptions::in_namespace(ctx_namespace(key));
            let web = all.clone().labels(Selector::from_iter([("app", "web")]));
            for (selected, names) in [
                (web.clone(), &["a", "b"][..]),
                (web.clone().fields("type=example.com/x"), &["a"]),
                (web.clone().fields("type!=example.com/x"), &["b"]),
                (all.clone().fields("metadata.name=c"), &["c"]),
                (all.labels(Expression::NotIn("app".into(), ["web".into()].into())), &["c"]),
                (web.labels(Expression::DoesNotExist("app".into())), &[]),
            ] {
                let cached = ctx.list_selected::<Secret>(&selected)?;
                let cached: Vec<_> =
                    cached.iter().filter_map(|secret| secret.metadata.name.clone()).collect();
                let live = ctx.live_list::<Secret>(&selected).await?;
                let live: Vec<_> = live.into_iter().filter_map(|secret| secret.metadata.name).collect();
                assert_eq!(
                    (cached.iter().map(String::as_str).collect::<Vec<_>>(), live),
                    (names.to_vec(), cached.clone()),
                    "{selected:?}"
                );
            }
            let wrong = ListOptions::all().fields("metadata.name");
            assert!(ctx.live_list::<ConfigMap>(&wrong).await.is_err());
            Ok(())
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_live_list_of_many_comes_in_pages_and_is_whole() {
    let lab = Lab::new().await;
    for number in 0..1003 {
        lab.put("configmaps", &format!("m{number:04}"), json!({})).await;
    }
    let before = lab.requests().len();
    once(
        &lab,
        |controller| controller,
        |ctx, key| {
            Box::pin(async move {
                let all = ctx.live_list::<ConfigMap>(&ListOptions::in_namespace(ctx_namespace(key))).await?;
                let names: Vec<_> = all.iter().filter_map(|map| map.metadata.name.clone()).collect();
                let many: Vec<_> = (0..1003).map(|number| format!("m{number:04}")).collect();
                assert!(many.iter().all(|name| names.contains(name)));
                assert!(names.is_sorted() && names.windows(2).all(|two| two[0] != two[1]));
                Ok(())
            })
        },
    )
    .await;
    let lists = lab.requests()[before..]
        .iter()
        .filter(|request| request.starts_with("GET") && request.ends_with("/configmaps"))
        .count();
    assert!(lists >= 4, "three pages, and the list of the cache: {lists}");
}

#[tokio::test(start_paused = true)]
async fn of_what_was_deleted_at_once_the_cache_shows_nothing_any_more() {
    let lab = Lab::new().await;
    for name in ["a", "b"] {
        lab.put("configmaps", name, json!({"metadata": {"labels": {"app": "web"}}})).await;
    }
    let held = json!({"metadata": {"labels": {"app": "web"}, "finalizers": ["example.com/held"]}});
    lab.put("configmaps", "held", held).await;
    lab.put("configmaps", "other", json!({})).await;
    lab.link().delay_watches(Duration::from_millis(500));
    let running = once(
        &lab,
        |controller| controller,
        |ctx, key| {
            Box::pin(async move {
                let web = ListOptions::in_namespace(ctx_namespace(key))
                    .labels(Selector::from_iter([("app", "web")]));
                assert_eq!(ctx.list_selected::<ConfigMap>(&web)?.len(), 3);
                ctx.delete_all::<ConfigMap>(&web, &DeleteParams::default()).await?;
                let left = ctx.list_selected::<ConfigMap>(&web)?;
                let names: Vec<_> = left.iter().filter_map(|map| map.metadata.name.as_deref()).collect();
                assert_eq!(names, ["held"]);
                assert!(left[0].metadata.deletion_timestamp.is_some());
                assert!(ctx.get::<ConfigMap>(&named(key, "other")).is_some());
                let everywhere =
                    ctx.delete_all::<ConfigMap>(&ListOptions::all(), &DeleteParams::default()).await;
                assert!(
                    everywhere.is_err_and(|error| error.to_string().contains("ListOptions::in_namespace"))
                );
                Ok(())
            })
        },
    )
    .await;
    assert_eq!(running.counters.of("test").writes, 1);
    lab.put("configmaps", "held", json!({"metadata": {"finalizers": []}})).await;
}

#[tokio::test(start_paused = true)]
async fn a_part_of_an_object_is_read_and_written_as_the_kind_that_it_is() {
    let Some(lab) = Lab::without_rollouts().await else { return };
    let template =
        json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": template});
    lab.put("deployments", "a", json!({"spec": spec})).await;
    lab.put("pods", "p", json!({})).await;
    lab.link().delay_watches(Duration::from_millis(500));
    once(
        &lab,
        |controller| controller.reads::<Deployment>().reads::<Pod>(),
        |ctx, key| {
            Box::pin(async move {
                let web = named(key, "a");
                let part = ctx.subresource::<Deployment>(&web, "scale");
                let mut scale: Scale = part.get().await?;
                scale.spec.get_or_insert_default().replicas = Some(3);
                let scale: Scale = part.update(&scale).await?;
                assert_eq!(scale.spec.and_then(|spec| spec.replicas), Some(3));
                let replicas = |ctx: &Context| ctx.get::<Deployment>(&web)?.spec.as_ref()?.replicas;
                assert_eq!(replicas(ctx), Some(3), "the cache has it at once");
                let _: Scale = ctx
                    .subresource::<Deployment>(&web, "scale")
                    .dry_run()
                    .patch(&json!({"spec": {"replicas": 5}}))
                    .await?;
                assert_eq!(replicas(ctx), Some(3));
                let missing = ctx.subresource::<Deployment>(&web, "nothing").get::<Value>().await;
                assert!(missing.is_err_and(|error| error.is_not_found()));

                let pod = named(key, "p");
                let eviction =
                    json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
                let _: Value = ctx.subresource::<Pod>(&pod, "eviction").create(&eviction).await?;
                let left = ctx.get::<Pod>(&pod);
                assert!(
                    left.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some()),
                    "the cache has it at once"
                );

                let account = named(key, "default");
                let request = TokenRequest::default();
                let token: TokenRequest =
                    ctx.subresource::<ServiceAccount>(&account, "token").create(&request).await?;
                assert!(
                    token.status.is_some_and(|status| status.token.is_some_and(|token| !token.is_empty()))
                );
                Ok(())
            })
        },
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_layer_is_around_the_client_of_one_controller_and_not_around_its_caches() {
    let mut lab = Lab::new().await;
    let other = lab.another_namespace("other").await;
    let own = lab.namespace().to_owned();
    let layers = |controller: Controller| {
        controller
            .client_layer(ClientLayer::one_namespace(own))
            .client_layer(ClientLayer::field_owner("someone"))
    };
    once(&lab, layers, move |ctx, key| {
        let elsewhere = Key::namespaced(other.clone(), "a");
        Box::pin(async move {
            let refused = ctx.live::<ConfigMap>(&elsewhere).await.expect_err("another namespace");
            assert_eq!(refused.status().map(|status| status.code), Some(403), "{refused}");
            ctx.create(&map(key, "a", "1")).await?;
            Ok(())
        })
    })
    .await;
    let stored = lab.stored("configmaps", "a").await.unwrap_or_default();
    assert_eq!(stored["metadata"]["managedFields"][0]["manager"], "someone");
}

/// The definition of a kind that no Rust type is of.
fn things(is_namespaced: bool) -> Value {
    let scope = if is_namespaced { "Namespaced" } else { "Cluster" };
    let spec = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": spec}}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema, "subresources": {"status": {}}});
    let names = json!({"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": scope, "names": names, "versions": [version]},
    })
}

async fn define(lab: &Lab, definition: &Value) {
    let api: Api<CustomResourceDefinition> = Api::all(lab.admin());
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    api.patch(name, &PatchParams::apply("test").force(), &Patch::Apply(definition))
        .await
        .expect("a definition");
    let is_there = async || {
        let stored = api.get(name).await.expect("it was applied");
        stored
            .status
            .and_then(|status| status.conditions)
            .into_iter()
            .flatten()
            .any(|condition| condition.type_ == "Established")
    };
    while !is_there().await {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_known_at_run_time_is_written_and_read_with_the_guarantees_of_types() {
    let Some(lab) = Lab::only_embedded(crate::lab::Only::Definitions).await else { return };
    define(&lab, &things(true)).await;
    lab.link().delay_watches(Duration::from_millis(500));
    let running = once(
        &lab,
        |controller| controller,
        |ctx, key| {
            Box::pin(async move {
                assert_eq!(ctx.discover("example.com/v2", "Thing").await?, None);
                assert_eq!(ctx.discover("example.com/v1", "Other").await?, None);
                assert_eq!(ctx.discover("none.example.com/v1", "Thing").await?, None);
                let kind = ctx.discover("example.com/v1", "Thing").await?.expect("it is served");
                assert!(kind.is_namespaced());
                let things = ctx.kind(&kind);
                let watching = things.watch(|_: &DynamicObject| Vec::new());
                watching.synced().await;

                let owner = ctx.get::<ConfigMap>(key).expect("it is there");
                let namespace = ctx_namespace(key);
                let mut desired = DynamicObject::new("a", kind.resource()).within(&namespace);
                desired.data = json!({"spec": {"size": 3}});
                assert!(matches!(things.apply(&desired).owned_by(&*owner).await?, Written::Created(_)));
                let a = named(key, "a");
                let cached = watching.get(&a).expect("its own write is seen at once");
                assert_eq!(cached.metadata.owner_references.as_ref().map(Vec::len), Some(1));
                assert!(matches!(things.apply(&desired).owned_by(&*owner).await?, Written::Unchanged(_)));
                desired.data = json!({"spec": {"size": 4}});
                let Written::Updated { object, changed } = things.apply(&desired).owned_by(&*owner).await?
                else {
                    return Err(Error::new("it differs"));
                };
                assert_eq!(changed, "spec.size: 3 -> 4");
                // Of which something else is the owner.
                let child = map(key, "child", "1");
                let child = ctx.apply(&child).owned_by(&kind.owner(&object)).await?.into_object();
                assert_eq!(
                    child.metadata.owner_references.as_ref().map(|all| all[0].kind.clone()),
                    Some("Thing".into())
                );

                things.patch(&a, json!({"status": {"ready": true}})).subresource("status").await?;
                let cached = watching.get(&a).expect("it is there");
                assert_eq!(
                    (&cached.data["status"]["ready"], &cached.data["spec"]["size"]),
                    (&json!(true), &json!(4))
                );
                let mut changed = (*cached).clone();
                changed.data["spec"]["color"] = json!("blue");
                assert!(things.merge_from(&cached, &changed).optimistic_lock().await?.is_changed());
                assert!(
                    things
                        .merge_from(&cached, &changed)
                        .optimistic_lock()
                        .await
                        .is_err_and(|error| error.is_conflict())
                );
                let live = things.live(&a).await?.expect("it is there");
                assert_eq!(live.data["spec"], json!({"size": 4, "color": "blue"}));

                let mut second = DynamicObject::new("b", kind.resource()).within(&namespace);
                second.metadata.labels = Some([("app".into(), "web".into())].into());
                things.create(&second).await?;
                let web = ListOptions::in_namespace(&namespace).labels(Selector::from_iter([("app", "web")]));
                assert_eq!(things.live_list(&web).await?.len(), 1);
                things.delete_all(&web, &DeleteParams::default()).await?;
                assert!(watching.get(&named(key, "b")).is_none());
                assert!(things.delete(&a, &DeleteParams::default()).await?.is_changed());
                assert!(watching.get(&a).is_none());
                let nowhere = DynamicObject::new("c", kind.resource());
                assert!(
                    things
                        .create(&nowhere)
                        .await
                        .is_err_and(|error| error.to_string().contains("needs metadata.namespace"))
                );
                Ok(())
            })
        },
    )
    .await;
    assert_eq!(running.counters.of("test").writes, 8);
}

#[tokio::test(start_paused = true)]
async fn a_kind_of_the_cluster_known_at_run_time_needs_no_namespace() {
    let Some(lab) = Lab::only_embedded(crate::lab::Only::Definitions).await else { return };
    define(&lab, &things(false)).await;
    once(
        &lab,
        |controller| controller,
        |ctx, _| {
            Box::pin(async move {
                let kind = ctx.discover("example.com/v1", "Thing").await?.expect("it is served");
                assert!(!kind.is_namespaced());
                let things = ctx.kind(&kind);
                things.create(&DynamicObject::new("a", kind.resource())).await?;
                assert!(things.live(&Key::cluster_scoped("a")).await?.is_some());
                things.delete_all(&ListOptions::all(), &DeleteParams::default()).await?;
                assert_eq!(things.live_list(&ListOptions::all()).await?.len(), 0);
                Ok(())
            })
        },
    )
    .await;
}
