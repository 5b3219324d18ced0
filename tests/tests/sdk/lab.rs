//! What a test of the SDK runs against: the embedded control plane in virtual time, or the Kubernetes that
//! [`KUBECONFIG`] names, in a namespace of its own.

use std::{cell::Cell, env, fmt::Write as _, io::Write as _, time::Duration};

use kube::{
    Api, Client, Config, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use kubewright_cluster::Cluster;
use kubewright_runtime::{Key, Manager, World};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::link::{Link, Requests};

/// The variable that names a kubeconfig to test against. Not `KUBECONFIG`: the tests create, break and delete, and a shell
/// often has one that leads to a cluster that matters.
const KUBECONFIG: &str = "KUBEWRIGHT_TEST_KUBECONFIG";

/// Every namespace has it, sooner or later: the root CA publisher's.
pub(crate) const ROOT_CA: &str = "kube-root-ca.crt";

/// A field selector without that one.
pub(crate) const OURS: &str = "metadata.name!=kube-root-ca.crt";

/// How long something may take that a Kubernetes does by itself.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why a test cannot run against a real Kubernetes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Only {
    /// It waits for minutes, hours or years.
    LongTimes,
    /// It asserts to the millisecond when something happens, or that a seed gives the same story again.
    ExactTimes,
    /// It moves the clock.
    MovedClock,
    /// It takes thousands of requests.
    Load,
    /// Controllers would write to the same objects.
    Undisturbed,
    /// It counts tasks, of which connections have some of their own.
    Tasks,
    /// It defines a kind, which is the whole cluster's.
    Definitions,
}

thread_local! {
    /// Whether this test's time is not, or no longer, paused.
    static RUNS_BY_THE_WALL: Cell<bool> = const { Cell::new(false) };
}

enum Plane {
    Embedded(Cluster),
    Real(Box<Config>),
}

/// A Kubernetes for one test.
pub(crate) struct Lab {
    plane: Plane,
    /// Past the link, and allowed everything.
    admin: Client,
    /// What lies between the tested operator and the API server.
    link: Link,
    namespace: String,
    further: Vec<String>,
    requests: Requests,
}

impl Lab {
    /// The Kubernetes that the environment names, or an embedded one.
    pub(crate) async fn new() -> Self {
        Self::with_controllers("*").await
    }

    /// As [`Lab::new`]; an embedded one with these built-in controllers.
    async fn with_controllers(selection: &str) -> Self {
        let plane = match env::var_os(KUBECONFIG) {
            Some(path) => {
                if !RUNS_BY_THE_WALL.replace(true) {
                    tokio::time::resume();
                }
                let kubeconfig = Kubeconfig::read_from(path).expect("a kubeconfig");
                let options = KubeConfigOptions::default();
                Plane::Real(Box::new(
                    Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("settings"),
                ))
            }
            // Without nodes, as a bare kube-apiserver with its controller manager.
            None => {
                let cluster = Cluster::builder().nodes(0).controllers(selection).start().await;
                Plane::Embedded(cluster.expect("a cluster"))
            }
        };
        let (admin, suffix) = match &plane {
            Plane::Embedded(cluster) => (cluster.client(), cluster.world().dice.suffix(8)),
            Plane::Real(config) => {
                let client = Client::try_from(Config::clone(config)).expect("a client");
                (client, World::real().dice.suffix(8))
            }
        };
        let requests = Requests::default();
        let link = Link::new(0, admin.clone(), requests.clone());
        let lab =
            Self { plane, admin, link, namespace: format!("sdk-{suffix}"), further: Vec::new(), requests };
        lab.create_namespace(&lab.namespace.clone()).await;
        lab
    }

    /// As [`Lab::new`], for a test with sockets of its own, whose time is never paused.
    pub(crate) async fn by_the_wall() -> Self {
        RUNS_BY_THE_WALL.set(true);
        Self::new().await
    }

    /// As [`Lab::only_embedded`], without the controllers that write to Deployments.
    #[track_caller]
    pub(crate) fn without_rollouts() -> impl Future<Output = Option<Self>> {
        let only_embedded = Self::only_embedded(Only::Undisturbed);
        async move {
            only_embedded.await?;
            Some(Self::with_controllers("*,-deployment,-replicaset").await)
        }
    }

    /// An embedded one; nothing, and a line that says why, where a real one is asked for.
    #[track_caller]
    pub(crate) fn only_embedded(why: Only) -> impl Future<Output = Option<Self>> {
        let place = std::panic::Location::caller();
        async move {
            if env::var_os(KUBECONFIG).is_none() {
                return Some(Self::new().await);
            }
            let thread = std::thread::current();
            let test = thread.name().unwrap_or("a test");
            // Past libtest, which keeps what a test that passes prints to itself.
            let _ = writeln!(std::io::stderr(), "skipped {test} ({}): {why:?}", place.file());
            None
        }
    }

    pub(crate) fn is_real(&self) -> bool {
        matches!(self.plane, Plane::Real(_))
    }

    /// The test's namespace.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// A further namespace, whose name ends so.
    pub(crate) async fn another_namespace(&mut self, name: &str) -> String {
        let name = format!("{}-{name}", self.namespace);
        self.create_namespace(&name).await;
        self.further.push(name.clone());
        name
    }

