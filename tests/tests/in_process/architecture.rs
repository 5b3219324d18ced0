//! How Kubernetes is built, as the write-ups that this project started from tell it: the API server stores, controllers act.
//! `KA-` rows are theirs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, pin_mut};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{
    Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, PropagationPolicy, WatchParams,
};
use kube::core::WatchEvent;
use kube::{CustomResource, CustomResourceExt, ResourceExt};
use kubewright_cluster::Cluster;
use kubewright_runtime::command::Operator;
use kubewright_runtime::{Context, Controller, Error, Key, Manager, Outcome, Reconciler};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A cluster, and what the tests look at in it.
struct Lab {
    cluster: Cluster,
    deployments: Api<Deployment>,
    replica_sets: Api<ReplicaSet>,
    pods: Api<Pod>,
}

impl Lab {
    /// With the built-in controllers of this selection, and so many nodes.
    async fn start(controllers: &str, nodes: usize) -> Self {
        let cluster = Cluster::builder().controllers(controllers).nodes(nodes).start().await.unwrap();
        Self {
            deployments: Api::default_namespaced(cluster.client()),
            replica_sets: Api::default_namespaced(cluster.client()),
            pods: Api::default_namespaced(cluster.client()),
            cluster,
        }
    }

    /// With a Deployment `web` of so many replicas, once all is done.
    async fn with_web(replicas: i32) -> Self {
        let lab = Self::start("*", 2).await;
        lab.create_web(replicas).await;
        lab.cluster.settle().await;
        lab
    }

    async fn create_web(&self, replicas: i32) -> Deployment {
        let web = kubewright_objects::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "web", "image": "nginx"}]},
                },
            },
        }));
        self.deployments.create(&PostParams::default(), &web.unwrap()).await.unwrap()
    }

    async fn patch_web(&self, patch: Value) {
        self.deployments.patch("web", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        self.cluster.settle().await;
    }
}

async fn all<K: Clone + Debug + DeserializeOwned>(api: &Api<K>) -> Vec<K> {
    api.list(&ListParams::default()).await.unwrap().items
}

fn names<K: ResourceExt>(objects: &[K]) -> BTreeSet<String> {
    objects.iter().map(ResourceExt::name_any).collect()
}

fn owner<K: ResourceExt>(object: &K) -> Option<String> {
    object.owner_references().iter().find(|one| one.controller == Some(true)).map(|one| one.uid.clone())
}

fn replicas(set: &ReplicaSet) -> Option<i32> {
    set.spec.as_ref().and_then(|spec| spec.replicas)
}

#[tokio::test(start_paused = true)]
async fn ka_01_without_controllers_a_deployment_is_stored_and_nothing_comes_of_it() {
    let lab = Lab::start("", 0).await;
    lab.create_web(3).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(all(&lab.deployments).await.len(), 1);
    assert_eq!(all(&lab.replica_sets).await, []);
    assert_eq!(all(&lab.pods).await, []);
}

#[tokio::test(start_paused = true)]
async fn ka_02_each_controller_can_be_switched_off_alone() {
    let lab = Lab::start("*,-replicaset-controller", 1).await;
    lab.create_web(3).await;
    lab.cluster.settle().await;
    assert_eq!(all(&lab.replica_sets).await.len(), 1, "the Deployment controller runs");
    assert_eq!(all(&lab.pods).await, [], "the ReplicaSet controller does not");
}

#[tokio::test(start_paused = true)]
async fn ka_03_a_write_is_answered_before_anything_comes_of_it() {
    let lab = Lab::start("*", 1).await;
    lab.cluster.settle().await;
    let answered = lab.create_web(3).await;
    assert_eq!(answered.status, Some(k8s_openapi::api::apps::v1::DeploymentStatus::default()));
    lab.cluster.settle().await;
    let status = lab.deployments.get("web").await.unwrap().status.unwrap();
    assert_eq!(status.ready_replicas, Some(3), "{status:?}");
}

