//! What `#[kubewright::test]` becomes.

use std::fmt::Debug;
use std::future::Future;
use std::panic::{AssertUnwindSafe, resume_unwind};

use futures::FutureExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::core::ObjectMeta;

use crate::trial::{Failure, Trial};
use crate::{Cluster, Deployed};
use crate::{panics, real};

/// The variable of the environment that has a test run under one seed.
const SEED: &str = "KUBEWRIGHT_SEED";

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
    /// How many simulated nodes there are.
    pub nodes: usize,
    /// Namespaces besides those of every cluster.
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

/// What goes wrong while a body runs.
#[derive(Clone, Copy, Debug)]
pub enum Faults {
    /// Nothing.
    None,
    /// Whatever the seed says.
    All,
    /// Whatever the seed says, of these.
    Only(&'static [&'static str]),
}

impl Test {
    /// The name by which the test runner knows it.
    fn path(&self) -> String {
        self.module
            .split_once("::")
            .map_or_else(|| self.name.to_owned(), |(_, module)| format!("{module}::{}", self.name))
    }

    /// What runs it again under one seed.
    pub(crate) fn replay(&self, seed: u64) -> String {
        format!("{SEED}={seed} cargo test -p {} {} -- --exact", self.package, self.path())
    }
}

/// What the body of a test may return.
pub trait Ending {
    /// What it fails with.
    ///
    /// # Errors
    /// The error of a body that returned one.
    fn failure(self) -> Result<(), String>;
}

impl Ending for () {
    fn failure(self) -> Result<(), String> {
        Ok(())
    }
}

impl<E: Debug> Ending for Result<(), E> {
    fn failure(self) -> Result<(), String> {
        self.map_err(|error| format!("the test returned an error: {error:?}"))
    }
}

/// Runs a body under each of its seeds, each with a cluster of its own, until one fails.
///
/// # Panics
/// When it fails.
pub fn run<B, F>(test: &Test, body: B)
where
    B: Fn(Cluster) -> F,
    F: Future<Output: Ending>,
{
    let seeds = match (std::env::var(SEED), test.seeds) {
        (Ok(text), _) => {
            let seed = text
                .parse()
                .unwrap_or_else(|_| panic!("{SEED}={text}: a seed is a number, such as {SEED}=17"));
            seed..seed + 1
        }
        (Err(_), Seeds::One(seed)) => seed..seed + 1,
        (Err(_), Seeds::First(number)) => 0..number,
    };
    for seed in seeds {
        under(test, seed, &body);
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
    F: Future<Output: Ending>,
{
    real::run(test, body);
}

/// Runs a body under one seed.
fn under<B, F>(test: &Test, seed: u64, body: &B)
where
    B: Fn(Cluster) -> F,
    F: Future<Output: Ending>,
{
    // No sockets: they would be waited for in real time, which a paused clock does not know of.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.unwrap_or_else(|error| panic!("no runtime for the test: {error}"));
    let noted = panics::note();
    let ended = runtime.block_on(async {
        let cluster = start(test, seed).await;
        let mut trial = Trial::new(test, seed);
        trial.begin(&cluster).await;
        let ended = AssertUnwindSafe(body(cluster.clone())).catch_unwind().await;
        let failure = match ended {
            Ok(ending) => match ending.failure() {
                Ok(()) => finish(&mut trial, &cluster).await.err(),
                Err(why) => Some(Failure::new(why)),
            }
            .map(Caught::Told),
            Err(panic) => Some(Caught::Panic(panic)),
        };
        if let Some(failure) = &failure {
            report(test, &trial, &cluster, failure).await;
        }
        failure
    });
    drop(runtime);
    let elsewhere = noted.taken();
    match ended {
        Some(Caught::Panic(panic)) => resume_unwind(panic),
        Some(Caught::Told(failure)) => panic!("{failure}"),
        None if elsewhere.is_empty() => {}
        None => panic!("a task panicked while the test ran:\n{}", elsewhere.join("\n")),
    }
}

/// How a body failed.
enum Caught {
    Told(Failure),
    Panic(Box<dyn std::any::Any + Send>),
}

/// What comes after the body: faults stop, and what has to hold is looked at.
async fn finish(trial: &mut Trial, cluster: &Cluster) -> Result<(), Failure> {
    trial.calm(cluster).await;
    trial.end(cluster).await?;
    match cluster.operators().iter().find_map(Deployed::failure) {
        Some(why) => Err(Failure::new(why)),
        None => Ok(()),
    }
}

#[expect(clippy::print_stderr, reason = "it is the output of a test that fails")]
async fn report(test: &Test, trial: &Trial, cluster: &Cluster, failure: &Caught) {
    let told = match failure {
        Caught::Told(failure) => Some(failure),
        Caught::Panic(_) => None,
    };
    let looked_at = cluster.told();
    if !looked_at.is_empty() {
        eprintln!("what the test has looked at last:\n{looked_at}");
    }
    if matches!(failure, Caught::Panic(_)) {
        for why in cluster.operators().iter().filter_map(Deployed::failure) {
            eprintln!("{why}");
        }
    }
    for line in trial.failed(cluster, told).await {
        eprintln!("{line}");
    }
    if !matches!(test.seeds, Seeds::One(_)) || std::env::var(SEED).is_ok() {
        eprintln!("seed {}; to run it again:\n    {}", trial.seed(), test.replay(trial.seed()));
    }
}

async fn start(test: &Test, seed: u64) -> Cluster {
    let settings = kubewright_cluster::Cluster::builder().seed(seed);
    let settings = settings.controllers(test.controllers).nodes(test.nodes);
    let cluster = Cluster::of(settings).await;
    let cluster = cluster.unwrap_or_else(|error| panic!("the cluster does not start: {error}"));
    for name in test.namespaces {
        let metadata = ObjectMeta { name: Some((*name).to_owned()), ..ObjectMeta::default() };
        cluster.create(&Namespace { metadata, ..Namespace::default() }).await;
    }
    match test.namespaces.first() {
        Some(first) => cluster.in_namespace(first),
        None => cluster,
    }
}
