//! Writes what happens in a cluster into a file while it runs.

use std::fs::File;
use std::io;
use std::time::Duration;

use kubewright_recording::{FieldPath, Header, Mark, Record, Redactor, Writer};
use kubewright_world::Clock;
use serde_json::{Value, value::to_raw_value};
use tokio::{sync::oneshot, task::JoinHandle};

use super::Tap;
use crate::{ControlPlane, Secret};

/// How many commits may come while one block is written; they are held in memory.
pub const KEPT: usize = 16_384;
/// How long what happens is gathered before it is written: less would be more and smaller blocks.
const GATHERED: Duration = Duration::from_millis(500);

/// What hashes secrets, under a key that is gone with this program; nothing is hashed but what `secrets` and the paths say.
///
/// # Errors
/// When the machine gives no entropy.
pub fn redactor(secrets: bool, paths: Vec<FieldPath>) -> io::Result<Redactor> {
    let key = Secret::random().map_err(|_| io::Error::other("the machine gives no entropy for a key"))?;
    Ok(Redactor::new(key.reveal().as_bytes(), secrets, paths))
}

/// How much was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Writes, requests, reconciles and marks.
    pub records: u64,
    /// The length of the file.
    pub bytes: u64,
}

/// Writes the recording of a cluster, until it is ended. The file has what happened as soon as half a second later.
#[derive(Debug)]
pub struct Recorder {
    end: oneshot::Sender<()>,
    task: JoinHandle<io::Result<Recorded>>,
}

impl Recorder {
    /// Begins a recording in an empty file. The cluster has a [journal](crate::Builder::journal), of [`KEPT`] commits or more, and for its
    /// requests a [log](crate::Builder::request_log). Where its clock may stand still (`is_paced`) nothing is gathered.
    ///
    /// # Errors
    /// When the file cannot be written, or the cluster has no journal.
    pub fn start(
        file: File,
        header: &Header,
        redactor: Redactor,
        control_plane: &ControlPlane,
        is_paced: bool,
    ) -> io::Result<Self> {
        let writer = Writer::create(file, header)?;
        let tap = Tap::of(control_plane).ok_or_else(|| io::Error::other("the cluster keeps no journal"))?;
        if let Some(admin) = control_plane.admin() {
            admin.ask_for_reconciles();
        }
        let gathered = if is_paced { Duration::ZERO } else { GATHERED };
        let clock = control_plane.world().clock;
        let (end, ended) = oneshot::channel();
        let mut live = Live { tap, writer, redactor, clock };
        let task = tokio::spawn(async move {
            live.follow(gathered, ended).await?;
            Ok(Recorded { records: live.writer.records(), bytes: live.writer.bytes() })
        });
        Ok(Self { end, task })
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// When something could not be written.
    pub async fn end(self) -> io::Result<Recorded> {
        let _ = self.end.send(());
        self.task.await?
    }
}

struct Live {
    tap: Tap,
    writer: Writer<File>,
    redactor: Redactor,
    clock: Clock,
}

impl Live {
    async fn follow(&mut self, gathered: Duration, mut ended: oneshot::Receiver<()>) -> io::Result<()> {
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
        self.write()?;
        let mark = Mark { time: self.clock.now(), what: "end".to_owned(), note: String::new() };
        self.writer.push(&Record::Mark(mark))?;
        self.writer.flush()
    }

    fn write(&mut self) -> io::Result<()> {
        for record in self.tap.take() {
            self.writer.push(&redacted(&self.redactor, record)?)?;
        }
        self.writer.flush()
    }
}

/// A record without what is secret.
fn redacted(redactor: &Redactor, record: Record) -> io::Result<Record> {
    let Record::Write(mut write) = record else { return Ok(record) };
    if !redactor.is_idle(&write.collection) {
        let mut object: Value = serde_json::from_str(write.object.get())?;
        redactor.redact(&write.collection, &mut object);
        write.object = to_raw_value(&object)?;
    }
    Ok(Record::Write(write))
}
