//! `kubewright up`: a control plane on this machine, with the sample operators if they are asked for.

use std::{
    io::{self, Write},
    time::Duration,
};

use anyhow::{anyhow, bail};
use kube::Client;
use kubewright_runtime::CancellationToken;
use kubewright_serve::signals::Signals;
use tokio::{sync::oneshot, task::JoinSet, time::Instant};

use crate::{
    args::UpArgs,
    engine::Engine,
    kubeconfig::KubeconfigTarget,
    progress::Progress,
    report::Reporter,
    samples::{Sample, Samples},
    watch::{self, Changes},
};

/// For what has happened by the time that all samples have converged, and is told by other watches a little later.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// Starts the control plane and keeps it until a signal, or until the samples have converged if that was asked for.
/// `started` is when the process was.
///
/// # Errors
/// In one line: when the port or the kubeconfig cannot be had, an operator fails, or a sample does not converge in time.
pub(crate) async fn up(args: &UpArgs, samples: Option<&Samples>, started: Instant) -> anyhow::Result<()> {
    kubeconfig_target(args).check_free()?;
    let mut signals = Signals::listen()?;
    let engine = Engine::start(args).await?;
    let written = engine.access().write(kubeconfig_target(args));
    let ran = match &written {
        Err(_) => Ok(()),
        Ok(_) => tokio::select! {
            biased;
            () = signals.next() => Ok(()),
            () = stdin_closed(), if args.exit_with_stdin => Ok(()),
            ran = run(args, &engine, samples, started) => ran,
        },
    };
    // Who asks twice does not want to wait until all is finished.
    tokio::select! {
        biased;
        () = engine.shutdown() => {}
        () = signals.next() => {}
    }
    let written = written?;
    // What is kept can be started again, at the same port under the same kubeconfig.
    if args.data.is_none() {
        written.remove();
    }
    ran
}

/// Reads standard input to its end, on a thread that nothing waits for: nobody can end a read that waits.
async fn stdin_closed() {
    let (closed, is_closed) = oneshot::channel();
    let read = move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = closed.send(());
    };
    if std::thread::Builder::new().name("stdin".to_owned()).spawn(read).is_ok() {
        let _ = is_closed.await;
    }
}

fn kubeconfig_target(args: &UpArgs) -> KubeconfigTarget<'_> {
    KubeconfigTarget { path: &args.kubeconfig, flag: "--kubeconfig" }
}

/// All that happens while the control plane is there.
async fn run(
    args: &UpArgs,
    engine: &Engine,
    samples: Option<&Samples>,
    started: Instant,
) -> anyhow::Result<()> {
    let voice = Voice { quiet: args.quiet };
    greet(&voice, args, engine, started);

    let shutdown = CancellationToken::new();
    let _stop_operators = shutdown.clone().drop_guard();
    let mut running = start(&voice, engine, samples, &shutdown).await?;

    let progress = Progress::new(samples.iter().flat_map(|samples| &samples.samples).map(Sample::awaited));
    tokio::select! {
        biased;
        Some(ended) = running.join_next() => bail!(ended?),
        followed = follow(args, &voice, engine.admin(), progress, started) => followed,
    }
}

fn greet(voice: &Voice, args: &UpArgs, engine: &Engine, started: Instant) {
    let path = args.kubeconfig.display();
    voice.say(&format!(
        "API server ready at {} in {} ms",
        engine.access().server,
        started.elapsed().as_millis()
    ));
    voice.say(&format!("kubeconfig written to {path}: KUBECONFIG={path} kubectl get all -A"));
    if let Some(past) = engine.past() {
        voice.say(past);
    }
    if let Some(machine) = engine.machine() {
        voice.say(&machine);
    }
    if let Some(simulated) = simulated(args.nodes(), args.runtime.is_some()) {
        voice.say(&simulated);
    }
    if !args.exit_when_ready {
        voice.say(&match &args.data {
            Some(path) => format!("Ctrl-C ends the cluster; --data {} goes on with it", path.display()),
            None => "Ctrl-C ends the cluster, and everything in it is gone".to_owned(),
        });
    }
}

