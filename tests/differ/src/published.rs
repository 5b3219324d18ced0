//! Definitions and objects that projects publish: each definition is applied twice on both servers, and conversations are held about its kind.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use http::Request;
use serde_json::Value;
use tokio::sync::Mutex;

use crate::compare::{Tokens, compare};
use crate::corpus::Corpus;
use crate::coverage::Coverage;
use crate::fold::{Finding, Findings, sort_of_kind};
use crate::hold::{Sent, exchange};
use crate::make::Scope;
use crate::mutate::Maker;
use crate::schema::{Resource, Served};
use crate::shrink::Pair;
use crate::side::Side;
use crate::{Options, compare_all};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// How long a definition may take to be served, and to be gone.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(100);

/// A project: the text of its definitions by name.
type Project = BTreeMap<String, String>;

/// Compares what the projects of a folder publish.
///
/// # Errors
/// Where the folder is none, a server does not answer, or answers differ or take too long.
pub(crate) async fn run(options: &Options, folder: &Path, pair: &Pair) -> Result<()> {
    let mut projects = projects(&folder.join("crds"))?;
    if !options.projects.is_empty() {
        projects.retain(|name, _| options.projects.contains(name));
    }
    let samples = samples(&folder.join("samples.json"))?;
    let tally = Mutex::<(Findings, Coverage)>::default();
    let (mut done, mut definitions, mut refused) = (0, 0, 0);
    let end = Instant::now() + Duration::from_secs(options.minutes * 60);
    let each = options.seeds.end - options.seeds.start;
    for (number, (name, project)) in (0_u64..).zip(&projects) {
        if Instant::now() > end {
            eprintln!("the time is over: {number} of {} projects", projects.len());
            break;
        }
        (done, definitions) = (done + 1, definitions + project.len());
        let mut established = Vec::new();
        for (definition, text) in project {
            let mut tally = tally.lock().await;
            let (findings, coverage) = &mut *tally;
            if apply(pair, definition, text, findings, coverage).await.with_context(|| definition.clone())? {
                established.push(definition.clone());
            } else {
                refused += 1;
            }
        }
        let served = served(&pair.reference, &established).await?;
        for side in [&pair.reference, &pair.ours] {
            watched(side, &served, &established).await?;
        }
        let kinds: BTreeSet<(String, String)> = served
            .resources
            .iter()
            .filter(|resource| established.iter().any(|name| resource.is_called(name)))
            .map(|resource| (resource.api_version(), resource.kind.clone()))
            .collect();
        let own: Vec<Value> =
            samples.iter().filter(|object| kinds.contains(&kind_of(object))).cloned().collect();
        let corpus = Corpus::of(&own);
        let scope = Scope { maker: Maker { served: &served, corpus: &corpus }, kinds: established };
        let first = options.seeds.start + number * each;
        if !scope.kinds.is_empty() {
            compare_all(options, &scope, pair, first..first + each, &tally).await?;
        }
        for side in [&pair.reference, &pair.ours] {
            remove(side, &served, project.keys()).await.with_context(|| format!("removing {name}"))?;
        }
        eprintln!(
            "{name}: {} definitions, {} objects, seeds {first}..{}",
            project.len(),
            own.len(),
            first + each
        );
    }
    let (findings, coverage) = tally.into_inner();
    coverage.print();
    let all = findings.sorted();
    all.iter().for_each(Finding::print);
    let slow = coverage.times.slow();
    slow.iter().for_each(|line| println!("slow: {line}"));
    let (reference, ours) = coverage.times.whole();
    println!(
        "\n{done} projects, {definitions} definitions, {refused} of them refused by the reference; {} conversations, {} differ, {} are unstable; {} differences; {reference:.1?} → {ours:.1?}",
        coverage.held,
        coverage.differing,
        coverage.unstable.len(),
        all.len()
    );
    if !all.is_empty() || !slow.is_empty() {
        bail!("the two differ");
    }
    Ok(())
}

fn kind_of(object: &Value) -> (String, String) {
    let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
    (text("apiVersion"), text("kind"))
}

/// Reads `PROJECT/NAME.yaml`.
fn projects(folder: &Path) -> Result<BTreeMap<String, Project>> {
    let mut projects: BTreeMap<String, Project> = BTreeMap::new();
    for project in std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let project = project?;
        let definitions = projects.entry(project.file_name().to_string_lossy().into_owned()).or_default();
        for file in std::fs::read_dir(project.path())? {
            let path = file?.path();
            let name = path.file_stem().context("a file without a name")?.to_string_lossy().into_owned();
            let text =
                std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
            definitions.insert(name, text);
        }
    }
    Ok(projects)
}

/// Reads `[[file, object], ..]`. What is meant to be refused (`_err` says why) is an object like others.
fn samples(file: &Path) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let all: Vec<(String, Value)> = serde_json::from_str(&text)?;
    Ok(all
        .into_iter()
        .map(|(_, mut object)| {
            if let Some(members) = object.as_object_mut() {
                members.remove("_err");
            }
            object
        })
        .collect())
}

