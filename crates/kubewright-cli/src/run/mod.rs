//! `kubewright run`: an operator on this machine, against a control plane that is started for it or the current cluster, under
//! the rights that it ships with.

pub(crate) mod account;
pub(crate) mod webhooks;

use std::{
    ffi::OsString,
    io::{self, Write},
    path::{Path, PathBuf},
    process::{ExitCode, ExitStatus, Stdio},
};

use anyhow::{Context, bail};
use clap::Args;
use kube::api::DynamicObject;
use kubewright_serve::signals::Signals;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::{
    process::{Child, Command},
    time::Instant,
};

use self::{account::Account, webhooks::WebhookAddress};
use crate::{
    access::{
        self, Access, Applied, ClusterArgs, Objects, Others, called,
        compatible::{self, StoredArgs},
    },
    args::UpArgs,
    engine::Engine,
    install,
    kubeconfig::KubeconfigTarget,
    printer::Printer,
    project::{Program, Project, ProjectArgs},
};

/// What `kubewright run` takes.
#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    project: ProjectArgs,

    #[command(flatten)]
    cluster: ClusterArgs,

    /// Run it against the current cluster of the kubeconfig (so do --kubeconfig and --context), not against a control plane
    /// that is started for it
    #[arg(long)]
    current: bool,

    /// The port of the control plane on 127.0.0.1; 0 takes a free one
    #[arg(long, default_value = "0", conflicts_with_all = ["current", "kubeconfig", "context"])]
    port: u16,

    /// Where the kubeconfig of the control plane's administrator is written
    #[arg(long, value_name = "FILE", default_value = "kubewright.kubeconfig",
          conflicts_with_all = ["current", "kubeconfig", "context"])]
    write_kubeconfig: PathBuf,

    /// Where the cluster finds the webhooks that this machine serves, such as `https://192.168.1.5:9443`
    #[arg(long, value_name = "URL", conflicts_with = "no_webhooks")]
    webhook_url: Option<String>,

    /// Neither serve the operator's webhooks nor tell the cluster of them
    #[arg(long)]
    no_webhooks: bool,

    #[command(flatten)]
    stored: StoredArgs,

    /// Say nothing but errors, and what the operator says
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// Flags for the operator's own `run`
    #[arg(value_name = "FLAG", last = true)]
    flags: Vec<OsString>,
}

impl RunArgs {
    fn is_embedded(&self) -> bool {
        !self.current && self.cluster.kubeconfig.is_none() && self.cluster.context.is_none()
    }
}

/// Builds the operator and runs it until it or somebody else ends it. The exit status is the operator's.
///
/// # Errors
/// When there is no project or no cluster, or the cluster refuses what the operator needs.
pub(crate) async fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let project = Project::find(&args.project)?;
    if args.is_embedded() {
        kubeconfig_target(args).check_free()?;
    }
    let program = project.build()?;
    let mut signals = Signals::listen()?;
    if !args.is_embedded() {
        let access = args.cluster.access().await?;
        return on(args, &program, &access, &mut signals).await;
    }
    let engine = Engine::start(&UpArgs::serving(args.port, &args.write_kubeconfig)?).await?;
    let written = engine.access().write(kubeconfig_target(args));
    let ran = match &written {
        Ok(_) => embedded(args, &program, &engine, &mut signals).await,
        Err(_) => Ok(ExitCode::FAILURE),
    };
    tokio::select! {
        biased;
        // It records nothing.
        _ = engine.shutdown() => {}
        () = signals.next() => {}
    }
    written?.remove();
    ran
}

fn kubeconfig_target(args: &RunArgs) -> KubeconfigTarget<'_> {
    KubeconfigTarget { path: &args.write_kubeconfig, flag: "--write-kubeconfig" }
}

async fn embedded(
    args: &RunArgs,
    program: &Program,
    engine: &Engine,
    signals: &mut Signals,
) -> anyhow::Result<ExitCode> {
    let ready = format!("API server ready at {}", engine.access().server);
    Printer::new(args.quiet).ready(&ready, &args.write_kubeconfig);
    let written = ClusterArgs { kubeconfig: Some(args.write_kubeconfig.clone()), context: None };
    on(args, program, &written.access().await?, signals).await
}

