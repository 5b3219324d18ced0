//! `kubewright play`: what was recorded, written into a cluster in its order and with its pauses.

pub(crate) mod object;
mod target;

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufReader, Read, Seek},
    net::IpAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    str::FromStr,
    time::Duration,
};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use jiff::Timestamp;
use kubewright_cluster::recording::Recording;
use kubewright_recording::{Reader, Record, Write, is_recording};
use kubewright_serve::signals::Signals;
use tokio::time::{Instant, sleep_until};

use self::target::{Refusal, Target};
use crate::{access::ClusterArgs, printer::Printer};

/// What the command ends with when something could not be written.
const INCOMPLETE: u8 = 3;

/// What `kubewright play` takes. It ends with 0, and with 3 when something that was recorded could not be written.
#[derive(Args, Debug)]
pub(crate) struct PlayArgs {
    /// The recording
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    cluster: ClusterArgs,

    /// How many times as fast as it was, such as 10 or 0.5; `max` is without any pause
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    speed: Speed,

    /// Write into a cluster that is not on this machine
    #[arg(long)]
    remote: bool,

    /// Say nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

/// How fast a recording is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Speed {
    Times(f64),
    Max,
}

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "max" {
            return Ok(Self::Max);
        }
        let times: Option<f64> = text.parse().ok();
        let times = times.filter(|times| (0.001..=1e9).contains(times)).map(Self::Times);
        times.ok_or_else(|| "say how many times as fast, from 0.001 on, or max".to_owned())
    }
}

impl Speed {
    /// How long after the beginning something is played that happened so long after the first record.
    pub(crate) fn after(self, recorded: Duration) -> Duration {
        match self {
            Self::Times(times) => {
                Duration::try_from_secs_f64(recorded.as_secs_f64() / times).unwrap_or(Duration::MAX)
            }
            Self::Max => Duration::ZERO,
        }
    }
}

/// Plays a recording to its end, or to a signal.
///
/// # Errors
/// In one line: when the file is no recording, or the cluster cannot be reached.
pub(crate) async fn play(args: &PlayArgs) -> anyhow::Result<ExitCode> {
    let printer = Printer::new(args.quiet);
    let mut signals = Signals::listen()?;
    let mut tape = Tape::open(&args.file)?;
    let access = args.cluster.access().await?;
    if !args.remote && !is_here(&access.server) {
        bail!(
            "play creates, changes and deletes objects, and {} is not on this machine: name the kubeconfig of `kubewright up` with \
             --kubeconfig, or say --remote",
            access.server
        );
    }
    printer.say(&format!(
        "playing {} into {}: {}; Ctrl-C ends it",
        args.file.display(),
        access.server,
        tape.extent(args.speed)
    ));
    let mut target = Target::new(&access.client);
    let mut told = Notices::default();
    let played = tokio::select! {
        biased;
        () = signals.next() => Ok(()),
        played = play_all(&mut tape, args.speed, &mut target, &mut told, &printer) => played,
    };
    printer.say(&told.summary());
    played?;
    Ok(if told.refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(INCOMPLETE) })
}

