//! Benchmarks of a Kubernetes-compatible API server and of operators, from outside: a kubeconfig is all that it needs.
//! Compare figures as ratios, both sides measured in one run on one idle machine.
#![expect(clippy::disallowed_methods, reason = "it measures real time")]

mod client;
mod compare;
mod controllers;
mod crud;
mod list;
mod neighbour;
mod operator;
mod startup;
mod stats;
mod streams;
mod watch;

use bytes::Bytes;
use client::{Conn, Error, JSON, Result, Target};
use hyper::Method;
use stats::{Report, Sample};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

const USAGE: &str = "\
apibench [FLAGS] WORKLOAD...      measure an API server
apibench [FLAGS] startup CMD      measure exec to first answers, and memory, of a server
apibench [FLAGS] operator CMD     drive an operator (see operator.rs for what CMD must do)
apibench [FLAGS] fsync            latency of a 1 KiB append + fdatasync (no server)
apibench compare A B              two files of --json rows: every figure of A, of B, and B/A

workloads: create get update patch create-cr ssa list watch-fanout watch-paced pod-up gc ns-delete; api = the first
six; all = each of these once
neighbour: GETs by one client, alone and during the large requests of another
watch-idle, streams-unread: memory with many streams (needs --server-pid)

  --kubeconfig F     (default $KUBECONFIG)
  --json             one JSON object per row
  --http1, --http2   protocol (default: HTTP/2 over TLS, HTTP/1.1 over plain http)
  --conns N          HTTP/2 connections (default 1; more where the number of streams needs it)
  --server-pid P     report CPU time and RSS of this process and its descendants
  --full             the full sizes (defaults in brackets) instead of the quick ones
  -c N[,N]           concurrency of the request workloads (1,32)
  -n N               objects in request workloads 2000 [10000]; with concurrency 1: a tenth
  --list-n N         objects to list 10000 [100000]
  --watchers W       200 [1000]
  --updates M        200
  --rate R           updates/s of watch-paced 20
  --replicas N       pod-up 100 [1000]
  --dependents N     gc 1000, and objects in ns-delete
  --pods N           neighbour: pods of the table 15000
  --streams N        watch-idle 10000; streams-unread has a fifth
  --widgets N        operator 500 [2000]
  --runs K           startup and the operator's cold starts 5
  --before CMD       startup: run before each start (to empty the data folder)
  --ready-path P     startup: the path whose 200 means ready (default /readyz)
  --settle S         startup, operator: seconds to wait before the idle figures 10
  --dir D            fsync: folder of the test file .
  --timeout S        of the waiting workloads 300
  --keep             leave the objects behind
";

pub struct Opts {
    kubeconfig: String,
    json: bool,
    h2: Option<bool>,
    conns: usize,
    server_pid: Option<i32>,
    c: Vec<usize>,
    n: usize,
    list_n: usize,
    watchers: usize,
    updates: usize,
    rate: f64,
    replicas: usize,
    dependents: usize,
    pods: usize,
    streams: usize,
    widgets: usize,
    runs: usize,
    before: Option<String>,
    ready_path: String,
    settle: f64,
    dir: String,
    timeout: Duration,
    keep: bool,
    words: Vec<String>,
}