/// What there is to say of the nodes on which nothing runs; of those that run pods it is said already where `runs` some.
fn simulated(nodes: usize, runs: bool) -> Option<String> {
    let which = match nodes {
        0 => return None,
        1 => "node-0 is simulated: its pods do".to_owned(),
        nodes => format!("node-0 to node-{} are simulated: their pods do", nodes - 1),
    };
    let remedy = if runs { "" } else { "; kubewright up --runtime process runs them" };
    Some(format!("{which} not run, whatever their status says{remedy}"))
}

/// Installs the operators, starts each under its own service account, and applies their samples. What comes out of the
/// set is why an operator ended.
async fn start(
    voice: &Voice,
    engine: &Engine,
    samples: Option<&Samples>,
    shutdown: &CancellationToken,
) -> anyhow::Result<JoinSet<anyhow::Error>> {
    let admin = engine.admin();
    let mut running = JoinSet::new();
    let Some(Samples { samples, left_out, .. }) = samples else { return Ok(running) };
    for sample in samples {
        sample.install(&admin).await?;
        let (namespace, account) = sample.account();
        let client = engine.client_of((&namespace, account));
        let (manager, webhooks) = sample.manager(client, engine.world())?;
        if let Some((host, service)) = webhooks {
            engine.mount_webhooks(host, service);
        }
        let (name, shutdown) = (sample.name().to_owned(), shutdown.clone());
        running.spawn(async move {
            match manager.run(shutdown).await {
                Ok(()) => anyhow!("the operator {name} ended"),
                Err(error) => anyhow!(error).context(format!("the operator {name} failed")),
            }
        });
        voice.say(&format!("operator {account} runs as system:serviceaccount:{namespace}:{account}"));
    }
    if let Some(reason) = left_out {
        voice.say(reason);
    }
    for sample in samples {
        sample.apply(&admin).await?;
    }
    Ok(running)
}

/// Tells what happens. Ends when every sample has converged, or has not in time, if that was asked for.
async fn follow(
    args: &UpArgs,
    voice: &Voice,
    admin: Client,
    mut progress: Progress,
    started: Instant,
) -> anyhow::Result<()> {
    let mut kinds = Vec::new();
    if !args.quiet {
        kinds.extend(watch::workloads());
    }
    if !args.quiet || args.exit_when_ready {
        kinds.push(watch::crds());
    }
    let mut changes = Changes::of(admin, &kinds);
    let mut reporter = Reporter::default();
    let deadline = Instant::now() + args.timeout();
    while !(args.exit_when_ready && progress.is_done()) {
        let change = tokio::select! {
            biased;
            change = changes.next() => change,
            () = tokio::time::sleep_until(deadline), if args.exit_when_ready => {
                bail!("not converged within {} s: {}", args.timeout().as_secs(), progress.reasons());
            }
        };
        for line in reporter.observe(&change, started.elapsed()) {
            voice.say(&line);
        }
        progress.observe(&change);
    }
    let end = Instant::now() + LAST_WORDS;
    while !args.quiet
        && let Ok(change) = tokio::time::timeout_at(end, changes.next()).await
    {
        for line in reporter.observe(&change, started.elapsed()) {
            voice.say(&line);
        }
    }
    if args.samples {
        voice.say("every sample has converged");
    }
    Ok(())
}

/// Says things to a person, unless it is to be quiet.
struct Voice {
    quiet: bool,
}

impl Voice {
    /// Nobody may be listening any more (`kubewright up | head`): that is no reason to end.
    fn say(&self, line: &str) {
        if !self.quiet {
            let _ = writeln!(io::stdout(), "{line}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::simulated;

    #[test]
    fn what_runs_nothing_is_told_with_what_does() {
        assert_eq!(simulated(0, true), None);
        assert_eq!(
            simulated(1, false).as_deref(),
            Some(
                "node-0 is simulated: its pods do not run, whatever their status says; kubewright up --runtime process runs them"
            )
        );
        assert_eq!(
            simulated(3, true).as_deref(),
            Some("node-0 to node-2 are simulated: their pods do not run, whatever their status says")
        );
    }
}
