//! The control plane as `up` uses it: the one file that knows how a cluster and its endpoint are put together.

use std::fs::File;
use std::io::BufReader;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::{Context, anyhow};
use kube::Client;
use kubewright_cluster::recording::{Did, Recording, Revision, Write};
use kubewright_cluster::{Cluster, DataDirectory, Endpoint, Secret, ServeError};
use kubewright_runtime::webhook;
use kubewright_view::View;
use kubewright_world::World;

use crate::{
    args::{RuntimeKind, UpArgs},
    kubeconfig::Access,
    process_node::Machine,
};

/// The writes that are kept for the view until it takes them over, which it does at each.
const JOURNALED: usize = 4_096;

/// A cluster that is served on a port of this machine.
pub(crate) struct Engine {
    cluster: Cluster,
    access: Access,
    machine: Option<Machine>,
    past: Option<String>,
}

impl Engine {
    /// Takes the port, starts the cluster, and serves it.
    ///
    /// # Errors
    /// When the port or the data cannot be had, a controller has an unknown name, or the machine gives no keys.
    pub(crate) async fn start(args: &UpArgs) -> anyhow::Result<Self> {
        let world = args.seed.map_or_else(World::real, World::seeded);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
        let version = args.kubernetes_version()?;
        let mut builder =
            Cluster::builder().admin(args.admin || args.ui.is_some()).kubernetes_version(version);
        let (endpoint, token) = match &args.data {
            Some(path) => {
                let data = DataDirectory::open(path, &world, version).context("--data")?;
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
        if args.ui.is_some() {
            builder = builder.journal(JOURNALED);
        }
        if let Some(pacing) = args.clock {
            builder = builder.pacing(pacing);
        }
        let recorded = match &args.from {
            Some(path) => Some(recording(path, args.at)?),
            None => None,
        };
        let past = recorded.as_ref().map(describe);
        if let Some(recording) = recorded {
            builder = builder.recording(recording);
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
        Ok(Self { cluster, access, machine, past })
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

    /// What `--ui` shows; none without it.
    pub(crate) fn view(&self) -> Option<View> {
        View::of_control_plane(&self.cluster, &self.access.server)
    }

    /// What there is to say of the node of this machine, where there is one.
    pub(crate) fn machine(&self) -> Option<String> {
        self.machine.as_ref().map(Machine::greeting)
    }

    /// What there is to say of the recording that it started with.
    pub(crate) fn past(&self) -> Option<&str> {
        self.past.as_deref()
    }

    /// Ends the controllers, the watches and the listener, and waits for them; containers too.
    pub(crate) async fn shutdown(self) {
        self.cluster.stop().await;
        if let Some(machine) = self.machine {
            machine.close().await;
        }
    }
}

/// What is recorded in a file, as far as a revision.
fn recording(path: &Path, at: Option<u64>) -> anyhow::Result<Recording> {
    let name = || format!("--from {}", path.display());
    let file = File::open(path).with_context(name)?;
    let (_, recording) = Recording::read(BufReader::new(file)).with_context(name)?;
    match at.map(Revision) {
        Some(at) if at > recording.revision() => {
            Err(anyhow!("--at {at}: the recording ends at revision {}", recording.revision()))
        }
        Some(at) => Ok(recording.at(at)),
        None => Ok(recording),
    }
}

/// Where a recording ends.
fn describe(recording: &Recording) -> String {
    let Some(last) = recording.writes().last() else { return "the recording is empty".to_owned() };
    let by = if last.by.user.is_empty() { "the API server" } else { &last.by.user };
    let done = match last.did {
        Did::Create => "created",
        Did::Update => "updated",
        Did::Delete => "deleted",
    };
    let Write { revision, time, collection, key, .. } = &**last;
    format!(
        "as it was at revision {revision}, {time}, when {by} had {done} {collection} {key}; --at shows it earlier"
    )
}

fn with_remedy(error: ServeError) -> anyhow::Error {
    match error {
        ServeError::Bind(error) => anyhow!("{error}: give another port with --port (0 takes a free one)"),
        other => other.into(),
    }
}