#[tokio::test(start_paused = true)]
async fn ka_04_a_watch_tells_what_is_added_changed_and_deleted() {
    let lab = Lab::start("", 0).await;
    let events = lab.deployments.watch(&WatchParams::default().disable_bookmarks(), "0").await.unwrap();
    pin_mut!(events);
    lab.create_web(1).await;
    lab.patch_web(json!({"spec": {"replicas": 2}})).await;
    lab.deployments.delete("web", &DeleteParams::default()).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let event = events.next().await.unwrap().unwrap();
        seen.push(match event {
            WatchEvent::Added(_) => "added",
            WatchEvent::Modified(_) => "changed",
            WatchEvent::Deleted(_) => "deleted",
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(seen, ["added", "changed", "deleted"]);
}

/// KA-05, KA-06.
#[tokio::test(start_paused = true)]
async fn ka_05_a_deployment_owns_a_replica_set_and_that_owns_the_pods() {
    let lab = Lab::with_web(3).await;
    let web = lab.deployments.get("web").await.unwrap();
    let sets = all(&lab.replica_sets).await;
    let [set] = &sets[..] else { panic!("{:?}", names(&sets)) };
    assert_eq!(owner(set), web.uid());
    assert_eq!(set.name_any(), format!("web-{}", set.labels()["pod-template-hash"]));
    let pods = all(&lab.pods).await;
    assert_eq!(pods.len(), 3);
    assert!(pods.iter().all(|pod| owner(pod) == set.uid()));
}

#[tokio::test(start_paused = true)]
async fn ka_07_scaling_a_deployment_scales_its_replica_set() {
    let lab = Lab::with_web(2).await;
    let before = names(&all(&lab.replica_sets).await);
    lab.patch_web(json!({"spec": {"replicas": 5}})).await;
    let sets = all(&lab.replica_sets).await;
    assert_eq!((names(&sets), replicas(&sets[0])), (before, Some(5)));
    assert_eq!(all(&lab.pods).await.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn ka_08_a_pod_or_replica_set_deleted_by_hand_is_replaced() {
    let lab = Lab::with_web(2).await;
    let pods = names(&all(&lab.pods).await);
    let gone = pods.first().unwrap();
    lab.pods.delete(gone, &DeleteParams::default()).await.unwrap();
    lab.cluster.settle().await;
    let then = names(&all(&lab.pods).await);
    assert!(then.len() == 2 && !then.contains(gone), "{then:?}");

    let set = all(&lab.replica_sets).await.remove(0);
    lab.replica_sets.delete(&set.name_any(), &DeleteParams::default()).await.unwrap();
    lab.cluster.settle().await;
    let again = lab.replica_sets.get(&set.name_any()).await.expect("under the same name");
    assert_ne!(again.uid(), set.uid());
    assert_eq!(all(&lab.pods).await.len(), 2);
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref());
    conditions.unwrap_or_default().iter().any(|one| one.type_ == "Ready" && one.status == "True")
}

/// Within 25 % more and 25 % less, as nothing else was asked for.
#[tokio::test(start_paused = true)]
async fn ka_09_another_template_is_rolled_out_by_a_second_replica_set() {
    let lab = Lab::with_web(4).await;
    let old = all(&lab.replica_sets).await.remove(0);
    let listed = lab.pods.list(&ListParams::default()).await.unwrap();
    let version = listed.metadata.resource_version.unwrap();
    let mut pods: BTreeMap<String, Pod> = listed.items.into_iter().map(|pod| (pod.name_any(), pod)).collect();

    let container = json!({"name": "web", "image": "nginx:2"});
    lab.patch_web(json!({"spec": {"template": {"spec": {"containers": [container]}}}})).await;
    let sizes: BTreeSet<(bool, Option<i32>)> =
        all(&lab.replica_sets).await.iter().map(|set| (set.uid() == old.uid(), replicas(set))).collect();
    assert_eq!(sizes, BTreeSet::from([(true, Some(0)), (false, Some(4))]));

    let (mut fewest, mut most) = (4, 4);
    let events = lab.pods.watch(&WatchParams::default().timeout(1), &version).await.unwrap();
    pin_mut!(events);
    while let Some(event) = events.next().await {
        match event.unwrap() {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => pods.insert(pod.name_any(), pod),
            WatchEvent::Deleted(pod) => pods.remove(&pod.name_any()),
            other => panic!("{other:?}"),
        };
        let living = || pods.values().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        fewest = fewest.min(living().filter(|pod| is_ready(pod)).count());
        most = most.max(living().count());
    }
    assert_eq!((fewest, most), (3, 5), "the fewest that were ready, the most that were there");
}

/// KA, Beyond 3: an image that nobody can pull takes no more pods away than may be missing, and runs out of time. Then, as `kubectl
/// rollout undo` does it, the template of the revision before is put back.
#[tokio::test(start_paused = true)]
async fn a_rollout_of_a_bad_image_is_given_up_and_undone() {
    let lab = Lab::with_web(4).await;
    let good = all(&lab.replica_sets).await.remove(0);
    let container = json!({"name": "web", "image": "nginx:nope"});
    let waits = json!({"annotations": {"kubewright.dev/waiting": "ImagePullBackOff"}});
    lab.patch_web(json!({"spec": {"template": {"metadata": waits, "spec": {"containers": [container]}}}}))
        .await;
    let told = async || {
        let status = lab.deployments.get("web").await.unwrap().status.unwrap();
        let conditions = status.conditions.unwrap_or_default();
        let progressing = conditions.into_iter().find(|one| one.type_ == "Progressing").unwrap();
        (status.available_replicas, progressing.status, progressing.reason.unwrap_or_default())
    };
    assert_eq!(told().await, (Some(3), "True".to_owned(), "ReplicaSetUpdated".to_owned()));
    tokio::time::sleep(Duration::from_secs(601)).await;
    assert_eq!(told().await, (Some(3), "False".to_owned(), "ProgressDeadlineExceeded".to_owned()));

    let mut template =
        kubewright_objects::to_value(good.spec.as_ref().unwrap().template.as_ref().unwrap()).unwrap();
    template["metadata"]["labels"].as_object_mut().unwrap().remove("pod-template-hash");
    let undo = json!([{"op": "replace", "path": "/spec/template", "value": template}]);
    let undo = Patch::<Deployment>::Json(kubewright_objects::from_value(undo).unwrap());
    lab.deployments.patch("web", &PatchParams::default(), &undo).await.unwrap();
    lab.cluster.settle().await;
    assert_eq!(told().await, (Some(4), "True".to_owned(), "NewReplicaSetAvailable".to_owned()));
    let sets = all(&lab.replica_sets).await;
    let sizes: BTreeSet<_> = sets.iter().map(|set| (set.uid() == good.uid(), replicas(set))).collect();
    assert_eq!(sizes, BTreeSet::from([(true, Some(4)), (false, Some(0))]), "no third one");
    assert!(all(&lab.pods).await.iter().all(|pod| owner(pod) == good.uid() && is_ready(pod)));
}

#[tokio::test(start_paused = true)]
async fn ka_10_the_pods_of_a_dead_node_are_replaced_on_another() {
    let lab = Lab::with_web(4).await;
    let on = |pods: Vec<Pod>, node: &str| {
        let placed = |pod: &&Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(node);
        let living = |pod: &&Pod| pod.metadata.deletion_timestamp.is_none();
        pods.iter().filter(placed).filter(living).count()
    };
    assert!(on(all(&lab.pods).await, "node-0") > 0, "there is something to lose");
    let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(lab.cluster.client());
    let stopped = Patch::Merge(json!({"metadata": {"annotations": {"kubewright.dev/kubelet": "stopped"}}}));
    nodes.patch("node-0", &PatchParams::default(), &stopped).await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    lab.cluster.settle().await;
    assert_eq!(on(all(&lab.pods).await, "node-1"), 4);
}

#[tokio::test(start_paused = true)]
async fn ka_11_with_a_deployment_goes_what_it_made_but_for_orphans() {
    let lab = Lab::with_web(2).await;
    lab.deployments.delete("web", &DeleteParams::default()).await.unwrap();
    lab.cluster.settle().await;
    assert_eq!(all(&lab.replica_sets).await, []);
    assert_eq!(all(&lab.pods).await, []);

    let lab = Lab::with_web(2).await;
    let orphan =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    lab.deployments.delete("web", &orphan).await.unwrap();
    lab.cluster.settle().await;
    let sets = all(&lab.replica_sets).await;
    assert_eq!(sets.iter().map(owner).collect::<Vec<_>>(), [None]);
    assert_eq!(all(&lab.pods).await.len(), 2);
}

/// A cloud's load balancers, as far as a controller knows them.
#[derive(Clone, Default)]
struct Cloud(Arc<Mutex<BTreeSet<String>>>);

impl Reconciler for Cloud {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let balanced = |service: &Service| {
            service.spec.as_ref().and_then(|spec| spec.type_.as_deref()) == Some("LoadBalancer")
        };
        let wanted = ctx.get::<Service>(key).is_some_and(|service| balanced(&service));
        if !wanted {
            self.0.lock().remove(&key.name);
            return Ok(Outcome::Done);
        }
        if self.0.lock().insert(key.name.clone()) {
            let address = json!({"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.7"}]}}});
            ctx.patch_status::<Service>(key, address).await?;
        }
        Ok(Outcome::Done)
    }
}

