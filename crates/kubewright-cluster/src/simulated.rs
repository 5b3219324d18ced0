//! What the API server shows of containers on simulated nodes: what is known of their programs.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::ready;
use futures::{StreamExt, stream};
use jiff::Timestamp;
use kubewright_apiserver::kubelet::{
    LogOptions, LogStreamed, Now, PodLookup, Refusal, Session, SimulatedPod, Since, Streams,
};
use kubewright_controllers::{Log, NoLog, command_output, container_log};

/// How often somebody who follows a log looks whether the container has ended.
const LOOK: Duration = Duration::from_secs(1);

/// The containers of a pod on a simulated node.
pub(crate) struct SimulatedContainers {
    pod: PodLookup,
    now: Now,
}

impl SimulatedContainers {
    pub(crate) fn new(pod: PodLookup, now: Now) -> Self {
        Self { pod, now }
    }
}

impl fmt::Debug for SimulatedContainers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedContainers").finish_non_exhaustive()
    }
}

impl SimulatedPod for SimulatedContainers {
    fn logs(&self, container: &str, options: LogOptions) -> Option<Result<LogStreamed, Refusal>> {
        let now = (self.now)();
        let log = match container_log(&(self.pod)()?, container, options.previous, now)? {
            Ok(log) => log,
            Err(NoLog(why)) => return Some(Err(Refusal::BadRequest(why))),
        };
        let mut shown = Shown::new(&options, now);
        let first = Bytes::from(shown.next(&log));
        if !options.follow || log.is_over {
            return Some(Ok(stream::once(ready(Ok(first))).boxed()));
        }
        let follower = Follower {
            pod: Arc::clone(&self.pod),
            now: Arc::clone(&self.now),
            container: container.to_owned(),
            shown,
            next: log.next,
        };
        let later = stream::unfold(follower, Follower::follow);
        Some(Ok(stream::once(ready(Ok(first))).chain(later).boxed()))
    }

    fn exec(
        &self,
        _container: &str,
        command: &[String],
        streams: Streams,
    ) -> Option<Result<Session, Refusal>> {
        let (output, code) = command_output(command)?;
        let stdout = streams.stdout.then(|| Box::new(io::Cursor::new(output.into_bytes())) as _);
        let stderr = streams.stderr.then(|| Box::new(tokio::io::empty()) as _);
        let stdin = streams.stdin.then(|| Box::new(tokio::io::sink()) as _);
        Some(Ok(Session { stdin, stdout, stderr, resize: None, exit: Box::pin(ready(Ok(code))) }))
    }
}

/// What of a log has been shown, and what is to be shown of it.
struct Shown {
    entries: usize,
    tail: Option<usize>,
    since: Option<Timestamp>,
    timestamps: bool,
    remaining: usize,
}

impl Shown {
    fn new(options: &LogOptions, now: Timestamp) -> Self {
        let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        Self {
            entries: 0,
            tail: options.tail_lines.map(number),
            since: options.since.map(|since| match since {
                Since::Time(time) => time,
                Since::Ago(ago) => now.saturating_sub(ago).unwrap_or(Timestamp::MIN),
            }),
            timestamps: options.timestamps,
            remaining: options.limit_bytes.map_or(usize::MAX, number),
        }
    }

    /// What is new in the log.
    fn next(&mut self, log: &Log) -> String {
        let entries = log.entries.iter().skip(self.entries);
        self.entries = log.entries.len();
        let mut lines: Vec<String> = Vec::new();
        for (at, text) in entries.filter(|(at, _)| self.since.is_none_or(|since| *at >= since)) {
            for piece in text.split_inclusive('\n') {
                match lines.last_mut().filter(|line| !line.ends_with('\n')) {
                    Some(line) => line.push_str(piece),
                    None if self.timestamps => lines.push(format!("{at:.9} {piece}")),
                    None => lines.push(piece.to_owned()),
                }
            }
        }
        let skipped = self.tail.take().map_or(0, |tail| lines.len().saturating_sub(tail));
        let mut text = lines.split_off(skipped).concat();
        let most = (0..=self.remaining.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(most.unwrap_or_default());
        self.remaining -= text.len();
        text
    }
}

/// Somebody who waits for more of a log.
struct Follower {
    pod: PodLookup,
    now: Now,
    container: String,
    shown: Shown,
    next: Option<Timestamp>,
}

impl Follower {
    /// What comes next, which may be nothing new; `None` when the container has ended or its pod is gone.
    async fn follow(mut self) -> Option<(io::Result<Bytes>, Self)> {
        if self.shown.remaining == 0 {
            return None;
        }
        let due =
            self.next.map(|next| Duration::try_from(next.duration_since((self.now)())).unwrap_or_default());
        tokio::time::sleep(due.map_or(LOOK, |due| due.clamp(Duration::from_millis(1), LOOK))).await;
        let log = container_log(&(self.pod)()?, &self.container, false, (self.now)())?.ok()?;
        let text = self.shown.next(&log);
        if log.is_over && text.is_empty() {
            return None;
        }
        self.next = log.next;
        Some((Ok(Bytes::from(text)), self))
    }
}

#[cfg(test)]
mod tests {
    use kubewright_world::SIMULATION_START as NOW;

    use super::*;

    fn log(texts: &[&str]) -> Log {
        let at = |index: usize| NOW + Duration::from_secs(u64::try_from(index).unwrap_or_default());
        let entries = texts.iter().enumerate().map(|(index, text)| (at(index), (*text).to_owned())).collect();
        Log { entries, is_over: false, next: None }
    }

    fn shown(options: &LogOptions, texts: &[&str]) -> String {
        Shown::new(options, NOW).next(&log(texts))
    }

    #[test]
    fn the_part_of_a_log_is_shown_that_is_asked_for() {
        let texts = ["a", "b\nc\n", "d\n"];
        assert_eq!(shown(&LogOptions::default(), &texts), "ab\nc\nd\n");
        assert_eq!(shown(&LogOptions { tail_lines: Some(1), ..LogOptions::default() }, &texts), "d\n");
        assert_eq!(shown(&LogOptions { limit_bytes: Some(4), ..LogOptions::default() }, &texts), "ab\nc");
        let late = Since::Time(NOW + Duration::from_secs(2));
        assert_eq!(shown(&LogOptions { since: Some(late), ..LogOptions::default() }, &texts), "d\n");
        let timed = shown(&LogOptions { timestamps: true, ..LogOptions::default() }, &["a\n"]);
        assert_eq!(timed, format!("{NOW:.9} a\n"));
    }

    #[test]
    fn what_was_shown_is_not_shown_again() {
        let mut shown = Shown::new(&LogOptions::default(), NOW);
        assert_eq!(shown.next(&log(&["a\n"])), "a\n");
        assert_eq!(shown.next(&log(&["a\n", "b\n"])), "b\n");
        assert_eq!(shown.next(&log(&["a\n", "b\n"])), "");
    }
}
