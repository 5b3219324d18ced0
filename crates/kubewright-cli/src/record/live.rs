//! `up --record`: the cluster of this process, every write and every request.

use std::{fs::File, time::Duration};

use anyhow::{Context, anyhow};
use kubewright_cluster::{Cluster, recording::Tap};
use kubewright_recording::{Header, Record, Redactor, Writer};
use serde_json::{Value, value::to_raw_value};
use tokio::{sync::oneshot, task::JoinHandle};

use super::file;
use crate::args::UpArgs;

/// How many commits may come while one block is written; they are held in memory.
pub(crate) const KEPT: usize = 16_384;
/// How long what happens is gathered before it is written: less would be more and smaller blocks.
const GATHERED: Duration = Duration::from_millis(500);

/// Writes the recording of a cluster, until it is ended.
pub(crate) struct Recorder {
    end: oneshot::Sender<()>,
    task: JoinHandle<anyhow::Result<String>>,
}

impl Recorder {
    /// Begins a recording in an empty file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn start(file: File, args: &UpArgs, cluster: &Cluster, server: &str) -> anyhow::Result<Self> {
        let path = args.record.clone().unwrap_or_default();
        let redactor = file::redactor(!args.record_secrets, Vec::new())?;
        let header = Header {
            program: format!("kubewright up {}", env!("CARGO_PKG_VERSION")),
            server: server.to_owned(),
            started: Some(cluster.world().clock.now()),
            seed: args.seed,
            redacted: redactor.names(),
            notes: Vec::new(),
        };
        let writer = Writer::create(file, &header).with_context(|| failed(&path))?;
        let tap = Tap::of(cluster).ok_or_else(|| anyhow!("--record: the cluster keeps no journal"))?;
        // Where the clock may stand still, nothing is waited for.
        let gathered = if args.clock.is_some() { Duration::ZERO } else { GATHERED };
        let (end, ended) = oneshot::channel();
        let mut live = Live { tap, writer, redactor };
        let task = tokio::spawn(async move {
            live.follow(gathered, ended).await.with_context(|| failed(&path))?;
            let (records, bytes) = (live.writer.records(), file::size(live.writer.bytes()));
            Ok(format!("recorded {records} writes and requests in {}, {bytes}", path.display()))
        });
        Ok(Self { end, task })
    }

    /// Writes what is left; gives what there is to say of it.
    ///
    /// # Errors
    /// When something could not be written.
    pub(crate) async fn end(self) -> anyhow::Result<String> {
        let _ = self.end.send(());
        self.task.await?
    }
}

fn failed(path: &std::path::Path) -> String {
    format!("the recording {} cannot be written", path.display())
}

struct Live {
    tap: Tap,
    writer: Writer<File>,
    redactor: Redactor,
}

impl Live {
    async fn follow(&mut self, gathered: Duration, mut ended: oneshot::Receiver<()>) -> std::io::Result<()> {
        let outcome = loop {
            if let Err(error) = self.write() {
                break Err(error);
            }
            tokio::select! {
                biased;
                _ = &mut ended => break Ok(()),
                () = self.tap.changed() => {}
                () = tokio::time::sleep(GATHERED), if !gathered.is_zero() => {}
            }
            tokio::select! {
                biased;
                _ = &mut ended => break Ok(()),
                () = tokio::time::sleep(gathered), if !gathered.is_zero() => {}
                () = tokio::task::yield_now(), if gathered.is_zero() => {}
            }
        };
        if let Err(error) = &outcome {
            tracing::error!(%error, "the recording has ended: its file cannot be written");
        }
        outcome?;
        // Twice: a commit that was waited for is given up with the second.
        self.write()?;
        self.write()
    }

    fn write(&mut self) -> std::io::Result<()> {
        for record in self.tap.take() {
            self.writer.push(&redacted(&self.redactor, record)?)?;
        }
        self.writer.flush()
    }
}

/// A record without what is secret.
fn redacted(redactor: &Redactor, record: Record) -> std::io::Result<Record> {
    let Record::Write(mut write) = record else { return Ok(record) };
    if !redactor.is_idle(&write.collection) {
        let mut object: Value = serde_json::from_str(write.object.get())?;
        redactor.redact(&write.collection, &mut object);
        write.object = to_raw_value(&object)?;
    }
    Ok(Record::Write(write))
}
