//! What a cluster is made of.

use std::sync::Arc;

use kubewright_apiserver::authn::{Authenticator, Secret};
use kubewright_apiserver::bootstrap::bootstrap;
use kubewright_apiserver::http::{ApiServer, Config};
use kubewright_apiserver::registry::{Registry, Summary};
use kubewright_controllers::{Setup, UnknownController};
use kubewright_store::{Memory, Store};
use kubewright_world::World;
use tokio_util::sync::CancellationToken;

use crate::cluster::administrator;
use crate::{Cluster, DataDirectory, DataError, Endpoint};

/// Why a cluster did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The list of controllers is wrong.
    #[error(transparent)]
    Controllers(#[from] UnknownController),
    /// The machine gives no entropy for keys.
    #[error("no key for service account tokens: {0}")]
    Key(String),
    /// The key for tokens was not kept well.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The objects of a new cluster were refused.
    #[error("the first objects could not be written: {0}")]
    Bootstrap(#[from] kubewright_apiserver::ApiError),
}

/// Settings of a [`Cluster`]; all have defaults.
#[derive(Debug)]
pub struct Builder {
    world: Option<World>,
    seed: u64,
    controllers: String,
    nodes: usize,
    endpoint: Option<Endpoint>,
    admin_token: Option<Secret>,
    data: Option<DataDirectory>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            world: None,
            seed: 0,
            controllers: "*".to_owned(),
            nodes: 1,
            endpoint: None,
            admin_token: None,
            data: None,
        }
    }
}

impl Builder {
    /// The seed of a simulated world: uids, names and all that is left to chance. Default 0.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Another world than a simulated one (whose time is tokio's clock), such as [`World::real`].
    #[must_use]
    pub fn world(mut self, world: World) -> Self {
        self.world = Some(world);
        self
    }

    /// Which built-in controllers run, as kube-controller-manager's `--controllers` says it: `*` for all (the default),
    /// `*,-deployment` for all but one, `garbagecollector,namespace` for these alone, an empty text for none.
    #[must_use]
    pub fn controllers(mut self, selection: impl Into<String>) -> Self {
        self.controllers = selection.into();
        self
    }

    /// How many simulated nodes there are. Default 1. With 0 nothing places or runs pods, on nodes that somebody
    /// creates neither.
    #[must_use]
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    /// Serves the API over HTTPS as well. Without, there is no socket, and pods find an empty `ca.crt`.
    #[must_use]
    pub fn endpoint(mut self, endpoint: Endpoint) -> Self {
        self.endpoint = Some(endpoint);
        self
    }

    /// Who shows this bearer token is the administrator (`system:masters`).
    #[must_use]
    pub fn admin_token(mut self, token: Secret) -> Self {
        self.admin_token = Some(token);
        self
    }

    /// Keeps the cluster in a folder, and goes on with what is there. A cluster without lives in memory.
    ///
    /// For real worlds: a disk takes its own time, which no paused clock knows of.
    #[must_use]
    pub fn data(mut self, data: DataDirectory) -> Self {
        self.data = Some(data);
        self
    }

    /// Starts the cluster: when this returns the API answers, and the controllers are on their way.
    ///
    /// # Errors
    /// [`StartError`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn start(self) -> Result<Cluster, StartError> {
        let controllers = kubewright_controllers::select(&self.controllers)?;
        let ca = self.endpoint.as_ref().map(Endpoint::ca_pem).unwrap_or_default();
        let setup = Setup { ca, nodes: self.nodes };
        let world = self.world.unwrap_or_else(|| World::simulated(self.seed));
        let (store, mut authenticator): (Arc<dyn Store<Summary>>, _) = match self.data {
            Some(data) => {
                let authenticator = Authenticator::with_key(&world, data.token_key()?);
                (Arc::new(data.store), authenticator)
            }
            None => {
                let authenticator =
                    Authenticator::new(&world).map_err(|error| StartError::Key(error.to_string()))?;
                (Arc::new(Memory::new()), authenticator)
            }
        };
        let registry = Arc::new(Registry::new(world.clone(), store));
        bootstrap(&registry).await?;
        if let Some(token) = &self.admin_token {
            authenticator = authenticator.with_token(token, administrator());
        }
        let shutdown = CancellationToken::new();
        let server = ApiServer::new(Config {
            registry,
            authenticator,
            shutdown: shutdown.clone(),
            address: self
                .endpoint
                .as_ref()
                .map_or_else(|| "in-process".to_owned(), |endpoint| endpoint.address().to_string()),
        });
        let mut cluster = Cluster::new(server, world, shutdown);
        if let Some(endpoint) = self.endpoint {
            cluster.serve(endpoint);
        }
        cluster.run(&controllers, &setup);
        Ok(cluster)
    }
}
