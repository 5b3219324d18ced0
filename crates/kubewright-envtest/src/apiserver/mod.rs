//! kube-apiserver: a cluster of its own in memory, behind the flags of the real one.

mod accounts;
mod address;
mod authorization;
mod certificates;
mod clients;
mod objects;
mod unsupported;

use std::{fs, path::Path, time::Duration};

use anyhow::{Context, anyhow};
use kubewright_control_plane::{Builder, Endpoint, recording::KEPT};
use kubewright_serve::signals::Signals;
use kubewright_world::World;

use super::{
    Controllers, environment::Settings, flags::Flags, log, record::Target, say, test_options::TestOptions,
};

/// As many threads as serve an operator's tests well; a suite runs several of these beside itself.
const THREADS: usize = 2;

/// How long a pod that goes at once stays marked: kube-apiserver beside etcd takes 0.4 to 1.4 ms from the mark to the end.
const MARKED_FOR: Duration = Duration::from_millis(1);

/// Serves until a signal comes.
///
/// # Errors
/// When the value of a flag cannot be followed, or the port cannot be had.
pub(super) fn run(flags: &Flags, controllers: Option<Controllers>) -> anyhow::Result<()> {
    log(flags);
    let settings = Settings::read(flags)?;
    for warning in unsupported::warnings(flags) {
        say(&format!("Warning: {warning}"));
    }
    let options = TestOptions::read(flags)?;
    let threads = || tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
    let runtime = options.runtime(threads)?;
    let served = runtime.block_on(serve(flags, &settings, options, controllers));
    // Nobody waits for what still runs: connections are cut by the end of the process, watches and long requests with them.
    runtime.shutdown_background();
    served
}

async fn serve(
    flags: &Flags,
    settings: &Settings,
    options: TestOptions,
    controllers: Option<Controllers>,
) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let world = World::real();
    let address = address::bind(flags)?;
    let builder = options.configure(builder(flags)?);
    settings.check(controllers)?;
    let serving = certificates::serving(flags)?;
    let made = serving.certificate.is_none();
    let endpoint = Endpoint::bind_with(address, &world, serving).await;
    // Without its sources, which its text has already.
    let endpoint = endpoint.map_err(|error| anyhow!("{error}"))?;
    if made {
        certificates::keep(flags, &endpoint)?;
    }
    let target = Target::read(flags, &world, address.port())?;
    let builder = if target.is_some() { builder.journal(KEPT).request_log(true) } else { builder };
    let control_plane = settings.start(builder.world(world).endpoint(endpoint), controllers).await?;
    let recorder = match target {
        Some(target) => Some(target.record(&control_plane, options.is_paced())?),
        None => None,
    };
    say(&format!("kubewright serves as kube-apiserver on https://{address}, {settings}"));
    signals.next().await;
    match recorder {
        Some(recorder) => recorder.end().await.map(drop).context("the recording cannot be written"),
        None => Ok(()),
    }
}

/// A control plane as the flags say.
fn builder(flags: &Flags) -> anyhow::Result<Builder> {
    let builder = Builder::default().secure_port(address::bind(flags)?.port()).marked_for(MARKED_FOR);
    let builder = match address::advertise(flags)? {
        Some(advertise) => builder.advertise(advertise),
        None => builder,
    };
    let builder = accounts::configure(flags, builder)?;
    let builder = clients::configure(flags, builder)?;
    let builder = authorization::configure(flags, builder)?;
    objects::configure(flags, builder)
}

/// What a file that a flag names holds.
fn read(flag: &str, path: &str) -> anyhow::Result<String> {
    fs::read_to_string(Path::new(path)).with_context(|| format!("--{flag}: {path}"))
}
