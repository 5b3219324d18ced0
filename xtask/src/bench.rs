//! `cargo xtask bench`

mod project;

use std::{
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Child, Command},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::{
    envtest::{self, Assets},
    operators::{Figures, figures},
    run::{cargo, run, target},
    tools,
};

/// What is compared with.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: Option<What>,

    #[command(flatten)]
    waits: Waits,
}

#[derive(clap::Subcommand)]
enum What {
    /// The API server under load, beside a reference that runs already
    Api(Api),
    /// Start and stop of envtest's Environment, beside a real kube-apiserver and etcd
    Envtest(Envtest),
    /// Memory of an operator that caches Pods, on the SDK and on controller-runtime
    Cache(Cache),
    /// The benchmark's operator on the SDK (`benches/operator`), beside the same operator on other libraries
    Operator(Operator),
    /// Memory and work of the operators of this repository, idle and with a thousand objects
    Operators(Figures),
    /// Frames of the page of `up --ui` in Chromium, with 10,000 objects and 1,000 writes a second
    Page(Page),
    /// From an empty folder to a sample that is healed: what a user waits for with each command
    Project,
}

#[derive(clap::Args)]
struct Page {
    /// Measure debug builds: what the browser does is the same
    #[arg(long)]
    debug: bool,
}

#[derive(clap::Args)]
struct Cache {
    /// How many Pods there are
    #[arg(long, value_name = "NUMBER", default_value_t = 20_000)]
    pods: u32,
}

#[derive(clap::Args)]
struct Operator {
    /// The kubeconfig of a real control plane, on which all is measured once more after `kubewright up`
    #[arg(long, value_name = "KUBECONFIG")]
    reference: Option<PathBuf>,

    /// Another operator that does the same, measured before ours
    #[arg(long, value_name = "COMMAND")]
    beside: Vec<String>,

    /// How many Widgets there are; several times for several runs
    #[arg(long, value_name = "NUMBER", default_values_t = [2000])]
    widgets: Vec<u32>,
}

#[derive(clap::Args)]
struct Envtest {
    /// A folder with a real kube-apiserver and etcd; by default that of KUBEBUILDER_ASSETS
    #[arg(long, value_name = "FOLDER")]
    reference: Option<PathBuf>,

    /// How often each is started and stopped; the median counts
    #[arg(long, value_name = "NUMBER", default_value = "10", value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
}

#[derive(clap::Args)]
struct Api {
    /// The kubeconfig of a real control plane
    #[arg(long, value_name = "KUBECONFIG", requires = "reference_pid")]
    reference: Option<PathBuf>,

    /// The process of its API server, whose processor time and memory are measured
    #[arg(long, value_name = "PID")]
    reference_pid: Option<u32>,

    /// Which controllers run beside the API server; namespaces are deleted by theirs
    #[arg(long, value_name = "LIST", default_value = "namespace-controller")]
    controllers: String,

    /// How many simulated nodes there are
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    nodes: u16,

    /// Keep objects on disk, in this folder
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,

    /// What is measured, and other arguments of apibench
    #[arg(value_name = "WORKLOAD", trailing_var_arg = true, allow_hyphen_values = true, default_values = ["api", "list", "watch-fanout"])]
    workloads: Vec<String>,
}

#[derive(clap::Args)]
struct Waits {
    /// How often each thing is measured; the median counts
    #[arg(long, value_name = "NUMBER", default_value = "10", value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,

    /// A shell command that starts a real control plane in the foreground and ends it on SIGTERM
    #[arg(long, value_name = "COMMAND", requires = "reference")]
    reference_command: Option<String>,

    /// The kubeconfig of the real control plane; without --reference-command of one that runs already
    #[arg(long, value_name = "KUBECONFIG")]
    reference: Option<String>,
}

/// Builds in release mode and measures.
pub(crate) fn bench(options: &Options) -> Result<()> {
    match &options.what {
        None => waits(&options.waits),
        Some(What::Api(options)) => api(options),
        Some(What::Envtest(options)) => envtest(options),
        Some(What::Cache(options)) => cache(options),
        Some(What::Operator(options)) => operator(options),
        Some(What::Operators(options)) => figures(options),
        Some(What::Page(options)) => page(options),
        Some(What::Project) => project::project(),
    }
}

