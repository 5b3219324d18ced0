//! The workqueue beside the raw cost of what it cannot do without: a map that finds a key, and one that keeps the order.
//!
//! `cargo bench -p kubewright-runtime --bench workqueue`: the mean of some rounds, each a million adds, gets and dones.
//! It fails when the queue costs more than twice of both maps.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    hint::black_box,
    process::ExitCode,
    time::Duration,
};

use futures::FutureExt;
use kubewright_runtime::{
    Key,
    workqueue::{Priority, Workqueue},
};
use tokio::time::Instant;

const KEYS: u32 = 1_000_000;
const ROUNDS: u32 = 5;

fn keys() -> Vec<Key> {
    (0..KEYS)
        .map(|key| Key::namespaced(format!("namespace-{}", key % 100), format!("object-{key}")))
        .collect()
}

/// Each key goes into both maps and comes out of both.
fn maps(keys: Vec<Key>) {
    let (mut places, mut order) = (HashMap::new(), BTreeMap::new());
    for (number, key) in keys.into_iter().enumerate() {
        let place = (Reverse(Priority::NORMAL), number);
        places.insert(key.clone(), place);
        order.insert(place, key);
    }
    while let Some((_, key)) = order.pop_first() {
        black_box(places.remove(&key));
    }
}

fn queue(keys: Vec<Key>) {
    let queue = Workqueue::new();
    for key in keys {
        queue.add(key);
    }
    while let Some(Some(key)) = queue.get().now_or_never() {
        queue.done(&black_box(key));
    }
}

fn mean(work: fn(Vec<Key>)) -> Duration {
    let mut total = Duration::ZERO;
    for _ in 0..ROUNDS {
        let keys = keys();
        let start = Instant::now();
        work(keys);
        total += start.elapsed();
    }
    total / ROUNDS
}

#[expect(clippy::print_stdout, reason = "a benchmark tells its result")]
fn main() -> ExitCode {
    let (maps, queue) = (mean(maps), mean(queue));
    let factor = queue.as_secs_f64() / maps.as_secs_f64();
    println!("HashMap and BTreeMap: {:.0} ns a key", maps.as_secs_f64() * 1e9 / f64::from(KEYS));
    println!("workqueue:            {:.0} ns a key", queue.as_secs_f64() * 1e9 / f64::from(KEYS));
    println!("factor:               {factor:.2}");
    if factor <= 2.0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
