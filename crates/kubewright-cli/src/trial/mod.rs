//! `kubewright trial`: an operator is run again and again while things go wrong, and what it comes to is judged.

mod acts;
mod conduct;
mod evidence;
mod kept;
mod nodes;
mod rules;
mod stage;

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use kubewright_serve::signals::Signals;
use kubewright_trial::{finding::Severity, report::Report};
use tokio::time::Instant;

use self::conduct::{Options, Tried};
use crate::{
    length::{minutes, seconds},
    output::print,
    project::Usage,
    stand::{
        args::{OperatorArgs, PlaceArgs},
        manifests::{self, Inputs},
        program::OperatorCommand,
        sources,
        webhooks::WebhookPort,
    },
};

/// What `kubewright trial` takes. It ends with 1 when something was found that is as bad as `--fail-on`, with 2 for bad arguments.
#[derive(Args, Debug)]
pub(crate) struct TrialArgs {
    /// The objects that users ask for: files, or folders of them [default: what a project has, such as config/samples]
    #[arg(long = "sample", value_name = "PATH")]
    samples: Vec<PathBuf>,

    #[command(flatten)]
    place: PlaceArgs,

    /// Another operator that runs beside it, is not disturbed and not judged: its service account and a line for a shell; may be given
    /// several times
    #[arg(long, value_name = "NAMESPACE/NAME=COMMAND")]
    also: Vec<String>,

    /// Run only plans whose names begin so, such as `kill/create`; may be given several times
    #[arg(long = "plan", value_name = "NAME")]
    plans: Vec<String>,

    /// How many runs go on side by side [default: 3 for each CPU, and 1 where the program listens on a port that is the same in each
    /// run]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: Option<u16>,

    /// When to begin no more runs, such as 10m; a number alone is one of minutes
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = minutes)]
    time: Duration,

    /// How long nobody may write for it to be at rest, such as 3s; more where the operator pauses longer. A number alone is one of
    /// seconds, here and below
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = seconds)]
    rest: Duration,

    /// How long a silence it takes to be sure that a state which is not the expected one will not change
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = seconds)]
    patience: Duration,

    /// How long a step has to come to rest
    #[arg(long, value_name = "DURATION", default_value = "45s", value_parser = seconds)]
    timeout: Duration,

    /// Write the report into a file; its form is that of the name: .html, .md or .json
    #[arg(long, value_name = "FILE")]
    report: Vec<PathBuf>,

    /// Write a report for JUnit into a file
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    /// Write a report as SARIF into a file
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,

    /// Findings that are known, a key in each line: they are told and do not count
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,

    /// Write the keys of all findings into the file of --baseline
    #[arg(long, requires = "baseline")]
    write_baseline: bool,

    /// From which severity on the command ends with 1
    #[arg(long, value_name = "SEVERITY", default_value = "error")]
    fail_on: FailOn,

    /// Where recordings of runs with findings go
    #[arg(long, value_name = "DIR", default_value = "kubewright-trial")]
    recordings: PathBuf,

    /// Say what would be tried, and run nothing
    #[arg(long)]
    explain: bool,

    #[command(flatten)]
    operator: OperatorArgs,
}

/// From which severity on a trial has failed.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum FailOn {
    /// Errors.
    Error,
    /// Errors and warnings.
    Warning,
    /// Whatever is found.
    Note,
    /// Nothing that is found.
    Never,
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// How long nobody writes at rest.
    rest: Duration,
    /// How long it is waited for a state that is not reached.
    patience: Duration,
    /// The longest a step may take to come to rest.
    timeout: Duration,
}

/// What is tried.
struct Setting {
    inputs: Inputs,
    /// The namespace and name of the service account.
    account: (String, String),
    command: OperatorCommand,
    /// Where its webhooks are served, if they are called.
    webhooks: Option<WebhookPort>,
    /// What runs beside it.
    also: Vec<Companion>,
}