/// What a user waits for (`benches/src`).
fn waits(options: &Waits) -> Result<()> {
    let packages = ["--package", "kubewright-cli", "--package", "kubewright-benches"];
    run(cargo(["build", "--release"]).args(packages))?;
    let release = target().join("release");
    let mut measure = Command::new(release.join("kubewright-bench"));
    measure.arg("--kubewright").arg(release.join("kubewright")).args(["--runs", &options.runs.to_string()]);
    if let Some(kubeconfig) = &options.reference {
        measure.args(["--reference", kubeconfig]);
    }
    if let Some(command) = &options.reference_command {
        measure.args(["--reference-command", command]);
    }
    run(&mut measure)
}

/// How even the page of `up --ui` is drawn (`benches/src/page.rs`).
fn page(options: &Page) -> Result<()> {
    let chromium = tools::chromium().map_err(anyhow::Error::msg)?;
    let (profile, folder) = if options.debug { ("dev", "debug") } else { ("release", "release") };
    let packages = ["--package", "kubewright-cli", "--package", "kubewright-benches"];
    run(cargo(["build", "--profile", profile]).args(packages))?;
    let (folder, mut measure) =
        (target().join(folder), Command::new(target().join(folder).join("kubewright-bench")));
    measure.env("KUBEWRIGHT", folder.join("kubewright")).env("CHROMIUM", chromium);
    run(measure.arg("--kubewright").arg(folder.join("kubewright")).arg("--page"))
}

/// What a request costs (`benches/api`): first the reference, then `kubewright up`, then the ratios.
fn api(options: &Api) -> Result<()> {
    run(&mut cargo(["build", "--release", "--package", "kubewright-cli", "--package", "apibench"]))?;
    let folder = target().join("bench");
    std::fs::create_dir_all(&folder)?;
    let theirs = folder.join("reference.json");
    if let (Some(kubeconfig), Some(pid)) = (&options.reference, options.reference_pid) {
        measure(kubeconfig, pid, &options.workloads, &theirs)?;
    }
    let kubeconfig = folder.join("kubeconfig");
    let mut up = start_up(&options.controllers, options.nodes, options.data.as_deref(), &kubeconfig)?;
    let ours = folder.join("kubewright.json");
    let measured = measure(&kubeconfig, up.id(), &options.workloads, &ours);
    up.kill().and_then(|()| up.wait())?;
    measured?;
    if options.reference.is_some() {
        run(Command::new(apibench()).arg("compare").args([&theirs, &ours]))?;
    }
    Ok(())
}

/// What a reconcile costs (`benches/operator`): the other operators, then ours, on the same API server.
fn operator(options: &Operator) -> Result<()> {
    run(&mut cargo(["build", "--release", "--package", "kubewright-cli", "--package", "apibench"]))?;
    let ours = bench_operator()?;
    let folder = target().join("bench");
    std::fs::create_dir_all(&folder)?;
    let kubeconfig = folder.join("kubeconfig");
    let mut up = start_up("garbage-collector-controller,namespace-controller", 0, None, &kubeconfig)?;
    let measured = operators(options, &ours, "kubewright up", &kubeconfig);
    up.kill().and_then(|()| up.wait())?;
    measured?;
    options
        .reference
        .as_ref()
        .map_or(Ok(()), |kubeconfig| operators(options, &ours, "the reference", kubeconfig))
}

/// What a cache of Pods takes (`benches/src/cache.rs`): controller-runtime's (`tests/envtest-go/cmd/podcache`), then ours.
fn cache(options: &Cache) -> Result<()> {
    let packages = ["--package", "kubewright-cli", "--package", "kubewright-benches"];
    run(cargo(["build", "--release"]).args(packages))?;
    let (ours, go) = (bench_operator()?, envtest::go().map_err(anyhow::Error::msg)?);
    let theirs = envtest::build(&go, "podcache")?;
    let release = target().join("release");
    let mut measure = Command::new(release.join("kubewright-bench"));
    measure.arg("--kubewright").arg(release.join("kubewright")).args(["--pods", &options.pods.to_string()]);
    run(measure.arg("--cache").arg(theirs).args(["--cache", &ours]))
}

/// Builds our operator as docs/production.md says how, and as static as `kubewright build` does; gives where it is.
fn bench_operator() -> Result<String> {
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut build = cargo(["build", "--release", "--package", "bench-operator", "--target", &triple]);
    let is_static = format!("target.{triple}.rustflags=['-C', 'target-feature=+crt-static']");
    for setting in [is_static.as_str(), "profile.release.lto='fat'", "profile.release.codegen-units=1"] {
        build.args(["--config", setting]);
    }
    run(&mut build)?;
    Ok(target().join(triple).join("release/bench-operator").display().to_string())
}

