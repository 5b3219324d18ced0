//! The command line.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, error::ErrorKind};
use kubewright_cluster::{KubernetesVersion, version_of_data};
use kubewright_envtest::install::EnvtestCommand;
use kubewright_image::Reference;
use kubewright_recording::At;
use kubewright_world::Pacing;

use crate::{
    about, controllers, doctor, examples::with_examples, generate, install, render, run, test, trial, why,
};

/// A Kubernetes in one process, and operators on it.
#[derive(Debug, Parser)]
#[command(name = "kubewright", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a control plane on this machine and keep it until Ctrl-C
    Up(UpArgs),
    /// Run the built-in controllers, and the scheduler and simulated nodes where they are asked for, on the API server of a kubeconfig
    Controllers(Box<controllers::ControllersArgs>),
    /// Look at a recording in a browser: its objects at any moment, who wrote what, and what changed
    View(crate::view::ViewArgs),
    /// Look at a cluster or a recording on a terminal: the tree of its objects with their states, and what happens
    Top(Box<crate::top::TopArgs>),
    /// Let suites that start kube-apiserver and etcd start kubewright in their place
    #[command(subcommand)]
    Envtest(EnvtestCommand),
    /// Keep container images on this machine, for pods that run as processes
    Image(ImageArgs),
    /// Build the operator of this folder into an image, without a container engine
    Build(Box<crate::build::BuildArgs>),
    /// Install the operator of this folder in a cluster, and wait until it runs
    Deploy(Box<crate::deploy::DeployArgs>),
    /// Record what happens in a cluster, by watches with your rights, into a file
    Record(Box<crate::record::RecordArgs>),
    /// Write what was recorded into a cluster, in its order and with its pauses
    Play(Box<crate::play::PlayArgs>),
    /// Run an operator in a recorded world, and compare what it does with what was done then
    Replay(Box<crate::replay::ReplayArgs>),
    /// Remove what `deploy` installed
    Undeploy(crate::deploy::UndeployArgs),
    /// Make manifests of ThirdPartyResources, v1beta1 CustomResourceDefinitions and old workloads into those of today
    Convert(ConvertArgs),
    #[command(flatten)]
    Scaffold(kubewright_scaffold::Command),
    /// Write an operator's manifests: for kubectl, kustomize, Helm and the Operator Lifecycle Manager
    Generate(generate::GenerateArgs),
    /// Apply the definitions of an operator's kinds to a cluster
    Install(install::InstallArgs),
    /// Delete them, and all objects of these kinds
    Uninstall(install::UninstallArgs),
    /// Run an operator on this machine under the rights that it ships with
    Run(run::RunArgs),
    /// Run an operator's tests
    Test(test::TestArgs),
    /// Print what an operator makes of an object: it is run to rest on a control plane of its own
    Render(render::RenderArgs),
    /// Compare what two versions of an operator make of an object
    Diff(render::DiffArgs),
    /// Find the bugs of an operator: run it again and again while things go wrong, and judge what it comes to
    Trial(Box<trial::TrialArgs>),
    /// Say why an object is not ready, not deleted, not scheduled or not reconciled
    Why(why::WhyArgs),
    /// Look at what is needed: the toolchain, the project, the cluster and your rights there
    Doctor(doctor::DoctorArgs),
    /// Write what makes a shell complete the command's words
    Completion(about::CompletionArgs),
    /// Write the command's manual pages into a folder
    Man(about::ManArgs),
    /// Print the version of kubewright and of the Kubernetes API that it serves
    Version(about::VersionArgs),
}

/// What `kubewright convert` takes. It ends with 0, with 1 when something cannot be read or converted (then nothing is
/// written), and with 3 when something could not be carried over.
#[derive(Args, Debug)]
pub(crate) struct ConvertArgs {
    /// Files of YAML or JSON, folders of them, or `-` for standard input
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// What `kubewright image` takes.
#[derive(Args, Debug)]
pub(crate) struct ImageArgs {
    #[command(subcommand)]
    pub(crate) command: ImageCommand,

    /// Where the images are; $KUBEWRIGHT_IMAGES says it too [default: ~/.local/share/kubewright/images]
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) image_store: Option<PathBuf>,
}

