//! Samples, the printed rows, and what /proc says about a process tree.
use serde::Serialize;
use std::time::Duration;

/// Latencies and errors of a set of operations.
#[derive(Default)]
pub struct Sample {
    pub lat: Vec<Duration>,
    pub errors: usize,
    pub first_error: Option<String>,
    pub elapsed: Duration,
}

impl Sample {
    pub fn error(&mut self, e: impl ToString) {
        self.errors += 1;
        self.first_error.get_or_insert(e.to_string());
    }

    pub fn merge(&mut self, o: Sample) {
        self.lat.extend(o.lat);
        self.errors += o.errors;
        self.first_error = self.first_error.take().or(o.first_error);
    }

    pub fn sorted_ms(&self) -> Vec<f64> {
        let mut v: Vec<f64> = self.lat.iter().map(|d| d.as_secs_f64() * 1e3).collect();
        v.sort_unstable_by(f64::total_cmp);
        v
    }
}

/// q-quantile of sorted values (nearest rank); NaN when empty.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    if sorted.is_empty() {
        return f64::NAN;
    }
    sorted[((sorted.len() as f64 * q).ceil() as usize).clamp(1, sorted.len()) - 1]
}

/// CPU seconds and memory of a process and its descendants.
#[derive(Clone, Copy, Default, Serialize)]
pub struct Tree {
    pub cpu_s: f64,
    pub rss_mib: f64,
    /// private memory: RSS without mapped files (such as the program text, which other processes may share)
    pub anon_mib: f64,
}

/// Sums over `root` and, with `all`, its descendants (children that were reparented are not found). CPU time has the
/// kernel's clock tick, 10 ms; with `all`, ended children count with the parent that waited for them.
pub fn tree(root: i32, all: bool) -> Tree {
    let mut procs: Vec<(i32, i32, f64)> = Vec::new(); // pid, parent, cpu seconds
    for e in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = e.file_name().to_str().and_then(|s| s.parse().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let f: Vec<&str> = stat[stat.rfind(')').map_or(0, |i| i + 1)..].split_whitespace().collect();
        let ticks: f64 =
            f[11..if all { 15 } else { 13 }].iter().map(|s| s.parse::<f64>().unwrap_or(0.0)).sum();
        procs.push((pid, f[1].parse().unwrap_or(0), ticks / 100.0));
    }
    let mut wanted = vec![root];
    let mut i = 0;
    while all && i < wanted.len() {
        let parent = wanted[i];
        wanted.extend(procs.iter().filter(|p| p.1 == parent).map(|p| p.0));
        i += 1;
    }
    let mut t = Tree::default();
    for (pid, _, cpu) in procs.iter().filter(|p| wanted.contains(&p.0)) {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let mib = |key: &str| -> f64 {
            let line = status.lines().find(|l| l.starts_with(key));
            line.and_then(|l| l.split_whitespace().nth(1)?.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
        };
        t.cpu_s += cpu;
        t.rss_mib += mib("VmRSS:");
        t.anon_mib += mib("RssAnon:");
    }
    t
}

/// CPU seconds that all processes of the machine have used (user, nice, system).
fn busy() -> f64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let cpu = text.lines().next().unwrap_or_default().split_whitespace();
    cpu.skip(1).take(3).map(|s| s.parse().unwrap_or(0.0)).sum::<f64>() / 100.0
}

#[derive(Serialize)]
pub struct Row {
    pub workload: String,
    pub concurrency: usize,
    pub ops: usize,
    pub ops_per_s: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
    pub errors: usize,
    pub total_s: f64,
    /// CPU seconds of the server's process tree (0 without --server-pid) and of apibench itself.
    pub server_cpu_s: f64,
    pub client_cpu_s: f64,
    /// CPU seconds of everything else on the machine: the row is a fair one when this is small
    pub other_cpu_s: f64,
    pub server_rss_mib: f64,
    pub note: String,
}