/// Each operator, with each number of Widgets, on one API server.
fn operators(options: &Operator, ours: &String, server: &str, kubeconfig: &Path) -> Result<()> {
    for widgets in &options.widgets {
        for command in options.beside.iter().chain([ours]) {
            writeln!(io::stdout(), "\n{command}: {widgets} Widgets on {server}")?;
            let mut bench = Command::new(apibench());
            bench.arg("--kubeconfig").arg(kubeconfig).args(["--widgets", &widgets.to_string()]);
            run(bench.args(["operator", command]))?;
        }
    }
    Ok(())
}

/// What an `envtest.Environment` costs (`tests/envtest-go/cmd/startstop`): the real programs, then ours, then the ratios.
fn envtest(options: &Envtest) -> Result<()> {
    run(&mut cargo(["build", "--release", "--package", "kubewright-envtest"]))?;
    let go = envtest::go().map_err(anyhow::Error::msg)?;
    let given =
        options.reference.clone().or_else(|| std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from));
    let measure = |assets: &Assets| -> Result<StartStop> {
        let row = envtest::start_and_stop(&go, assets, options.runs)?;
        serde_json::from_str(&row).with_context(|| format!("not a row: {row}"))
    };
    let theirs = given.map(|folder| measure(&Assets::of(&folder)?)).transpose()?;
    let ours = measure(&Assets::link("release")?)?;
    let theirs = theirs.as_ref().map(StartStop::figures);
    let mut out = io::stdout();
    writeln!(out, "{:<14}{:>14}{:>14}{:>8}", "", "reference", "kubewright", "ratio")?;
    for (at, (what, unit, ours)) in ours.figures().into_iter().enumerate() {
        let (theirs, ratio) = match theirs.map(|figures| figures[at].2) {
            Some(theirs) => (format!("{theirs:.3} {unit}"), format!("{:.3}", ours / theirs)),
            None => ("-".to_owned(), "-".to_owned()),
        };
        writeln!(out, "{what:<14}{theirs:>14}{:>14}{ratio:>8}", format!("{ours:.3} {unit}"))?;
    }
    Ok(())
}

/// What `startstop` prints.
#[derive(serde::Deserialize)]
struct StartStop {
    start_seconds: f64,
    stop_seconds: f64,
    peak_memory_bytes: f64,
}

impl StartStop {
    /// What is told, with its unit.
    fn figures(&self) -> [(&'static str, &'static str, f64); 4] {
        [
            ("start", "s", self.start_seconds),
            ("stop", "s", self.stop_seconds),
            ("start + stop", "s", self.start_seconds + self.stop_seconds),
            ("peak memory", "MiB", self.peak_memory_bytes / f64::from(1 << 20)),
        ]
    }
}

fn apibench() -> PathBuf {
    target().join("release/apibench")
}

/// Starts a control plane and waits for its kubeconfig.
#[expect(clippy::disallowed_methods, reason = "another process is waited for")]
pub(crate) fn start_up(
    controllers: &str,
    nodes: u16,
    data: Option<&Path>,
    kubeconfig: &Path,
) -> Result<Child> {
    let _ = std::fs::remove_file(kubeconfig);
    let mut up = Command::new(target().join("release/kubewright"));
    up.args(["up", "--quiet", "--nodes", &nodes.to_string(), "--port", "0", "--kubeconfig"]).arg(kubeconfig);
    up.args(["--controllers", controllers]);
    if let Some(folder) = data {
        up.arg("--data").arg(folder);
    }
    let mut up = up.spawn().context("cannot start kubewright")?;
    while !kubeconfig.is_file() {
        if let Some(status) = up.try_wait()? {
            bail!("kubewright up ended ({status})");
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(up)
}

/// Measures a running server; its rows are shown, and kept in `rows`.
fn measure(kubeconfig: &Path, pid: u32, workloads: &[String], rows: &Path) -> Result<()> {
    let mut bench = Command::new(apibench());
    bench.arg("--json").arg("--kubeconfig").arg(kubeconfig).args(["--server-pid", &pid.to_string()]);
    run(bench.args(workloads).stdout(File::create(rows)?))?;
    io::stdout().write_all(&std::fs::read(rows)?)?;
    Ok(())
}
