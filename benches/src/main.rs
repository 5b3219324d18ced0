//! Measures what a user waits for: `cargo xtask bench` runs it on a release build.
//!
//! Compare ratios, both sides measured in one run on a quiet machine; the absolute figures of a busy one say nothing.

mod cache;
mod crowd;
mod figures;
mod page;
mod process;
mod recording;
mod workload;

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;

use crate::{
    figures::{Figures, Row, table},
    process::Server,
};

/// What users wait for, as medians
#[derive(Parser)]
struct Options {
    /// The kubewright to measure
    #[arg(long, value_name = "FILE")]
    kubewright: PathBuf,

    /// How often each thing is measured
    #[arg(long, default_value = "10", value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,

    /// The kubeconfig of a real control plane
    #[arg(long, value_name = "KUBECONFIG")]
    reference: Option<PathBuf>,

    /// Measures 5,000 nodes and 10,000 pods instead
    #[arg(long)]
    crowd: bool,

    /// Measures a day of 5,000 pods that is recorded, instead: as many hours of it
    #[arg(long, value_name = "HOURS")]
    recording: Option<f64>,

    /// How many times as fast its clock goes as that of the machine
    #[arg(long, value_name = "NUMBER", default_value_t = 60, requires = "recording")]
    speed: u32,

    /// Measures what this program takes that caches Pods, instead; several times for several programs
    #[arg(long, value_name = "PROGRAM")]
    cache: Vec<String>,

    /// How many Pods it caches
    #[arg(long, value_name = "NUMBER", default_value_t = 20_000, requires = "cache")]
    pods: usize,

    /// Measures the frames of the page of `up --ui` instead, in the Chromium that CHROMIUM names
    #[arg(long)]
    page: bool,

    /// The shell command that starts it in the foreground; without it, it runs already
    #[arg(long, value_name = "COMMAND", requires = "reference")]
    reference_command: Option<String>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::parse();
    if options.page {
        return page::measure().await;
    }
    let folder = std::env::temp_dir().join(format!("kubewright-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let kubeconfig = folder.join("kubeconfig");
    if !options.cache.is_empty() {
        let measured = cache::measure(&options.kubewright, &kubeconfig, options.pods, &options.cache).await;
        let _ = std::fs::remove_dir_all(&folder);
        return measured;
    }
    let measured = match options.recording {
        Some(hours) => recording::measure(&options.kubewright, &folder, hours, options.speed).await,
        None if options.crowd => crowd::measure(&options.kubewright, &kubeconfig).await,
        None => measure(&options, kubeconfig).await,
    };
    let _ = std::fs::remove_dir_all(&folder);
    eprintln!("{}", table(&measured?));
    Ok(())
}

async fn measure(options: &Options, kubeconfig: PathBuf) -> Result<Vec<Row>> {
    let ours = Server::kubewright(&options.kubewright, kubeconfig, &[]);
    let ours = of_server(&ours, options.runs).await?;
    let theirs = match &options.reference {
        Some(kubeconfig) => {
            let server = Server::reference(options.reference_command.as_deref(), kubeconfig.clone());
            of_server(&server, options.runs).await?
        }
        None => Measured::default(),
    };
    let in_process = workload::cluster_starts(options.runs).await?;
    Ok(vec![
        Row::new("exec to the first authenticated answer", "ms", Some(30.0), &ours.start, &theirs.start),
        Row::new("Cluster::start() in this process", "ms", Some(5.0), &in_process, &Figures::default()),
        Row::new("resident memory when idle", "MiB", Some(30.0), &ours.memory, &theirs.memory),
        Row::new("Deployment created to Available", "ms", Some(50.0), &ours.available, &theirs.available),
    ])
}

/// The figures of one server.
#[derive(Default)]
struct Measured {
    start: Figures,
    memory: Figures,
    available: Figures,
}

async fn of_server(server: &Server, runs: u16) -> Result<Measured> {
    let mut measured = Measured::default();
    for _ in 0..if server.is_started_here() { runs } else { 0 } {
        let (running, took) = server.start().await?;
        measured.start.add(took.as_secs_f64() * 1e3);
        running.stop();
    }
    let (running, _) = server.start().await?;
    workload::settle(&running.client).await?;
    if let Some(bytes) = running.resident_bytes() {
        measured.memory.add(bytes as f64 / f64::from(1 << 20));
    }
    for run in 0..runs {
        let took = workload::deployment_available(&running.client, &format!("bench-{run}")).await?;
        measured.available.add(took.as_secs_f64() * 1e3);
    }
    running.stop();
    Ok(measured)
}
