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
    kubernetes: None,
    nodes: 1,
    namespaces: &[],
    seeds: Seeds::One(0),
    faults: Faults::None,
};

/// What a test does.
#[derive(Clone, Copy, Debug)]
enum Body {
    HaveACluster,
    LetItComeToRest,
    LetAYearPass,
}

fn main() {
    let tests: u64 = std::env::args().nth(1).and_then(|number| number.parse().ok()).unwrap_or(500);
    measure(tests, Body::HaveACluster);
    measure(tests, Body::LetItComeToRest);
    measure(2, Body::LetAYearPass);
}

/// Runs so many tests on two threads, as the test runner does on two cores.
#[expect(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures, in the machine's time")]
fn measure(tests: u64, body: Body) {
    let begun = Instant::now();
    let threads: Vec<_> =
        (0..2).map(|half| std::thread::spawn(move || some(tests / 2, half, body))).collect();
    let slowest = threads.into_iter().filter_map(|thread| thread.join().ok()).max().unwrap_or_default();
    println!("{tests} tests, {body:?}: {:?}; the slowest {slowest:?}", begun.elapsed());
}

/// The slowest of so many tests.
#[expect(clippy::disallowed_methods, reason = "it measures, in the machine's time")]
fn some(tests: u64, half: u64, body: Body) -> Duration {
    let test = |number: u64| {
        let begun = Instant::now();
        let seeds = Seeds::One(number * 2 + half);
        let ended = catch_unwind(|| {
            run(&Test { seeds, ..TEST }, |cluster: Cluster| async move {
                match body {
                    Body::HaveACluster => {}
                    Body::LetItComeToRest => cluster.settle().await,
                    Body::LetAYearPass => cluster.advance(Duration::from_hours(24 * 365)).await,
                }
            });
        });
        assert!(ended.is_ok());
        begun.elapsed()
    };
    (0..tests).map(test).max().unwrap_or_default()
}