/// What `kubewright image` does.
#[derive(Debug, Subcommand)]
pub(crate) enum ImageCommand {
    /// Load the images of an OCI image layout or of what `docker save` wrote
    Load {
        /// What the image is called, such as `app:v1`; by default what it says there
        #[arg(long, value_name = "REF", value_parser = tagged_reference)]
        name: Option<Reference>,

        /// A folder, an archive (plain, gzip or zstd), or `-` for an archive from standard input
        path: PathBuf,
    },
    /// Push an image to the registry that its name begins with
    Push {
        /// The image, such as `registry.example/team/app:v1`
        #[arg(value_name = "REF")]
        reference: String,

        #[command(flatten)]
        registry: crate::image::RegistryArgs,
    },
    /// Pull an image from its registry, for this machine
    Pull {
        /// The image, such as `registry.example/team/app:v1`
        #[arg(value_name = "REF")]
        reference: Reference,

        #[command(flatten)]
        registry: crate::image::RegistryArgs,
    },
    /// List the images
    List,
    /// Take names from images, and remove those that have no other
    Remove {
        /// Names, or ids for all the names of an image
        #[arg(value_name = "REF", required = true)]
        references: Vec<String>,
    },
    /// Print what is known of an image, as JSON
    Inspect {
        /// A name, a digest, or an id
        #[arg(value_name = "REF")]
        reference: String,
    },
}

/// The name that an image is given. Its digest is not for us to choose.
pub(crate) fn tagged_reference(text: &str) -> Result<Reference, String> {
    let reference = Reference::parse(text).map_err(|error| error.to_string())?;
    match reference.digest() {
        None => Ok(reference),
        Some(_) => Err("a name that is given to an image has a tag and no digest, such as app:v1".to_owned()),
    }
}

/// What `kubewright up` takes.
#[derive(Args, Debug)]
pub(crate) struct UpArgs {
    /// Run the sample operators under their own service accounts, and apply their samples; the program of Kubewright's repository has them
    #[arg(help_heading = "Samples", long)]
    pub(crate) samples: bool,

    /// End with 0 when every sample has converged, with 1 and the reason when one has not within --timeout
    #[arg(help_heading = "Samples", long)]
    pub(crate) exit_when_ready: bool,

    /// How many seconds --exit-when-ready waits
    #[arg(help_heading = "Samples", long, value_name = "SECONDS", default_value = "60", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,

    /// The version of Kubernetes that is served: 1.35, 1.36 or 1.37, with its kinds, fields, discovery, OpenAPI, first roles, feature
    /// gates and rules; by default the newest, and with --data at least that of the cluster there
    #[arg(help_heading = "Cluster", long, value_name = "VERSION", env = "KUBEWRIGHT_KUBERNETES_VERSION")]
    kubernetes_version: Option<KubernetesVersion>,

    /// The port of the API server on 127.0.0.1; 0 takes a free one
    #[arg(help_heading = "Cluster", long, default_value = "6443", allow_negative_numbers = true)]
    pub(crate) port: u16,

    /// How many simulated nodes there are, by default 1, or 0 with a --runtime; without any node pods stay Pending until
    /// there are nodes annotated as kwok's
    #[arg(help_heading = "Nodes and pods", long, value_name = "NUMBER", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u16).range(0..=10000))]
    nodes: Option<u16>,

    /// Run pods: with `process` there is a node whose containers are processes of this machine
    #[arg(help_heading = "Nodes and pods", long, value_name = "RUNTIME", value_enum, conflicts_with_all = ["clock", "seed"])]
    pub(crate) runtime: Option<RuntimeKind>,

    /// Let pods run commands of this machine where their image is not in the image store, and see its files
    #[arg(help_heading = "Nodes and pods", long, requires = "runtime")]
    pub(crate) allow_host_commands: bool,

    /// Where the images of this machine are; by default where `kubewright image` keeps them
    #[arg(help_heading = "Nodes and pods", long, value_name = "DIR", requires = "runtime")]
    pub(crate) image_store: Option<PathBuf>,

