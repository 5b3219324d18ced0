//! `cargo xtask bench operators`: what each operator takes, idle and with a thousand objects, and what it does until all is as it
//! should be.

use std::{
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    iter::Sum,
    net::{Ipv4Addr, TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    str::FromStr,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};

use super::{
    Operator, chosen,
    crowd::{SERVERS, node},
    program::{Place, cloud_at, shown},
};
use crate::{
    bench::start_up,
    kubectl::{Inside, Kubectl, eventually, wait},
    run::{cargo, run, target},
    running::Running,
};

/// Where the objects are.
const NAMESPACE: &str = "crowd";
/// How long it is quiet when nothing is left to do.
const QUIET: Duration = Duration::from_secs(5);
/// How long nothing is written when nothing changes.
const MINUTE: Duration = Duration::from_secs(60);
/// How many simulated nodes there are for the pods.
const NODES: u16 = 20;

/// What is measured.
#[derive(Args)]
pub(crate) struct Options {
    /// How many objects there are
    #[arg(long, value_name = "NUMBER", default_value_t = 1000)]
    objects: usize,
    /// Only these operators
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

/// Measures release builds, each on an `up` of its own, and prints a table.
///
/// # Errors
/// When one does not converge, or writes although nothing changed.
pub(crate) fn figures(options: &Options) -> Result<()> {
    let chosen = chosen(&options.names);
    let mut build = cargo(["build", "--release", "--bins", "--package", "kubewright-cli"]);
    for one in &chosen {
        build.arg(format!("-pkubewright-{}", one.name));
    }
    run(&mut build)?;
    if chosen.iter().any(|one| one.needs_a_cloud()) {
        // By itself: what an example needs would become part of the programs.
        run(&mut cargo([
            "build",
            "--release",
            "--package",
            "kubewright-security-group",
            "--example",
            "cloud",
        ]))?;
    }
    let place = Place::new(target().join("release"), target().join("bench/operators"))?;
    let mut out = io::stdout();
    writeln!(
        out,
        "| operator | {} of | idle | with them | restarted | reconciles | writes | CPU | again: reconciles | CPU |",
        options.objects
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|---|---|---|")?;
    for one in chosen {
        let row = one.measure(&place, options.objects).with_context(|| one.name.to_owned())?;
        writeln!(out, "{row}")?;
    }
    Ok(())
}

impl Operator {
    /// A row of the table.
    fn measure(&self, place: &Place, objects: usize) -> Result<String> {
        let kubeconfig = place.folder.join("kubeconfig");
        let nodes = if self.needs_a_cloud() { 0 } else { NODES };
        let _up = Process(start_up("*", nodes, None, &kubeconfig)?);
        let kubectl = Kubectl::new(&kubeconfig)?;
        self.install(&kubectl, place)?;
        kubectl.run(&["create", "namespace", NAMESPACE])?;
        let cloud = self.needs_a_cloud().then(|| Cloud::start(&kubectl, place)).transpose()?;
        let variables = cloud.as_ref().map(|cloud| cloud_at(&cloud.url)).unwrap_or_default();

        let mut measured = Measured::start(self, &kubectl, place, &variables)?;
        measured.settled()?;
        let idle = measured.memory()?;
        let inside = kubectl.inside(NAMESPACE);
        place.create(&inside, &service_addresses())?;
        self.fill(&inside, place, objects)?;
        let is_done = || Ok((self.crowd.converged(&inside)? == objects).then_some(()));
        eventually("all have converged", is_done)?;
        let work = measured.settled()?;
        let filled = measured.memory()?;
        wait(MINUTE);
        if measured.work()?.writes != work.writes {
            bail!("it writes although nothing changes");
        }
        measured.running.end()?;

        let again = Measured::start(self, &kubectl, place, &variables)?;
        let repeated = again.settled()?;
        let restarted = again.memory()?;
        if repeated.writes != 0 {
            bail!("it writes {} times when it is started anew", repeated.writes);
        }
        Ok(format!(
            "| {} | {} | {idle} | {filled} | {restarted} | {} | {} | {:.2} s | {} | {:.2} s |",
            self.name,
            self.crowd.what,
            work.reconciles,
            work.writes,
            work.cpu,
            repeated.reconciles,
            repeated.cpu
        ))
    }

    /// Creates the objects.
    fn fill(&self, inside: &Inside<'_>, place: &Place, objects: usize) -> Result<()> {
        if self.crowd.begins_with_the_sample {
            inside.run(&["apply", "-f", &shown(&self.sample())])?;
        }
        place.create(inside, &self.crowd.list(objects))
    }
}

/// Addresses for a Service of each: a control plane begins with those of 10.0.0.0/24.
fn service_addresses() -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
        "metadata": {"name": "crowd"}, "spec": {"cidrs": ["10.64.0.0/16"]},
    })
}