fn parse() -> Result<Opts> {
    let all: Vec<String> = std::env::args().skip(1).collect();
    let full = all.iter().any(|a| a == "--full");
    let size = |quick, big| if full { big } else { quick };
    let mut o = Opts {
        kubeconfig: std::env::var("KUBECONFIG").unwrap_or_default(),
        json: false,
        h2: None,
        conns: 1,
        server_pid: None,
        c: vec![1, 32],
        n: size(2000, 10_000),
        list_n: size(10_000, 100_000),
        watchers: size(200, 1000),
        updates: 200,
        rate: 20.0,
        replicas: size(100, 1000),
        dependents: 1000,
        pods: 15_000,
        streams: 10_000,
        widgets: size(500, 2000),
        runs: 5,
        before: None,
        ready_path: "/readyz".into(),
        settle: 10.0,
        dir: ".".into(),
        timeout: Duration::from_secs(300),
        keep: false,
        words: Vec::new(),
    };
    let mut it = all.into_iter();
    while let Some(a) = it.next() {
        let mut val = || it.next().ok_or(format!("{a} needs a value"));
        match a.as_str() {
            "--kubeconfig" => o.kubeconfig = val()?,
            "--json" => o.json = true,
            "--http1" => o.h2 = Some(false),
            "--http2" => o.h2 = Some(true),
            "--full" => {}
            "--keep" => o.keep = true,
            "--conns" => o.conns = val()?.parse()?,
            "--server-pid" => o.server_pid = Some(val()?.parse()?),
            "-c" => o.c = val()?.split(',').map(str::parse).collect::<Result<_, _>>()?,
            "-n" => o.n = val()?.parse()?,
            "--list-n" => o.list_n = val()?.parse()?,
            "--watchers" => o.watchers = val()?.parse()?,
            "--updates" => o.updates = val()?.parse()?,
            "--rate" => o.rate = val()?.parse()?,
            "--replicas" => o.replicas = val()?.parse()?,
            "--dependents" => o.dependents = val()?.parse()?,
            "--pods" => o.pods = val()?.parse()?,
            "--streams" => o.streams = val()?.parse()?,
            "--widgets" => o.widgets = val()?.parse()?,
            "--runs" => o.runs = val()?.parse()?,
            "--before" => o.before = Some(val()?),
            "--ready-path" => o.ready_path = val()?,
            "--settle" => o.settle = val()?.parse()?,
            "--dir" => o.dir = val()?,
            "--timeout" => o.timeout = Duration::from_secs_f64(val()?.parse()?),
            "-h" | "--help" => {
                print!("{USAGE}");
                std::process::exit(0)
            }
            _ if a.starts_with('-') => return Err(format!("unknown flag {a}\n{USAGE}").into()),
            _ => o.words.push(a),
        }
    }
    if o.words.is_empty() {
        return Err(USAGE.into());
    }
    Ok(o)
}

/// What every workload gets: options, the server, the report.
pub struct Ctx {
    pub o: Opts,
    pub target: Arc<Target>,
    pub report: RefCell<Report>,
}

impl Ctx {
    /// Runs `op(conn, i)` for i in 0..n on `c` workers; worker w owns all i with i % c == w.
    pub async fn run<F>(&self, c: usize, n: usize, op: F) -> Result<Sample>
    where
        F: AsyncFn(&mut Conn, usize) -> Result<()> + 'static,
    {
        let clients = self.target.clients(c.min(n.max(1)), self.o.conns).await?;
        let (op, workers) = (Rc::new(op), clients.len());
        let begin = Instant::now();
        let mut tasks = Vec::new();
        for (w, mut conn) in clients.into_iter().enumerate() {
            let op = op.clone();
            tasks.push(tokio::task::spawn_local(async move {
                let mut s = Sample::default();
                for i in (w..n).step_by(workers) {
                    let t = Instant::now();
                    match op(&mut conn, i).await {
                        Ok(()) => s.lat.push(t.elapsed()),
                        Err(e) => s.error(e),
                    }
                }
                s
            }));
        }
        let mut all = Sample::default();
        for t in tasks {
            all.merge(t.await?);
        }
        all.elapsed = begin.elapsed();
        Ok(all)
    }

    /// `run`, with a row of its own.
    pub async fn measure<F>(&self, name: &str, c: usize, n: usize, op: F) -> Result<()>
    where
        F: AsyncFn(&mut Conn, usize) -> Result<()> + 'static,
    {
        self.report.borrow_mut().start();
        let s = self.run(c, n, op).await?;
        self.report.borrow().row(name, c, s.lat.len(), &s, "");
        Ok(())
    }

