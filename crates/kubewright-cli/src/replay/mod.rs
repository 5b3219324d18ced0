//! `kubewright replay`: an operator is run in a recorded world, which goes on as it was recorded but for what the operator itself
//! wrote; what it does is compared with what was done then.

mod author;
mod report;
mod rights;
mod stage;
mod step;
mod tape;
mod verdict;
mod world;

use std::{
    fs,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use kubewright_cluster::{KubernetesVersion, recording::Recording};
use kubewright_recording::{At, Write as Recorded};

use self::{report::Report, stage::Pace, tape::Tape};
use crate::{
    output::print,
    play::Speed,
    printer,
    render::made,
    run::account::Account,
    stand::{Stand, args::RestArgs, past, program::OperatorCommand},
};

/// What `kubewright replay` takes. It ends with 0; with --exit-code with 1 when the program did something else than was done then.
#[derive(Args, Debug)]
pub(crate) struct ReplayArgs {
    /// The recording
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Whose writes in the recording are the operator's: a user, NAMESPACE/NAME of a service account, or the name of a program [default:
    /// the only one that is no person and no part of Kubernetes]
    #[arg(long = "as", value_name = "WRITER")]
    writer: Option<String>,

    /// The moment to begin at: a revision, a time, or "15 minutes before the end" [default: when the operator made its first request]
    #[arg(long, value_name = "MOMENT")]
    from: Option<At>,

    /// What others wrote comes at the distances that it had, divided by this; without, it comes as soon as the program has answered what
    /// came before, or is at rest
    #[arg(long, value_name = "NUMBER")]
    speed: Option<Speed>,

    /// The rights of the program: the Roles and ClusterRoles of these files, or folders, alone; what it is refused is told. Without, it
    /// may do everything
    #[arg(long, value_name = "PATH")]
    with_rights: Vec<PathBuf>,

    /// End with 1 when the program did something else than was done then, or was refused something
    #[arg(long)]
    exit_code: bool,

    /// Write what was compared to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    #[command(flatten)]
    rest: RestArgs,

    /// The operator's program with its arguments; it finds its cluster by $KUBECONFIG, and $ENABLE_WEBHOOKS is `false`
    #[arg(value_name = "PROGRAM", last = true, required = true)]
    program: Vec<String>,
}

/// Replays a recording to its end.
///
/// # Errors
/// When the recording or its operator cannot be had, or the program ends or never speaks to its control plane.
pub(crate) async fn replay(args: &ReplayArgs) -> anyhow::Result<ExitCode> {
    let mut tape = Tape::open(&args.file)?;
    let operator = tape.operator(args.writer.as_deref())?;
    let version = version(&tape)?;
    let before = tape.writes.len();
    let begin = tape.start(args.from, &operator)?;
    let played = tape.writes.split_off(begin);
    let mut warnings = Vec::new();
    if tape.writes.iter().chain(&played).any(past::is_webhook) {
        warnings.push("webhook configurations are left out: webhooks are not called".to_owned());
    }
    let played: Vec<Recorded> = played.into_iter().filter(|write| !past::is_webhook(write)).collect();
    let steps = step::steps(&played, &operator);
    if steps.iter().all(|step| step.own.is_empty()) {
        bail!(
            "{operator} wrote nothing behind the moment at which the replay begins (write {begin} of {before}): --from names another"
        );
    }
    let account = operator.account();
    let rights = rights::rights(&args.with_rights, &account)?;
    let state = past::state(std::mem::take(&mut tape.writes));
    let builder = past::builder(Recording::of_records(state.iter().cloned())).kubernetes_version(version);
    let stand = Stand::of(builder).await.with_context(|| format!("the recording {}", args.file.display()))?;
    let (program, arguments) = args.program.split_first().context("program: there is none")?;
    let command = OperatorCommand::foreign(program, arguments);
    let played = async {
        rights::grant(&stand, &account, &rights).await?;
        let kubeconfig = Account::of_any_client(&stand.access, &account.0, &account.1).await?;
        let user = format!("system:serviceaccount:{}:{}", account.0, account.1);
        let running = command.start(kubeconfig.kubeconfig(), args.rest.logs)?;
        let hashes = tape.header.redacted.iter().any(|what| what == "secrets");
        let mut stage = stage::Stage::new(&stand, &user, running, args.pace(), hashes, &state)?;
        let played = stage.play(&steps).await;
        let refused = made::refused(&stand.cluster, &user);
        let mut report = stage.end(played).await?;
        report.refused = refused;
        anyhow::Ok(report)
    }
    .await;
    stand.cluster.stop().await;
    let mut report = played?;
    report.recording = args.file.display().to_string();
    report.operator = operator.to_string();
    report.warnings.splice(0..0, warnings);
    args.print(&report)
}

/// The version of Kubernetes that was recorded; the default one where the recording does not say it.
fn version(tape: &Tape) -> anyhow::Result<KubernetesVersion> {
    match &*tape.header.kubernetes {
        "" => Ok(KubernetesVersion::DEFAULT),
        said => said.parse().map_err(|why| anyhow!("the recording is of Kubernetes {said}: {why}")),
    }
}

impl ReplayArgs {
    fn pace(&self) -> Pace {
        Pace { rest: self.rest.rest, timeout: self.rest.timeout, speed: self.speed }
    }

    fn print(&self, report: &Report) -> anyhow::Result<ExitCode> {
        for warning in &report.warnings {
            let _ = writeln!(io::stderr(), "warning: {warning}");
        }
        if let Some(path) = &self.json {
            let text = format!("{:#}\n", report.json());
            fs::write(path, text).with_context(|| format!("--json: cannot write {}", path.display()))?;
        }
        print(&report.text(printer::shows_colours(&io::stdout())))?;
        let _ = writeln!(io::stderr(), "{}", report.summary());
        Ok(ExitCode::from(u8::from(self.exit_code && !report.is_same())))
    }
}
