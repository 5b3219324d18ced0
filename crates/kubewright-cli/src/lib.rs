//! The kubewright command as a library: a program is [`main`], with sample operators or without.
//!
//! It is there for the program of this repository that has samples (`kubewright-samples`). Its items may change with any version.

mod about;
mod access;
mod args;
mod build;
mod change;
mod controllers;
mod convert;
mod deploy;
mod doctor;
mod engine;
mod examples;
mod generate;
mod image;
mod install;
mod kubeconfig;
mod length;
mod output;
mod play;
mod printer;
mod process_node;
mod progress;
mod project;
mod record;
mod render;
mod replay;
mod report;
mod run;
mod samples;
mod scaffold;
mod stand;
mod test;
mod top;
mod trial;
mod up;
mod view;
mod watch;
mod why;

use std::{
    env,
    ffi::OsString,
    io::{self, Write},
    process::ExitCode,
};

use futures::{FutureExt, future::BoxFuture};
use kubewright_cluster::Builder;
use kubewright_control_plane::{Builder as ControlPlaneBuilder, ControlPlane, StartError};
#[cfg(unix)]
use kubewright_kubelet::container::helper;
use kubewright_serve::signals::Signals;
use kubewright_world::Pacing;
use mimalloc::MiMalloc;
use tokio::{runtime::Runtime, time::Instant};
use tracing_subscriber::EnvFilter;

pub use crate::samples::{LoadSamples, Sample, Samples};
use crate::{
    args::{Cli, Command, UpArgs},
    project::Usage,
};

/// What of the logs is shown under `--quiet`: errors, and what has become of data.
const QUIET: &str = "error,kubewright_store=warn";

/// What a server allocates is small, short-lived and freed on other threads: the C library's allocator takes a third of
/// the time of a write.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Runs the command that the program's arguments say, and gives what the program ends with. `samples` gives the operators that
/// `up --samples` runs; without, that flag is refused.
pub fn main(samples: Option<LoadSamples>) -> ExitCode {
    // First, while there is one thread: a container's namespaces are made by this program, started again.
    #[cfg(unix)]
    if let Some(code) = helper::called_as(env::args_os()) {
        return code;
    }
    if let Some((program, arguments)) = kubewright_envtest::called_as(env::args_os()) {
        return kubewright_envtest::run(program, arguments, Some(with_controllers));
    }
    let words: Vec<OsString> = env::args_os().collect();
    let cli = match args::parse(words.clone()) {
        Ok(cli) => cli,
        Err(error) => {
            let Some(refusal) = args::refusal(&error, &words) else { error.exit() };
            complain(&refusal);
            return ExitCode::from(2);
        }
    };
    match command(&cli, samples) {
        Ok(code) => code,
        Err(error) => {
            complain(&access::chain(error.as_ref()));
            if error.is::<Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

fn command(cli: &Cli, samples: Option<LoadSamples>) -> anyhow::Result<ExitCode> {
    match &cli.command {
        Command::Up(args) => {
            let started = Instant::now();
            let samples = if args.samples { Some(samples.ok_or_else(no_samples)?()?) } else { None };
            log(args.quiet, samples.as_ref().map_or("", |samples| samples.logs));
            runtime(args)?.block_on(up::up(args, samples.as_ref(), started))?;
        }
        Command::Controllers(args) => {
            log(args.quiet, "");
            wait(controllers::controllers(args))?;
        }
        Command::View(args) => wait(view::view(args))?,
        Command::Top(args) => wait(top::top(args))?,
        Command::Build(args) => wait(build::run(args))?,
        Command::Convert(args) => return convert::run(args),
        Command::Deploy(args) => wait(deploy::deploy(args))?,
        Command::Record(args) => wait(record::record(args))?,
        Command::Play(args) => return wait(play::play(args)),
        Command::Undeploy(args) => wait(deploy::undeploy(args))?,
        Command::Envtest(command) => kubewright_envtest::install::run(command)?,
        Command::Image(args) => wait(image::run(args))?,
        Command::Scaffold(command) => return Ok(scaffold::run(command)),
        Command::Generate(args) => wait(generate::generate(args))?,
        Command::Install(args) => wait(install::install(args))?,
        Command::Uninstall(args) => wait(install::uninstall(args))?,
        Command::Run(args) => {
            log(args.quiet, "");
            return wait(run::run(args));
        }
        Command::Test(args) => return test::test(args),
        Command::Render(args) => return wait(until_signal(render::render(args))),
        Command::Replay(args) => return wait(until_signal(replay::replay(args))),
        Command::Diff(args) => return wait(until_signal(render::diff(args))),
        Command::Trial(args) => return wait(trial::trial(args)),
        Command::Why(args) => return wait(why::why(args)),
        Command::Doctor(args) => return wait(doctor::doctor(args)),
        Command::Completion(args) => about::completion(args),
        Command::Man(args) => about::man(args)?,
        Command::Version(args) => about::version(args),
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts what this program has beside an API server, under the name of one.
fn with_controllers(
    builder: ControlPlaneBuilder,
    selection: String,
    nodes: usize,
) -> BoxFuture<'static, Result<ControlPlane, StartError>> {
    let cluster = Builder::from(builder).controllers(selection).nodes(nodes);
    cluster.start().map(|started| started.map(ControlPlane::from)).boxed()
}

fn no_samples() -> anyhow::Error {
    anyhow::anyhow!(
        "--samples: this program has no sample operators; a checkout of Kubewright has: cargo run --release -- up --samples"
    )
}

/// Runs what waits for others.
fn wait<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    Runtime::new()?.block_on(work)
}

/// Does what a signal interrupts; what it has started ends with it.
async fn until_signal<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let mut signals = Signals::listen()?;
    tokio::select! {
        done = work => done,
        () = signals.next() => anyhow::bail!("interrupted"),
    }
}

/// Tells whoever reads standard error; that may be nobody any more.
fn complain(error: &str) {
    let _ = writeln!(io::stderr(), "error: {error}");
}

/// With a seed everything happens on one thread, in one order; with a clock of its own, in its time.
fn runtime(args: &UpArgs) -> io::Result<Runtime> {
    if args.clock.is_some() {
        return Pacing::runtime();
    }
    let mut builder = match args.seed {
        Some(_) => tokio::runtime::Builder::new_current_thread(),
        None => tokio::runtime::Builder::new_multi_thread(),
    };
    builder.enable_all().build()
}

/// Logs go to stderr, so that what `up` says can be read by a program. `operators` are directives for those of samples.
fn log(quiet: bool, operators: &str) {
    let default = if quiet { QUIET.to_owned() } else { format!("warn,{operators}") };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(printer::shows_colours(&io::stderr()))
        .log_internal_errors(false)
        .without_time()
        .compact()
        .init();
}
