//! Compares two API servers by conversations that it makes out of seeds. `cargo xtask differ` runs it.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "it waits for servers in real time, and prints what it finds"
)]

mod compare;
mod controllers;
mod conversation;
mod corpus;
mod coverage;
mod custom;
mod edit;
mod fold;
mod hold;
mod make;
mod mutate;
mod ordered;
mod proto;
mod published;
mod roles;
mod scenario;
mod schema;
mod shrink;
mod side;
mod sweep;
mod times;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use tokio::sync::Mutex;

use crate::corpus::Corpus;
use crate::coverage::Coverage;
use crate::fold::{Finding, Findings, text_of};
use crate::make::Scope;
use crate::mutate::Maker;
use crate::schema::Served;
use crate::shrink::Pair;
use crate::side::Side;

/// Compare two API servers by conversations made from seeds
#[derive(Parser)]
struct Options {
    /// The kubeconfig of the API server that is right
    #[arg(long)]
    reference: PathBuf,
    /// The kubeconfig of the API server that is compared with it
    #[arg(long)]
    kubeconfig: PathBuf,
    /// Which seeds, the last one not
    #[arg(long, default_value = "0..200", value_parser = seeds)]
    seeds: std::ops::Range<u64>,
    /// Kinds or resources to speak of (all), or `custom` for generated definitions
    #[arg(long, value_delimiter = ',')]
    kinds: Vec<String>,
    /// End after this many minutes
    #[arg(long, default_value_t = 60)]
    minutes: u64,
    /// Conversations held side by side
    #[arg(long, default_value_t = 4)]
    jobs: usize,
    /// Objects to begin with: a folder of recorded conversations
    #[arg(long)]
    corpus: PathBuf,
    /// A folder for the shortest conversation of each sort of difference, as golden.py records it
    #[arg(long)]
    out: Option<PathBuf>,
    /// Print every request of the seeds and both answers
    #[arg(long)]
    show: bool,
    /// Compare the order of fields, too
    #[arg(long)]
    order: bool,
    /// Fold only the first request of each conversation that is answered otherwise: later ones often follow from it
    #[arg(long)]
    first: bool,
    /// Compare the controllers, by stories, instead of the API
    #[arg(long)]
    controllers: bool,
    /// Try each place of each recorded object with ten values and more, dry, instead of conversations out of seeds
    #[arg(long)]
    sweep: bool,
    /// Which share of the sweep's requests: the first of twenty is 1/20
    #[arg(long, default_value = "1/1", value_parser = part, value_name = "K/N")]
    part: (usize, usize),
    /// A folder with published definitions, `crds/PROJECT/NAME.yaml`, and objects of their kinds, `samples.json`: they are compared,
    /// project by project, with as many conversations each as there are seeds
    #[arg(long)]
    published: Option<PathBuf>,
    /// Which of their projects (all)
    #[arg(long, value_delimiter = ',')]
    projects: Vec<String>,
    /// How many sorts of difference are shrunk
    #[arg(long, default_value_t = 20)]
    shrink: usize,
}

fn seeds(text: &str) -> Result<std::ops::Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or("give A..B")?;
    let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{text}: {error}"));
    let range = number(from)?..number(to)?;
    if range.is_empty() { Err(format!("{text} has no seed in it")) } else { Ok(range) }
}

fn part(text: &str) -> Result<(usize, usize), String> {
    let (part, parts) = text.split_once('/').ok_or("give K/N")?;
    let number = |text: &str| text.parse::<usize>().map_err(|error| format!("{text}: {error}"));
    let (part, parts) = (number(part)?, number(parts)?);
    if (1..=parts).contains(&part) { Ok((part, parts)) } else { Err(format!("there is no part {text}")) }
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    if options.controllers {
        return controllers::run(&options).await;
    }
    compare::ORDER.store(options.order, Ordering::Relaxed);
    let pair =
        Pair { reference: Side::of(&options.reference).await?, ours: Side::of(&options.kubeconfig).await? };
    roles::fill(&pair.reference, &pair.ours).await?;
    if let Some(folder) = &options.published {
        return published::run(&options, folder, &pair).await;
    }
    let served = Served::of(&pair.reference).await.context("asking the reference what it serves")?;
    let corpus = Corpus::read(&options.corpus)?;
    let scope = Scope { maker: Maker { served: &served, corpus: &corpus }, kinds: options.kinds.clone() };
    if options.sweep {
        return sweep::run(&options, &scope, &pair).await;
    }
    if options.show {
        return show(&options, &scope, &pair).await;
    }
    let tally = Mutex::default();
    compare_all(&options, &scope, &pair, options.seeds.clone(), &tally).await?;
    let (findings, coverage) = tally.into_inner();
    coverage.print();
    let all = findings.sorted();
    all.iter().for_each(Finding::print);
    if let Some(folder) = &options.out {
        std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        for (number, finding) in all.iter().take(options.shrink).enumerate() {
            let Some(seed) = finding.seeds.first() else { continue };
            let whole = make::conversation(&scope, *seed);
            let short = pair.shrink(&whole, finding.at, &finding.sort, &format!("d{seed}x{number}")).await;
            let outcome = pair.hold(&short, &format!("d{seed}y{number}")).await?;
            let file = folder.join(format!("seed-{seed}-{number}.py"));
            std::fs::write(
                &file,
                scenario::write(&short, &outcome.reference, &format!("d{seed}y{number}"), &finding.sort),
            )?;
            println!("{}: {} of {} requests", file.display(), short.asks.len(), whole.asks.len());
        }
    }
    println!(
        "\n{} conversations, {} differ in {} ways, {} are unstable: seeds {:?}",
        coverage.held,
        coverage.differing,
        all.len(),
        coverage.unstable.len(),
        coverage.unstable
    );
    if coverage.differing > 0 {
        bail!("{} of {} conversations differ", coverage.differing, coverage.held);
    }
    Ok(())
}

