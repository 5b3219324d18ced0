//! `cargo xtask differ`: a release build beside a real Kubernetes, by conversations made from seeds (`tests/differ`); or our libraries
//! beside those in Go that it is made of (`tests/libraries`).

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::kubectl::eventually;
use crate::run::{cargo, find, run, target, workspace};
use crate::running::Running;

/// What `cargo xtask differ` is told.
#[derive(Args)]
pub(crate) struct Options {
    /// The kubeconfig of a real Kubernetes, on which nothing else works: no controllers, no nodes. With `--controllers`
    /// kube-controller-manager, kube-scheduler and two simulated nodes of kwok do
    #[arg(long, value_name = "FILE", required_unless_present = "libraries")]
    reference: Option<PathBuf>,
    /// The version of Kubernetes that it is
    #[arg(long, default_value = "1.36", value_name = "VERSION")]
    kubernetes_version: String,
    /// Which seeds, the last one not
    #[arg(long, default_value = "0..1000", value_name = "A..B")]
    seeds: String,
    /// Kinds or resources to speak of, `custom` for generated definitions (default: all)
    #[arg(long, value_name = "KINDS")]
    kinds: Option<String>,
    /// End after this many minutes
    #[arg(long, default_value_t = 60)]
    minutes: u64,
    /// Print every request of the seeds and both answers
    #[arg(long)]
    show: bool,
    /// Compare the order of fields, too
    #[arg(long)]
    order: bool,
    /// Fold only what is answered otherwise first in each conversation
    #[arg(long)]
    first: bool,
    /// Compare the controllers, by stories of what a user and a kubelet do, instead of the API
    #[arg(long)]
    controllers: bool,
    /// Try each place of each recorded object with ten values and more, as creations, updates, patches and writes to
    /// parts, all with `dryRun`, instead of conversations out of seeds
    #[arg(long, conflicts_with_all = ["controllers", "show", "out", "first"])]
    sweep: bool,
    /// Which share of the sweep's requests: the first of twenty is 1/20
    #[arg(long, default_value = "1/1", value_name = "K/N")]
    part: String,
    /// How many conversations or stories are held side by side (default: 4, and 32 stories)
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// A folder with published definitions, `crds/PROJECT/NAME.yaml`, and objects of their kinds, `samples.json`: each definition is
    /// applied twice, and there are as many conversations about the kinds of a project as there are seeds. What takes more than
    /// three times as long is a finding, too
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["controllers", "kinds", "out", "show"])]
    corpus: Option<PathBuf>,
    /// Which projects of `--corpus` (default: all)
    #[arg(long, value_name = "PROJECTS", requires = "corpus")]
    projects: Option<String>,
    /// A folder for the shortest conversation of each sort of difference, for `tests/golden/golden.py record`
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Compare our libraries with those in Go that kube-apiserver is made of, instead of servers: each seed is a case of each
    /// subject. It needs a Go
    #[arg(long, conflicts_with_all = ["reference", "controllers", "sweep", "corpus", "kinds", "out", "show", "order"])]
    libraries: bool,
    /// Which subjects of `--libraries`, such as `expression,definition` (default: all)
    #[arg(long, value_name = "SUBJECTS", requires = "libraries")]
    subjects: Option<String>,
}

/// Compares them.
///
/// # Errors
/// Where a server does not answer, and where a conversation differs.
pub(crate) fn differ(options: &Options) -> Result<()> {
    let Some(reference) = &options.reference else { return libraries(options) };
    run(&mut cargo(["build", "--release", "--package", "kubewright-cli", "--package", "kubewright-differ"]))?;
    let built = target().join("release");
    let folder = target().join("differ");
    std::fs::create_dir_all(&folder)?;
    let kubeconfig = folder.join("kubeconfig");
    let log = folder.join("up.log");
    let mut up = Command::new(built.join("kubewright"));
    up.args(["up", "--quiet", "--port", "0"]);
    if options.controllers {
        up.args(["--nodes", "2"]);
    } else {
        up.args(["--nodes", "0", "--controllers", "namespace-controller"]);
    }
    up.args(["--kubernetes-version", &options.kubernetes_version]).arg("--kubeconfig").arg(&kubeconfig);
    let mut up = Running::start(&mut up, &log)?;
    eventually("the control plane is ready", || {
        up.check().with_context(|| format!("see {}", log.display()))?;
        Ok(kubeconfig.exists().then_some(()))
    })?;
    let status = compared(&built.join("differ"), reference, options, &kubeconfig).status()?;
    up.end()?;
    if status.success() { Ok(()) } else { bail!("the two differ") }
}

/// Compares the libraries.
fn libraries(options: &Options) -> Result<()> {
    run(&mut cargo(["build", "--package", "kubewright-libraries"]))?;
    let folder = target().join("differ");
    std::fs::create_dir_all(&folder)?;
    let go = folder.join("libraries-go");
    let mut build = Command::new(find("go").context("there is no Go to build the libraries with")?);
    build.args(["build", "-trimpath", "-buildvcs=false", "-o"]).arg(&go).arg(".");
    build.env("CGO_ENABLED", "0").env("GOWORK", "off").env("GOFLAGS", "");
    run(build.current_dir(workspace().join("tests/libraries/go")))?;
    let mut compared = Command::new(target().join("debug/libraries"));
    compared.arg("--go").arg(&go).args([
        "--seeds",
        &options.seeds,
        "--minutes",
        &options.minutes.to_string(),
    ]);
    if let Some(subjects) = &options.subjects {
        compared.args(["--subjects", subjects]);
    }
    if compared.status()?.success() { Ok(()) } else { bail!("the libraries differ") }
}

fn compared(program: &Path, reference: &Path, options: &Options, kubeconfig: &Path) -> Command {
    let mut differ = Command::new(program);
    differ.arg("--reference").arg(reference).arg("--kubeconfig").arg(kubeconfig);
    differ.args(["--corpus", "tests/golden/recorded", "--seeds", &options.seeds]);
    differ.args(["--part", &options.part]);
    differ.args(["--minutes", &options.minutes.to_string()]);
    if let Some(kinds) = &options.kinds {
        differ.args(["--kinds", kinds]);
    }
    let jobs = options.jobs.unwrap_or(if options.controllers { 32 } else { 4 });
    differ.args(["--jobs", &jobs.to_string()]);
    let given = [
        ("--show", options.show),
        ("--order", options.order),
        ("--first", options.first),
        ("--controllers", options.controllers),
        ("--sweep", options.sweep),
    ];
    for (name, is_given) in given {
        if is_given {
            differ.arg(name);
        }
    }
    if let Some(folder) = &options.corpus {
        differ.arg("--published").arg(folder);
    }
    if let Some(projects) = &options.projects {
        differ.args(["--projects", projects]);
    }
    if let Some(out) = &options.out {
        differ.arg("--out").arg(out);
    }
    differ
}