    /// Which built-in controllers run: `*` for all, a name, or `-name` for all but that one; with --from, by default none
    #[arg(
        help_heading = "Cluster",
        long,
        value_name = "LIST",
        default_value = "*",
        allow_hyphen_values = true,
        default_value_if("from", clap::builder::ArgPredicate::IsPresent, "")
    )]
    pub(crate) controllers: String,

    /// Where the kubeconfig of an administrator is written
    #[arg(help_heading = "Cluster", long, value_name = "FILE", default_value = "kubewright.kubeconfig")]
    pub(crate) kubeconfig: PathBuf,

    /// Keep the cluster in this folder, and go on with what is there; without, it is gone when it ends
    #[arg(help_heading = "Cluster", long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    /// Start with what is in this recording, such as one of a test that failed: its objects as they were at its end
    #[arg(help_heading = "For tests", long, value_name = "FILE", conflicts_with_all = ["data", "samples"])]
    pub(crate) from: Option<PathBuf>,

    /// Start with the objects of --from as they were at this moment: a revision (a resourceVersion), a time such as
    /// 2026-01-31T12:00:00Z, or "15 minutes before the end"
    #[arg(help_heading = "For tests", long, value_name = "MOMENT", requires = "from")]
    pub(crate) at: Option<At>,

    /// Record every write and every request into this new file, until the cluster ends; the data of Secrets is hashed.
    /// Without it $KUBEWRIGHT_RECORD may name a folder, for a file of its own there
    #[arg(help_heading = "For tests", long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,

    /// Have the data of Secrets in the file of --record as it is
    #[arg(help_heading = "For tests", long, requires = "record")]
    pub(crate) record_secrets: bool,

    /// What cluster time starts at and how fast it passes, such as `2030-01-01T00:00:00Z,speed=60`; at speed=0 it passes
    /// only when --admin is told to let it
    #[arg(help_heading = "For tests", long, value_name = "START,speed=N", conflicts_with = "data")]
    pub(crate) clock: Option<Pacing>,

    /// Serve /kubewright to this machine: let time pass, make requests fail, see who called what
    #[arg(help_heading = "For tests", long)]
    pub(crate) admin: bool,

    /// Serve a page on 127.0.0.1 that shows what happens: objects below their owners, writes, requests, time and faults; its link is
    /// printed. --ui=PORT takes this port, else a free one. It has what --admin serves, too
    #[arg(help_heading = "Cluster", long, value_name = "PORT", num_args = 0..=1, require_equals = true, default_missing_value = "0", conflicts_with = "quiet")]
    pub(crate) ui: Option<u16>,

    /// End when standard input closes: when the program that started this one and holds the other end of the pipe has ended
    #[arg(help_heading = "For tests", long)]
    pub(crate) exit_with_stdin: bool,

    /// Say nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// Makes names and uids come out the same in every run
    #[arg(
        help_heading = "For tests",
        long,
        value_name = "NUMBER",
        allow_negative_numbers = true,
        conflicts_with = "data"
    )]
    pub(crate) seed: Option<u64>,
}

/// What runs the containers of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RuntimeKind {
    /// Processes of this machine, in namespaces of their own where it has them
    Process,
}

impl UpArgs {
    /// What `up --port PORT --kubeconfig FILE` takes.
    pub(crate) fn serving(port: u16, kubeconfig: &Path) -> Result<Self, clap::Error> {
        let words = ["up".into(), format!("--port={port}").into(), "--kubeconfig".into(), kubeconfig.into()];
        let words: [OsString; 4] = words;
        Self::from_arg_matches(&Self::augment_args(clap::Command::new("up")).try_get_matches_from(words)?)
    }

    /// How many simulated nodes there are. Whoever has pods run wants them to run, not to be simulated; what was recorded is
    /// not to be gone on with.
    pub(crate) fn nodes(&self) -> usize {
        usize::from(self.nodes.unwrap_or(u16::from(self.runtime.is_none() && self.from.is_none())))
    }

    /// The version of Kubernetes to be: the one that was said, or the default one; where a folder keeps a cluster of a newer one, that.
    pub(crate) fn kubernetes_version(&self) -> anyhow::Result<KubernetesVersion> {
        let kept = || self.data.as_deref().map(version_of_data).transpose().context("--data");
        Ok(match self.kubernetes_version {
            Some(said) => said,
            None => kept()?.flatten().max(Some(KubernetesVersion::DEFAULT)).unwrap_or_default(),
        })
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}

/// The command line of the program, with examples in its help.
pub(crate) fn program() -> clap::Command {
    with_examples(Cli::command())
}

/// Reads a command line.
///
/// # Errors
/// When it is refused, or asks for help.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut program = program();
    let matches = program.try_get_matches_from_mut(words)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut program))
}

/// What clap says of a refused command line of these words, in one line: the error, its tips, and where help is. `None` when it is no
/// refusal but the answer to `--help` or `--version`.
pub(crate) fn refusal(error: &clap::Error, words: &[OsString]) -> Option<String> {
    let no_refusal = [
        ErrorKind::DisplayHelp,
        ErrorKind::DisplayVersion,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
    ];
    if no_refusal.contains(&error.kind()) {
        return None;
    }
    let text = error.to_string();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let hints: Vec<&str> = lines
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .map(|line| line.trim_start_matches("error: ").trim_start_matches("tip: "))
        .collect();
    Some(format!("{} (see {} --help)", in_one_line(&hints), used(words)))
}

/// Lines as one: what a line that ends in a colon announces follows it.
fn in_one_line(lines: &[&str]) -> String {
    let mut text = String::new();
    for line in lines {
        let gap = if text.is_empty() {
            ""
        } else if text.ends_with(':') {
            " "
        } else {
            "; "
        };
        text += gap;
        text += line;
    }
    text
}