/// Holds the conversations one after the other, and prints them.
async fn show(options: &Options, scope: &Scope<'_>, pair: &Pair) -> Result<()> {
    for seed in options.seeds.clone() {
        let conversation = make::conversation(scope, seed);
        let outcome = pair.hold(&conversation, &format!("d{seed}w{}", std::process::id())).await?;
        for (at, (left, right)) in outcome.reference.iter().zip(&outcome.ours).enumerate() {
            let headers = left.sent.headers.iter().map(|(name, value)| format!("{name}: {value}"));
            println!(
                "{at}. {} {} ({}) {}",
                left.sent.method,
                left.sent.path,
                headers.collect::<Vec<_>>().join(", "),
                left.sent.body.as_deref().unwrap_or_default()
            );
            println!("   reference {} {}", left.status, String::from_utf8_lossy(&left.body).trim());
            println!("   ours      {} {}", right.status, String::from_utf8_lossy(&right.body).trim());
            for difference in
                outcome.differences.iter().filter(|(number, _)| *number == at).flat_map(|(_, found)| found)
            {
                println!("   ! {}: {} → {}", difference.path, difference.reference, difference.ours);
            }
        }
    }
    Ok(())
}

/// Holds the conversations of `seeds`, and adds what was found to the tally.
async fn compare_all(
    options: &Options,
    scope: &Scope<'_>,
    pair: &Pair,
    seeds: std::ops::Range<u64>,
    tally: &Mutex<(Findings, Coverage)>,
) -> Result<()> {
    let next = AtomicU64::new(seeds.start);
    let failed = AtomicUsize::new(0);
    let end = Instant::now() + Duration::from_secs(options.minutes * 60);
    let began = hold::began();
    let work = || async {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end || Instant::now() > end {
                return;
            }
            if too_many(failed.load(Ordering::Relaxed), tally.lock().await.1.held) {
                return;
            }
            let conversation = make::conversation(scope, seed);
            match pair.judge(&conversation, &format!("d{seed}r{began}")).await {
                Ok(outcome) => {
                    let mut tally = tally.lock().await;
                    let (findings, coverage) = &mut *tally;
                    coverage.count(&conversation, &outcome);
                    if let Some((at, found)) = outcome.differences.first()
                        && let Some(first) = found.first()
                    {
                        eprintln!("seed {seed}, request {at}: {}", fold::place_of(first));
                    }
                    let told = if options.first { 1 } else { usize::MAX };
                    for (at, differences) in outcome.differences.iter().take(told) {
                        let text = text_of(&outcome.reference[*at].sent);
                        for difference in differences.iter().take(if options.first { 1 } else { 3 }) {
                            findings.add(seed, *at, &conversation.asks[*at], &text, difference);
                        }
                    }
                    if coverage.held.is_multiple_of(100) {
                        eprintln!(
                            "{} held, {} differ in {} ways",
                            coverage.held,
                            coverage.differing,
                            findings.sorted().len()
                        );
                    }
                }
                Err(error) => {
                    failed.fetch_add(1, Ordering::Relaxed);
                    eprintln!("seed {seed}: {error:#}");
                }
            }
        }
    };
    futures::future::join_all((0..options.jobs.max(1)).map(|_| work())).await;
    let (failed, held) = (failed.load(Ordering::Relaxed), tally.lock().await.1.held);
    if too_many(failed, held) {
        bail!("{failed} conversations could not be held, {held} were");
    }
    Ok(())
}

/// Whether so many conversations could not be held that something else is wrong: kube-apiserver closes the connection of some requests.
fn too_many(failed: usize, held: usize) -> bool {
    failed > 20 + held / 20
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_conversations_that_cannot_be_held_do_not_end_a_long_run() {
        assert!(too_many(21, 0) && !too_many(21, 1000) && too_many(71, 1000));
    }

    #[test]
    fn a_share_of_the_sweep_is_one_of_its_parts() {
        assert_eq!(part("3/20"), Ok((3, 20)));
        for wrong in ["0/3", "4/3", "1", "a/3", "1/0"] {
            assert!(part(wrong).is_err(), "{wrong}");
        }
    }
}
