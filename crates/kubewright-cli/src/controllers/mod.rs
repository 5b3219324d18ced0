//! `kubewright controllers`: the built-in controllers, and where they are asked for the scheduler and simulated nodes, on the API server
//! of a kubeconfig.

mod accounts;
mod select;
mod server;
mod settings;

use std::io::{self, Write};

use anyhow::{Context, anyhow};
use clap::{ArgAction, Args};
use futures::future::try_join_all;
use kubewright_controllers::Builtin;
use kubewright_runtime::{CancellationToken, LeaderElection, Manager};
use kubewright_serve::signals::Signals;
use kubewright_world::World;

use self::{accounts::Writers, select::Selected, server::Server, settings::FileArgs};
use crate::access::ClusterArgs;

/// Where the leases of the control plane's parts are.
const SYSTEM: &str = "kube-system";

/// What `kubewright controllers` takes.
#[derive(Args, Debug)]
pub(crate) struct ControllersArgs {
    #[command(flatten)]
    cluster: ClusterArgs,

    /// Which controllers run: `*` for all that kube-controller-manager runs by default, a name, or `-name` for all but that one
    #[arg(long, value_name = "LIST", default_value = "*", allow_hyphen_values = true)]
    controllers: String,

    /// Run the scheduler, too: pods get a node by it
    #[arg(long)]
    scheduler: bool,

    /// So many simulated nodes are there from the start; their pods do not run, whatever their status says. Simulated are also
    /// nodes that say so by the annotation kwok.x-k8s.io/node=fake
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(0..=10000))]
    nodes: Option<u16>,

    /// Simulate all nodes, also those that somebody else makes; not for a cluster with nodes that run pods
    #[arg(long)]
    manage_all_nodes: bool,

    /// Each controller acts as its service account in kube-system, under the rights of its own; else all act as the user of the
    /// kubeconfig
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = ArgAction::Set)]
    use_service_account_credentials: bool,

    /// Work only as long as the lease kube-system/kube-controller-manager is held (the scheduler's is kube-scheduler)
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = ArgAction::Set)]
    leader_elect: bool,

    #[command(flatten)]
    files: FileArgs,

    /// Say nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Runs them until a signal.
///
/// # Errors
/// In one line: when there is no cluster, a file cannot be read, a controller has an unknown name, or one of them has failed for good.
pub(crate) async fn controllers(args: &ControllersArgs) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let world = World::real();
    let config = args.cluster.config().await?;
    let selected = Selected::of(args)?;
    let server = Server::connect(&config).await?;
    let simulated = (args.simulated(), args.manage_all_nodes);
    let (setup, without) = args.files.setup(&config, &world, simulated, server.version)?;
    let selected = selected.without(&without)?;
    let unserved = server.without_subject(&selected.all()).await?;
    let selected = selected.only_with(|builtin| !unserved.contains(&builtin.name));
    let writers = Writers::connect(&server, &selected.all(), args.use_service_account_credentials).await?;
    let stop = CancellationToken::new();
    let _ends_all = stop.clone().drop_guard();
    let mut running = Vec::new();
    for group in selected.groups() {
        let Some(first) = group.controllers.first() else { continue };
        let mut manager = Manager::new(writers.of_program(first.identity.program)?, world.clone());
        // Some read all pods of a namespace, or of all of them, in each pass.
        manager.as_values();
        if args.leader_elect {
            manager.elect(LeaderElection::lease(SYSTEM, group.lease));
        }
        for builtin in &group.controllers {
            builtin.add_to(&mut manager, &group.setup(&setup), &writers.of(builtin)?);
        }
        let (name, stop) = (group.lease, stop.clone());
        running.push(async move {
            manager.run(stop).await.map_err(|error| anyhow!(error).context(format!("{name} has failed")))
        });
    }
    greet(args, &config.cluster_url, &server, &selected);
    let all = try_join_all(running);
    tokio::pin!(all);
    let ended = tokio::select! {
        biased;
        () = signals.next() => None,
        ended = &mut all => Some(ended),
        never = writers.keep() => match never {},
    };
    match ended {
        Some(ended) => ended.map(drop),
        None => {
            stop.cancel();
            // Who asks twice does not want to wait until all is finished.
            tokio::select! {
                biased;
                ended = all => ended.map(drop),
                () = signals.next() => Ok(()),
            }
        }
    }
}

impl ControllersArgs {
    fn simulated(&self) -> usize {
        usize::from(self.nodes.unwrap_or_default())
    }
}

fn greet(args: &ControllersArgs, at: &http::Uri, server: &Server, selected: &Selected) {
    if args.quiet {
        return;
    }
    let as_whom = match args.use_service_account_credentials {
        true => "each as its service account",
        false => "all as the user of the kubeconfig",
    };
    let (what, version) = (selected.describe(), server.version);
    let _ = writeln!(io::stdout(), "{what} of v{version} on {at}, {as_whom}; Ctrl-C ends them");
}

impl ClusterArgs {
    /// The settings of a client.
    ///
    /// # Errors
    /// When there is no kubeconfig, or not this context in it.
    async fn config(&self) -> anyhow::Result<kube::Config> {
        let access = self.access().await?;
        let options = kube::config::KubeConfigOptions { context: self.context.clone(), ..Default::default() };
        let config = kube::Config::from_custom_kubeconfig(access.kubeconfig, &options).await;
        config.context("the kubeconfig leads to no cluster")
    }
}

/// The names of some, for a sentence.
fn names(builtins: &[&Builtin]) -> String {
    builtins.iter().map(|builtin| builtin.name).collect::<Vec<_>>().join(", ")
}
