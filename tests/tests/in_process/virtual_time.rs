//! Time and chance belong to the cluster: an hour passes at once, and a seed gives the same run again.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, PostParams};
use kubewright_cluster::Cluster;
use kubewright_runtime::{
    CancellationToken, Context, Controller, DynamicKind, Error, Key, LeaderElection, Manager, Outcome,
    Reconciler, Sharding, Watching, World,
};
use kubewright_store::Revision;
use parking_lot::Mutex;
use serde_json::json;

const HOUR: Duration = Duration::from_secs(3600);

/// Notes the cluster's time at each reconcile and asks for another an hour later.
struct Hourly(Arc<Mutex<Vec<String>>>);

impl Reconciler for Hourly {
    async fn reconcile(&self, ctx: &Context, _: &Key) -> Result<Outcome, Error> {
        self.0.lock().push(ctx.world().clock.now().to_string());
        Ok(Outcome::RequeueAfter(HOUR))
    }
}

#[tokio::test(start_paused = true)]
async fn again_in_one_hour_runs_at_once_in_wall_time_and_an_hour_later_in_cluster_time() {
    #[expect(clippy::disallowed_methods, reason = "this test compares cluster time with the machine's")]
    let wall = std::time::Instant::now();
    let cluster = Cluster::start().await.unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    let ran = Arc::new(Mutex::new(Vec::new()));
    let mut manager = Manager::new(cluster.client(), cluster.world().clone());
    manager.add(Controller::new("hourly", Hourly(Arc::clone(&ran))).for_kind::<ConfigMap>());
    let running = tokio::spawn(manager.run(cluster.shutdown()));
    cluster.settle().await;
    ran.lock().clear();

    let map: ConfigMap = kubewright_objects::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    cluster.settle().await;
    let first = ran.lock().clone();
    assert_eq!(first.len(), 1, "{first:?}");
    ran.lock().clear();

    tokio::time::sleep(HOUR).await;
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    cluster.settle().await;
    let then = ran.lock().clone();
    let at = |text: &str| text.parse::<jiff::Timestamp>().unwrap();
    let later =
        then.iter().any(|one| at(one).duration_since(at(&first[0])) == jiff::SignedDuration::from_hours(1));
    assert!(later, "{first:?} {then:?}");

    maps.create(&PostParams::default(), &map).await.unwrap();
    let made = maps.get("a").await.unwrap().metadata.creation_timestamp.unwrap();
    assert!(
        made.0.duration_since(at(&first[0])) >= jiff::SignedDuration::from_hours(1),
        "timestamps follow: {made:?}"
    );
    assert!(wall.elapsed() < HOUR / 60, "an hour took {:?}", wall.elapsed());
    cluster.stop().await;
    running.await.unwrap().unwrap();
}

/// Everything that was ever written in a scenario, in order, byte by byte.
async fn history(seed: u64) -> Vec<String> {
    let cluster = Cluster::builder().seed(seed).nodes(2).start().await.unwrap();
    let deployments: Api<Deployment> = Api::default_namespaced(cluster.client());
    let deployment: Deployment = kubewright_objects::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "nginx"}]}
            }
        }
    }))
    .unwrap();
    cluster.settle().await;
    deployments.create(&PostParams::default(), &deployment).await.unwrap();
    cluster.settle().await;
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    let found = pods.list(&ListParams::default()).await.unwrap();
    assert_eq!(found.items.len(), 3);
    pods.delete(found.items[0].metadata.name.as_deref().unwrap(), &DeleteParams::default()).await.unwrap();
    cluster.settle().await;
    deployments.delete("web", &DeleteParams::default()).await.unwrap();
    cluster.settle().await;

    let store = cluster.server().engine().store();
    let snapshot = store.snapshot();
    let mut events = Vec::new();
    for collection in snapshot.collections() {
        let mut cursor = store.watch(collection, Revision(0)).unwrap();
        while let Some(event) = cursor.try_next().unwrap() {
            let object = String::from_utf8_lossy(&event.entry.bytes).into_owned();
            events.push((event.entry.revision, format!("{:?} {collection} {object}", event.happening)));
        }
    }
    events.sort();
    events.into_iter().map(|(_, event)| event).collect()
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_uids_names_and_order_of_events() {
    let first = history(11).await;
    assert!(first.iter().any(|event| event.starts_with("Deleted /pods")), "the scenario happened");
    for (number, (one, other)) in first.iter().zip(history(11).await).enumerate() {
        assert_eq!(*one, other, "event {number}");
    }
    assert_ne!(first, history(12).await);
}