/// Runs it on a cluster.
async fn on(
    args: &RunArgs,
    program: &Program,
    access: &Access,
    signals: &mut Signals,
) -> anyhow::Result<ExitCode> {
    let objects = program.manifests::<&str>(&[])?;
    let (name, _) = program.version()?;
    let address = WebhookAddress::choose(args, &objects, &access.server)?;
    let home = set_up(args, access, &name, &objects, address.as_ref()).await?;
    let account = Account::of(access, &args.cluster, &home, &name).await?;
    say(args, &format!("operator {name} runs as system:serviceaccount:{home}:{name}; Ctrl-C ends it"));
    let flags = address.as_ref().map_or_else(|| webhooks::off(&objects), WebhookAddress::flags);
    let child = start(args, program, account.kubeconfig(), flags);
    let status = match child {
        Ok(mut child) => tokio::select! {
            biased;
            status = ended(&mut child, signals) => status,
            never = account.keep() => match never {},
        },
        Err(error) => Err(error),
    };
    if !args.is_embedded() && address.is_some() {
        webhooks::remove(access, &objects).await?;
    }
    status.map(code)
}

/// Applies what the operator needs, itself apart, and gives its namespace.
async fn set_up(
    args: &RunArgs,
    access: &Access,
    name: &str,
    objects: &[Value],
    address: Option<&WebhookAddress>,
) -> anyhow::Result<String> {
    let is_program = |object: &&Value| object["kind"] == "Deployment" && object["metadata"]["name"] == *name;
    let program =
        objects.iter().find(is_program).context("the operator's manifests have no Deployment of it")?;
    let home = program["metadata"]["namespace"].as_str().unwrap_or("default").to_owned();
    let mut cluster = Objects::new(&access.client);
    let deployments = cluster.api(&access::object(program.clone())?).await?;
    let deployed = deployments
        .get_opt(name)
        .await
        .map_err(|error| access::refused("the cluster cannot be asked", &error))?;
    if deployed.is_some_and(|deployed| deployed.data["spec"]["replicas"] != 0) {
        let _ = writeln!(
            io::stderr(),
            "warning: {name} runs in the cluster too, and both will work: kubectl -n {home} scale deployment {name} --replicas=0"
        );
    }
    let left_out = |object: &&Value| is_program(object) || object["kind"] == "Service";
    let wanted = objects.iter().filter(|object| !left_out(object));
    let wanted = wanted.filter_map(|object| webhooks::led(object, address)).map(access::object);
    let wanted = wanted.collect::<anyhow::Result<Vec<_>>>()?;
    let (definitions, others): (Vec<_>, Vec<_>) = wanted.into_iter().partition(is_definition);
    compatible::check(&mut cluster, &definitions, args.stored).await?;
    for object in definitions.into_iter().chain(others) {
        let applied = cluster.apply(&object, Others::TakenOver).await?;
        if applied != Applied::Unchanged {
            say(args, &format!("{} {}", called(&object), applied.word()));
        }
        if is_definition(&object) {
            cluster.established(&object, Instant::now() + install::LONGEST).await?;
        }
    }
    Ok(home)
}

fn is_definition(object: &DynamicObject) -> bool {
    object.types.as_ref().is_some_and(|types| types.kind == "CustomResourceDefinition")
}

fn start(
    args: &RunArgs,
    program: &Program,
    kubeconfig: &Path,
    webhooks: Vec<OsString>,
) -> anyhow::Result<Child> {
    let mut command = Command::new(program.path());
    command.arg("run").arg("--kubeconfig").arg(kubeconfig);
    command.args(webhooks).args(&args.flags);
    // In a group of its own: Ctrl-C asks us, and we ask it, once.
    command.process_group(0).kill_on_drop(true).stdin(Stdio::null());
    command.spawn().with_context(|| format!("{} cannot be run", program.path().display()))
}

/// Waits until it has ended. Who asks us to end asks it; who asks twice has it killed.
async fn ended(child: &mut Child, signals: &mut Signals) -> anyhow::Result<ExitStatus> {
    for attempt in 0_u8.. {
        tokio::select! {
            biased;
            status = child.wait() => return Ok(status?),
            () = signals.next() => match child.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
                Some(id) if attempt == 0 => kill_process(id, Signal::TERM)?,
                _ => child.start_kill()?,
            },
        }
    }
    bail!("the operator cannot be ended")
}

/// The operator's status as ours; of one that was killed, what a shell says.
fn code(status: ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}

fn say(args: &RunArgs, line: &str) {
    if !args.quiet {
        let _ = writeln!(io::stdout(), "{line}");
    }
}