/// CPU seconds so far: of the server, of apibench, of apibench with its children, of the machine.
#[derive(Default)]
struct Cpu {
    server: f64,
    client: f64,
    client_all: f64,
    busy: f64,
}

/// Prints rows and takes CPU time since the last `start`.
pub struct Report {
    pub json: bool,
    pub server_pid: Option<i32>,
    begin: Cpu,
}

impl Report {
    pub fn new(json: bool, server_pid: Option<i32>) -> Self {
        Self { json, server_pid, begin: Default::default() }
    }

    pub fn header(&self) {
        if !self.json {
            println!(
                "{:<18}{:>5}{:>8}{:>10}{:>10}{:>10}{:>10}{:>5}{:>9}{:>9}{:>8}{:>8}{:>9}  note",
                "workload",
                "c",
                "ops",
                "ops/s",
                "p50 ms",
                "p99 ms",
                "max ms",
                "err",
                "total s",
                "srv cpu",
                "cli cpu",
                "other",
                "srv MiB"
            );
        }
    }

    fn cpu(&self) -> Cpu {
        let me = std::process::id() as i32;
        Cpu {
            server: self.server_pid.map_or(0.0, |p| tree(p, true).cpu_s),
            client: tree(me, false).cpu_s,
            client_all: tree(me, true).cpu_s,
            busy: busy(),
        }
    }

    /// MiB that the server's process tree has resident (0 without --server-pid).
    pub fn server_rss(&self) -> f64 {
        self.server_pid.map_or(0.0, |p| tree(p, true).rss_mib)
    }

    /// Begins a measured span (CPU time).
    pub fn start(&mut self) {
        self.begin = self.cpu();
    }

    /// Prints named figures that are no row.
    pub fn figures(&self, workload: &str, figures: &[(&str, f64)]) {
        if self.json {
            let m: serde_json::Map<_, _> =
                figures.iter().map(|(k, v)| (k.to_string(), (*v).into())).collect();
            println!("{}", serde_json::json!({"workload": workload, "figures": m}));
        } else {
            let text: Vec<String> = figures.iter().map(|(k, v)| format!("{k} {v:.1}")).collect();
            println!("{workload:<18}{}", text.join(", "));
        }
    }

    /// Ends the span and prints its row. `ops`: what ops/s counts.
    pub fn row(&self, workload: &str, concurrency: usize, ops: usize, s: &Sample, note: impl Into<String>) {
        let (old, now) = (&self.begin, self.cpu());
        let (server, all) = (now.server - old.server, now.client_all - old.client_all);
        let (v, total) = (s.sorted_ms(), s.elapsed.as_secs_f64());
        let mut note = note.into();
        if let Some(e) = &s.first_error {
            note = format!("{note} first error: {e}").trim().to_string();
        }
        let r = Row {
            workload: workload.into(),
            concurrency,
            ops,
            ops_per_s: ops as f64 / total,
            p50_ms: quantile(&v, 0.5),
            p99_ms: quantile(&v, 0.99),
            max_ms: v.last().copied().unwrap_or(f64::NAN),
            errors: s.errors,
            total_s: total,
            server_cpu_s: server,
            client_cpu_s: now.client - old.client,
            other_cpu_s: now.busy - old.busy - server - all,
            server_rss_mib: self.server_rss(),
            note,
        };
        if self.json {
            println!("{}", serde_json::to_string(&r).unwrap());
        } else {
            println!(
                "{:<18}{:>5}{:>8}{:>10.1}{:>10.2}{:>10.2}{:>10.2}{:>5}{:>9.2}{:>9.2}{:>8.2}{:>8.2}{:>9.0}  {}",
                r.workload,
                concurrency,
                ops,
                r.ops_per_s,
                r.p50_ms,
                r.p99_ms,
                r.max_ms,
                r.errors,
                r.total_s,
                r.server_cpu_s,
                r.client_cpu_s,
                r.other_cpu_s,
                r.server_rss_mib,
                r.note
            );
        }
    }
}
