//! A body under many seeds: the first that fails, with as few faults as it takes, and whether it is the same each time.
//!
//! A seed decides a run to the byte, on any machine, as long as nothing in the test asks the machine: its time
//! (`SystemTime`, `Instant`), its randomness (`rand::rng`, `HashMap`'s order, `tokio::select!` without `biased`), its threads
//! (`spawn_blocking`, `std::thread`) or its sockets and files. The API server, the controllers and the SDK do not; even keys
//! come from the seed in a simulation. What breaks it is found by running a seed twice: the first of all if no seed
//! fails, and the one that fails.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use kubewright_cluster::recording::{Recording, Write};
use parking_lot::Mutex;

use crate::Cluster;
use crate::faults::FaultKind;
use crate::harness::{RunReport, Termination, Test, Voice, under};

/// How long a test is silent.
const SILENCE: Duration = Duration::from_secs(10);

/// What has come of some seeds.
pub(crate) struct SeedsReport {
    /// The run of the first that failed.
    pub(crate) failing: Option<RunReport>,
    /// What was written under the first of all.
    first: Option<Recording>,
}

/// Runs a body under the seeds from 0 on, so many.
///
/// # Panics
/// When it fails under one, or runs otherwise the second time.
pub(crate) fn all<B, F>(test: &Test, number: u64, body: &B)
where
    B: Fn(Cluster) -> F + Sync,
    F: Future<Output: Termination>,
{
    let SeedsReport { failing, first } = first_failing(test, number, body);
    let kinds = test.faults.kinds();
    let Some(failed) = failing else {
        if let Some(first) = first {
            let again = under(test, 0, &kinds, Voice::Quiet, body).recording.unwrap_or_default();
            same_or_panic(0, &first, &again);
        }
        return;
    };
    let fewest = fewest_faults(test, &failed, body);
    let again = under(test, failed.seed, &fewest, Voice::Loud { again: true }, body);
    match (again.failure, failed.failure) {
        (Some(failure), _) => failure.resume(),
        (None, why) => {
            let (one, other) = (failed.recording.unwrap_or_default(), again.recording.unwrap_or_default());
            same_or_panic(failed.seed, &one, &other);
            panic!(
                "under seed {} it failed once, and not again: {}",
                failed.seed,
                why.map_or_else(String::new, |why| why.to_string())
            );
        }
    }
}

/// The first seed under which a body fails. Seeds have nothing in common, so each processor has one.
pub(crate) fn first_failing<B, F>(test: &Test, number: u64, body: &B) -> SeedsReport
where
    B: Fn(Cluster) -> F + Sync,
    F: Future<Output: Termination>,
{
    let kinds = test.faults.kinds();
    let (next, lowest) = (AtomicU64::new(0), AtomicU64::new(number));
    let outcome = Mutex::new(SeedsReport { failing: None, first: None });
    let progress = Mutex::new((0, machine_now()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= lowest.load(Ordering::Relaxed) {
                return;
            }
            let run = under(test, seed, &kinds, Voice::Quiet, body);
            print_progress(test, number, &progress);
            let mut outcome = outcome.lock();
            if run.failure.is_none() {
                if seed == 0 {
                    outcome.first = run.recording;
                }
            } else if seed < lowest.fetch_min(seed, Ordering::Relaxed) {
                outcome.failing = Some(run);
            }
        }
    };
    let threads =
        thread::available_parallelism().map_or(1, usize::from).min(usize::try_from(number).unwrap_or(1));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    outcome.into_inner()
}

/// Says now and then how many seeds are done, past what the test runner keeps until a test has failed. This is for people: the machine's
/// clock decides when.
fn print_progress(test: &Test, number: u64, progress: &Mutex<(u64, Instant)>) {
    let mut progress = progress.lock();
    progress.0 += 1;
    if progress.1.elapsed() >= SILENCE {
        let _ = writeln!(io::stderr(), "{}: {} of {number} seeds", test.path(), progress.0);
        progress.1 = machine_now();
    }
}

#[expect(clippy::disallowed_methods, reason = "people wait in the machine's time")]
fn machine_now() -> Instant {
    Instant::now()
}

/// The faults without any of which the body does not fail, as far as one run for each can tell.
fn fewest_faults<B, F>(test: &Test, failed: &RunReport, body: &B) -> BTreeSet<FaultKind>
where
    B: Fn(Cluster) -> F,
    F: Future<Output: Termination>,
{
    let mut fewest = failed.kinds.clone();
    for kind in &failed.kinds {
        let fewer: BTreeSet<_> = fewest.iter().copied().filter(|other| other != kind).collect();
        if under(test, failed.seed, &fewer, Voice::Quiet, body).failure.is_some() {
            fewest = fewer;
        }
    }
    fewest
}

/// Sees to it that a seed gives the same run each time.
///
/// # Panics
/// When it does not.
fn same_or_panic(seed: u64, one: &Recording, other: &Recording) {
    if let Some((here, there)) = one.first_difference(other) {
        let describe = |write: Option<&Write>| {
            write.map_or_else(
                || "nothing any more".to_owned(),
                |write| {
                    format!(
                        "{:?} {} {} by {} at {}",
                        write.did, write.collection, write.key, write.by.user, write.time
                    )
                },
            )
        };
        panic!(
            "the test is not the same each time under seed {seed}: first\n    {}\nthen\n    {}\n\
             Something in it takes its time, its randomness or its order from the machine: a thread, a socket, a file, \
             `SystemTime`, `HashMap`, `tokio::select!` without `biased`. See docs/testing.md.",
            describe(here),
            describe(there)
        );
    }
}
