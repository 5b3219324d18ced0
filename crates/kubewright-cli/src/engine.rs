//! The control plane as `up` uses it: the one file that knows how a cluster and its endpoint are put together.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, anyhow};
use kube::Client;
use kubewright_cluster::{Cluster, DataDirectory, Endpoint, Secret, ServeError};
use kubewright_runtime::webhook;
use kubewright_world::World;

use crate::{
    args::{RuntimeKind, UpArgs},
    kubeconfig::Access,
    process_node::Machine,
};

/// A cluster that is served on a port of this machine.
pub(crate) struct Engine {
    cluster: Cluster,
    access: Access,
    machine: Option<Machine>,
}

impl Engine {
    /// Takes the port, starts the cluster, and serves it.
    ///
    /// # Errors
    /// When the port or the data cannot be had, a controller has an unknown name, or the machine gives no keys.
    pub(crate) async fn start(args: &UpArgs) -> anyhow::Result<Self> {
        let world = args.seed.map_or_else(World::real, World::seeded);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
        let mut builder = Cluster::builder().admin(args.admin);
        let (endpoint, token) = match &args.data {
            Some(path) => {
                let data = DataDirectory::open(path, &world).context("--data")?;
                let endpoint = Endpoint::bind_with_data(address, &world, &data).await.map_err(with_remedy)?;
                let token = data.admin_token()?;
                builder = builder.data(data);
                (endpoint, token)
            }
            None => {
                let endpoint = Endpoint::bind(address, &world).await.map_err(with_remedy)?;
                let token =
                    Secret::random().map_err(|_| anyhow!("the machine gives no entropy for a token"))?;
                (endpoint, token)
            }
        };
        let machine = match args.runtime {
            Some(RuntimeKind::Process) => Some(Machine::open(args, &world).await?),
            None => None,
        };
        if let Some(machine) = &machine {
            builder = builder.process_node(machine.settings());
        }
        if let Some(pacing) = args.clock {
            builder = builder.pacing(pacing);
        }
        let access = Access {
            server: format!("https://{}", endpoint.address()),
            ca: endpoint.ca_pem(),
            token: token.clone(),
        };
        let cluster = builder
            .world(world)
            .controllers(&args.controllers)
            .nodes(args.nodes())
            .endpoint(endpoint)
            .admin_token(token)
            .start()
            .await?;
        Ok(Self { cluster, access, machine })
    }

    /// How its administrator reaches it.
    pub(crate) fn access(&self) -> &Access {
        &self.access
    }

    /// A client that may do everything.
    pub(crate) fn admin(&self) -> Client {
        self.cluster.client()
    }

    /// A client of the service account of this namespace and name, under its rights.
    pub(crate) fn client_of(&self, (namespace, name): (&str, &str)) -> Client {
        self.cluster.client_of_service_account(namespace, name)
    }

    /// Lets the webhooks of an operator in this process be called, under the name of its Service.
    pub(crate) fn mount_webhooks(&self, host: String, service: webhook::Service) {
        self.cluster.mount_webhooks(host, service);
    }

    pub(crate) fn world(&self) -> World {
        self.cluster.world().clone()
    }

    /// What there is to say of the node of this machine, where there is one.
    pub(crate) fn machine(&self) -> Option<String> {
        self.machine.as_ref().map(Machine::greeting)
    }

    /// Ends the controllers, the watches and the listener, and waits for them; containers too.
    pub(crate) async fn shutdown(self) {
        self.cluster.stop().await;
        if let Some(machine) = self.machine {
            machine.close().await;
        }
    }
}

fn with_remedy(error: ServeError) -> anyhow::Error {
    match error {
        ServeError::Bind(error) => anyhow!("{error}: give another port with --port (0 takes a free one)"),
        other => other.into(),
    }
}
