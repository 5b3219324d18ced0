//! What `#[kubewright::test]` becomes.

use std::collections::BTreeSet;
use std::fmt::{self, Debug};
use std::future::Future;
use std::panic::{AssertUnwindSafe, resume_unwind};

use futures::FutureExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::core::ObjectMeta;
use kubewright_cluster::KubernetesVersion;
use kubewright_cluster::recording::Recording;

use crate::faults::{FaultKind, Plan};
use crate::seed_run::{Failure, SeedRun};
use crate::{Cluster, Deployed, panics, real, seeds};

/// The variable of the environment that has a test run under one seed.
const SEED: &str = "KUBEWRIGHT_SEED";
/// The variable that says which faults there are: their names with commas.
const FAULTS: &str = "KUBEWRIGHT_FAULTS";

/// A test: what it is called and what its attribute says.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    /// Its package.
    pub package: &'static str,
    /// Its module, which begins with its crate.
    pub module: &'static str,
    /// Its function.
    pub name: &'static str,
    /// Which built-in controllers run.
    pub controllers: &'static str,
    /// The version of Kubernetes that its cluster is, where it says one.
    pub kubernetes: Option<KubernetesVersion>,
    /// How many simulated nodes there are.
    pub nodes: usize,
    /// Namespaces that it needs; its helpers act in the first.
    pub namespaces: &'static [&'static str],
    /// Under which seeds its body runs.
    pub seeds: Seeds,
    /// What goes wrong meanwhile.
    pub faults: Faults,
}

/// Under which seeds a body runs.
#[derive(Clone, Copy, Debug)]
pub enum Seeds {
    /// This one.
    One(u64),
    /// From 0 on, so many.
    First(u64),
}

/// Faults that are injected while the body of a test runs.
#[derive(Clone, Copy, Debug)]
pub enum Faults {
    /// Nothing.
    None,
    /// Whatever the seed says.
    All,
    /// Whatever the seed says, of these.
    Only(&'static [&'static str]),
}

impl Faults {
    /// Whether anything goes wrong at all.
    pub(crate) fn are_wanted(self) -> bool {
        !matches!(self, Self::None)
    }

    /// The kinds that may, or those that the environment says.
    pub(crate) fn kinds(self) -> BTreeSet<FaultKind> {
        let read = |name: &str| name.trim().parse().unwrap_or_else(|error: String| panic!("{error}"));
        match (self, std::env::var(FAULTS)) {
            (Self::None, _) => BTreeSet::new(),
            (_, Ok(names)) => names.split(',').filter(|name| !name.is_empty()).map(read).collect(),
            (Self::All, Err(_)) => FaultKind::ALL.into(),
            (Self::Only(names), Err(_)) => names.iter().map(|name| read(name)).collect(),
        }
    }
}

impl Test {
    /// The name by which the test runner knows it.
    pub(crate) fn path(&self) -> String {
        self.module
            .split_once("::")
            .map_or_else(|| self.name.to_owned(), |(_, module)| format!("{module}::{}", self.name))
    }

    /// What runs it again under one seed.
    pub(crate) fn replay(&self, seed: u64, kinds: Option<&BTreeSet<FaultKind>>) -> String {
        let names =
            |kinds: &BTreeSet<FaultKind>| kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(",");
        let faults = kinds.map(|kinds| format!("{FAULTS}={} ", names(kinds))).unwrap_or_default();
        format!("{SEED}={seed} {faults}cargo test -p {} {} -- --exact", self.package, self.path())
    }
}

/// Return type of the body of a test.
pub trait Termination {
    /// What it fails with.
    ///
    /// # Errors
    /// The error of a body that returned one.
    fn failure(self) -> Result<(), String>;
}

impl Termination for () {
    fn failure(self) -> Result<(), String> {
        Ok(())
    }
}

impl<E: Debug> Termination for Result<(), E> {
    fn failure(self) -> Result<(), String> {
        self.map_err(|error| format!("the test returned an error: {error:?}"))
    }
}

/// Runs a body under each of its seeds, each with a cluster of its own, until one fails. That is told of with the fewest
/// faults that it takes.
///
/// # Panics
/// When it fails; when it runs otherwise the second time, which a simulation does not.
pub fn run<B, F>(test: &Test, body: B)
where
    B: Fn(Cluster) -> F + Sync,
    F: Future<Output: Termination>,
{
    let seed = match (std::env::var(SEED), test.seeds) {
        (Ok(text), _) => {
            text.parse().unwrap_or_else(|_| panic!("{SEED}={text}: a seed is a number, such as {SEED}=17"))
        }
        (Err(_), Seeds::One(seed)) => seed,
        (Err(_), Seeds::First(number)) => return seeds::all(test, number, &body),
    };
    let again = std::env::var(SEED).is_ok() || test.faults.are_wanted();
    if let Some(failure) = under(test, seed, &test.faults.kinds(), Voice::Loud { again }, &body).failure {
        failure.resume();
    }
}

/// Runs a body against the cluster of the kubeconfig `KUBEWRIGHT_TEST_KUBECONFIG`, in real time, in a namespace of its own.
/// What operators install stays there.
///
/// # Panics
/// When it fails, or there is no such variable.
pub fn run_real<B, F>(test: &Test, body: B)
where
    B: Fn(Cluster) -> F,
    F: Future<Output: Termination>,
{
    real::run(test, body);
}

