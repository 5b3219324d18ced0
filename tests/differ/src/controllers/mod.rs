//! Compares the controllers of two control planes by stories that it makes out of seeds.

mod act;
mod hold;
mod kinds;
mod make;
mod mask;
mod mirror;
mod scenario;
mod shrink;
mod state;
mod story;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::sync::Mutex;

use crate::Options;
use crate::controllers::hold::{Outcome, Sides};
use crate::controllers::mirror::Mirror;
use crate::controllers::story::Story;
use crate::fold::{Finding, Findings, sort_of_kind};
use crate::side::Side;

/// What was told.
#[derive(Default)]
struct Told {
    findings: Findings,
    held: usize,
    differing: usize,
    unstable: Vec<u64>,
    unsure: Findings,
    steps: BTreeMap<String, usize>,
}

/// Compares them, and prints what differs.
///
/// # Errors
/// Where a side does not answer, and where a story differs.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let sides = Sides {
        reference: Mirror::of(Side::of(&options.reference).await?).await.context("the reference")?,
        ours: Mirror::of(Side::of(&options.kubeconfig).await?).await.context("ours")?,
    };
    let began = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs() % 1_000_000);
    let told = all(options, &sides, began).await;
    let mut findings = told.findings.sorted();
    findings.truncate(options.shrink.max(1) * 5);
    for finding in &findings {
        print(finding);
    }
    if let Some(folder) = &options.out {
        std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        let short = findings.iter().take(options.shrink).enumerate().map(async |(number, finding)| {
            let whole = told_story(options, finding);
            let run = format!("c{}r{began}s{number}x", finding.seeds.first().copied().unwrap_or_default());
            let run = run.trim_end_matches('x').to_owned() + "0";
            let (story, outcome) = shrink::shrink(&sides, &whole, &finding.sort, &run).await;
            let file = folder.join(format!("seed-{}-{number}.py", story.seed));
            let text = scenario::write(&story, outcome.as_ref(), &finding.sort);
            (file, text, story.steps.len(), whole.steps.len())
        });
        for (file, text, steps, whole) in futures::future::join_all(short).await {
            std::fs::write(&file, text)?;
            println!("{}: {steps} of {whole} steps", file.display());
        }
    }
    let line: Vec<String> = told.steps.iter().map(|(name, times)| format!("{name} {times}")).collect();
    println!("\nsteps: {}", line.join(", "));
    println!("unstable: {:?}", told.unstable);
    if options.show {
        told.unsure.sorted().iter().for_each(print);
    }
    println!(
        "\n{} stories, {} differ in {} ways, {} are unstable",
        told.held,
        told.differing,
        findings.len(),
        told.unstable.len()
    );
    if told.differing > 0 {
        bail!("{} of {} stories differ", told.differing, told.held);
    }
    Ok(())
}

fn told_story(options: &Options, finding: &Finding) -> Story {
    let mut story = make::story(finding.seeds.first().copied().unwrap_or_default(), &options.kinds);
    story.steps.truncate(finding.at + 1);
    story
}

fn print(finding: &Finding) {
    println!(
        "\n{} × in seeds {:?}\n  {}\n{}\n  at {}\n    reference  {}\n    ours       {}",
        finding.times,
        finding.seeds,
        finding.sort,
        finding.request,
        finding.first.path,
        finding.first.reference,
        finding.first.ours
    );
}

async fn all(options: &Options, sides: &Sides, began: u64) -> Told {
    let told = Mutex::new(Told::default());
    let next = AtomicU64::new(options.seeds.start);
    let end = Instant::now() + Duration::from_secs(options.minutes * 60);
    let work = || async {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= options.seeds.end || Instant::now() > end {
                return;
            }
            let story = make::story(seed, &options.kinds);
            match judged(sides, &story, &format!("c{seed}r{began}")).await {
                Ok((outcome, unstable)) => {
                    let mut told = told.lock().await;
                    told.learn(&story, &outcome, unstable);
                    if options.show {
                        show(&story, &outcome);
                    }
                    if told.held.is_multiple_of(25) {
                        eprintln!(
                            "{} held, {} differ, {} unstable",
                            told.held,
                            told.differing,
                            told.unstable.len()
                        );
                    }
                }
                Err(error) => eprintln!("seed {seed}: {error:#}"),
            }
        }
    };
    futures::future::join_all((0..options.jobs.max(1)).map(|_| work())).await;
    told.into_inner()
}

/// Holds a story; where it differs, twice more, and keeps what differs each time while the reference says the same.
async fn judged(sides: &Sides, story: &Story, run: &str) -> Result<(Outcome, bool)> {
    let mut first = sides.hold(story, &format!("{run}a0")).await?;
    if first.differences.is_empty() {
        return Ok((first, false));
    }
    let all = first.differences.clone();
    let mut whole = story.clone();
    whole.steps.truncate(first.at + 1);
    let runs = [format!("{run}b0"), format!("{run}c0")];
    let again = futures::future::join_all(runs.iter().map(|run| sides.hold(&whole, run))).await;
    for again in again {
        let again = again?;
        let sorts = again.sorts();
        first.differences.retain(|(kind, difference)| sorts.contains(&sort_of_kind(kind, difference)));
    }
    let unstable = first.differences.is_empty();
    if unstable {
        first.differences = all;
    }
    Ok((first, unstable))
}

impl Told {
    fn learn(&mut self, story: &Story, outcome: &Outcome, unstable: bool) {
        self.held += 1;
        for step in story.steps.iter().take(outcome.at + 1) {
            *self.steps.entry(step.what.clone()).or_default() += 1;
        }
        if unstable {
            self.unstable.push(story.seed);
        }
        if outcome.differences.is_empty() {
            return;
        }
        let findings = if unstable { &mut self.unsure } else { &mut self.findings };
        self.differing += usize::from(!unstable);
        let steps: Vec<String> = story
            .steps
            .iter()
            .take(outcome.at + 1)
            .enumerate()
            .map(|(at, step)| format!("    {at}. {}", step.line()))
            .collect();
        for (kind, difference) in outcome.differences.iter().take(3) {
            let sort = sort_of_kind(kind, difference);
            findings.add_sort(story.seed, outcome.at, sort, &steps.join("\n"), difference);
        }
    }
}

fn show(story: &Story, outcome: &Outcome) {
    println!("\nseed {} about {}", story.seed, story.kinds.join(", "));
    for (at, step) in story.steps.iter().enumerate() {
        let answer = outcome
            .answers
            .get(at)
            .map_or_else(String::new, |done| format!(" → {} {}", done.status, done.message));
        println!("  {at}. {}{answer}", step.line());
    }
    for (kind, difference) in &outcome.differences {
        println!(
            "  ! {kind} {}\n      reference  {}\n      ours       {}",
            difference.path, difference.reference, difference.ours
        );
    }
    if !outcome.differences.is_empty() {
        for (side, state) in [("reference", &outcome.reference), ("ours", &outcome.ours)] {
            for ((kind, name), objects) in state {
                for object in objects {
                    let told = if kind == "Event" {
                        object.to_string()
                    } else {
                        format!("{} {}", object["metadata"]["annotations"], object["status"])
                    };
                    println!("  {side}: {kind} {name} {told}");
                }
            }
        }
    }
}
