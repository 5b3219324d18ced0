//! `kubewright up`: a control plane on this machine, with the sample operators if they are asked for.

use std::{
    io::{self, Write},
    time::Duration,
};

use anyhow::{anyhow, bail};
use futures::FutureExt;
use kube::Client;
use kubewright_runtime::CancellationToken;
use kubewright_serve::signals::Signals;
use kubewright_view::Server;
use tokio::{sync::oneshot, task::JoinSet, time::Instant};

use crate::{
    args::UpArgs,
    change::Change,
    engine::Engine,
    kubeconfig::KubeconfigTarget,
    printer::Printer,
    progress::Progress,
    report::Reporter,
    samples::{Sample, Samples},
    view,
    watch::{self, Changes},
};

/// For what has happened by the time that all samples have converged, and is told by other watches a little later.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// What happens within so long is told together, so that the same of many objects is one line.
const MOMENT: Duration = Duration::from_millis(100);

/// Starts the control plane and keeps it until a signal, or until the samples have converged if that was asked for.
/// `started` is when the process was.
///
/// # Errors
/// In one line: when the port or the kubeconfig cannot be had, an operator fails, or a sample does not converge in time.
pub(crate) async fn up(args: &UpArgs, samples: Option<&Samples>, started: Instant) -> anyhow::Result<()> {
    kubeconfig_target(args).check_free()?;
    let printer = Printer::new(args.quiet);
    let mut signals = Signals::listen()?;
    if let Some(data) = args.data.as_ref().filter(|data| data.exists()) {
        printer.progress(&format!("opening the cluster in {}", data.display()));
    }
    let page = match args.ui {
        Some(port) => Some(view::bind(port, "--ui").await?),
        None => None,
    };
    let engine = Engine::start(args).await?;
    let link = page.as_ref().map(Server::link);
    let written = engine.access().write(kubeconfig_target(args));
    let ran = match &written {
        Err(_) => Ok(()),
        Ok(_) => tokio::select! {
            biased;
            () = signals.next() => {
                printer.end(&ended(args, engine.recording().is_some()));
                Ok(())
            }
            () = stdin_closed(), if args.exit_with_stdin => Ok(()),
            ran = run(args, &printer, &engine, samples, Start { at: started, link }) => ran,
            () = serve_page(&engine, page) => Ok(()),
        },
    };
    // Who asks twice does not want to wait until all is finished.
    let recorded = tokio::select! {
        biased;
        recorded = engine.shutdown() => recorded,
        () = signals.next() => Ok(None),
    };
    if let Ok(Some(recorded)) = &recorded {
        printer.say(recorded);
    }
    let written = written?;
    // What is kept can be started again, at the same port under the same kubeconfig.
    if args.data.is_none() {
        written.remove();
    }
    ran.and(recorded.map(drop))
}

/// Serves the page of `--ui` for as long as the cluster is there.
async fn serve_page(engine: &Engine, page: Option<Server>) {
    if let (Some(page), Some(shown)) = (page, engine.view()) {
        page.serve(shown).await;
    }
    std::future::pending::<()>().await;
}