#[tokio::test(start_paused = true)]
async fn clusters_live_side_by_side_and_do_not_see_each_other() {
    let clusters: Vec<Cluster> =
        futures::future::join_all((0..20).map(|seed| Cluster::builder().seed(seed).start()))
            .await
            .into_iter()
            .map(Result::unwrap)
            .collect();
    let maps = |cluster: &Cluster| Api::<ConfigMap>::default_namespaced(cluster.client());
    let map: ConfigMap = kubewright_objects::from_value(json!({"metadata": {"name": "mine"}})).unwrap();
    maps(&clusters[3]).create(&PostParams::default(), &map).await.unwrap();
    for (number, cluster) in clusters.iter().enumerate() {
        assert_eq!(maps(cluster).get_opt("mine").await.unwrap().is_some(), number == 3);
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_a_cluster_stops_everything_that_it_started() {
    let metrics = tokio::runtime::Handle::current().metrics();
    let before = metrics.num_alive_tasks();
    let cluster = Cluster::start().await.unwrap();
    cluster.settle().await;
    assert!(metrics.num_alive_tasks() > before);
    drop(cluster);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(metrics.num_alive_tasks(), before);
}

/// Notes what is in the cache.
struct Seen(Arc<Mutex<Vec<String>>>);

impl Reconciler for Seen {
    async fn reconcile(&self, ctx: &Context, _: &Key) -> Result<Outcome, Error> {
        *self.0.lock() =
            ctx.list::<ConfigMap>(Some("default")).iter().map(|map| Key::of(&**map).name).collect();
        Ok(Outcome::Done)
    }
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_selects_objects_keeps_no_others_in_its_cache() {
    let cluster = Cluster::start().await.unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut manager = Manager::new(cluster.client(), cluster.world().clone());
    let controller = Controller::new("selecting", Seen(Arc::clone(&seen))).for_kind::<ConfigMap>();
    manager.add(controller.selecting("metadata.name=b"));
    let running = tokio::spawn(manager.run(cluster.shutdown()));
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    for name in ["a", "b", "c"] {
        let map = kubewright_objects::from_value(json!({"metadata": {"name": name}})).unwrap();
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
    cluster.settle().await;
    assert_eq!(*seen.lock(), ["b"]);
    cluster.stop().await;
    running.await.unwrap().unwrap();
}

/// Notes who reconciled what, every second.
struct Replica(&'static str, Arc<Mutex<Vec<(&'static str, String)>>>);

impl Reconciler for Replica {
    async fn reconcile(&self, _: &Context, key: &Key) -> Result<Outcome, Error> {
        self.1.lock().push((self.0, key.name.clone()));
        Ok(Outcome::RequeueAfter(Duration::from_secs(1)))
    }
}

/// Lets the service account `operator` of `default` read ConfigMaps, and what the documentation says that replicas need.
async fn allow(cluster: &Cluster, lease_verbs: &[&str]) {
    let role: Role = kubewright_objects::from_value(json!({
        "metadata": {"name": "operator"},
        "rules": [
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": lease_verbs},
            {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
        ],
    }))
    .unwrap();
    let binding: RoleBinding = kubewright_objects::from_value(json!({
        "metadata": {"name": "operator"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "operator"},
        "subjects": [{"kind": "ServiceAccount", "name": "operator", "namespace": "default"}],
    }))
    .unwrap();
    Api::default_namespaced(cluster.client()).create(&PostParams::default(), &role).await.unwrap();
    Api::default_namespaced(cluster.client()).create(&PostParams::default(), &binding).await.unwrap();
    let read = json!({
        "metadata": {"name": "operator"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}],
    });
    let bound = json!({
        "metadata": {"name": "operator"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "operator"},
        "subjects": [{"kind": "ServiceAccount", "name": "operator", "namespace": "default"}],
    });
    let client = cluster.client();
    let create = |path: &str, body: &serde_json::Value| {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/{path}");
        client.request::<serde_json::Value>(
            http::Request::post(path).body(body.to_string().into_bytes()).unwrap(),
        )
    };
    create("clusterroles", &read).await.unwrap();
    create("clusterrolebindings", &bound).await.unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    for number in 0..20 {
        let map =
            kubewright_objects::from_value(json!({"metadata": {"name": format!("c{number}")}})).unwrap();
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
}

/// What each of two replicas works on within some seconds: together, and after the first has stopped.
async fn shares(cluster: &Cluster, join: impl Fn(&mut Manager)) -> [[usize; 2]; 2] {
    let log = Arc::new(Mutex::new(Vec::new()));
    let start = |name: &'static str, seed: u64| {
        // A world of its own: replicas share no dice.
        let world = World { dice: kubewright_world::Dice::from_seed(seed), ..cluster.world().clone() };
        let mut manager = Manager::new(cluster.client_of_service_account("default", "operator"), world);
        join(&mut manager);
        manager.add(Controller::new("test", Replica(name, Arc::clone(&log))).for_kind::<ConfigMap>());
        let stop = CancellationToken::new();
        (tokio::spawn(manager.run(stop.clone())), stop)
    };
    let count = async || {
        tokio::time::sleep(Duration::from_secs(20)).await;
        log.lock().clear();
        tokio::time::sleep(Duration::from_secs(3)).await;
        let mut done = std::mem::take(&mut *log.lock());
        done.retain(|(_, key)| key.starts_with('c'));
        done.sort();
        done.dedup();
        ["a", "b"].map(|name| done.iter().filter(|(replica, _)| *replica == name).count())
    };
    let (first, stop) = start("a", 1);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (second, _stop) = start("b", 2);
    let together = count().await;
    stop.cancel();
    first.await.unwrap().unwrap();
    let alone = count().await;
    second.abort();
    [together, alone]
}

#[tokio::test(start_paused = true)]
async fn of_two_replicas_one_leads_and_the_other_when_it_stops_with_the_documented_rights() {
    let cluster = Cluster::start().await.unwrap();
    allow(&cluster, &["get", "create", "update"]).await;
    let elect = |manager: &mut Manager| {
        manager.elect(LeaderElection::lease("default", "operator"));
    };
    let [together, alone] = shares(&cluster, elect).await;
    assert_eq!(together, [20, 0]);
    assert_eq!(alone, [0, 20]);
}

#[tokio::test(start_paused = true)]
async fn two_replicas_share_the_keys_and_one_has_all_when_the_other_stops_with_the_documented_rights() {
    let cluster = Cluster::start().await.unwrap();
    allow(&cluster, &["get", "list", "watch", "create", "update", "delete"]).await;
    let share = |manager: &mut Manager| {
        manager.share(Sharding::ring("default", "operator"));
    };
    let [together, alone] = shares(&cluster, share).await;
    assert!(together[0] + together[1] == 20 && together.iter().all(|share| *share > 3), "{together:?}");
    assert_eq!(alone, [0, 20]);
}

/// Watches widgets, whose definition may not be there, and scales the Deployment `web` to as many as there are.
struct Counting {
    widgets: Mutex<Option<Watching<DynamicObject>>>,
}

impl Reconciler for Counting {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let widgets = {
            let mut widgets = self.widgets.lock();
            let watching = widgets.get_or_insert_with(|| {
                let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
                let kind = DynamicKind::namespaced(kind);
                ctx.kind(&kind).watch(|_: &DynamicObject| vec![Key::namespaced("default", "web")])
            });
            watching.list(None).len()
        };
        if ctx.get::<Deployment>(key).is_some() {
            ctx.scale::<Deployment>(key, i32::try_from(widgets).unwrap_or(0)).await?;
            assert_eq!(
                ctx.get::<Deployment>(key).and_then(|web| web.spec.clone()?.replicas),
                i32::try_from(widgets).ok(),
                "its own write is seen"
            );
        }
        Ok(Outcome::Done)
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_is_watched_whenever_its_definition_comes_and_its_objects_end_with_it() {
    let cluster = Cluster::start().await.unwrap();
    let deployments: Api<Deployment> = Api::default_namespaced(cluster.client());
    let web: Deployment = kubewright_objects::from_value(json!({"metadata": {"name": "web"}, "spec": {
        "replicas": 5, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web"}]}},
    }}))
    .unwrap();
    deployments.create(&PostParams::default(), &web).await.unwrap();
    let mut manager = Manager::new(cluster.client(), cluster.world().clone());
    let counting = Controller::new("counting", Counting { widgets: Mutex::new(None) });
    manager.add(counting.for_kind::<Deployment>());
    let counters = manager.counters().clone();
    let running = tokio::spawn(manager.run(cluster.shutdown()));
    let replicas = async || {
        tokio::time::sleep(Duration::from_secs(60)).await;
        deployments.get("web").await.unwrap().spec.unwrap().replicas
    };
    assert_eq!(replicas().await, Some(0));
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client());
    let definition: CustomResourceDefinition = kubewright_objects::from_value(json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]},
    }))
    .unwrap();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
    for _ in 0..2 {
        definitions.create(&PostParams::default(), &definition).await.unwrap();
        assert_eq!(replicas().await, Some(0));
        let widgets: Api<DynamicObject> = Api::namespaced_with(cluster.client(), "default", &kind);
        for name in ["a", "b"] {
            widgets.create(&PostParams::default(), &DynamicObject::new(name, &kind)).await.unwrap();
        }
        assert_eq!(replicas().await, Some(2));
        definitions.delete("widgets.example.com", &DeleteParams::default()).await.unwrap();
        assert_eq!(replicas().await, Some(0));
    }
    assert_eq!(counters.of("counting").panics, 0);
    cluster.stop().await;
    running.await.unwrap().unwrap();
}