/// Another operator that runs beside the one that is tried.
struct Companion {
    /// The namespace and name of its service account.
    account: (String, String),
    command: OperatorCommand,
}

impl Companion {
    /// Reads `NAMESPACE/NAME=COMMAND`.
    fn read(text: &str) -> anyhow::Result<Self> {
        match text.split_once('=') {
            Some((account, line)) if !line.trim().is_empty() => Ok(Self {
                account: manifests::named_account(account)?,
                command: OperatorCommand::shell(line),
            }),
            _ => bail!(Usage(format!("--also {text:?} is no NAMESPACE/NAME=COMMAND"))),
        }
    }
}

/// Tries an operator.
///
/// # Errors
/// When something cannot be read, the operator cannot be run, or a report cannot be written.
pub(crate) async fn trial(args: &TrialArgs) -> anyhow::Result<ExitCode> {
    for report in &args.report {
        form(report)?;
    }
    let sources = sources::find(&args.operator, &args.samples)?;
    let mut inputs = Inputs { needed: sources.needed, given: sources.samples };
    let account = args.place.account(&inputs)?;
    let environment = inputs.environment(&account);
    let placed = inputs.place_samples(&environment);
    let command = sources.command.with_environment(environment);
    let webhooks = args.place.webhook_port(&inputs.needed, &command);
    let also = args.also.iter().map(|text| Companion::read(text)).collect::<anyhow::Result<Vec<_>>>()?;
    let setting = Setting { inputs, account, command, webhooks, also };
    let told = format!("service account: {}/{}", setting.account.0, setting.account.1);
    let placed = placed.map(|namespace| format!("samples are in {namespace}, where the program watches"));
    for line in sources.told.iter().chain([&told]).chain(&placed) {
        print_progress(line);
    }
    args.also.iter().for_each(|other| print_progress(&format!("beside it: {other}")));
    let options = args.options();
    if args.explain {
        return print(EXPLANATION).map(|()| ExitCode::SUCCESS);
    }
    let began = Instant::now();
    let used = cpu_seconds();
    let mut signals = Signals::listen()?;
    let tried = conduct::conduct(&setting, &options, &mut signals, &|line| print_progress(&line)).await?;
    let baseline = args.known()?;
    let report = report(&setting, tried, &baseline, began.elapsed(), cpu_seconds() - used);
    args.write(&report, &sources.place)?;
    print(&report.markdown())?;
    print_progress(&report.summary());
    Ok(ExitCode::from(u8::from(args.has_failed(&report))))
}

/// What is done, for who asks before.
const EXPLANATION: &str = "Each run has a control plane of its own, on which the program runs under its service account.
  undisturbed   three runs: the samples are created and deleted; what differs between them is not compared
  restart, touch, again
                the program starts anew at rest; the samples get an annotation, twice; they are created a second time
  kill          the program is killed after each of its writes, and the samples are deleted while it is away
  replica       a second replica takes over the Lease of one that is killed
  past          the program starts anew and reads the samples as they were before: deleted, or changed
  fail, unanswered
                each of its writes fails once; or is carried out, and the answer is lost
  deleted       each object that it made is deleted by somebody, at rest and just before the samples go
  changed       fields of its objects that it owns are changed by somebody
  extended      somebody adds a label, an annotation and an owner reference to its objects
  occupied      somebody else has objects under the names that it wants
  fresh, change each field of the samples is set otherwise, from the start and later, and set back
  together      two or three fields of the samples are changed at once, all but one back, and that one back: a seed says which
  unseen        the program's watches leave out one write and go on: a change, an object that it made and that is deleted, the samples
                that are deleted and made anew
  node          where there are pods, a node with some of them is deleted, not ready with a Lease that is over, or drained; a seed says
                which
  webhooks      its webhooks cannot be called for a while, where they are served here
  fault         conflicts, throttling, errors, lost writes and answers, latency; watches that end, lag, expire or repeat;
                a server that is away, a Lease that cannot be renewed
  quota         a quota lets nothing of a resource be created for a while