#[tokio::test(start_paused = true)]
async fn ka_12_a_controller_makes_a_load_balancer_outside_of_kubernetes() {
    let lab = Lab::start("*", 1).await;
    let services: Api<Service> = Api::default_namespaced(lab.cluster.client());
    let service = kubewright_objects::from_value(json!({
        "metadata": {"name": "web"}, "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
    }));
    services.create(&PostParams::default(), &service.unwrap()).await.unwrap();
    lab.cluster.settle().await;
    let addresses = |service: Service| {
        let balancer = service.status.and_then(|status| status.load_balancer);
        balancer.and_then(|one| one.ingress).unwrap_or_default().into_iter().filter_map(|one| one.ip)
    };
    let before: Vec<String> = addresses(services.get("web").await.unwrap()).collect();
    assert_eq!(before, [] as [&str; 0], "nothing in Kubernetes makes one");

    let cloud = Cloud::default();
    let mut manager = Manager::new(lab.cluster.client(), lab.cluster.world().clone());
    manager.add(Controller::new("cloud", cloud.clone()).for_kind::<Service>());
    let running = tokio::spawn(manager.run(lab.cluster.shutdown()));
    lab.cluster.settle().await;
    let then: Vec<String> = addresses(services.get("web").await.unwrap()).collect();
    assert_eq!(then, ["203.0.113.7"]);
    services.delete("web", &DeleteParams::default()).await.unwrap();
    lab.cluster.settle().await;
    assert!(cloud.0.lock().is_empty());
    lab.cluster.stop().await;
    running.await.unwrap().unwrap();
}

