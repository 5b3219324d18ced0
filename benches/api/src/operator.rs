//! Drives a Widget operator: convergence, re-convergence, idle memory, cold start, backlog.
use crate::client::{JSON, MERGE, Result, Watch, field};
use crate::crud::install_crd;
use crate::startup::{spawn, stop};
use crate::stats::{Sample, quantile, tree};
use crate::{Conn, Ctx};
use bytes::Bytes;
use hyper::Method;
use serde::Deserialize;
use std::cell::RefCell;
use std::process::Stdio;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;

/// What the watch has seen of the current phase (all specs are `<phase>-...`).
#[derive(Default)]
struct State {
    phase: String,
    sent: Vec<Option<Instant>>,
    converged: Vec<bool>,
    lat: Vec<Duration>,
    last: Option<Instant>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    object: Widget<'a>,
}

#[derive(Deserialize)]
struct Widget<'a> {
    #[serde(borrow)]
    metadata: Meta<'a>,
    #[serde(default, borrow)]
    spec: Spec<'a>,
    #[serde(default, borrow)]
    status: Status<'a>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(default)]
    name: &'a str,
}

#[derive(Deserialize, Default)]
struct Spec<'a> {
    #[serde(default)]
    value: &'a str,
}

#[derive(Deserialize, Default)]
struct Status<'a> {
    #[serde(default)]
    observed: &'a str,
}

async fn observe(mut w: Watch, state: Rc<RefCell<State>>) -> Result<()> {
    loop {
        let line = w.next().await?;
        let now = Instant::now();
        let Event { object: o } = serde_json::from_slice(line)?;
        let Some(i) = o.metadata.name.strip_prefix("w-").and_then(|s| s.parse::<usize>().ok()) else {
            continue;
        };
        let mut s = state.borrow_mut();
        if o.status.observed != o.spec.value || !o.spec.value.starts_with(&s.phase) || i >= s.converged.len()
        {
            continue;
        }
        if !std::mem::replace(&mut s.converged[i], true) {
            let sent = s.sent[i].unwrap_or(now);
            s.lat.push(now - sent);
            s.last = Some(now);
        }
    }
}

/// The running operator.
struct Op {
    child: Child,
    pid: i32,
    begin: Instant,
    /// time from exec to the line "expected"
    expected: Rc<RefCell<Option<Duration>>>,
    /// the last other line it printed (its counts, at the end)
    last_line: Rc<RefCell<String>>,
}

impl Op {
    fn start(x: &Ctx, expect: usize) -> Result<Op> {
        let cmd = x.o.words.get(1).ok_or("operator: CMD is missing")?;
        let begin = Instant::now();
        let mut child = spawn(&format!("exec {cmd} --expect {expect}"), &x.o.kubeconfig, Stdio::piped())?;
        let expected = Rc::new(RefCell::new(None));
        let last_line = Rc::new(RefCell::new(String::new()));
        let (e, l) = (expected.clone(), last_line.clone());
        let mut lines = BufReader::new(child.stdout.take().ok_or("no stdout")?).lines();
        tokio::task::spawn_local(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                if line.trim() == "expected" {
                    *e.borrow_mut() = Some(begin.elapsed());
                } else {
                    *l.borrow_mut() = line;
                }
            }
        });
        Ok(Op { pid: child.id().ok_or("no pid")? as i32, child, begin, expected, last_line })
    }

    fn cpu(&self) -> f64 {
        tree(self.pid, true).cpu_s
    }

    async fn stop(self) -> Result<String> {
        stop(self.child).await?;
        tokio::time::sleep(Duration::from_millis(50)).await;
        Ok(self.last_line.borrow().clone())
    }
}