    /// Creates a namespace with a fresh name.
    pub async fn namespace(&self, name: &str) -> Result<String> {
        let t = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_millis();
        let ns = format!("bench-{name}-{t}");
        let body = format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{ns}"}}}}"#);
        self.target.connect().await?.ok(Method::POST, "/api/v1/namespaces", JSON, body).await?;
        Ok(ns)
    }

    /// Deletes the namespace, without waiting for its end (unless --keep).
    pub async fn drop_namespace(&self, ns: &str) -> Result<()> {
        if !self.o.keep {
            self.target
                .connect()
                .await?
                .ok(Method::DELETE, &format!("/api/v1/namespaces/{ns}"), "", "")
                .await?;
        }
        Ok(())
    }

    /// Deletes `path/name(0..n)`, as a row of its own (unless --keep).
    pub async fn delete_all(
        &self,
        row: &str,
        path: String,
        n: usize,
        name: fn(usize) -> String,
    ) -> Result<()> {
        if self.o.keep {
            return Ok(());
        }
        let c = self.o.c.iter().copied().max().unwrap_or(1);
        self.measure(row, c, n, async move |conn, i| {
            conn.ok(Method::DELETE, &format!("{path}/{}", name(i)), "", Bytes::new()).await.map(drop)
        })
        .await
    }
}

async fn main_local() -> Result<()> {
    let o = parse()?;
    let verb = o.words[0].clone();
    if verb == "fsync" {
        return startup::fsync(&o);
    }
    if verb == "compare" {
        return compare::compare(&o);
    }
    if verb == "startup" {
        return startup::startup(&o).await;
    }
    let target = Target::load(o.kubeconfig.as_ref(), o.h2)?;
    if verb == "operator" {
        let report = RefCell::new(Report::new(o.json, o.server_pid));
        report.borrow().header();
        return operator::drive(&Ctx { o, target, report }).await;
    }
    const API: &[&str] = &["create", "get", "update", "patch", "create-cr", "ssa"];
    const OTHER: &[&str] = &["list", "watch-fanout", "watch-paced", "pod-up", "gc", "ns-delete"];
    const ALONE: &[&str] = &["neighbour", "watch-idle", "streams-unread"];
    let mut work: Vec<String> = Vec::new();
    for w in &o.words {
        match w.as_str() {
            "all" => work.extend(API.iter().chain(OTHER).map(|s| s.to_string())),
            "api" => work.extend(API.iter().map(|s| s.to_string())),
            w if [API, OTHER, ALONE].concat().contains(&w) => work.push(w.into()),
            w => return Err(format!("unknown workload {w}\n{USAGE}").into()),
        }
    }
    let report = RefCell::new(Report::new(o.json, o.server_pid));
    report.borrow().header();
    let x = Ctx { o, target, report };
    // create, get, update and patch share one set of objects when asked for together
    let crud: Vec<&str> =
        ["create", "get", "update", "patch"].into_iter().filter(|c| work.iter().any(|w| w == c)).collect();
    if !crud.is_empty() {
        crud::configmaps(&x, &crud).await?;
    }
    for w in work {
        match w.as_str() {
            "create-cr" => crud::create_cr(&x).await?,
            "ssa" => crud::ssa(&x).await?,
            "list" => list::list(&x).await?,
            "watch-fanout" => watch::fanout(&x, None).await?,
            "watch-paced" => watch::fanout(&x, Some(x.o.rate)).await?,
            "pod-up" => controllers::pod_up(&x).await?,
            "neighbour" => neighbour::neighbour(&x).await?,
            "watch-idle" => streams::idle(&x).await?,
            "streams-unread" => streams::unread(&x).await?,
            "gc" => controllers::gc(&x).await?,
            "ns-delete" => controllers::ns_delete(&x).await?,
            _ => {}
        }
    }
    Ok(())
}

fn main() -> std::process::ExitCode {
    let rt = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    match tokio::task::LocalSet::new().block_on(&rt, main_local()) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(e) => {
            let e: Error = e;
            eprintln!("{e}");
            std::process::ExitCode::FAILURE
        }
    }
}