/// An operator that runs and serves its metrics.
struct Measured {
    running: Running,
    port: u16,
}

/// What it has done so far.
struct Work {
    reconciles: u64,
    /// Those that the API server took; events do not count.
    writes: u64,
    /// In seconds.
    cpu: f64,
}

impl Measured {
    fn start(
        operator: &Operator,
        kubectl: &Kubectl,
        place: &Place,
        variables: &[(&str, String)],
    ) -> Result<Self> {
        let port = free_port()?;
        let address = format!("127.0.0.1:{port}");
        let arguments = ["--metrics-secure=false", "--metrics-bind-address", &address];
        let mut variables = variables.to_vec();
        variables.push(("WEBHOOK_BIND_ADDRESS", format!("127.0.0.1:{}", free_port()?)));
        let running = operator.start(kubectl, place, &arguments, &variables)?;
        let measured = Self { running, port };
        eventually("it serves its metrics", || Ok(measured.work().ok()))?;
        Ok(measured)
    }

    /// Waits until it does nothing any more; gives what it had done by then.
    fn settled(&self) -> Result<Work> {
        eventually("it is quiet", || {
            let before = self.work()?;
            wait(QUIET);
            let after = self.work()?;
            Ok((before.reconciles == after.reconciles && before.writes == after.writes).then_some(before))
        })
    }

    fn work(&self) -> Result<Work> {
        let metrics = self.metrics()?;
        Ok(Work {
            reconciles: sum(&metrics, "controller_runtime_reconcile_total"),
            writes: sum(&metrics, "kubewright_controller_writes_total"),
            cpu: sum(&metrics, "process_cpu_seconds_total"),
        })
    }

    fn metrics(&self) -> Result<String> {
        let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        connection.write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        if !answer.starts_with("HTTP/1.") || !answer.contains(" 200 ") {
            bail!("metrics are not served: {}", answer.lines().next().unwrap_or_default());
        }
        Ok(answer)
    }

    /// What it has in memory, and how much of that is its own (the rest is its program file).
    fn memory(&self) -> Result<String> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.running.id()))?;
        let mebibytes = |field: &str| -> Result<f64> {
            let line = status.lines().find_map(|line| line.strip_prefix(field)).context("Linux tells it")?;
            let kibibytes = line.split_whitespace().nth(1).context("it has a number")?;
            Ok(kibibytes.parse::<f64>()? / 1024.0)
        };
        Ok(format!("{:.1} ({:.1})", mebibytes("VmRSS")?, mebibytes("RssAnon")?))
    }
}

/// A metric, all its labels together.
fn sum<T: FromStr + Sum>(metrics: &str, name: &str) -> T {
    let values = metrics.lines().filter_map(|line| {
        let rest = line.strip_prefix(name).filter(|rest| rest.starts_with(['{', ' ']))?;
        rest.rsplit(' ').next()?.parse().ok()
    });
    values.sum()
}

/// A port that nobody listens on.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// A process that is killed when this is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A cloud of servers, each of which is a node.
struct Cloud {
    url: String,
    _process: Process,
}

impl Cloud {
    fn start(kubectl: &Kubectl, place: &Place) -> Result<Self> {
        let mut command = Command::new(place.programs.join("examples/cloud"));
        command.arg(SERVERS.to_string()).stdout(Stdio::piped());
        let mut process = Process(command.spawn().context("there is no cloud")?);
        let told = process.0.stdout.take().context("it is piped")?;
        let mut lines = BufReader::new(told).lines().take(1 + SERVERS);
        let url = lines.next().context("it says where it is")??;
        let servers: Vec<String> = lines.collect::<io::Result<_>>()?;
        let nodes: Vec<Value> =
            servers.iter().enumerate().map(|(number, server)| node(number, server)).collect();
        let nodes = json!({"apiVersion": "v1", "kind": "List", "items": nodes});
        place.create(&kubectl.inside(NAMESPACE), &nodes)?;
        Ok(Self { url, _process: process })
    }
}