/// Applies a definition twice on both servers. Says whether the reference takes it.
async fn apply(
    pair: &Pair,
    name: &str,
    text: &str,
    findings: &mut Findings,
    coverage: &mut Coverage,
) -> Result<bool> {
    let (mut theirs, mut own) = (Tokens::default(), Tokens::default());
    let mut taken = false;
    for what in ["definition/apply", "definition/again", "definition/get"] {
        let sent = if what == "definition/get" { read(name) } else { applied(name, text) };
        let (reference, ours) =
            tokio::try_join!(exchange(&pair.reference, sent.clone()), exchange(&pair.ours, sent))?;
        taken = reference.status < 300;
        coverage.request(what, "CustomResourceDefinition", &reference, &ours);
        for difference in compare(&reference, &ours, &mut theirs, &mut own, false).iter().take(3) {
            let sort = sort_of_kind("CustomResourceDefinition", difference);
            findings.add_sort(0, 0, sort, &format!("{what} {name}"), difference);
        }
        if taken {
            tokio::try_join!(establish(&pair.reference, name), establish(&pair.ours, name))?;
        }
    }
    Ok(taken)
}

fn applied(name: &str, text: &str) -> Sent {
    Sent {
        method: "PATCH",
        path: format!("{DEFINITIONS}/{name}?fieldManager=differ"),
        headers: vec![
            ("Content-Type".to_owned(), "application/apply-patch+yaml".to_owned()),
            ("Accept".to_owned(), "application/json".to_owned()),
        ],
        body: Some(text.to_owned()),
    }
}

fn read(name: &str) -> Sent {
    let headers = vec![("Accept".to_owned(), "application/json".to_owned())];
    Sent { method: "GET", path: format!("{DEFINITIONS}/{name}"), headers, body: None }
}

/// Waits until a definition has both of its conditions, and nobody writes it any more.
async fn establish(side: &Side, name: &str) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    let mut last = Value::Null;
    loop {
        let definition = side.json(&format!("{DEFINITIONS}/{name}"), "application/json").await?;
        let conditions = definition["status"]["conditions"].as_array().map_or(0, Vec::len);
        if (conditions >= 2 && definition == last) || definition["kind"] == "Status" {
            return Ok(());
        }
        last = definition;
        if Instant::now() > end {
            bail!("{name} is not established");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// What a server serves, once that and its schemas have these definitions.
async fn served(side: &Side, definitions: &[String]) -> Result<Served> {
    let end = Instant::now() + PATIENCE;
    loop {
        // A document may be told of before it is there.
        let answer = Served::of(side).await;
        let is_over = Instant::now() > end;
        match answer {
            Ok(served) if is_over || definitions.iter().all(|name| has(&served, name)) => return Ok(served),
            Err(error) if is_over => return Err(error),
            _ => {}
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn has(served: &Served, definition: &str) -> bool {
    let mut of = served.resources.iter().filter(|resource| resource.is_called(definition)).peekable();
    of.peek().is_some() && of.all(|resource| served.schema(resource).is_some())
}

/// Waits until all that these definitions make can be watched: kube-apiserver says 429 until its cache is filled.
async fn watched(side: &Side, served: &Served, definitions: &[String]) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    let made =
        served.resources.iter().filter(|resource| definitions.iter().any(|name| resource.is_called(name)));
    for resource in made {
        let path = format!("{}?watch=true", resource.path(None));
        loop {
            let stream = side.stream(Request::get(&path).body(Vec::new())?).await?;
            let status = stream.status;
            drop(stream.end());
            if status != 429 || Instant::now() > end {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(())
}

/// Removes definitions with their objects, whatever holds these.
async fn remove(side: &Side, served: &Served, definitions: impl Iterator<Item = &String>) -> Result<()> {
    let definitions: Vec<&String> = definitions.collect();
    for name in &definitions {
        side.send(Request::delete(format!("{DEFINITIONS}/{name}")).body(Vec::new())?).await?;
    }
    let end = Instant::now() + PATIENCE;
    for name in definitions {
        let made = served.resources.iter().find(|resource| resource.is_called(name));
        while side.send(Request::get(format!("{DEFINITIONS}/{name}")).body(Vec::new())?).await?.status != 404
        {
            if Instant::now() > end {
                bail!("{name} does not go");
            }
            if let Some(resource) = made {
                free(side, resource).await?;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(())
}

/// Takes the finalizers of all objects away.
async fn free(side: &Side, resource: &Resource) -> Result<()> {
    let list = side.send(Request::get(resource.path(None)).body(Vec::new())?).await?;
    // It may be gone by now.
    let list: Value = serde_json::from_slice(&list.body).unwrap_or_default();
    for object in list["items"].as_array().into_iter().flatten() {
        let patch =
            Request::patch(path_of(resource, object)).header("Content-Type", "application/merge-patch+json");
        side.send(patch.body(br#"{"metadata":{"finalizers":null}}"#.to_vec())?).await?;
    }
    Ok(())
}

fn path_of(resource: &Resource, object: &Value) -> String {
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    format!("{}/{name}", resource.path(metadata["namespace"].as_str()))
}
