//! The operator that `apibench operator` drives: each Widget gets a ConfigMap of its name and value, and says in its
//! status what it saw. What it must do is in `benches/api/src/operator.rs`.

use std::collections::BTreeSet;
use std::io::{Write, stdout};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Parser;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{Client, CustomResource};
use kubewright_runtime::{
    CancellationToken, Context, Controller, Error, Key, Manager, Outcome, Reconciler, World, owner,
};
use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};

#[derive(CustomResource, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "bench.example.com",
    version = "v1",
    kind = "Widget",
    namespaced,
    status = "WidgetStatus",
    schema = "disabled"
)]
struct WidgetSpec {
    value: String,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default)]
struct WidgetStatus {
    #[serde(default)]
    observed: String,
}

#[derive(Parser)]
struct Options {
    /// Say `expected` when so many different Widgets have been reconciled
    #[arg(long, default_value_t = 0)]
    expect: usize,
    /// Look at Pods, and do nothing about them: for what a cache takes
    #[arg(long)]
    pods: bool,
    /// How many are worked on at a time
    #[arg(long, default_value_t = 10)]
    concurrency: usize,
}

struct Widgets {
    expect: usize,
    seen: Mutex<BTreeSet<Key>>,
    writes: Arc<AtomicUsize>,
    reconciles: Arc<AtomicUsize>,
}

impl Reconciler for Widgets {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        self.reconciles.fetch_add(1, Ordering::Relaxed);
        let Some(widget) = ctx.get::<Widget>(key) else { return Ok(Outcome::Done) };
        let value = &widget.spec.value;
        let map = ctx.get::<ConfigMap>(key);
        let has_value = |map: &ConfigMap| map.data.as_ref().and_then(|data| data.get("value")) == Some(value);
        if !map.is_some_and(|map| has_value(&map) && owner::is_controlled_by(&*map, &*widget)) {
            let desired = ConfigMap {
                metadata: key.into(),
                data: Some([("value".to_owned(), value.clone())].into()),
                ..ConfigMap::default()
            };
            self.writes.fetch_add(1, Ordering::Relaxed);
            ctx.apply(&desired).owned_by(&*widget).await?;
        }
        if widget.status.as_ref().is_none_or(|status| status.observed != *value) {
            self.writes.fetch_add(1, Ordering::Relaxed);
            ctx.patch_status::<Widget>(key, serde_json::json!({"status": {"observed": value}})).await?;
        }
        self.saw(key);
        Ok(Outcome::Done)
    }
}

/// Reads each Pod once.
struct Pods(Widgets);

impl Reconciler for Pods {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        if ctx.get::<Pod>(key).is_some() {
            self.0.saw(key);
        }
        Ok(Outcome::Done)
    }
}

impl Widgets {
    fn saw(&self, key: &Key) {
        let mut seen = self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if seen.len() < self.expect && seen.insert(key.clone()) && seen.len() == self.expect {
            say("expected");
        }
    }
}

/// Nobody may be listening any more.
fn say(line: &str) {
    let _ = writeln!(stdout(), "{line}");
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let mut terminated = signal(SignalKind::terminate())?;
    let (writes, reconciles) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let widgets = Widgets {
        expect: options.expect,
        seen: Mutex::default(),
        writes: writes.clone(),
        reconciles: reconciles.clone(),
    };
    let mut manager = Manager::new(Client::try_default().await?, World::real());
    let controller = match options.pods {
        true => Controller::new("pods", Pods(widgets)).for_kind::<Pod>(),
        false => Controller::new("widget-operator", widgets).for_kind::<Widget>().owns::<ConfigMap>(),
    };
    manager.add(controller.concurrency(options.concurrency));
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    tokio::spawn(async move {
        terminated.recv().await;
        stop.cancel();
    });
    manager.run(shutdown).await?;
    say(&format!(
        "reconciles {} writes {}",
        reconciles.load(Ordering::Relaxed),
        writes.load(Ordering::Relaxed)
    ));
    Ok(())
}