    async fn create_namespace(&self, name: &str) {
        let core = |kind, plural| resource("", "v1", kind, plural);
        let namespaces = Api::<DynamicObject>::all_with(self.admin.clone(), &core("Namespace", "namespaces"));
        let namespace = object(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
        namespaces.create(&PostParams::default(), &namespace).await.expect("a namespace");
        // Both come by themselves; Pods need the one, and the other would be a surprise later on.
        for (kind, name_of_it) in [
            (core("ServiceAccount", "serviceaccounts"), "default"),
            (core("ConfigMap", "configmaps"), ROOT_CA),
        ] {
            let api = Api::<DynamicObject>::namespaced_with(self.admin.clone(), name, &kind);
            let began = Instant::now();
            while api.get_opt(name_of_it).await.expect("an answer").is_none() {
                assert!(began.elapsed() < PATIENCE, "{name} has no {name_of_it}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    /// The key of this name in the test's namespace.
    pub(crate) fn key(&self, name: &str) -> Key {
        Key::namespaced(&self.namespace, name)
    }

    /// A client past the link.
    pub(crate) fn admin(&self) -> Client {
        self.admin.clone()
    }

    /// The client of the tested operator.
    pub(crate) fn client(&self) -> Client {
        self.link.client()
    }

    /// What lies between the client and the server.
    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    /// A way of its own to the server, for one replica of several.
    pub(crate) fn another_link(&self, seed: u64) -> Link {
        Link::new(seed, self.admin.clone(), self.requests.clone())
    }

    /// A way to the server as a service account of the test's namespace, which has no rights but those that all have.
    pub(crate) fn link_as_service_account(&self, name: &str) -> Link {
        let client = match &self.plane {
            Plane::Embedded(cluster) => cluster.client_of_service_account(&self.namespace, name),
            Plane::Real(config) => {
                let mut config = Config::clone(config);
                let user = format!("system:serviceaccount:{}:{name}", self.namespace);
                config.auth_info.impersonate = Some(user);
                Client::try_from(config).expect("a client")
            }
        };
        Link::new(0, client, self.requests.clone())
    }

    /// The world of an operator.
    pub(crate) fn world(&self, seed: u64) -> World {
        if self.is_real() { World::seeded(seed) } else { World::simulated(seed) }
    }

    /// A manager that looks at the test's namespace.
    pub(crate) fn manager(&self) -> Manager {
        self.manager_by(&self.link, 1)
    }

    /// The same, by another link.
    pub(crate) fn manager_by(&self, link: &Link, seed: u64) -> Manager {
        self.manager_of(link.client(), seed)
    }

    /// The same, by another client.
    pub(crate) fn manager_of(&self, client: Client, seed: u64) -> Manager {
        self.manager_in(client, self.world(seed))
    }

    /// The same, in another world.
    pub(crate) fn manager_in(&self, client: Client, world: World) -> Manager {
        let mut manager = Manager::new(client, world);
        manager.watch_namespaces([self.namespace.clone()]);
        manager
    }

    fn api(&self, namespace: &str, plural: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.admin.clone(), namespace, &known(plural))
    }

    /// Writes as somebody else: creates the object, or makes it so. A status is written where statuses are.
    pub(crate) async fn put(&self, plural: &str, name: &str, body: Value) -> Value {
        self.put_in(&self.namespace, plural, name, body).await
    }

    /// The same in another namespace.
    pub(crate) async fn put_in(&self, namespace: &str, plural: &str, name: &str, mut body: Value) -> Value {
        let (api, kind) = (self.api(namespace, plural), known(plural));
        body["apiVersion"] = json!(kind.api_version);
        body["kind"] = json!(kind.kind);
        body["metadata"]["name"] = json!(name);
        body["metadata"]["namespace"] = json!(namespace);
        let status = body.get("status").filter(|status| !status.is_null()).cloned();
        loop {
            let stored = api.get_opt(name).await.expect("an answer");
            let mut body = body.clone();
            let written = match &stored {
                None => {
                    if plural == "pods" && body["spec"].is_null() {
                        body["spec"] = json!({"containers": [{"name": "main", "image": "nothing"}]});
                    }
                    api.create(&PostParams::default(), &object(body)).await
                }
                Some(stored) => {
                    body["metadata"]["resourceVersion"] = json!(stored.resource_version());
                    if body["spec"].is_null() && !stored.data["spec"].is_null() {
                        body["spec"] = stored.data["spec"].clone();
                    }
                    api.replace(name, &PostParams::default(), &object(body)).await
                }
            };
            let mut written = match written {
                Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => {
                    continue;
                }
                written => written.expect("it is written"),
            };
            if let Some(status) = &status {
                written.data["status"] = status.clone();
                match api.replace_status(name, &PostParams::default(), &written).await {
                    Err(kube::Error::Api(status)) if status.is_conflict() => continue,
                    answer => written = answer.expect("its status is written"),
                }
            }
            return kubewright_objects::to_value(&written).expect("JSON");
        }
    }

    /// Deletes as somebody else, if it is there.
    pub(crate) async fn remove(&self, plural: &str, name: &str) {
        match self.api(&self.namespace, plural).delete(name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            answer => drop(answer.expect("it is deleted")),
        }
    }

    /// What is stored, if it is there.
    pub(crate) async fn stored(&self, plural: &str, name: &str) -> Option<Value> {
        let stored = self.api(&self.namespace, plural).get_opt(name).await.expect("an answer");
        stored.map(|stored| kubewright_objects::to_value(&stored).expect("JSON"))
    }

    /// The names of what is stored.
    pub(crate) async fn names(&self, plural: &str) -> Vec<String> {
        let all = self.api(&self.namespace, plural).list(&ListParams::default()).await.expect("a list");
        all.iter().map(ResourceExt::name_any).filter(|name| name != ROOT_CA).collect()
    }

    /// The events that somebody recorded, in the form of `events.k8s.io` or of the core API.
    pub(crate) async fn events_of(&self, reporter: &str, plural: &str) -> Vec<Value> {
        let all = self.api(&self.namespace, plural).list(&ListParams::default()).await.expect("a list");
        let all = all.into_iter().map(|event| kubewright_objects::to_value(&event).expect("JSON"));
        let is_theirs = |event: &Value| {
            event["reportingController"] == reporter || event["reportingComponent"] == reporter
        };
        all.filter(is_theirs).collect()
    }

    /// The requests of clients so far, `METHOD path`.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.all()
    }

    /// How many lists and watches of a resource there were.
    pub(crate) fn reads_of(&self, plural: &str) -> usize {
        let end = format!("/{plural}");
        self.requests().iter().filter(|line| line.starts_with("GET") && line.ends_with(&end)).count()
    }

    /// Lets everything happen that happens at once: a second in virtual time; otherwise until nothing has passed between
    /// operator and server for a while.
    pub(crate) async fn settle(&self) {
        const QUIET: Duration = Duration::from_millis(600);
        if !self.is_real() {
            return tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let (began, mut since, mut seen) = (Instant::now(), Instant::now(), self.requests.traffic());
        while since.elapsed() < QUIET && began.elapsed() < Duration::from_secs(10) {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let now = self.requests.traffic();
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
        }
    }

    /// How much later something may be than it is due: nothing that counts in virtual time.
    pub(crate) fn tolerance(&self) -> Duration {
        Duration::from_millis(if self.is_real() { 1_000 } else { 5 })
    }

    /// Lets time pass in which nothing is to happen: all of it in virtual time, a few seconds of it otherwise.
    pub(crate) async fn pass(&self, time: Duration) {
        let longest = if self.is_real() { Duration::from_secs(3) } else { Duration::MAX };
        tokio::time::sleep(time.min(longest)).await;
    }

    /// Waits until something is so; `within` in virtual time, with patience otherwise.
    #[track_caller]
    pub(crate) fn until<F>(&self, within: Duration, is_so: F) -> impl Future<Output = ()> + use<F>
    where
        F: FnMut() -> bool,
    {
        let place = std::panic::Location::caller();
        let within = if self.is_real() { within.max(PATIENCE) } else { within };
        let mut is_so = is_so;
        async move {
            let began = Instant::now();
            while !is_so() {
                assert!(began.elapsed() <= within, "{place}: not so within {within:?}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

impl Drop for Lab {
    /// Namespaces of the embedded control plane end with it; others are deleted, even when the test failed. The test's own
    /// runtime cannot do it: it ends as well.
    #[expect(clippy::disallowed_methods, reason = "this is outside of every simulation")]
    fn drop(&mut self) {
        let Plane::Real(config) = &self.plane else { return };
        let (config, mut names) = (Config::clone(config), std::mem::take(&mut self.further));
        names.push(self.namespace.clone());
        let deleting = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let client = Client::try_from(config)?;
                let kind = resource("", "v1", "Namespace", "namespaces");
                let namespaces = Api::<DynamicObject>::all_with(client, &kind);
                for name in names {
                    namespaces.delete(&name, &DeleteParams::default()).await?;
                }
                Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
            })
        });
        let mut told = String::new();
        if let Ok(Err(error)) = deleting.join() {
            let _ = write!(told, "the namespace {} stays: {error}", self.namespace);
        }
        eprint!("{told}");
    }
}

fn object(body: Value) -> DynamicObject {
    kubewright_objects::from_value(body).expect("an object")
}

fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") },
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

/// The kinds that tests write.
fn known(plural: &str) -> ApiResource {
    match plural {
        "configmaps" => resource("", "v1", "ConfigMap", plural),
        "secrets" => resource("", "v1", "Secret", plural),
        "pods" => resource("", "v1", "Pod", plural),
        "services" => resource("", "v1", "Service", plural),
        "deployments" => resource("apps", "v1", "Deployment", plural),
        "core events" => resource("", "v1", "Event", "events"),
        "events" => resource("events.k8s.io", "v1", "Event", plural),
        "leases" => resource("coordination.k8s.io", "v1", "Lease", plural),
        other => panic!("the tests know no {other}"),
    }
}