";

impl TrialArgs {
    fn options(&self) -> Options {
        Options {
            pace: Pace { rest: self.rest, patience: self.patience, timeout: self.timeout },
            jobs: self.jobs.map(usize::from),
            time: self.time,
            plans: self.plans.clone(),
            recordings: self.recordings.clone(),
        }
    }

    /// The keys of the baseline.
    fn known(&self) -> anyhow::Result<Vec<String>> {
        let Some(path) = self.baseline.as_ref().filter(|_| !self.write_baseline) else {
            return Ok(Vec::new());
        };
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        Ok(lines.map(str::to_owned).collect())
    }

    fn write(&self, report: &Report, place: &str) -> anyhow::Result<()> {
        let write = |path: &Path, text: String| {
            fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
        };
        for path in &self.report {
            let text = match form(path)? {
                Form::Html => report.html(),
                Form::Markdown => report.markdown(),
                Form::Json => report.json()?,
            };
            write(path, text)?;
        }
        if let Some(path) = &self.junit {
            write(path, report.junit())?;
        }
        if let Some(path) = &self.sarif {
            write(path, report.sarif(place).to_string())?;
        }
        if let Some(path) = self.baseline.as_ref().filter(|_| self.write_baseline) {
            let keys: Vec<String> = report.findings.iter().map(|one| one.key() + "\n").collect();
            write(path, keys.concat())?;
        }
        Ok(())
    }

    fn has_failed(&self, report: &Report) -> bool {
        let least = match self.fail_on {
            FailOn::Error => Severity::Error,
            FailOn::Warning => Severity::Warning,
            FailOn::Note => Severity::Note,
            FailOn::Never => return false,
        };
        report.worst().is_some_and(|worst| worst >= least)
    }
}

/// Form of a report.
enum Form {
    Html,
    Markdown,
    Json,
}

fn form(path: &Path) -> anyhow::Result<Form> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("html") => Ok(Form::Html),
        Some("md") => Ok(Form::Markdown),
        Some("json") => Ok(Form::Json),
        _ => bail!(Usage(format!("report {}: its name ends in .html, .md or .json", path.display()))),
    }
}

fn report(setting: &Setting, tried: Tried, baseline: &[String], took: Duration, cpu_seconds: f64) -> Report {
    Report {
        operator: setting.command.text(),
        command: again(),
        runs: tried.runs,
        refused: tried.refused,
        tried: tried.plans,
        left: tried.left,
        seconds: took.as_secs_f64(),
        cpu_seconds,
        findings: tried.findings.folded(baseline),
        volatile: tried.volatile,
        warnings: tried.warnings,
    }
}

/// The command as it was typed, without plans and reports: for a shell.
fn again() -> String {
    let mut words = std::env::args().skip(1);
    let mut kept = vec!["kubewright".to_owned()];
    let mut is_program = false;
    while let Some(word) = words.next() {
        is_program = is_program || word == "--";
        let is_left_out = |flag: &str| word == flag || word.starts_with(&format!("{flag}="));
        if !is_program && ["--plan", "--report", "--junit", "--sarif", "--time"].into_iter().any(is_left_out)
        {
            if !word.contains('=') {
                words.next();
            }
            continue;
        }
        kept.push(quoted(&word));
    }
    kept.join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=,@%+".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

fn print_progress(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Seconds of CPU that this process and the programs that it ended have taken so far; 0 where the machine does not say.
fn cpu_seconds() -> f64 {
    let Ok(text) = fs::read_to_string("/proc/self/stat") else { return 0.0 };
    // After the name, which may have spaces: fields 14 to 17 of proc(5), in ticks of a hundredth.
    let Some((_, rest)) = text.rsplit_once(')') else { return 0.0 };
    rest.split_whitespace().skip(11).take(4).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>()
        / 100.0
}