/// What becomes of the cluster that is ended.
fn ended(args: &UpArgs, is_recorded: bool) -> String {
    match &args.data {
        Some(path) => format!("ending; kubewright up --data {} goes on with it", path.display()),
        None if is_recorded => "ending; the recording is kept, nothing else".to_owned(),
        None => "ending; nothing is kept".to_owned(),
    }
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

/// What there is to say of a start.
struct Start {
    /// When the process was started.
    at: Instant,
    /// What opens the page of `--ui`.
    link: Option<String>,
}

/// All that happens while the control plane is there.
async fn run(
    args: &UpArgs,
    printer: &Printer,
    engine: &Engine,
    samples: Option<&Samples>,
    start_of: Start,
) -> anyhow::Result<()> {
    greet(printer, args, engine, &start_of)?;
    let started = start_of.at;

    let shutdown = CancellationToken::new();
    let _stop_operators = shutdown.clone().drop_guard();
    let operators = async {
        let mut running = start(printer, engine, samples, &shutdown).await?;
        match running.join_next().await {
            Some(ended) => Err(ended?),
            None => std::future::pending().await,
        }
    };
    // From before the operators start, so that what they do is told in its order.
    tokio::select! {
        biased;
        ended = operators => ended,
        followed = follow(args, printer, engine.admin(), samples, started) => followed,
    }
}

/// Says what runs, how kubectl finds it, what does not run, and how it is ended.
fn greet(printer: &Printer, args: &UpArgs, engine: &Engine, start: &Start) -> anyhow::Result<()> {
    let ready = format!(
        "API server ready at {} in {} ms (Kubernetes v{}, kubewright {})",
        engine.access().server,
        start.at.elapsed().as_millis(),
        args.kubernetes_version()?,
        env!("CARGO_PKG_VERSION"),
    );
    printer.ready(&ready, &args.kubeconfig);
    if let Some(link) = &start.link {
        printer.say(&format!("what happens, in a browser: {link}"));
    }
    if let Some(past) = engine.past() {
        printer.say(past);
    }
    if let Some(machine) = engine.machine() {
        printer.say(&machine);
    }
    if let Some(services) = engine.services() {
        printer.say(&services);
    }
    if let Some(simulated) = simulated(args.nodes(), args.runtime.is_some()) {
        printer.say(&simulated);
    }
    if let Some(file) = engine.recording() {
        let line = format!("recording into {}", file.display());
        match (&args.record, args.quiet) {
            // Who is started by a program of tests is quiet, and whoever has set the variable looks for the file.
            (None, true) => drop(writeln!(io::stderr(), "kubewright: {line}")),
            _ => printer.say(&line),
        }
    }
    if !args.exit_when_ready {
        printer.say(&match &args.data {
            Some(path) => format!("Ctrl-C ends the cluster; --data {} goes on with it", path.display()),
            None => {
                "Ctrl-C ends the cluster, and everything in it is gone; --data DIR would keep it".to_owned()
            }
        });
    }
    if !args.exit_when_ready || args.samples {
        printer.say("");
    }
    Ok(())
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
    printer: &Printer,
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
        printer.say(&format!("operator {account} runs as system:serviceaccount:{namespace}:{account}"));
    }
    if let Some(reason) = left_out {
        printer.say(reason);
    }
    for sample in samples {
        sample.apply(&admin).await?;
    }
    Ok(running)
}

/// Tells what happens. Ends when every sample has converged, or has not in time, if that was asked for.
async fn follow(
    args: &UpArgs,
    printer: &Printer,
    admin: Client,
    samples: Option<&Samples>,
    started: Instant,
) -> anyhow::Result<()> {
    let mut kinds = Vec::new();
    if !args.quiet {
        kinds.extend(watch::workloads());
    }
    if !args.quiet || args.exit_when_ready {
        kinds.push(watch::crds());
    }
    let mut progress =
        Progress::new(samples.iter().flat_map(|samples| &samples.samples).map(Sample::awaited));
    let mut has_converged = samples.is_none();
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
        progress.observe(&change);
        let mut told = reporter.observe(&change, started.elapsed());
        let end = Instant::now() + MOMENT;
        // Who waits for the samples alone does not wait for more to tell.
        while !(told.is_empty() || args.exit_when_ready && progress.is_done())
            && let Some(change) = soon(&mut changes, end, args).await
        {
            progress.observe(&change);
            told.extend(reporter.observe(&change, started.elapsed()));
        }
        printer.print(told);
        if !has_converged && progress.is_done() && !args.exit_when_ready {
            has_converged = true;
            let hint =
                samples.and_then(|samples| samples.hint).map_or_else(String::new, |hint| format!("; {hint}"));
            printer.say(&format!("every sample has converged{hint}"));
        }
    }
    let (end, mut told) = (Instant::now() + LAST_WORDS, Vec::new());
    while !args.quiet
        && let Ok(change) = tokio::time::timeout_at(end, changes.next()).await
    {
        told.extend(reporter.observe(&change, started.elapsed()));
    }
    printer.print(told);
    if args.samples {
        printer.say("every sample has converged");
    }
    Ok(())
}

/// What happens until then. Where the clock may stand still, only what has happened.
async fn soon(changes: &mut Changes, end: Instant, args: &UpArgs) -> Option<Change> {
    if args.clock.is_some() {
        return changes.next().now_or_never();
    }
    tokio::time::timeout_at(end, changes.next()).await.ok()
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
