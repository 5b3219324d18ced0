//! `kubewright render` and `kubewright diff`: what an operator makes of objects, as YAML. The operator is run to rest on a
//! control plane of its own, under its service account.

mod compare;
mod made;
mod settled;
mod stable;

use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use clap::Args;

use self::{settled::Limits, stable::Rendering};
use crate::{
    output::print,
    printer,
    project::{Project, ProjectArgs},
    stand::{
        manifests::{self, Inputs},
        program::OperatorCommand,
    },
};

/// What is rendered, and how.
#[derive(Args, Debug)]
struct Wanted {
    /// Objects that the operator is given: files of YAML or JSON, folders of them, or `-` for standard input
    #[arg(long = "filename", short = 'f', value_name = "PATH", required = true)]
    objects: Vec<PathBuf>,

    /// Print the status of objects too, and the objects that were given
    #[arg(long)]
    status: bool,

    /// Print the events that the operator wrote too
    #[arg(long)]
    events: bool,

    /// The service account that the program runs under, where the manifests have several Deployments or none
    #[arg(long, value_name = "NAMESPACE/NAME")]
    service_account: Option<String>,

    /// How many seconds nobody may write for it to be at rest
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = clap::value_parser!(u64).range(1..=600))]
    rest: u64,

    /// How many seconds the program has to come to rest
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,

    /// Show what the program prints, on standard error
    #[arg(long)]
    logs: bool,
}

/// What `kubewright render` takes. Without a program it is that of the project in this folder.
#[derive(Args, Debug)]
pub(crate) struct RenderArgs {
    #[command(flatten)]
    wanted: Wanted,

    /// What the operator needs in the cluster (definitions, roles, its Deployment): files, or folders of them. By default, what
    /// the program of the project says
    #[arg(long, value_name = "PATH")]
    manifests: Vec<PathBuf>,

    #[command(flatten)]
    project: ProjectArgs,

    /// The operator's program with its arguments; it finds its cluster by $KUBECONFIG, and $ENABLE_WEBHOOKS is `false`
    #[arg(value_name = "PROGRAM", last = true, requires = "manifests")]
    program: Vec<String>,
}

/// What `kubewright diff` takes. It ends with 0; with --exit-code with 1 when there are differences.
#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    wanted: Wanted,

    /// What the operators need in the cluster: files, or folders of them
    #[arg(long, value_name = "PATH", required_unless_present_all = ["old_manifests", "new_manifests"])]
    manifests: Vec<PathBuf>,

    /// What the old one needs, instead of --manifests
    #[arg(long, value_name = "PATH")]
    old_manifests: Vec<PathBuf>,

    /// What the new one needs, instead of --manifests
    #[arg(long, value_name = "PATH")]
    new_manifests: Vec<PathBuf>,

    /// The old program, as a shell's command line
    #[arg(long, value_name = "COMMAND")]
    old: String,

    /// The new program, as a shell's command line
    #[arg(long, value_name = "COMMAND")]
    new: String,

    /// End with 1 when there are differences
    #[arg(long)]
    exit_code: bool,
}

impl Wanted {
    fn limits(&self) -> Limits {
        let seconds = Duration::from_secs;
        Limits { rest: seconds(self.rest), timeout: seconds(self.timeout), shows_logs: self.logs }
    }

    fn rendering(&self) -> Rendering {
        Rendering { has_status: self.status, has_events: self.events }
    }

    /// The service account that is named.
    fn account(&self) -> anyhow::Result<Option<(String, String)>> {
        self.service_account.as_deref().map(manifests::named_account).transpose()
    }

    /// Runs a program to rest on what it needs, and gives what it made.
    async fn run(&self, inputs: Inputs, command: &OperatorCommand) -> anyhow::Result<Vec<stable::Rendered>> {
        let account = match self.account()? {
            Some(account) => account,
            None => inputs.account()?,
        };
        let ran = settled::run(&inputs, &account, command, self.limits()).await?;
        for warning in &ran.warnings {
            let _ = writeln!(io::stderr(), "warning: {warning}");
        }
        Ok(stable::render(&ran.made, &inputs.given, self.rendering()))
    }
}

/// Prints what the operator makes.
///
/// # Errors
/// When something cannot be read, the control plane refuses an object, or the program ends or does not come to rest.
pub(crate) async fn render(args: &RenderArgs) -> anyhow::Result<()> {
    let given = manifests::read(&args.wanted.objects)?;
    let (needed, command) = match args.program.split_first() {
        Some((program, arguments)) => {
            (manifests::read(&args.manifests)?, OperatorCommand::foreign(program, arguments))
        }
        None => {
            let program = Project::find(&args.project)?.build()?;
            let says = program.manifests::<&str>(&[])?;
            let command = OperatorCommand::of_project(&program, &says);
            let needed = if args.manifests.is_empty() {
                manifests::objects(says)?
            } else {
                manifests::read(&args.manifests)?
            };
            (needed, command)
        }
    };
    let rendered = args.wanted.run(Inputs { needed, given }, &command).await?;
    print(&stable::yaml(&rendered)?)
}

/// Prints the differences of what two operators make.
///
/// # Errors
/// As [`render`], of either.
pub(crate) async fn diff(args: &DiffArgs) -> anyhow::Result<ExitCode> {
    let given = manifests::read(&args.wanted.objects)?;
    let mut sides = Vec::new();
    for (which, line, own) in
        [("old", &args.old, &args.old_manifests), ("new", &args.new, &args.new_manifests)]
    {
        let needed = manifests::read(if own.is_empty() { &args.manifests } else { own })?;
        let inputs = Inputs { needed, given: given.clone() };
        let rendered = args.wanted.run(inputs, &OperatorCommand::shell(line)).await;
        sides.push(rendered.map_err(|error| error.context(format!("--{which} {line}")))?);
    }
    let text = compare::compare(&sides[0], &sides[1], printer::shows_colours(&io::stdout()))?;
    print(&text)?;
    Ok(ExitCode::from(u8::from(args.exit_code && !text.is_empty())))
}
