//! `kubewright record`: what happens in a cluster, by list and watch with the rights of a kubeconfig, as a recording.

pub(crate) mod file;
pub(crate) mod kinds;
pub(crate) mod live;
pub(crate) mod state;

use std::{
    fs::{File, OpenOptions},
    future,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use futures::{
    StreamExt,
    stream::{BoxStream, SelectAll},
};
use jiff::Timestamp;
use kube::{
    Api, Client,
    api::DynamicObject,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use kubewright_cluster::recording;
use kubewright_recording::{FieldPath, Header, Mark, Reader, Record, Writer};
use kubewright_serve::signals::Signals;
use kubewright_world::World;
use tokio::time::{Instant, interval};

use self::{
    kinds::{Wanted, Watched},
    state::State,
};
use crate::{access::ClusterArgs, length::duration, printer::Printer};

/// How long what happens is gathered before it is written.
const GATHERED: Duration = Duration::from_secs(1);
/// How many objects are listed at once.
const PAGE: u32 = 250;

/// What `kubewright record` takes.
#[derive(Args, Debug)]
pub(crate) struct RecordArgs {
    /// The recording: a new file, or one that `record` wrote of the same cluster, with which it goes on
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    cluster: ClusterArgs,

    #[command(flatten)]
    wanted: Wanted,

    /// Hash what is at this path in objects of any kind, such as `spec.token`; may be said more than once
    #[arg(long, value_name = "PATH")]
    redact: Vec<FieldPath>,

    /// Have the data of Secrets in the file as it is
    #[arg(long)]
    record_secrets: bool,

    /// End after so long, such as `10m`; without, at Ctrl-C
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    lasting: Option<Duration>,

    /// Say nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

/// Records until a signal, or for as long as was said.
///
/// # Errors
/// In one line: when the cluster cannot be reached, a kind is not there, nothing may be read, or the file cannot be written.
pub(crate) async fn record(args: &RecordArgs) -> anyhow::Result<()> {
    let printer = Printer::new(args.quiet);
    let mut signals = Signals::listen()?;
    let access = args.cluster.access().await?;
    let watched = kinds::find(&access.client, &args.wanted).await?;
    // Not everybody may ask for it; then it is not known.
    let version = access.client.apiserver_version().await.ok();
    let version = version.map(|info| format!("{}.{}", info.major, info.minor.trim_end_matches('+')));
    let server = access.server.to_string();
    let mut recorder = Recorder::open(args, &server, version.unwrap_or_default(), printer)?;
    recorder.printer.say(&format!(
        "recording {} kinds of {} into {}{}",
        watched.len(),
        access.server,
        args.file.display(),
        if args.lasting.is_none() { "; Ctrl-C ends it" } else { "" },
    ));
    let mut changes: Changes =
        watched.iter().enumerate().map(|(number, kind)| follow(&access.client, number, kind)).collect();
    let end = args.lasting.map(|lasting| Instant::now() + lasting);
    let mut tick = interval(GATHERED);
    loop {
        tokio::select! {
            biased;
            () = signals.next() => break,
            () = at(end) => break,
            _ = tick.tick() => recorder.flush()?,
            change = changes.next() => match change {
                Some((number, change)) => recorder.observe(&watched[number], change)?,
                None => bail!("nothing of {} can be read with these rights: nothing is recorded", access.server),
            },
        }
    }
    recorder.end()
}

async fn at(end: Option<Instant>) {
    match end {
        Some(end) => tokio::time::sleep_until(end).await,
        None => future::pending().await,
    }
}

/// What comes of a watch, by the number of its kind.
type Numbered = (usize, watcher::Result<Event<DynamicObject>>);

/// What comes of all watches.
pub(crate) type Changes = SelectAll<BoxStream<'static, Numbered>>;

/// A watch of a kind: it is opened again when it ends, with back-off, and listed again where its history is gone (410). It ends
/// when it is forbidden.
pub(crate) fn follow(client: &Client, number: usize, kind: &Watched) -> BoxStream<'static, Numbered> {
    let api: Api<DynamicObject> = match &kind.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind.resource),
        None => Api::all_with(client.clone(), &kind.resource),
    };
    let config = watcher::Config { field_selector: kind.fields.clone(), ..watcher::Config::default() };
    let mut is_over = false;
    watcher(api, config.page_size(PAGE))
        .default_backoff()
        .take_while(move |event| {
            let go_on = !is_over;
            is_over = event.as_ref().is_err_and(is_refused);
            future::ready(go_on)
        })
        .map(move |event| (number, event))
        .boxed()
}

