//! Holding a story on both sides at once, up to the first step after which they differ.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result};
use http::Request;
use serde_json::json;

use crate::compare::Difference;
use crate::controllers::act::{Done, act, rest};
use crate::controllers::kinds::{collection, kind};
use crate::controllers::mirror::Mirror;
use crate::controllers::state::{State, compare, state};
use crate::controllers::story::{QUIET, Story};
use crate::fold::sort_of_kind;

/// The longest that a story waits for rest.
const PATIENCE: Duration = Duration::from_secs(60);
/// How much longer than its own quiet a step may take before its sides are said to differ.
const LATER: [u64; 2] = [4000, 11_000];

/// Both sides.
#[derive(Clone)]
pub(crate) struct Sides {
    pub(crate) reference: Mirror,
    pub(crate) ours: Mirror,
}

/// What a story came to.
pub(crate) struct Outcome {
    /// The step after which the sides differed, or the number of steps.
    pub(crate) at: usize,
    /// What the steps were answered by the reference.
    pub(crate) answers: Vec<Done>,
    pub(crate) differences: Vec<(String, Difference)>,
    pub(crate) reference: State,
    pub(crate) ours: State,
}

impl Outcome {
    /// The sorts of its differences.
    pub(crate) fn sorts(&self) -> BTreeSet<String> {
        self.differences.iter().map(|(kind, difference)| sort_of_kind(kind, difference)).collect()
    }
}

impl Sides {
    fn both(&self) -> [&Mirror; 2] {
        [&self.reference, &self.ours]
    }

    /// Holds a story under the name of a run.
    ///
    /// # Errors
    /// Where a side does not answer.
    pub(crate) async fn hold(&self, story: &Story, run: &str) -> Result<Outcome> {
        let (one, other) = tokio::join!(begin(&self.reference, run), begin(&self.ours, run));
        one.context("the reference")?;
        other.context("ours")?;
        let held = self.steps(story, run).await;
        tokio::join!(clean(&self.reference, run), clean(&self.ours, run));
        held
    }

    async fn steps(&self, story: &Story, run: &str) -> Result<Outcome> {
        let mut answers = Vec::new();
        let mut outcome = None;
        for (at, step) in story.steps.iter().enumerate() {
            let (one, other) = tokio::join!(act(&self.reference, step, run), act(&self.ours, step, run));
            let (one, other) = (one.context("the reference")?, other.context("ours")?);
            let differ = one != other;
            answers.push(one.clone());
            let quiet = if step.compared { step.quiet } else { QUIET };
            let (reference, ours, mut differences) = self.compared(run, quiet).await;
            if differ {
                let told = |done: &Done| format!("{} {}", done.status, done.message);
                let kind = step.what.clone();
                differences.insert(
                    0,
                    (kind, Difference { path: "answer".into(), reference: told(&one), ours: told(&other) }),
                );
            }
            let found = !differences.is_empty();
            outcome = Some(Outcome { at, answers: answers.clone(), differences, reference, ours });
            if found {
                break;
            }
        }
        outcome.context("a story without steps")
    }

    /// The final states, and what differs: when both are at rest, and still after a longer rest.
    async fn compared(&self, run: &str, quiet: u64) -> (State, State, Vec<(String, Difference)>) {
        let mut waits = [0, LATER[0], LATER[1]].into_iter();
        loop {
            let wait = waits.next();
            rest(self.both(), run, Duration::from_millis(quiet + wait.unwrap_or_default()), PATIENCE).await;
            let (reference, ours) = (state(&self.reference.room(run), run), state(&self.ours.room(run), run));
            let differences = compare(&reference, &ours);
            if differences.is_empty() || wait == Some(LATER[1]) || wait.is_none() {
                return (reference, ours, differences);
            }
        }
    }
}

async fn begin(mirror: &Mirror, run: &str) -> Result<()> {
    let body = json!({"metadata": {"name": run}}).to_string().into_bytes();
    let request =
        Request::post("/api/v1/namespaces").header("Content-Type", "application/json").body(body)?;
    mirror.side.send(request).await?;
    mirror.until(run, "ServiceAccount", "default").await?;
    mirror.until(run, "ConfigMap", "kube-root-ca.crt").await
}

/// Lets go of what is held, and deletes the namespace and what belongs to the run outside it.
async fn clean(mirror: &Mirror, run: &str) {
    let room = mirror.room(run);
    let mut gone = vec![format!("/api/v1/namespaces/{run}")];
    let mut held = Vec::new();
    for ((name, object), value) in &room.objects {
        let Some(kind) = kind(name) else { continue };
        let path = format!("{}/{object}", collection(name).replace("@run@", run));
        if !kind.namespaced && kind.name != "Namespace" {
            gone.push(path.clone());
            held.push(path);
        } else if value["metadata"]["finalizers"].as_array().is_some_and(|list| !list.is_empty())
            && kind.namespaced
        {
            held.push(path);
        }
    }
    let delete = |path: &String| Request::delete(path).body(Vec::new());
    let free = |path: &String| {
        Request::patch(path)
            .header("Content-Type", "application/merge-patch+json")
            .body(br#"{"metadata":{"finalizers":null}}"#.to_vec())
    };
    for request in gone.iter().map(delete).chain(held.iter().map(free)).chain(held.iter().map(free)).flatten()
    {
        let _ = mirror.side.send(request).await;
    }
    mirror.forget(run);
}
