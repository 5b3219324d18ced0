//! Start time and memory of a server; latency of fdatasync.
use crate::Opts;
use crate::client::{JSON, Result, Target};
use crate::crud::configmap;
use crate::stats::{Report, Sample, quantile, tree};
use hyper::Method;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};

/// Starts `sh -c CMD` in a process group of its own.
pub fn spawn(cmd: &str, kubeconfig: &str, stdout: Stdio) -> Result<Child> {
    let mut c = Command::new("sh");
    c.args(["-c", cmd]).env("KUBECONFIG", kubeconfig).stdin(Stdio::null()).stdout(stdout).process_group(0);
    Ok(c.kill_on_drop(true).spawn()?)
}

/// SIGTERM to the child; when it has ended, or after 60 s, SIGKILL to what is left of its group.
pub async fn stop(mut child: Child) -> Result<()> {
    let Some(pid) = child.id().map(|p| p as i32) else { return Ok(()) }; // has ended
    // SAFETY: kill(2) of the process, and of the process group, that `spawn` made
    unsafe { libc::kill(pid, libc::SIGTERM) };
    let ended = tokio::time::timeout(Duration::from_secs(60), child.wait()).await;
    while unsafe { libc::kill(-pid, libc::SIGKILL) } == 0 {
        if ended.is_err() {
            child.wait().await?;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

#[derive(Clone)]
struct Probe {
    method: Method,
    path: String,
    body: bytes::Bytes,
}

/// Tries `p` on fresh connections until it succeeds (or the name is taken); the time since `begin`.
async fn first_success(kubeconfig: String, h2: Option<bool>, p: Probe, begin: Instant) -> f64 {
    loop {
        let try_once = async {
            let t = Target::load(kubeconfig.as_ref(), h2)?; // the server may write it while it starts
            let (status, _) =
                t.connect().await?.call(p.method.clone(), &p.path, JSON, p.body.clone()).await?;
            Result::<u16>::Ok(status)
        };
        if let Ok(Ok(200 | 201 | 409)) = tokio::time::timeout(Duration::from_secs(2), try_once).await {
            return begin.elapsed().as_secs_f64() * 1e3;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub async fn startup(o: &Opts) -> Result<()> {
    let cmd = o.words.get(1).ok_or("startup: CMD is missing")?;
    let mut rows: Vec<Vec<f64>> = Vec::new();
    const NAMES: [&str; 8] = [
        "read_ms",
        "write_ms",
        "ready_ms",
        "rss_mib",
        "anon_mib",
        "settled_rss_mib",
        "settled_anon_mib",
        "idle_cpu_percent",
    ];
    let report = Report::new(o.json, None);
    let print = |name: &str, v: &[f64]| {
        let f: Vec<_> = NAMES.into_iter().zip(v.iter().copied()).collect();
        report.figures(&format!("startup-{name}"), &f);
    };
    for run in 0..o.runs {
        if let Some(b) = &o.before {
            let status = spawn(b, &o.kubeconfig, Stdio::null())?.wait().await?;
            if !status.success() {
                return Err(format!("--before: {status}").into());
            }
        }
        let begin = Instant::now();
        let mut child = spawn(&format!("exec {cmd}"), &o.kubeconfig, Stdio::null())?;
        let pid = child.id().ok_or("no pid")? as i32;
        let get = |path: &str| Probe { method: Method::GET, path: path.into(), body: "".into() };
        let post = Probe {
            method: Method::POST,
            path: "/api/v1/namespaces/default/configmaps".into(),
            body: configmap(&format!("startup-{run}"), "", "0"),
        };
        let tasks: Vec<_> = [get("/api/v1/namespaces"), post, get(&o.ready_path)]
            .map(|p| tokio::task::spawn_local(first_success(o.kubeconfig.clone(), o.h2, p, begin)))
            .into();
        let mut v = Vec::new();
        for t in tasks {
            let ready = tokio::select! {
                r = tokio::time::timeout(o.timeout, t) => r.ok().and_then(|r| r.ok()),
                _ = child.wait() => None,
            };
            let Some(ms) = ready else {
                stop(child).await?;
                return Err("the server ended, or was not ready in time".into());
            };
            v.push(ms);
        }
        let at_ready = tree(pid, true);
        tokio::time::sleep(Duration::from_secs_f64(o.settle)).await;
        let idle = tree(pid, true);
        let cpu = (idle.cpu_s - at_ready.cpu_s) / o.settle.max(0.01) * 100.0;
        v.extend([at_ready.rss_mib, at_ready.anon_mib, idle.rss_mib, idle.anon_mib, cpu]);
        stop(child).await?;
        print(&run.to_string(), &v);
        rows.push(v);
    }
    for (name, q) in [("min", 0.0), ("median", 0.5)] {
        let col = |i: usize| {
            let mut c: Vec<f64> = rows.iter().map(|r| r[i]).collect();
            c.sort_unstable_by(f64::total_cmp);
            quantile(&c, q)
        };
        print(name, &(0..NAMES.len()).map(col).collect::<Vec<_>>());
    }
    Ok(())
}

/// 1 KiB appends with fdatasync: what one durable write costs on this disk.
pub fn fsync(o: &Opts) -> Result<()> {
    let path = std::path::Path::new(&o.dir).join(format!("fsync-{}.tmp", std::process::id()));
    let mut f = std::fs::File::create(&path)?;
    let mut s = Sample::default();
    let mut report = Report::new(o.json, None);
    report.header();
    report.start();
    let begin = Instant::now();
    for _ in 0..1000 {
        let t = Instant::now();
        f.write_all(&[7; 1024])?;
        f.sync_data()?;
        s.lat.push(t.elapsed());
    }
    s.elapsed = begin.elapsed();
    std::fs::remove_file(&path)?;
    report.row("fsync", 1, 1000, &s, "1 KiB append + fdatasync");
    Ok(())
}
