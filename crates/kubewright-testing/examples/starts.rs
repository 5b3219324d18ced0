//! How long tests take that do nothing but have a cluster: `starts 500`.

use std::panic::catch_unwind;
use std::time::{Duration, Instant};

use kubewright_testing::Cluster;
use kubewright_testing::harness::{Faults, Seeds, Test, run};

const TEST: Test = Test {
    package: "kubewright-testing",
    module: "starts",
    name: "it",
    controllers: "*",
    nodes: 1,
    namespaces: &[],
    seeds: Seeds::One(0),
    faults: Faults::None,
};

#[expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "it measures, in the machine's time, with its threads"
)]
fn main() {
    let tests: u64 = std::env::args().nth(1).and_then(|number| number.parse().ok()).unwrap_or(500);
    let measured = |body: fn(&Cluster) -> bool, what: &str| {
        let begun = Instant::now();
        let threads: Vec<_> =
            (0..2).map(|half| std::thread::spawn(move || some(tests / 2, half, body))).collect();
        let slowest = threads.into_iter().filter_map(|thread| thread.join().ok()).max().unwrap_or_default();
        println!("{tests} tests that {what}: {:?}; the slowest {slowest:?}", begun.elapsed());
    };
    measured(|_| false, "have a cluster");
    measured(|_| true, "let it come to rest");
}

/// The slowest of so many tests.
#[expect(clippy::disallowed_methods, reason = "it measures")]
fn some(tests: u64, half: u64, settles: fn(&Cluster) -> bool) -> Duration {
    let test = |number: u64| {
        let begun = Instant::now();
        let seeds = Seeds::One(number * 2 + half);
        let ended = catch_unwind(|| {
            run(&Test { seeds, ..TEST }, |cluster: Cluster| async move {
                if settles(&cluster) {
                    cluster.settle().await;
                }
            });
        });
        assert!(ended.is_ok());
        begun.elapsed()
    };
    (0..tests).map(test).max().unwrap_or_default()
}