/// The first of a body's seeds under which it fails, and why; for tests that are to fail, such as those of an operator with
/// a bug that was put there.
pub fn first_failure<B, F>(test: &Test, body: B) -> Option<(u64, String)>
where
    B: Fn(Cluster) -> F + Sync,
    F: Future<Output: Termination>,
{
    let number = match test.seeds {
        Seeds::One(_) => 1,
        Seeds::First(number) => number,
    };
    let failed = seeds::first_failing(test, number, &body).failing?;
    Some((failed.seed, failed.failure?.to_string()))
}

/// Whether a run tells of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    /// It tells nobody.
    Quiet,
    /// If it fails, it is told why; `again`: and how it is had again.
    Loud { again: bool },
}

/// One run.
pub(crate) struct RunReport {
    pub(crate) seed: u64,
    pub(crate) failure: Option<Caught>,
    /// What was written.
    pub(crate) recording: Option<Recording>,
    /// What went wrong.
    pub(crate) kinds: BTreeSet<FaultKind>,
}

/// Runs a body under one seed.
pub(crate) fn under<B, F>(
    test: &Test,
    seed: u64,
    kinds: &BTreeSet<FaultKind>,
    voice: Voice,
    body: &B,
) -> RunReport
where
    B: Fn(Cluster) -> F,
    F: Future<Output: Termination>,
{
    // No sockets: they would be waited for in real time, which a paused clock does not know of.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.unwrap_or_else(|error| panic!("no runtime for the test: {error}"));
    let noted = panics::note(voice != Voice::Quiet);
    let mut run = runtime.block_on(async {
        let cluster = start(test, seed).await;
        let mut seed_run = SeedRun::new(test, seed, kinds.clone());
        seed_run.begin(&cluster).await;
        let whole = async {
            let ending = body(cluster.clone()).await;
            ending.failure().map_err(Failure::new)?;
            finish(&mut seed_run, &cluster).await
        };
        let failure = match AssertUnwindSafe(whole).catch_unwind().await {
            Ok(ended) => ended.err().map(Caught::Told),
            Err(panic) => Some(Caught::Panic(panic)),
        };
        if let (Some(failure), Voice::Loud { again }) = (&failure, voice) {
            report(&seed_run, &cluster, failure);
            if again {
                print_replay(test, seed, kinds);
            }
        }
        let kinds = cluster.injector().plans().iter().flat_map(Plan::kinds).collect();
        RunReport { seed, failure, recording: cluster.recording(), kinds }
    });
    drop(runtime);
    let elsewhere = noted.taken();
    if run.failure.is_none() && !elsewhere.is_empty() {
        let why = format!("a task panicked while the test ran:\n{}", elsewhere.join("\n"));
        run.failure = Some(Caught::Told(Failure::new(why)));
    }
    run
}

/// How a body failed.
pub(crate) enum Caught {
    Told(Failure),
    Panic(Box<dyn std::any::Any + Send>),
}

impl Caught {
    /// Fails with it.
    pub(crate) fn resume(self) -> ! {
        match self {
            Self::Told(failure) => panic!("{failure}"),
            Self::Panic(panic) => resume_unwind(panic),
        }
    }
}

impl fmt::Display for Caught {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Told(failure) => write!(f, "{failure}"),
            Self::Panic(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                f.write_str(text.unwrap_or("the test panicked"))
            }
        }
    }
}

/// What comes after the body: faults stop, and what has to hold is looked at.
async fn finish(seed_run: &mut SeedRun, cluster: &Cluster) -> Result<(), Failure> {
    seed_run.end_faults(cluster).await;
    seed_run.end(cluster).await?;
    match cluster.operators().iter().find_map(Deployed::failure) {
        Some(why) => Err(Failure::new(why)),
        None => Ok(()),
    }
}

#[expect(clippy::print_stderr, reason = "it is the output of a test that fails")]
fn report(seed_run: &SeedRun, cluster: &Cluster, failure: &Caught) {
    let looked_at = cluster.looked_at_history();
    if !looked_at.is_empty() {
        eprintln!("what the test has looked at last:\n{looked_at}");
    }
    if matches!(failure, Caught::Panic(_)) {
        for why in cluster.operators().iter().filter_map(Deployed::failure) {
            eprintln!("{why}");
        }
    }
    for line in seed_run.failed(cluster, failure) {
        eprintln!("{line}");
    }
}

#[expect(clippy::print_stderr, reason = "it is the output of a test that fails")]
fn print_replay(test: &Test, seed: u64, kinds: &BTreeSet<FaultKind>) {
    let fewer = (*kinds != test.faults.kinds()).then_some(kinds);
    eprintln!("seed {seed}; to run it again:\n    {}", test.replay(seed, fewer));
}

async fn start(test: &Test, seed: u64) -> Cluster {
    let settings = kubewright_cluster::Cluster::builder().seed(seed);
    let mut settings = settings.controllers(test.controllers).nodes(test.nodes);
    if let Some(version) = test.kubernetes {
        settings = settings.kubernetes_version(version);
    }
    let cluster = Cluster::of(settings).await;
    let cluster = cluster.unwrap_or_else(|error| panic!("the cluster does not start: {error}"));
    for name in test.namespaces {
        if cluster.exists::<Namespace>(name).await {
            continue; // `default` always is
        }
        let metadata = ObjectMeta { name: Some((*name).to_owned()), ..ObjectMeta::default() };
        cluster.create(&Namespace { metadata, ..Namespace::default() }).await;
    }
    match test.namespaces.first() {
        Some(first) => cluster.in_namespace(first),
        None => cluster,
    }
}
