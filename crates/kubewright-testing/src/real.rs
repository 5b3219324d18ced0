//! A cluster that is none of this process: that of a kubeconfig.

use std::panic::{AssertUnwindSafe, resume_unwind};

use futures::FutureExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::ObjectMeta;
use kube::{Client, Config};
use kubewright_world::World;
use tokio_util::sync::CancellationToken;

use crate::harness::{Termination, Test};
use crate::{Cluster, Deployed, panics};

/// The variable of the environment that names the cluster for tests with `real = true`.
const KUBECONFIG: &str = "KUBEWRIGHT_TEST_KUBECONFIG";

/// What a test needs of a cluster that it does not make.
pub(crate) struct Real {
    config: Config,
    pub(crate) client: Client,
    pub(crate) world: World,
    pub(crate) stop: CancellationToken,
}

impl Real {
    async fn connect(kubeconfig: &str) -> Result<Self, Box<dyn std::error::Error>> {
        let file = Kubeconfig::read_from(kubeconfig)?;
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        let client = Client::try_from(config.clone())?;
        Ok(Self { config, client, world: World::real(), stop: CancellationToken::new() })
    }

    /// A client for an operator: it acts as its service account.
    pub(crate) fn client_of(&self, namespace: &str, account: &str) -> kube::Result<Client> {
        let mut config = self.config.clone();
        config.auth_info.impersonate = Some(format!("system:serviceaccount:{namespace}:{account}"));
        config.default_namespace = namespace.to_owned();
        Client::try_from(config)
    }
}

/// Runs a body against the cluster of a kubeconfig, in real time.
///
/// # Panics
/// When it fails, or the environment does not say which cluster.
pub(crate) fn run<B, F>(test: &Test, body: B)
where
    B: Fn(Cluster) -> F,
    F: Future<Output: Termination>,
{
    let Ok(kubeconfig) = std::env::var(KUBECONFIG) else {
        panic!(
            "{KUBECONFIG} is not set: it names the kubeconfig of a cluster in which tests may do what they want"
        );
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.unwrap_or_else(|error| panic!("no runtime for the test: {error}"));
    let noted = panics::note(true);
    let ended = runtime.block_on(async {
        let real = Real::connect(&kubeconfig).await.unwrap_or_else(|error| panic!("{kubeconfig}: {error}"));
        let (client, stop) = (real.client.clone(), real.stop.clone());
        let namespaces = namespaces(test, &client).await;
        let cluster = Cluster::real(real, &namespaces[0]);
        let ended = AssertUnwindSafe(body(cluster.clone())).catch_unwind().await;
        stop.cancel();
        for name in namespaces {
            // The body's own failure is worth more than one to clean up.
            let _ = Api::<Namespace>::all(client.clone()).delete(&name, &DeleteParams::default()).await;
        }
        ended.map(|ended| {
            ended.failure().err().or_else(|| cluster.operators().iter().find_map(Deployed::failure))
        })
    });
    drop(runtime);
    match (ended, noted.taken().as_slice()) {
        (Err(panic), _) => resume_unwind(panic),
        (Ok(Some(why)), _) => panic!("{why}"),
        (Ok(None), []) => {}
        (Ok(None), elsewhere) => panic!("a task panicked while the test ran:\n{}", elsewhere.join("\n")),
    }
}

/// Creates the test's namespaces, or one of its own.
async fn namespaces(test: &Test, client: &Client) -> Vec<String> {
    let named = test
        .namespaces
        .iter()
        .map(|name| ObjectMeta { name: Some((*name).to_owned()), ..ObjectMeta::default() });
    let mut wanted: Vec<_> = named.collect();
    if wanted.is_empty() {
        wanted
            .push(ObjectMeta { generate_name: Some("kubewright-test-".to_owned()), ..ObjectMeta::default() });
    }
    let mut names = Vec::new();
    for metadata in wanted {
        let namespace = Namespace { metadata, ..Namespace::default() };
        let made = Api::all(client.clone()).create(&PostParams::default(), &namespace).await;
        let made: Namespace = made.unwrap_or_else(|error| panic!("the test's namespace: {error}"));
        names.extend(made.metadata.name);
    }
    names
}
