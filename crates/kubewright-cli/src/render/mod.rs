//! `kubewright render` and `kubewright diff`: what an operator makes of objects, as YAML. The operator is run to rest on a
//! control plane of its own, under its service account.

pub(crate) mod compare;
mod golden;
pub(crate) mod made;
mod settled;
pub(crate) mod stable;

use std::{
    collections::BTreeSet,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context;
use clap::Args;
use kube::api::DynamicObject;
use kubewright_cluster::recording::Recording;
use kubewright_recording::At;

use self::{
    made::{End, Place},
    settled::Limits,
    stable::Rendering,
};
use crate::{
    output::print,
    printer,
    stand::{
        args::{OperatorArgs, PlaceArgs, RestArgs},
        manifests::{self, Inputs},
        past,
        program::OperatorCommand,
        sources::{self, Operator, Sample},
    },
};

/// What is rendered, and how.
#[derive(Args, Debug)]
struct Wanted {
    /// Print the status of objects too, and the objects that were given
    #[arg(long)]
    status: bool,

    /// Print the events that the operator wrote too
    #[arg(long)]
    events: bool,

    #[command(flatten)]
    place: PlaceArgs,

    #[command(flatten)]
    rest: RestArgs,
}

/// What `kubewright render` takes. Without a program it is that of the project in this folder.
#[derive(Args, Debug)]
pub(crate) struct RenderArgs {
    /// Objects that the operator is given: files of YAML or JSON, folders of them, or `-` for standard input [default: config/samples]
    #[arg(long = "filename", short = 'f', value_name = "PATH")]
    objects: Vec<PathBuf>,

    /// Compare what the operator makes of each file of samples with the file of its name in this folder, and end with 1 when one
    /// differs, is missing or has no sample. Each sample has a control plane of its own
    #[arg(long, value_name = "FOLDER")]
    golden: Option<PathBuf>,

    /// Write the files of --golden
    #[arg(long, requires = "golden")]
    write: bool,

    #[command(flatten)]
    wanted: Wanted,

    #[command(flatten)]
    operator: OperatorArgs,
}

/// What `kubewright diff` takes. It ends with 0; with --exit-code with 1 when there are differences.
#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    /// Objects that the operators are given: files of YAML or JSON, folders of them, or `-` for standard input
    #[arg(long = "filename", short = 'f', value_name = "PATH", required_unless_present = "from")]
    objects: Vec<PathBuf>,

    /// Start both with the objects of this recording, as they were at its end, and without controllers
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,

    /// Start with the objects of --from as they were at this moment: a revision, a time, or "15 minutes before the end"
    #[arg(long, value_name = "MOMENT", requires = "from")]
    at: Option<At>,

    #[command(flatten)]
    wanted: Wanted,

    /// What the operators need in the cluster: files, or folders with those below them; a folder of kustomize or a Helm chart is rendered
    /// as for `render`
    #[arg(long, value_name = "PATH", required_unless_present_all = ["old_manifests", "new_manifests"], required_unless_present = "from")]
    manifests: Vec<PathBuf>,

    /// What the old one needs, instead of --manifests
    #[arg(long, value_name = "PATH")]
    old_manifests: Vec<PathBuf>,

    /// What the new one needs, instead of --manifests
    #[arg(long, value_name = "PATH")]
    new_manifests: Vec<PathBuf>,

    /// The old program, as a shell's command line; `{port}`, `{webhook-port}` and `{webhook-certs}` in it are as for `render`
    #[arg(long, value_name = "COMMAND")]
    old: String,

    /// The new program, in the same way
    #[arg(long, value_name = "COMMAND")]
    new: String,

    /// End with 1 when there are differences
    #[arg(long)]
    exit_code: bool,
}

impl Wanted {
    fn limits(&self) -> Limits {
        Limits { rest: self.rest.rest, timeout: self.rest.timeout, shows_logs: self.rest.logs }
    }

    fn rendering(&self) -> Rendering {
        Rendering { has_status: self.status, has_events: self.events }
    }

    /// Runs a program to rest on what it needs, in what was recorded where that is said. Samples without a namespace are put where the
    /// program watches. What is said begins with `whose`.
    async fn run(
        &self,
        whose: &str,
        inputs: &mut Inputs,
        command: &OperatorCommand,
        past: Option<&Recording>,
    ) -> anyhow::Result<End> {
        let account = self.place.account(inputs)?;
        let environment = inputs.environment(&account);
        if let Some(namespace) = inputs.place_samples(&environment) {
            let _ = writeln!(io::stderr(), "{whose}samples are in {namespace}, where the program watches");
        }
        let command = &command.clone().with_environment(environment);
        let webhooks = self.place.webhook_port(&inputs.needed, command);
        let ran = settled::run(inputs, &account, command, webhooks, self.limits(), past).await?;
        for warning in &ran.warnings {
            let _ = writeln!(io::stderr(), "warning: {whose}{warning}");
        }
        Ok(ran.end)
    }