async fn wait(x: &Ctx, what: &str, mut done: impl FnMut() -> bool) -> Result<()> {
    let begin = Instant::now();
    while !done() {
        if begin.elapsed() > x.o.timeout {
            return Err(format!("operator: timeout: {what}").into());
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

fn widget(name: &str, value: &str) -> Bytes {
    Bytes::from(format!(
        r#"{{"apiVersion":"bench.example.com/v1","kind":"Widget","metadata":{{"name":"{name}"}},"spec":{{"value":"{value}"}}}}"#
    ))
}

struct Drive<'x> {
    x: &'x Ctx,
    n: usize,
    c: usize,
    widgets: Rc<str>,
    configmaps: String,
    state: Rc<RefCell<State>>,
}

impl Drive<'_> {
    fn begin(&self, phase: &str) {
        *self.state.borrow_mut() = State {
            phase: format!("{phase}-"),
            sent: vec![None; self.n],
            converged: vec![false; self.n],
            ..Default::default()
        };
    }

    /// Creates (or changes) all Widgets; the time that took.
    async fn write(&self, phase: &'static str, create: bool) -> Result<Sample> {
        let (path, state) = (self.widgets.clone(), self.state.clone());
        let op = async move |conn: &mut Conn, i: usize| {
            state.borrow_mut().sent[i] = Some(Instant::now());
            let value = format!("{phase}-{i}");
            if create {
                conn.ok(Method::POST, &path, JSON, widget(&format!("w-{i}"), &value)).await.map(drop)
            } else {
                let body = format!(r#"{{"spec":{{"value":"{value}"}}}}"#);
                conn.ok(Method::PATCH, &format!("{path}/w-{i}"), MERGE, body).await.map(drop)
            }
        };
        self.x.run(self.c, self.n, op).await
    }

    /// Waits until all Widgets have converged, and checks the ConfigMaps. Errors of writing are in `s`.
    async fn converge(&self, phase: &str, begin: Instant, mut s: Sample) -> Result<Sample> {
        wait(self.x, "convergence", || self.state.borrow().lat.len() >= self.n).await?;
        {
            let mut st = self.state.borrow_mut();
            s.lat = std::mem::take(&mut st.lat);
            s.elapsed = st.last.unwrap_or(begin) - begin;
        }
        let body = self.x.target.connect().await?.get(&self.configmaps).await?;
        let right = memchr::memmem::find_iter(&body, format!("\"value\":\"{phase}-").as_bytes()).count();
        if right != self.n {
            s.error(format!("{right} of {} ConfigMaps are right", self.n));
        }
        Ok(s)
    }

    /// create or change with the operator running
    async fn phase(&self, op: &Op, row: &str, phase: &'static str, create: bool) -> Result<()> {
        self.begin(phase);
        self.x.report.borrow_mut().start();
        let (cpu, begin) = (op.cpu(), Instant::now());
        let s = self.write(phase, create).await?;
        let written = s.elapsed.as_secs_f64();
        let s = self.converge(phase, begin, s).await?;
        let note = format!("all written after {written:.2} s, operator CPU {:.2} s", op.cpu() - cpu);
        self.x.report.borrow().row(row, self.c, self.n, &s, note);
        Ok(())
    }

    async fn idle(&self, op: &Op, what: &str) {
        let cpu = op.cpu();
        tokio::time::sleep(Duration::from_secs_f64(self.x.o.settle)).await;
        let t = tree(op.pid, true);
        let percent = (t.cpu_s - cpu) / self.x.o.settle.max(0.01) * 100.0;
        let f = [("rss_mib", t.rss_mib), ("anon_mib", t.anon_mib), ("idle_cpu_percent", percent)];
        self.x.report.borrow().figures(what, &f);
    }
}

pub async fn drive(x: &Ctx) -> Result<()> {
    let mut conn = x.target.connect().await?;
    let ns = x.namespace("operator").await?;
    let widgets: Rc<str> = format!("/apis/bench.example.com/v1/namespaces/{ns}/widgets").into();
    let configmaps = format!("/api/v1/namespaces/{ns}/configmaps");
    install_crd(x, &mut conn, include_str!("widget-crd.json"), (&widgets, widget("probe", "probe"))).await?;

    let op = Op::start(x, 0)?;
    wait_probe(x, &mut conn, &format!("{widgets}/probe")).await?;
    let ready = op.begin.elapsed().as_secs_f64();
    for path in [format!("{widgets}/probe"), format!("{configmaps}/probe")] {
        conn.call(Method::DELETE, &path, "", Bytes::new()).await?;
    }
    let d = Drive {
        x,
        n: x.o.widgets,
        c: x.o.c.iter().copied().max().unwrap_or(1),
        widgets: widgets.clone(),
        configmaps: configmaps.clone(),
        state: Default::default(),
    };
    let w = Watch::from_now(x.target.connect().await?, &widgets, "").await?;
    let state = d.state.clone();
    let watch = tokio::task::spawn_local(async move {
        if let Err(e) = observe(w, state).await {
            eprintln!("the watch of Widgets ended: {e}");
        }
    });

    let t = tree(op.pid, true);
    let f = [("first_widget_ms", ready * 1e3), ("rss_mib", t.rss_mib), ("anon_mib", t.anon_mib)];
    x.report.borrow().figures("op-start", &f);
    d.phase(&op, "op-create", "one", true).await?;
    d.phase(&op, "op-update", "two", false).await?;
    d.idle(&op, "op-idle").await;
    let counts = op.stop().await?;
    let count = |word: &str| counts.split(' ').skip_while(|w| *w != word).nth(1).and_then(|v| v.parse().ok());
    let per_object = |word: &str| count(word).unwrap_or(f64::NAN) / (2 * d.n) as f64;
    let f =
        [("reconciles_per_change", per_object("reconciles")), ("writes_per_change", per_object("writes"))];
    x.report.borrow().figures("op-counts", &f);

    // cold start, nothing to write
    let mut s = Sample::default();
    let mut cpus = Vec::new();
    x.report.borrow_mut().start();
    for run in 0..x.o.runs {
        let op = Op::start(x, d.n)?;
        wait(x, "cold start", || op.expected.borrow().is_some()).await?;
        let t = op.expected.borrow().unwrap_or_default();
        s.lat.push(t);
        s.elapsed += t;
        cpus.push(op.cpu());
        if run == x.o.runs - 1 {
            d.idle(&op, "op-idle-restarted").await;
        }
        op.stop().await?;
    }
    cpus.sort_unstable_by(f64::total_cmp);
    let note = format!("latency: exec to all reconciled, operator CPU {:.2} s", quantile(&cpus, 0.5));
    x.report.borrow().row("op-cold-start", 1, d.n * s.lat.len(), &s, note);

    // cold start with a change of every Widget waiting
    d.begin("three");
    let written = d.write("three", false).await?;
    x.report.borrow_mut().start();
    let op = Op::start(x, d.n)?;
    let mut s = d.converge("three", op.begin, written).await?;
    s.lat = Vec::new();
    let note = format!("exec to all converged, operator CPU {:.2} s", op.cpu());
    x.report.borrow().row("op-backlog", 1, d.n, &s, note);
    op.stop().await?;

    watch.abort();
    if !x.o.keep {
        for p in [widgets.to_string(), configmaps] {
            conn.ok(Method::DELETE, &p, "", "").await?;
        }
    }
    x.drop_namespace(&ns).await
}

/// Until the Widget "probe" has status.observed.
async fn wait_probe(x: &Ctx, conn: &mut Conn, path: &str) -> Result<()> {
    let begin = Instant::now();
    while field(&conn.get(path).await?, b"\"observed\":\"").is_none() {
        if begin.elapsed() > x.o.timeout {
            return Err("the operator does not reconcile".into());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}