/// Whatever writes a ReplicaSet, the controller of ReplicaSets acts on it: here a hand does what the Deployment controller would.
#[tokio::test(start_paused = true)]
async fn ka_13_controllers_meet_in_objects_alone() {
    let lab = Lab::start("*,-deployment-controller", 1).await;
    let web = lab.create_web(2).await;
    lab.cluster.settle().await;
    assert_eq!(all(&lab.replica_sets).await, []);
    let spec = web.spec.unwrap();
    let set = ReplicaSet {
        metadata: kubewright_objects::from_value(json!({"name": "by-hand"})).unwrap(),
        spec: Some(k8s_openapi::api::apps::v1::ReplicaSetSpec {
            replicas: spec.replicas,
            selector: spec.selector,
            template: Some(spec.template),
            ..Default::default()
        }),
        status: None,
    };
    lab.replica_sets.create(&PostParams::default(), &set).await.unwrap();
    lab.cluster.settle().await;
    assert_eq!(all(&lab.pods).await.len(), 2);
}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Greeting", namespaced)]
struct GreetingSpec {
    whom: String,
}

/// Keeps the names of the Greetings that it has seen.
struct Greeter(Arc<Mutex<Vec<String>>>);

impl Reconciler for Greeter {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        if let Some(greeting) = ctx.get::<Greeting>(key) {
            self.0.lock().push(greeting.spec.whom.clone());
        }
        Ok(Outcome::Done)
    }
}

#[tokio::test(start_paused = true)]
async fn ka_14_a_kind_of_ones_own_is_watched_and_acted_on() {
    let lab = Lab::start("", 0).await;
    let definitions = Api::all(lab.cluster.client());
    definitions.create(&PostParams::default(), &Greeting::crd()).await.unwrap();
    let greeted = Arc::new(Mutex::new(Vec::new()));
    let mut manager = Manager::new(lab.cluster.client(), lab.cluster.world().clone());
    manager.add(Controller::new("greeter", Greeter(Arc::clone(&greeted))).for_kind::<Greeting>());
    let running = tokio::spawn(manager.run(lab.cluster.shutdown()));
    let greetings: Api<Greeting> = Api::default_namespaced(lab.cluster.client());
    let world = Greeting::new("world", GreetingSpec { whom: "world".to_owned() });
    greetings.create(&PostParams::default(), &world).await.unwrap();
    lab.cluster.settle().await;
    assert_eq!(*greeted.lock(), ["world"]);
    lab.cluster.stop().await;
    running.await.unwrap().unwrap();
}

#[test]
fn ka_15_an_operator_is_a_program_of_one_or_more_controllers() {
    let controller = || Controller::new("greeter", Greeter(Arc::default())).for_kind::<Greeting>();
    let operator = Operator::new("hospitality", "1.0.0").definition::<Greeting>();
    let operator = operator.controller(controller).controller(|| {
        Controller::new("doorman", Greeter(Arc::default())).for_kind::<Greeting>().owns::<Service>()
    });
    let rights = format!("{:?}", operator.rights());
    assert!(rights.contains("greetings") && rights.contains("services"), "those of both: {rights}");
}
