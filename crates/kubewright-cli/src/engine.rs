//! The control plane as `up` uses it: the one file that knows how a cluster and its endpoint are put together.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::{Context, anyhow};
use kube::Client;
use kubewright_cluster::recording::{Did, KEPT, Opened, Recording, Unreadable, Write};
use kubewright_cluster::{Cluster, DataDirectory, Endpoint, Secret, ServeError, advertised};
use kubewright_recording::At;
use kubewright_runtime::webhook;
use kubewright_view::View;
use kubewright_world::World;

use crate::{
    args::{RuntimeKind, UpArgs},
    kubeconfig::Access,
    process_node::{self, Machine},
    record::live::{Recorder, Target},
};

/// The writes that are kept for the view until it takes them over, which it does at each.
const JOURNALED: usize = 4_096;

/// A cluster that is served on a port of this machine.
pub(crate) struct Engine {
    cluster: Cluster,
    access: Access,
    machine: Option<Machine>,
    past: Option<String>,
    recorder: Option<Recorder>,
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
        // Before anything starts: a file that cannot be had is to be known at once.
        let target = Target::of(args, endpoint.address().port())?;
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
        let mut past = None;
        if let Some(path) = &args.from {
            let opened = opened(path, args.at)?;
            past = Some(describe(&opened));
            builder = builder.recording(opened.recording);
        }
        if target.is_some() {
            builder = builder.journal(KEPT).request_log(true);
        }
        if let Some(advertised) = advertised(endpoint.address()) {
            builder = builder.advertise(advertised);
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
        if let Some(admin) = cluster.admin().filter(|_| args.admin) {
            admin.ask_for_reconciles();
        }
        let recorder = match target {
            Some(target) => Some(Recorder::start(target, args, &cluster, &access.server)?),
            None => None,
        };
        Ok(Self { cluster, access, machine, past, recorder })
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

    /// What there is to say of the Services of pods that run on this machine.
    pub(crate) fn services(&self) -> Option<String> {
        self.cluster.name_server().map(process_node::describe_services)
    }

    /// What there is to say of the recording that it started with.
    pub(crate) fn past(&self) -> Option<&str> {
        self.past.as_deref()
    }

    /// Where it is recorded; none where it is not.
    pub(crate) fn recording(&self) -> Option<&Path> {
        self.recorder.as_ref().map(Recorder::path)
    }

    /// Ends the controllers, the watches and the listener, and waits for them; containers too.
    /// Gives what there is to say of what was recorded.
    ///
    /// # Errors
    /// When the file of --record could not be written.
    pub(crate) async fn shutdown(self) -> anyhow::Result<Option<String>> {
        self.cluster.stop().await;
        if let Some(machine) = self.machine {
            machine.close().await;
        }
        match self.recorder {
            Some(recorder) => recorder.end().await.map(Some),
            None => Ok(None),
        }
    }
}

/// What is recorded in a file, as far as a moment.
fn opened(path: &Path, at: Option<At>) -> anyhow::Result<Opened> {
    let name = || format!("--from {}", path.display());
    let file = File::open(path).with_context(name)?;
    Recording::open(file, at).map_err(|error| match error {
        Unreadable::Revision(_) | Unreadable::Begins(_) => anyhow!("--at: {error}"),
        error => anyhow!(error).context(name()),
    })
}

/// Where a recording ends.
fn describe(opened: &Opened) -> String {
    let Some(last) = &opened.last else { return "the recording is empty".to_owned() };
    let by = match (&*last.by.user, &*last.by.program) {
        ("", "") if opened.is_whole => "the API server",
        ("", "") => "somebody",
        ("", program) => program,
        (user, _) => user,
    };
    let done = match last.did {
        Did::Create => "created",
        Did::Update => "updated",
        Did::Delete => "deleted",
    };
    let Write { revision, time, collection, key, .. } = last;
    let whole = if opened.is_whole { "" } else { ", with revisions of its own" };
    let cut = match opened.cut {
        0 => String::new(),
        bytes => format!("; the last {bytes} bytes of the file are no whole block and are left out"),
    };
    format!(
        "as it was at revision {revision}, {time}, when {by} had {done} {collection} {key}{whole}; --at shows it earlier{cut}"
    )
}

fn with_remedy(error: ServeError) -> anyhow::Error {
    match error {
        ServeError::Bind(error) => anyhow!("{error}: give another port with --port (0 takes a free one)"),
        other => other.into(),
    }
}
