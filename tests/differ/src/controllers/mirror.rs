//! All objects of one side, kept by watches: what is there, when it was last written, and what has been seen.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use http::Request;
use regex::Regex;
use serde_json::Value;

use crate::controllers::kinds::{KINDS, Kind};
use crate::controllers::mask::Names;
use crate::side::Side;

#[expect(clippy::expect_used, reason = "a constant")]
static RUN: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^c\d+r\d+[a-z]\d*").expect("a pattern"));

/// The objects of one story.
#[derive(Clone, Default)]
pub(crate) struct Room {
    pub(crate) objects: BTreeMap<(&'static str, String), Value>,
    pub(crate) names: Names,
    written: Option<Instant>,
}

/// One side and what is known of it.
#[derive(Clone)]
pub(crate) struct Mirror {
    pub(crate) side: Side,
    rooms: Arc<Mutex<BTreeMap<String, Room>>>,
}

impl Mirror {
    /// Watches a side.
    ///
    /// # Errors
    /// Where it does not answer.
    pub(crate) async fn of(side: Side) -> Result<Self> {
        let mirror = Self { side, rooms: Arc::default() };
        for kind in KINDS {
            let list = mirror.side.json(&kind.everywhere(), "application/json").await?;
            let revision = list["metadata"]["resourceVersion"].as_str().unwrap_or("0").to_owned();
            tokio::spawn(mirror.clone().follow(kind, revision));
        }
        Ok(mirror)
    }

    async fn follow(self, kind: &'static Kind, mut revision: String) {
        loop {
            let path = format!(
                "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds=3600&resourceVersion={revision}",
                kind.everywhere()
            );
            let Ok(request) = Request::get(path).body(Vec::new()) else { return };
            let last = Mutex::new(revision.clone());
            let ended = self
                .side
                .lines(request, |line| {
                    let Ok(event) = serde_json::from_slice::<Value>(line) else { return };
                    let object = &event["object"];
                    if let (Some(new), Ok(mut last)) =
                        (object["metadata"]["resourceVersion"].as_str(), last.lock())
                    {
                        new.clone_into(&mut last);
                    }
                    self.learn(kind, event["type"].as_str().unwrap_or_default(), object);
                })
                .await;
            if let Err(error) = ended {
                eprintln!("watching {}: {error:#}", kind.plural);
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            revision = last.into_inner().unwrap_or_default();
        }
    }

    fn learn(&self, kind: &'static Kind, event: &str, object: &Value) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let place = if kind.namespaced {
            object["metadata"]["namespace"].as_str().unwrap_or_default()
        } else {
            RUN.find(name).map_or("", |found| found.as_str())
        };
        if !RUN.is_match(place) || !["ADDED", "MODIFIED", "DELETED"].contains(&event) {
            return;
        }
        let Ok(mut rooms) = self.rooms.lock() else { return };
        let room = rooms.entry(place.to_owned()).or_default();
        let key = (kind.name, name.to_owned());
        // Nodes say that they live, and events are counted.
        if kind.name != "Node" && (kind.name != "Event" || event == "ADDED") {
            room.written = Some(Instant::now());
        }
        if event == "DELETED" {
            if kind.name != "Event" {
                room.objects.remove(&key);
            }
            return;
        }
        room.names.learn(kind.name, object);
        room.objects.insert(key, object.clone());
    }

    /// What is there now.
    pub(crate) fn room(&self, run: &str) -> Room {
        self.rooms.lock().ok().and_then(|rooms| rooms.get(run).cloned()).unwrap_or_default()
    }

    /// One object.
    pub(crate) fn object(&self, run: &str, kind: &'static str, name: &str) -> Option<Value> {
        self.rooms.lock().ok()?.get(run)?.objects.get(&(kind, name.to_owned())).cloned()
    }

    /// How long nothing has been written.
    pub(crate) fn quiet(&self, run: &str) -> Duration {
        let written = self.rooms.lock().ok().and_then(|rooms| rooms.get(run)?.written);
        written.map_or(Duration::MAX, |written| written.elapsed())
    }

    /// Something is written now.
    pub(crate) fn touch(&self, run: &str) {
        if let Ok(mut rooms) = self.rooms.lock() {
            rooms.entry(run.to_owned()).or_default().written = Some(Instant::now());
        }
    }

    /// Forgets a story.
    pub(crate) fn forget(&self, run: &str) {
        if let Ok(mut rooms) = self.rooms.lock() {
            rooms.remove(run);
        }
    }

    /// Waits until an object is there.
    ///
    /// # Errors
    /// Where it does not come.
    pub(crate) async fn until(&self, run: &str, kind: &'static str, name: &str) -> Result<()> {
        for _ in 0..600 {
            if self.object(run, kind, name).is_some() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        bail!("no {kind} {name} in {run}")
    }
}
