//! Server-side apply by controllers.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kubewright_cluster::Cluster;
use kubewright_runtime::{
    CancellationToken, Context, Controller, Error, Key, Manager, Outcome, Reconciler, owner,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// What is to be applied next, and what came of the applies so far.
#[derive(Clone, Default)]
struct Desired {
    map: Arc<Mutex<Value>>,
    forced: Arc<Mutex<bool>>,
    answers: Arc<Mutex<Vec<Result<ConfigMap, String>>>>,
}

struct Applier(Desired);

impl Reconciler for Applier {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(owner) = ctx.get::<Deployment>(key) else { return Ok(Outcome::Done) };
        let mut map: ConfigMap = kubewright_objects::from_value(self.0.map.lock().clone())?;
        // What was read may be handed in as it is.
        map.metadata.resource_version = Some("1".into());
        map.metadata.managed_fields = Some(Vec::new());
        let apply = ctx.apply(&map).owned_by(&*owner);
        let forced = *self.0.forced.lock();
        let answer = if forced { apply.await } else { apply.unforced().await };
        let answer = answer.map(|written| ConfigMap::clone(written.object()));
        let seen = ctx.get::<ConfigMap>(&Key::namespaced("default", "settings"));
        if let Ok(stored) = &answer {
            let version = |map: &ConfigMap| map.metadata.resource_version.clone();
            assert_eq!(seen.as_deref().and_then(version), version(stored), "the cache has what was written");
        }
        let told = |error: Error| {
            assert!(error.is_conflict(), "{error}");
            error.to_string()
        };
        self.0.answers.lock().push(answer.map_err(told));
        Ok(Outcome::Done)
    }
}

struct Scene {
    cluster: Cluster,
    desired: Desired,
    shutdown: CancellationToken,
}

impl Scene {
    async fn start() -> Self {
        let cluster = Cluster::builder().controllers("").nodes(0).start().await.unwrap();
        let desired = Desired::default();
        *desired.map.lock() = json!({"metadata": {"name": "settings", "namespace": "default"}});
        let mut manager = Manager::new(cluster.client(), cluster.world().clone());
        let controller = Controller::new("applier", Applier(desired.clone()));
        manager.add(controller.for_kind::<Deployment>().reads::<ConfigMap>());
        let shutdown = CancellationToken::new();
        tokio::spawn(manager.run(shutdown.clone()));
        Self { cluster, desired, shutdown }
    }

    /// Has the controller apply a map with this data, and gives what came of it.
    async fn apply(&self, data: Value, forced: bool) -> Result<ConfigMap, String> {
        self.desired.map.lock()["data"] = data;
        *self.desired.forced.lock() = forced;
        let deployments: Api<Deployment> = Api::default_namespaced(self.cluster.client());
        let container = json!({"name": "c", "image": "web:1"});
        let number = self.desired.answers.lock().len();
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "annotations": {"number": number.to_string()}},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {
                "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}}});
        deployments.patch("web", &PatchParams::apply("test"), &Patch::Apply(deployment)).await.unwrap();
        self.cluster.settle().await;
        let answers = self.desired.answers.lock();
        assert_eq!(answers.len(), number + 1, "one reconcile for one change");
        answers[number].clone()
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::default_namespaced(self.cluster.client())
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

fn data(map: &ConfigMap) -> Value {
    json!(map.data)
}

#[tokio::test(start_paused = true)]
async fn what_an_apply_leaves_out_goes_and_what_others_set_stays() {
    let scene = Scene::start().await;
    let made = scene.apply(json!({"a": "1", "b": "1"}), false).await.unwrap();
    let owners = made.metadata.owner_references.as_deref().unwrap_or_default();
    assert_eq!(owners.len(), 1);
    assert_eq!((owners[0].kind.as_str(), owners[0].controller), ("Deployment", Some(true)));
    assert!(owner::controller_of(&made.metadata).is_some());
    let patch = Patch::Merge(json!({"data": {"c": "2"}}));
    scene.maps().patch("settings", &PatchParams::default(), &patch).await.unwrap();
    let changed = scene.apply(json!({"a": "3"}), false).await.unwrap();
    assert_eq!(data(&changed), json!({"a": "3", "c": "2"}));
    assert_eq!(changed.metadata.managed_fields, None, "as in the cache");
    let fields = scene.maps().get("settings").await.unwrap().metadata.managed_fields.unwrap();
    let applied = fields.iter().find(|entry| entry.operation.as_deref() == Some("Apply")).unwrap();
    assert_eq!(applied.manager.as_deref(), Some("applier"));
}

#[tokio::test(start_paused = true)]
async fn a_field_of_somebody_else_is_taken_by_force_only() {
    let scene = Scene::start().await;
    let map: ConfigMap =
        kubewright_objects::from_value(json!({"metadata": {"name": "settings"}, "data": {"a": "0"}}))
            .unwrap();
    let params = PostParams { field_manager: Some("somebody".into()), ..PostParams::default() };
    scene.maps().create(&params, &map).await.unwrap();
    let refused = scene.apply(json!({"a": "1"}), false).await.unwrap_err();
    assert!(refused.contains("conflict with \"somebody\"") && refused.contains(".data.a"), "{refused}");
    assert_eq!(data(&scene.maps().get("settings").await.unwrap()), json!({"a": "0"}));
    let forced = scene.apply(json!({"a": "1"}), true).await.unwrap();
    assert_eq!(data(&forced), json!({"a": "1"}));
}
