//! `cargo xtask conformance`: the conformance tests of Kubernetes on Kubewright, and `docs/conformance.md`, which has every one of
//! them with its result.
//!
//! The tests are of four classes (`conformance/classes.tsv`): `A` need an API server and controllers, `S` simulated nodes, `P` and
//! `X` programs that run. Each class has a server of its own, so that classes run side by side. What came out is kept in
//! `conformance/results.tsv`, from which the page is made: a class or a test that is run alone leaves the others as they were.

mod busybox;
mod classes;
mod images;
mod page;
mod programs;
mod results;
mod suite;

use std::{fs, path::PathBuf, thread};

use anyhow::{Context, Result, bail};
use clap::Args;

use self::{
    classes::Class,
    programs::Programs,
    results::{Results, Verdict},
    suite::Suite,
};
use crate::run::{cargo, run, target, workspace};

/// The release whose tests they are; `k8s.io/kubernetes` of it is what they are built from.
pub(crate) const RELEASE: &str = "1.36.3";

/// What `cargo xtask conformance` takes.
#[derive(Args)]
pub(crate) struct Options {
    /// The classes to run, in letters: A, S, P, X
    #[arg(long, default_value = "AS", value_name = "LETTERS")]
    classes: String,
    /// Only tests whose names have this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Leave out tests whose names have this text
    #[arg(long, value_name = "TEXT")]
    skip: Vec<String>,
    /// Only tests that are not known to pass
    #[arg(long)]
    failed: bool,
    /// A folder with e2e.test, ginkgo and kubectl; without, they are built from Go modules into target/tools (eight minutes)
    #[arg(long, value_name = "DIR")]
    e2e_bin: Option<PathBuf>,
    /// The kubewright that is tested; without, a release build
    #[arg(long, value_name = "FILE")]
    kubewright: Option<PathBuf>,
    /// A store with the images that the tests of P and X ask for; without, they are made of what packages have
    #[arg(long, value_name = "DIR")]
    image_store: Option<PathBuf>,
    /// How many tests of a class run at a time
    #[arg(long, default_value_t = 4, value_name = "NUMBER")]
    procs: u16,
    /// Leave docs/conformance.md and the results as they are
    #[arg(long)]
    no_page: bool,
    /// Write docs/conformance.md from the results that are there, and run nothing
    #[arg(long, conflicts_with_all = ["only", "skip", "failed", "no_page"])]
    page: bool,
}

/// Runs the tests, keeps what came out and writes the page.
///
/// # Errors
/// When a class is not known or cannot be run, or the programs cannot be built. A test that fails is no error: the page says so.
pub(crate) fn conformance(options: &Options) -> Result<()> {
    let tests = classes::all()?;
    let before = kept()?;
    if options.page {
        return write_page(&tests, &before);
    }
    let chosen = chosen(options)?;
    let mut suites = Vec::new();
    let programs = Programs::of(options.e2e_bin.as_deref())?;
    let kubewright = kubewright(options)?;
    let image_store = match &options.image_store {
        None if chosen.iter().any(|class| class.needs_programs()) => {
            Some(images::store(&programs, &kubewright, &target().join("conformance/images"))?)
        }
        given => given.clone(),
    };
    for class in chosen {
        let names: Vec<String> = tests
            .iter()
            .filter(|test| test.class == class)
            .filter(|test| options.only.as_ref().is_none_or(|text| test.name.contains(text)))
            .filter(|test| !options.skip.iter().any(|text| test.name.contains(text)))
            .filter(|test| !options.failed || !before.has_passed(&test.name))
            .map(|test| test.name.clone())
            .collect();
        if names.is_empty() {
            continue;
        }
        suites.push(Suite {
            class,
            names,
            procs: options.procs,
            kubewright: kubewright.clone(),
            programs: programs.clone(),
            image_store: image_store.clone(),
            folder: target().join("conformance").join(class.letter()),
        });
    }
    if suites.is_empty() {
        bail!("no test is left to run");
    }
    let found = side_by_side(&suites)?;
    if options.no_page {
        return Ok(());
    }
    // Another run may have ended meanwhile.
    let all = kept()?.with(found);
    let path = workspace().join(results::FILE);
    fs::write(&path, all.render()).with_context(|| format!("cannot write {}", path.display()))?;
    write_page(&tests, &all)
}

/// The results that are kept; none, where there is no table yet.
fn kept() -> Result<Results> {
    let path = workspace().join(results::FILE);
    if !path.is_file() {
        return Ok(Results::default());
    }
    Results::parse(&fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?)
}

fn write_page(tests: &[classes::Test], results: &Results) -> Result<()> {
    fs::write(workspace().join(page::PAGE), page::render(tests, results))
        .with_context(|| format!("cannot write {}", page::PAGE))
}

fn chosen(options: &Options) -> Result<Vec<Class>> {
    let mut chosen = Vec::new();
    for letter in options.classes.chars() {
        let class = Class::of(letter)
            .with_context(|| format!("class {letter:?} is not known: there are A, S, P and X"))?;
        if !chosen.contains(&class) {
            chosen.push(class);
        }
    }
    Ok(chosen)
}

fn kubewright(options: &Options) -> Result<PathBuf> {
    if let Some(given) = &options.kubewright {
        return given.canonicalize().with_context(|| format!("kubewright {}", given.display()));
    }
    run(&mut cargo(["build", "--release", "--package", "kubewright-cli"]))?;
    Ok(target().join("release/kubewright"))
}

/// Runs all of them at once; prints what each came to.
fn side_by_side(suites: &[Suite]) -> Result<Vec<results::Outcome>> {
    let all: Vec<Result<Vec<results::Outcome>>> = thread::scope(|scope| {
        let started: Vec<_> = suites.iter().map(|suite| scope.spawn(|| suite.run())).collect();
        let ended =
            started.into_iter().map(|run| run.join().map_err(|_| anyhow::anyhow!("a suite panicked")));
        ended.map(|result| result.and_then(|result| result)).collect()
    });
    let mut outcomes = Vec::new();
    for (suite, result) in suites.iter().zip(all) {
        let found = result.with_context(|| format!("class {}", suite.class.letter()))?;
        let (passed, others): (Vec<_>, Vec<_>) =
            found.iter().partition(|outcome| outcome.verdict == Verdict::Passed);
        eprintln!(
            "class {}: {} of {} passed ({})",
            suite.class.letter(),
            passed.len(),
            suite.names.len(),
            suite.folder.display()
        );
        for outcome in others {
            eprintln!("  {}: {}", outcome.verdict.word(), outcome.name);
        }
        outcomes.extend(found);
    }
    Ok(outcomes)
}