/// The command that a command line begins with, such as `kubewright create api`.
fn used(words: &[OsString]) -> String {
    let (program, mut used) = (Cli::command(), vec!["kubewright"]);
    let mut command = &program;
    for word in words.iter().skip(1) {
        let Some(next) = word.to_str().and_then(|word| command.find_subcommand(word)) else { break };
        used.push(next.get_name());
        command = next;
    }
    used.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn up(arguments: &str) -> Result<UpArgs, String> {
        let words = ["kubewright", "up"].into_iter().chain(arguments.split_whitespace());
        let words: Vec<OsString> = words.map(OsString::from).collect();
        match parse(words.clone()) {
            Ok(Cli { command: Command::Up(args) }) => Ok(args),
            Ok(other) => panic!("parsed as {other:?}"),
            Err(error) => Err(refusal(&error, &words).expect("a refusal")),
        }
    }

    #[test]
    fn the_defaults_are_one_node_all_controllers_and_a_file_in_this_folder() {
        let args = up("").expect("no argument is needed");
        assert_eq!((args.port, args.nodes(), args.controllers.as_str(), args.seed), (6443, 1, "*", None));
        assert_eq!(args.kubeconfig, PathBuf::from("kubewright.kubeconfig"));
        assert_eq!(args.timeout(), Duration::from_secs(60));
        assert!(!args.samples && !args.exit_when_ready && !args.quiet);
    }

    #[test]
    fn a_cluster_goes_on_with_its_own_version_unless_another_is_said() {
        let folder = std::env::temp_dir().join(format!("kubewright-args-{}", std::process::id()));
        let version = |said: &str| {
            let args = up(&format!("{said} --data {}", folder.display())).expect("arguments");
            args.kubernetes_version().expect("a version")
        };
        assert_eq!(version(""), KubernetesVersion::DEFAULT);
        let newest = KubernetesVersion::ALL[KubernetesVersion::ALL.len() - 1];
        std::fs::create_dir_all(&folder).expect("a folder");
        let stamp = format!("format 1\nkubernetes {}\nsince 0\n", newest.release());
        std::fs::write(folder.join("version"), stamp).expect("written");
        assert_eq!(version(""), newest);
        assert_eq!(version("--kubernetes-version 1.35"), KubernetesVersion::V1_35);
        std::fs::remove_dir_all(&folder).expect("it was there");
    }

    #[test]
    fn a_controller_is_switched_off_with_a_dash() {
        assert_eq!(up("--controllers=*,-deployment").expect("a list").controllers, "*,-deployment");
        assert_eq!(up("--controllers -deployment").expect("a list").controllers, "-deployment");
    }

    #[test]
    fn numbers_out_of_range_are_refused_in_one_line_that_names_the_range() {
        for (arguments, expected) in [
            ("--port 65536", "65536 is not in 0..=65535"),
            ("--port -1", "-1 is not in 0..=65535"),
            ("--nodes -3", "-3 is not in 0..=10000"),
            ("--nodes 10001", "10001 is not in 0..=10000"),
            ("--timeout 0", "0 is not in 1..=86400"),
            ("--nodes many", "invalid digit found in string"),
            ("--seed -1", "invalid digit found in string"),
        ] {
            let refused = up(arguments).expect_err(arguments);
            assert!(refused.contains(expected), "{arguments}: {refused}");
            assert!(!refused.contains('\n'), "{arguments}: {refused}");
        }
    }

    #[test]
    fn an_unknown_flag_is_refused_in_one_line_with_the_nearest_one() {
        let refused = up("--sample").expect_err("there is no --sample");
        assert_eq!(
            refused,
            "unexpected argument '--sample' found; a similar argument exists: '--samples' (see kubewright up --help)"
        );
    }

    #[test]
    fn what_else_is_needed_is_named_in_the_same_sentence() {
        assert_eq!(
            up("--at 3").expect_err("of which recording?"),
            "the following required arguments were not provided: --from <FILE> (see kubewright up --help)"
        );
        assert_eq!(in_one_line(&["no:", "a", "b"]), "no: a; b");
    }

    #[test]
    fn a_seed_would_give_the_uids_of_what_is_kept_to_others() {
        let refused = up("--data folder --seed 1").expect_err("no seed twice");
        assert!(refused.contains("'--seed <NUMBER>'") && refused.contains("'--data <DIR>'"), "{refused}");
    }

    #[test]
    fn a_runtime_has_its_own_node_and_lives_in_the_time_of_this_machine() {
        let args = up("--runtime process --allow-host-commands").expect("a runtime");
        assert_eq!((args.runtime, args.nodes()), (Some(RuntimeKind::Process), 0));
        assert_eq!(up("--runtime process --nodes 3").expect("both").nodes(), 3);
        for other in ["--seed 1", "--clock speed=60"] {
            let refused = up(&format!("--runtime process {other}")).expect_err(other);
            assert!(refused.contains("cannot be used with"), "{refused}");
        }
        assert!(up("--allow-host-commands").is_err());
    }

    #[test]
    fn help_is_not_a_refusal() {
        let error = Cli::try_parse_from(["kubewright", "up", "--help"]).expect_err("help ends the parse");
        assert_eq!(refusal(&error, &[]), None);
    }
}
