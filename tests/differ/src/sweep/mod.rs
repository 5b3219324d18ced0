//! The sweep: each place of each recorded object with ten values and more, tried on both servers.

mod parts;
mod places;
mod print;
mod requests;
mod session;
mod values;

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokio::sync::Mutex;

use self::print::Causes;
use self::requests::{Subject, Try, belongs, creation, stored, subject, trials};
use self::session::Session;
use crate::Options;
use crate::conversation::{Ask, Conversation};
use crate::coverage::Coverage;
use crate::hold::began;
use crate::make::{LEFT_OUT, Scope};
use crate::schema::Resource;
use crate::shrink::Pair;

/// Objects that have more in them than what is recorded, and statuses that controllers write.
const MORE: &str = include_str!("objects.json");
/// How many requests are one conversation.
const LENGTH: usize = 60;
/// What would change what other conversations see when it is stored, what a controller writes at once, and what has an
/// address for a name, which conversations would share.
const NEVER_STORED: &[&str] = &[
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicy",
    "APIService",
    "IPAddress",
    "FlowSchema",
    "PriorityLevelConfiguration",
];

/// Sweeps the kinds.
///
/// # Errors
/// Where a server does not answer, and where answers differ.
pub(crate) async fn run(options: &Options, scope: &Scope<'_>, pair: &Pair) -> Result<()> {
    let more: Vec<Value> = serde_json::from_str(MORE).context("reading the objects of the sweep")?;
    let taken = taken(&subjects(scope, &more), pair).await?;
    let (causes, coverage) = hold_all(options, scope, &taken, pair).await;
    coverage.print();
    causes.print();
    println!("\n{} requests, {} causes", coverage.requests(), causes.len());
    if causes.len() > 0 {
        bail!("answers differ for {} causes", causes.len());
    }
    Ok(())
}

/// All objects to begin with.
fn subjects(scope: &Scope<'_>, more: &[Value]) -> Vec<Subject> {
    let wanted = |resource: &&Resource| {
        resource.can("create")
            && !LEFT_OUT.contains(&resource.kind.as_str())
            && (scope.kinds.is_empty() || scope.kinds.iter().any(|name| resource.is_called(name)))
    };
    let mut found = Vec::new();
    for resource in scope.maker.served.resources.iter().filter(wanted) {
        let version = resource.api_version();
        let own: Vec<&Value> = more
            .iter()
            .filter(|object| {
                object["apiVersion"] == version.as_str() && object["kind"] == resource.kind.as_str()
            })
            .collect();
        let status = own.iter().find_map(|object| object.get("status"));
        let whole = own.iter().copied().filter(|object| object.get("metadata").is_some());
        for object in scope.maker.corpus.objects(&version, &resource.kind).iter().chain(whole) {
            found.push(subject(resource, object, status));
        }
    }
    found
}

/// Those that the reference takes.
async fn taken(subjects: &[Subject], pair: &Pair) -> Result<Vec<Subject>> {
    let mut found = Vec::new();
    let mut refused: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, some) in subjects.chunks(LENGTH).enumerate() {
        let asks = some.iter().map(|subject| creation(subject).query("dryRun", "All")).collect();
        let outcome = pair.hold(&Conversation { seed: 0, asks }, &format!("d{number}r0{}", began())).await?;
        for (subject, got) in some.iter().zip(&outcome.reference) {
            if got.status < 300 {
                found.push(subject.clone());
            } else {
                *refused.entry(&subject.place.resource.kind).or_default() += 1;
                eprintln!("refused: {}", String::from_utf8_lossy(&got.body).trim());
            }
        }
    }
    eprintln!("{} objects; the reference refuses of {refused:?}", found.len());
    Ok(found)
}

/// The requests about an object, but for changes that were tried at an object of its kind before.
fn sessions(
    scope: &Scope<'_>,
    subject: &Subject,
    part: (usize, usize),
    known: &mut HashSet<String>,
) -> Vec<Session> {
    let resource = &subject.place.resource;
    let mut trials = trials(&scope.maker, subject);
    trials.retain(|trial| {
        let key = trial.key(resource);
        belongs(&key, part) && known.insert(key)
    });
    let sent = |before: Vec<Ask>, tries: Vec<Try>| -> Vec<Session> {
        let sent = |tries: &[Try]| Session { before: before.clone(), tries: tries.to_vec() };
        tries.chunks(LENGTH).map(sent).collect()
    };
    let creations = trials.iter().filter_map(|trial| trial.creation(subject)).collect();
    let mut found = sent(Vec::new(), creations);
    if !NEVER_STORED.contains(&resource.kind.as_str()) {
        found.extend(sent(stored(subject), trials.iter().flat_map(|trial| trial.writes(subject)).collect()));
    }
    found
}

async fn hold_all(
    options: &Options,
    scope: &Scope<'_>,
    subjects: &[Subject],
    pair: &Pair,
) -> (Causes, Coverage) {
    let state = Mutex::new((Causes::default(), Coverage::default()));
    let left = Mutex::new((VecDeque::new(), subjects.iter(), HashSet::new()));
    let next = AtomicUsize::new(0);
    let end = Instant::now() + Duration::from_secs(options.minutes * 60);
    let began = began();
    let work = || async {
        while Instant::now() <= end {
            let Some(session) = ({
                let (sessions, subjects, known) = &mut *left.lock().await;
                while sessions.is_empty()
                    && let Some(subject) = subjects.next()
                {
                    sessions.extend(self::sessions(scope, subject, options.part, known));
                }
                sessions.pop_front()
            }) else {
                return;
            };
            let conversation = session.conversation();
            let number = next.fetch_add(1, Ordering::Relaxed);
            match pair.hold(&conversation, &format!("d{number}r{began}")).await {
                Ok(outcome) => {
                    let mut state = state.lock().await;
                    let (causes, coverage) = &mut *state;
                    coverage.count(&conversation, &outcome);
                    session.note(&conversation, &outcome, causes);
                    if coverage.held.is_multiple_of(100) {
                        let kind = &conversation.asks[0].place.resource.kind;
                        eprintln!("{} held, at {kind}, {} causes", coverage.held, causes.len());
                    }
                }
                Err(error) => {
                    let halves = session.halves();
                    if halves.is_empty() {
                        let what = session.tries.first().map(|one| one.trial.change()).unwrap_or_default();
                        eprintln!("{what}: {error:#}");
                    }
                    let (sessions, ..) = &mut *left.lock().await;
                    halves.into_iter().rev().for_each(|half| sessions.push_front(half));
                }
            }
        }
    };
    futures::future::join_all((0..options.jobs.max(1)).map(|_| work())).await;
    let (sessions, subjects, _) = left.into_inner();
    if !sessions.is_empty() || subjects.len() > 0 {
        eprintln!("{} minutes are over: {} objects were not begun", options.minutes, subjects.len());
    }
    state.into_inner()
}
