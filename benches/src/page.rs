//! How even the page of `up --ui` is drawn while much happens: the times between frames in a headless Chromium, which draws without a
//! graphics card.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use kubewright_tests::{Up, browser::Browser};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep};

use crate::process::config;

/// Objects that own others, and how many each owns: together 10,000.
const OWNERS: usize = 2_000;
const OWNED: usize = 4;
/// Writes a second, every other one of a new object.
const RATE: u128 = 1_000;
/// How long it is written and measured.
const LASTS: Duration = Duration::from_secs(20);
/// How many write at the same time, each as somebody else: a lane of the timeline has the writes of one.
const WRITERS: usize = 8;
/// No more writes than these are under way.
const UNDER_WAY: usize = 256;
/// What the page takes to come to rest after it was opened.
const REST: Duration = Duration::from_secs(2);

/// What is done with the page between two frames, as JavaScript.
const DONE: [(&str, &str); 3] = [
    ("the tree", ""),
    (
        "the tree, scrolled by 120 pixels a frame",
        "const tree = document.querySelector('#tree');
         if (tree.scrollTop + tree.clientHeight >= tree.scrollHeight - 2) held.way = -1;
         if (tree.scrollTop <= 0) held.way = 1;
         tree.scrollTop += held.way * 120;",
    ),
    (
        "the timeline, zoomed with each frame",
        "const canvas = document.querySelector('#canvas');
         const { left, top } = canvas.getBoundingClientRect();
         const deltaY = held.frames.length % 120 < 60 ? -20 : 20;
         canvas.dispatchEvent(new WheelEvent('wheel', { deltaY, clientX: left + 600, clientY: top + 40, cancelable: true }));",
    ),
];

/// What the page has measured, in milliseconds.
#[derive(Deserialize)]
struct Measured {
    /// The times between frames.
    frames: Vec<f64>,
    /// Tasks of more than 50 ms.
    long: Vec<f64>,
}

/// Measures each, on a server and in a browser of its own, and prints a table.
///
/// # Errors
/// When the server refuses a write, or the page does not measure.
pub(crate) async fn measure() -> Result<()> {
    let head =
        ["shown", "writes/s", "frames/s", "median", "95 %", "99 %", "longest", "over 33 ms", "long tasks"];
    let mut table = vec![head.join(" | "), vec!["---"; head.len()].join(" | ")];
    for (name, done) in DONE {
        let (measured, rate) = one(done).await?;
        table.push(format!("{name} | {rate:.0} | {}", described(measured)?));
    }
    for line in table {
        eprintln!("| {line} |");
    }
    Ok(())
}

fn described(Measured { mut frames, long }: Measured) -> Result<String> {
    ensure!(!frames.is_empty(), "the page has drawn nothing");
    frames.sort_by(f64::total_cmp);
    let place = |share: usize| frames[(frames.len() * share / 100).min(frames.len() - 1)];
    let late = frames.iter().filter(|frame| **frame > 33.0).count();
    let longest = long.iter().copied().fold(0.0, f64::max);
    Ok(format!(
        "{:.1} | {:.1} ms | {:.1} ms | {:.1} ms | {:.1} ms | {late} of {} | {}, the longest {longest:.0} ms",
        frames.len() as f64 * 1e3 / frames.iter().sum::<f64>(),
        place(50),
        place(95),
        place(99),
        place(100),
        frames.len(),
        long.len(),
    ))
}