/// Whether a server is on this machine.
fn is_here(server: &http::Uri) -> bool {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

async fn play_all(
    tape: &mut Tape,
    speed: Speed,
    target: &mut Target,
    told: &mut Notices,
    printer: &Printer,
) -> anyhow::Result<()> {
    let begin = Instant::now();
    let mut first: Option<Timestamp> = None;
    while let Some(write) = tape.next_write()? {
        let first = *first.get_or_insert(write.time);
        let since = Duration::try_from(write.time.duration_since(first)).unwrap_or_default();
        if let Some(due) = begin.checked_add(speed.after(since)) {
            sleep_until(due).await;
        }
        let called = format!("{} {}", write.collection.trim_start_matches('/'), write.key);
        match target.play(&write).await {
            Ok(()) => told.played += 1,
            Err(Refusal::Unreachable(error)) => {
                return Err(crate::access::refused(&format!("{called} cannot be written"), &error));
            }
            Err(Refusal::Refused { code, why }) => {
                if told.refuse(&write.collection, code) {
                    printer.say(&format!("{called} cannot be written: {why}"));
                }
            }
        }
        for note in target.notes() {
            printer.say(&note);
        }
    }
    Ok(())
}

/// What became of the writes.
#[derive(Debug, Default)]
struct Notices {
    played: u64,
    /// How many could not be written, by collection and status.
    refused: BTreeMap<(String, u16), u64>,
}

impl Notices {
    /// Counts what could not be written; whether it is the first of its sort.
    fn refuse(&mut self, collection: &str, code: u16) -> bool {
        let count = self.refused.entry((collection.to_owned(), code)).or_default();
        *count += 1;
        *count == 1
    }

    fn summary(&self) -> String {
        let all: u64 = self.refused.values().sum();
        if all == 0 {
            return format!("played {} writes", self.played);
        }
        let of = self.refused.iter().map(|((collection, code), count)| {
            let status = if *code == 0 { String::new() } else { format!(" ({code})") };
            format!("{count} of {}{status}", collection.trim_start_matches('/'))
        });
        let of: Vec<String> = of.collect();
        format!("played {} writes; {all} could not be written: {}", self.played, of.join(", "))
    }
}

/// A recording of either format, write by write.
enum Tape {
    Blocks(Box<Reader<File>>),
    Lines { recording: Recording, next: usize },
}

impl Tape {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let name = || format!("the recording {}", path.display());
        let mut file = File::open(path).with_context(name)?;
        let mut beginning = Vec::new();
        (&mut file).take(8).read_to_end(&mut beginning).with_context(name)?;
        file.rewind().with_context(name)?;
        if is_recording(&beginning) {
            return Ok(Self::Blocks(Box::new(Reader::open(file).with_context(name)?)));
        }
        let (_, recording) = Recording::read(BufReader::new(file)).with_context(name)?;
        Ok(Self::Lines { recording, next: 0 })
    }

    fn next_write(&mut self) -> anyhow::Result<Option<Write>> {
        match self {
            Self::Blocks(reader) => loop {
                match reader.next_record()? {
                    Some(Record::Write(write)) => return Ok(Some(write)),
                    Some(Record::Request(_) | Record::Reconcile(_) | Record::Mark(_)) => {}
                    None => return Ok(None),
                }
            },
            Self::Lines { recording, next } => {
                let write = recording.writes().get(*next);
                *next += 1;
                write.map(|write| write.record().map_err(|error| anyhow!(error))).transpose()
            }
        }
    }

    /// From when to when it is, and how long it takes.
    fn extent(&mut self, speed: Speed) -> String {
        let times = match self {
            Self::Blocks(reader) => {
                let blocks = reader.blocks().unwrap_or_default();
                let times = blocks.iter().filter_map(|block| block.span.times);
                times.reduce(|(first, last), (from, to)| (first.min(from), last.max(to)))
            }
            Self::Lines { recording, .. } => {
                recording.writes().first().map(|first| first.time).zip(recording.end())
            }
        };
        let Some((first, last)) = times else { return "it is empty".to_owned() };
        let length = Duration::try_from(last.duration_since(first)).unwrap_or_default();
        let takes = speed.after(length).as_secs();
        format!("{first:.0} to {last:.0}, in {takes} s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_a_number_or_max() {
        assert_eq!("10".parse(), Ok(Speed::Times(10.0)));
        assert_eq!("max".parse(), Ok(Speed::Max));
        for text in ["0", "-1", "fast", "NaN", "inf"] {
            assert!(text.parse::<Speed>().is_err(), "{text}");
        }
        let hour = Duration::from_secs(3600);
        assert_eq!(Speed::Times(10.0).after(hour), Duration::from_secs(360));
        assert_eq!(Speed::Max.after(hour), Duration::ZERO);
    }

    #[test]
    fn a_server_of_another_machine_is_told_from_one_of_this_machine() {
        let is_here = |server: &str| is_here(&server.parse().expect("a URI"));
        assert!(
            is_here("https://127.0.0.1:6443/")
                && is_here("https://localhost:1")
                && is_here("https://[::1]:2/")
        );
        assert!(!is_here("https://10.0.0.1:6443") && !is_here("https://127.example.org"));
    }

    #[test]
    fn what_could_not_be_written_is_counted_by_kind_and_said_once() {
        let mut told = Notices { played: 7, ..Notices::default() };
        assert!(told.refuse("/pods", 422));
        assert!(!told.refuse("/pods", 422));
        assert!(told.refuse("apps/deployments", 403));
        assert_eq!(
            told.summary(),
            "played 7 writes; 3 could not be written: 2 of pods (422), 1 of apps/deployments (403)"
        );
    }
}