    /// What a program made, on a control plane of its own.
    async fn rendered(
        &self,
        mut inputs: Inputs,
        command: &OperatorCommand,
    ) -> anyhow::Result<Vec<stable::Rendered>> {
        let end = self.run("", &mut inputs, command, None).await?;
        Ok(stable::render(&end.made(&end.written), &inputs.given, self.rendering()))
    }
}

/// Prints what the operator makes, or compares it with the files of `--golden`.
///
/// # Errors
/// When something cannot be read, the control plane refuses an object, or the program ends or does not come to rest.
pub(crate) async fn render(args: &RenderArgs) -> anyhow::Result<ExitCode> {
    let places = sources::sample_places(&args.objects, "-f")?;
    if let Some(folder) = &args.golden {
        return golden(args, folder, &places).await;
    }
    let given = manifests::read(&places)?;
    let Operator { needed, command, .. } = sources::operator(&args.operator)?;
    let rendered = args.wanted.rendered(Inputs { needed, given }, &command).await?;
    if rendered.is_empty() {
        let _ = writeln!(
            io::stderr(),
            "nothing was made: no object that the program wrote is there (--status prints those that it was given)"
        );
    }
    print(&stable::yaml(&rendered)?)?;
    Ok(ExitCode::SUCCESS)
}

async fn golden(args: &RenderArgs, folder: &Path, places: &[PathBuf]) -> anyhow::Result<ExitCode> {
    let samples = sources::samples(places)?;
    let kept = golden::read(folder)?;
    let Operator { needed, command, .. } = sources::operator(&args.operator)?;
    let mut made = golden::Texts::new();
    for Sample { name, objects } in samples {
        let inputs = Inputs { needed: needed.clone(), given: objects };
        let rendered =
            args.wanted.rendered(inputs, &command).await.with_context(|| format!("sample {name}"))?;
        made.insert(name, stable::yaml(&rendered)?);
    }
    let say = |line: String| drop(writeln!(io::stderr(), "{line}"));
    if args.write {
        let written = golden::write(folder, &kept, &made)?;
        say(format!("{written} of {} files in {} written", made.len(), folder.display()));
        for name in golden::without_sample(&kept, &made) {
            say(format!("warning: {name}.yaml: there is no sample of this name: remove it"));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let text = golden::differences(folder, &kept, &made, printer::shows_colours(&io::stdout()));
    print(&text)?;
    if text.is_empty() {
        say(format!("{0} of {0} samples as in {1}", made.len(), folder.display()));
    }
    Ok(ExitCode::from(u8::from(!text.is_empty())))
}

/// Prints the differences of what two operators make: of all that either wrote, as it is with each of them.
///
/// # Errors
/// As [`render`], of either.
pub(crate) async fn diff(args: &DiffArgs) -> anyhow::Result<ExitCode> {
    let given = if args.objects.is_empty() { Vec::new() } else { manifests::read(&args.objects)? };
    let past = args.from.as_deref().map(|path| past::read(path, args.at)).transpose()?;
    let mut ends = Vec::new();
    for (which, line, own) in
        [("old", &args.old, &args.old_manifests), ("new", &args.new, &args.new_manifests)]
    {
        let needed = sources::read(if own.is_empty() { &args.manifests } else { own }, None)?;
        let mut inputs = Inputs { needed, given: given.clone() };
        let (whose, command) = (format!("--{which}: "), OperatorCommand::shell(line));
        let ended = args.wanted.run(&whose, &mut inputs, &command, past.as_ref()).await;
        ends.push((ended.map_err(|error| error.context(format!("--{which} {line}")))?, inputs.given));
    }
    let written: BTreeSet<Place> = ends.iter().flat_map(|(end, _)| end.written.iter().cloned()).collect();
    let rendered = |(end, given): &(End, Vec<DynamicObject>)| {
        stable::render(&end.made(&written), given, args.wanted.rendering())
    };
    let sides: Vec<_> = ends.iter().map(rendered).collect();
    let text = compare::compare(&sides[0], &sides[1], printer::shows_colours(&io::stdout()))?;
    print(&text)?;
    Ok(ExitCode::from(u8::from(args.exit_code && !text.is_empty())))
}
