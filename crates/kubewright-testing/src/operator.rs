//! Operators in a test: installed, under their own account and rights, and with an end that the test decides on.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use kubewright_runtime::command::{Installation, Operator, Run};
use kubewright_runtime::{CancellationToken, Error, Manager};
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::Cluster;

type Make = Arc<dyn Fn() -> Operator + Send + Sync>;

/// An operator that is about to be installed and run: `.await` does so.
#[must_use = "it is installed and runs when it is awaited"]
pub struct Deploy {
    cluster: Cluster,
    make: Make,
    replicas: usize,
}

/// An operator that runs in the cluster of a test. Clones are of the same one; it runs until it is stopped, or the cluster
/// ends.
#[derive(Clone)]
pub struct Deployed(Arc<Inner>);

struct Inner {
    cluster: Cluster,
    make: Make,
    name: String,
    namespace: String,
    replicas: Mutex<Vec<Replica>>,
    number: usize,
}

struct Replica {
    stop: CancellationToken,
    task: JoinHandle<Result<(), Error>>,
}

impl Cluster {
    /// Installs an operator and runs it: the definitions of its kinds, its account and the rights that were generated for
    /// it are created, and its manager runs as that account and with no other rights. `operator` is the function that
    /// makes it, which a restart calls again as a new process would:
    ///
    /// ```no_run
    /// # use kubewright_runtime::command::Operator;
    /// # fn operator() -> Operator { Operator::new("greeter", "1.0") }
    /// # async fn example(cluster: kubewright_testing::Cluster) {
    /// let greeter = cluster.run(operator).await;
    /// greeter.crash().await;
    /// greeter.restart().await;
    /// # }
    /// ```
    pub fn run(&self, operator: impl Fn() -> Operator + Send + Sync + 'static) -> Deploy {
        Deploy { cluster: self.clone(), make: Arc::new(operator), replicas: 1 }
    }
}

impl Deploy {
    /// So many of it; more than one elect a leader.
    pub fn replicas(mut self, number: usize) -> Self {
        self.replicas = number;
        self
    }

    async fn deploy(self) -> Deployed {
        let Self { cluster, make, replicas: number } = self;
        let operator = make();
        let installation = Installation::default();
        let name = operator.name().to_owned();
        let namespace = format!("{name}-system");
        let objects =
            operator.manifests(&installation).unwrap_or_else(|error| panic!("operator {name}: {error}"));
        for object in objects {
            if !is_of_its_pods(&object, &name, &namespace) {
                install(&cluster, &object).await;
            }
        }
        let inner =
            Inner { cluster: cluster.clone(), make, name, namespace, replicas: Mutex::default(), number };
        let deployed = Deployed(Arc::new(inner));
        deployed.start();
        cluster.add_operator(deployed.clone());
        deployed
    }
}

impl IntoFuture for Deploy {
    type Output = Deployed;
    type IntoFuture = Pin<Box<dyn Future<Output = Deployed>>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.deploy())
    }
}

/// Whether an object is of the pods in which the operator would run, if it did not run here.
fn is_of_its_pods(object: &DynamicObject, name: &str, namespace: &str) -> bool {
    let kind = object.types.as_ref().map(|types| types.kind.as_str());
    let own = object.metadata.name.as_deref().unwrap_or_default();
    object.metadata.namespace.as_deref() == Some(namespace)
        && match kind {
            Some("Deployment") => own == name,
            Some("Service") => own.strip_prefix(name) == Some("-metrics"),
            _ => false,
        }
}

async fn install(cluster: &Cluster, object: &DynamicObject) {
    let types = object.types.as_ref().unwrap_or_else(|| panic!("a manifest without a kind: {object:?}"));
    let kind = GroupVersionKind::try_from(types).unwrap_or_else(|error| panic!("a manifest: {error}"));
    let kind = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(cluster.client(), namespace, &kind),
        None => Api::all_with(cluster.client(), &kind),
    };
    if let Err(error) = api.create(&PostParams::default(), object).await {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        panic!("the operator cannot be installed: {} {name}: {error}", types.kind);
    }
}

impl Deployed {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Ends it as a rolling update does, and starts it anew.
    pub async fn restart(&self) {
        self.stop().await;
        self.start();
    }

    /// Ends it in the middle of what it is at, as a kill does: nothing is finished, no lease is released. It is not started
    /// anew before [`Self::restart`].
    pub async fn crash(&self) {
        let replicas = std::mem::take(&mut *self.0.replicas.lock());
        for replica in &replicas {
            replica.task.abort();
        }
        for replica in replicas {
            // That it was aborted.
            let _ = replica.task.await;
        }
    }

    /// Asks it to end, and waits until it has.
    pub async fn stop(&self) {
        let replicas = std::mem::take(&mut *self.0.replicas.lock());
        for replica in &replicas {
            replica.stop.cancel();
        }
        for replica in replicas {
            match replica.task.await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => panic!("operator {}: {error}", self.0.name),
                Err(error) => panic!("operator {}: {error}", self.0.name),
            }
        }
    }

    fn start(&self) {
        let mut replicas = self.0.replicas.lock();
        for _ in 0..self.0.number {
            replicas.push(self.replica());
        }
    }

    fn replica(&self) -> Replica {
        let Inner { cluster, make, name, namespace, number, .. } = &*self.0;
        let client = cluster.client_of_service_account(namespace, name);
        let manager = Manager::in_process(client, cluster.world().clone());
        let run = Run {
            leader_elect: *number > 1,
            leader_elect_resource_namespace: Some(namespace.clone()),
            ..Run::default()
        };
        let manager =
            make().manager(manager, &run).unwrap_or_else(|error| panic!("operator {name}: {error}"));
        let stop = cluster.shutdown().child_token();
        Replica { task: tokio::spawn(manager.run(stop.clone())), stop }
    }
}