/// Whether an error is one that does not pass by itself: these rights do not suffice, or the kind is not there.
pub(crate) fn is_refused(error: &watcher::Error) -> bool {
    use watcher::Error::{InitialListFailed, WatchError, WatchFailed, WatchStartFailed};
    let code = match error {
        InitialListFailed(kube::Error::Api(status))
        | WatchStartFailed(kube::Error::Api(status))
        | WatchFailed(kube::Error::Api(status)) => status.code,
        WatchError(status) => status.code,
        _ => return false,
    };
    matches!(code, 401 | 403 | 404 | 405)
}

/// What is written, and what is known of the objects.
struct Recorder {
    writer: Writer<File>,
    state: State,
    path: PathBuf,
    printer: Printer,
    world: World,
}

impl Recorder {
    /// Begins a recording, or goes on with one.
    fn open(args: &RecordArgs, server: &str, kubernetes: String, printer: Printer) -> anyhow::Result<Self> {
        let (path, world) = (args.file.clone(), World::real());
        let redactor = recording::redactor(!args.record_secrets, args.redact.clone())?;
        let header = Header {
            program: format!("kubewright record {}", env!("CARGO_PKG_VERSION")),
            server: server.to_owned(),
            started: Some(world.clock.now()),
            kubernetes,
            redacted: redactor.names(),
            ..Header::default()
        };
        let mut state = State::new(redactor);
        let writer = if path.exists() {
            go_on(&path, &header, &mut state, &printer)?
        } else {
            Writer::create(file::create(&path)?, &header).with_context(|| failed(&path))?
        };
        let mut recorder = Self { writer, state, path, printer, world };
        if recorder.state.is_resumed() {
            recorder.mark("resumed", "what happened since is found by lists")?;
        }
        Ok(recorder)
    }

    fn now(&self) -> Timestamp {
        self.world.clock.now()
    }

    fn observe(
        &mut self,
        kind: &Watched,
        event: watcher::Result<Event<DynamicObject>>,
    ) -> anyhow::Result<()> {
        let now = self.now();
        match event {
            Ok(event) => {
                for write in self.state.observe(kind, event, now)? {
                    self.writer.push(&Record::Write(write)).with_context(|| failed(&self.path))?;
                }
                Ok(())
            }
            Err(error) if is_refused(&error) => {
                let why = format!("{} left out: {error}", kind.called());
                self.printer.say(&why);
                self.mark("left-out", &why)
            }
            Err(error) => {
                tracing::debug!(kind = kind.called(), %error, "the watch is tried again");
                Ok(())
            }
        }
    }

    fn mark(&mut self, what: &str, note: &str) -> anyhow::Result<()> {
        let mark = Mark { time: self.now(), what: what.to_owned(), note: note.to_owned() };
        self.writer.push(&Record::Mark(mark)).with_context(|| failed(&self.path))
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        self.writer.flush().with_context(|| failed(&self.path))
    }

    fn end(mut self) -> anyhow::Result<()> {
        self.mark("end", "")?;
        self.flush()?;
        let (writes, bytes) = (self.state.writes(), file::size(self.writer.bytes()));
        let path = self.path.display();
        self.printer.say(&format!(
            "recorded {writes} writes in {path}, {bytes}; kubewright up --from {path} starts a cluster with it"
        ));
        Ok(())
    }
}

fn failed(path: &Path) -> String {
    format!("the recording {} cannot be written", path.display())
}

/// Opens a recording to go on with it, and learns from it which objects there were.
fn go_on(path: &Path, header: &Header, state: &mut State, printer: &Printer) -> anyhow::Result<Writer<File>> {
    let name = || format!("the recording {}", path.display());
    let open = || OpenOptions::new().read(true).write(true).open(path).with_context(name);
    let mut reader = Reader::open(open()?).with_context(name)?;
    let before = reader.header();
    if before.server != header.server || before.redacted != header.redacted {
        return Err(anyhow!(
            "the recording {} is of {} with {} hashed, and cannot be gone on with: choose another file",
            path.display(),
            if before.server.is_empty() { "another cluster" } else { &before.server },
            if before.redacted.is_empty() { "nothing".to_owned() } else { before.redacted.join(", ") },
        ));
    }
    while let Some(record) = reader.next_record().with_context(name)? {
        state.learn(&record);
    }
    let (writer, cut) = Writer::append(open()?).with_context(name)?;
    if cut > 0 {
        printer
            .say(&format!("the last {cut} bytes of {} were no whole block and are cut off", path.display()));
    }
    Ok(writer)
}