/// Measures what is done with the page; gives it with the writes a second that were made.
async fn one(done: &str) -> Result<(Measured, f64)> {
    let arguments = ["--ui", "--nodes", "0", "--controllers", "namespace-controller"];
    let up = Up::start("bench-page", &arguments);
    let clients = clients(&up).await?;
    let owners = fill(&clients).await?;
    let mut browser = Browser::start("bench-page-profile");
    browser.open(up.link());
    browser.until("document.querySelector('#status').textContent === 'live'").await;
    let all = OWNERS * (OWNED + 1);
    browser.until(&format!("document.querySelector('#tree .line .count').textContent >= {all}")).await;
    sleep(REST).await;
    browser.value(&format!(
        "(() => {{
            const held = (window.held = {{ frames: [], long: [], way: 1 }});
            let last = performance.now();
            const frame = () => {{
                const now = performance.now();
                held.frames.push(now - last);
                last = now;
                {done}
                if (!held.ended) requestAnimationFrame(frame);
            }};
            requestAnimationFrame(frame);
            new PerformanceObserver((list) => held.long.push(...list.getEntries().map((one) => one.duration)))
                .observe({{ type: 'longtask' }});
        }})()"
    ));
    let rate = write(&clients, &owners).await?;
    let measured = browser.value("held.ended = true, { frames: held.frames, long: held.long }");
    ensure!(browser.errors.is_empty(), "{:?}", browser.errors);
    Ok((serde_json::from_str(&measured.to_string())?, rate))
}

async fn clients(up: &Up) -> Result<Vec<Client>> {
    let mut clients = Vec::new();
    for writer in 0..WRITERS {
        let mut config = config(&up.kubeconfig()).await?;
        config.auth_info.impersonate = Some(format!("writer-{writer}"));
        config.auth_info.impersonate_groups = Some(vec!["system:masters".to_owned()]);
        clients.push(Client::try_from(config)?);
    }
    Ok(clients)
}

fn map(name: &str, owner: Option<&ConfigMap>) -> Result<ConfigMap> {
    let owners: Vec<Value> = owner
        .iter()
        .map(|owner| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner.name_any(), "uid": owner.metadata.uid}))
        .collect();
    Ok(kubewright_objects::from_value(json!({
        "metadata": {"name": name, "ownerReferences": owners}, "data": {"count": "0"},
    }))?)
}

/// Makes the objects that are there before; gives those that own others.
async fn fill(clients: &[Client]) -> Result<Vec<ConfigMap>> {
    let mut writers = JoinSet::new();
    for (writer, client) in clients.iter().enumerate() {
        let maps = Api::<ConfigMap>::default_namespaced(client.clone());
        writers.spawn(async move {
            let mut owners = Vec::new();
            for number in (writer..OWNERS).step_by(WRITERS) {
                let owner =
                    maps.create(&PostParams::default(), &map(&format!("map-{number:04}"), None)?).await?;
                for child in 0..OWNED {
                    let owned = map(&format!("map-{number:04}-{child}"), Some(&owner))?;
                    maps.create(&PostParams::default(), &owned).await?;
                }
                owners.push(owner);
            }
            anyhow::Ok(owners)
        });
    }
    let mut owners = Vec::new();
    while let Some(done) = writers.join_next().await {
        owners.extend(done??);
    }
    Ok(owners)
}

/// Writes as often as is wanted, as far as the machine can; gives how many writes a second that were.
async fn write(clients: &[Client], owners: &[ConfigMap]) -> Result<f64> {
    let (mut writes, mut made) = (JoinSet::new(), 0_usize);
    let mut tick = interval(Duration::from_millis(5));
    let started = Instant::now();
    while started.elapsed() < LASTS {
        tick.tick().await;
        while let Some(done) = writes.try_join_next() {
            done??;
        }
        let due = usize::try_from(started.elapsed().as_millis() * RATE / 1_000).context("a small number")?;
        while made < due && writes.len() < UNDER_WAY {
            let maps = Api::<ConfigMap>::default_namespaced(clients[made % clients.len()].clone());
            let owner = owners[made * 7 % owners.len()].clone();
            let number = made;
            writes.spawn(async move {
                if number.is_multiple_of(2) {
                    let new = map(&format!("new-{number:05}"), Some(&owner))?;
                    maps.create(&PostParams::default(), &new).await?;
                } else {
                    let change = Patch::Merge(json!({"data": {"count": number.to_string()}}));
                    maps.patch(&owner.name_any(), &PatchParams::default(), &change).await?;
                }
                anyhow::Ok(())
            });
            made += 1;
        }
    }
    let rate = (made - writes.len()) as f64 / started.elapsed().as_secs_f64();
    while let Some(done) = writes.join_next().await {
        done??;
    }
    Ok(rate)
}
