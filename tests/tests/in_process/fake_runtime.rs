//! A runtime whose containers are tasks: what their command says happens in virtual time.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use kubewright_kubelet::container::{
    Container, ExecError, Exit, Isolation, Runtime, Session, Signal, Spec, StartError, Streams, log,
};
use kubewright_world::Clock;
use parking_lot::Mutex;
use tokio::sync::watch;

/// What a command in a container answers: exit code and output, after so long.
type Answer = (i32, &'static str, Duration);

/// Starts what a container's command describes, and keeps a journal. The words of a command are done one after the other:
/// `sleep SECONDS`, `say TEXT` (its termination message), `ignore` (signals, from now on), `missing` (no such program),
/// `exit CODE`. At the end it stays until a signal ends it.
#[derive(Clone, Debug)]
pub(crate) struct Fake {
    clock: Clock,
    journal: Arc<Mutex<Vec<String>>>,
    answers: Arc<Mutex<BTreeMap<String, Answer>>>,
}

impl Fake {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, journal: Arc::default(), answers: Arc::default() }
    }

    /// What a command (its words, joined) answers when it is run in a container. Others answer 0 at once.
    pub(crate) fn answer(&self, command: &str, code: i32, output: &'static str, after: Duration) {
        self.answers.lock().insert(command.to_owned(), (code, output, after));
    }

    /// What happened, each after the second of cluster time since its start at which it did: `3 c starts`.
    pub(crate) fn journal(&self) -> Vec<String> {
        self.journal.lock().clone()
    }

    fn note(&self, what: &str) {
        let passed = self.clock.now().duration_since(kubewright_world::SIMULATION_START);
        self.journal.lock().push(format!("{} {what}", passed.as_secs()));
    }
}

impl Runtime for Fake {
    fn start(&self, spec: Spec) -> BoxFuture<'_, Result<Arc<dyn Container>, StartError>> {
        async move {
            let name = spec.id.split('_').nth(1).unwrap_or_default().to_owned();
            if spec.command.first().is_some_and(|word| word == "missing") {
                return Err(StartError::Run("exec: \"missing\": executable file not found in $PATH".into()));
            }
            self.note(&format!("{name} starts"));
            let (exit, _) = watch::channel(None);
            let (signals, received) = watch::channel(None);
            let container = FakeContainer {
                name,
                runtime: self.clone(),
                started_at: self.clock.now().into(),
                exit: exit.clone(),
                signals,
            };
            tokio::spawn(container.clone().run(spec, received));
            Ok(Arc::new(container) as Arc<dyn Container>)
        }
        .boxed()
    }

    fn isolation(&self) -> Isolation {
        Isolation { namespaces: Vec::new(), missing: Vec::new() }
    }
}

#[derive(Clone, Debug)]
struct FakeContainer {
    name: String,
    runtime: Fake,
    started_at: std::time::SystemTime,
    exit: watch::Sender<Option<Exit>>,
    signals: watch::Sender<Option<Signal>>,
}

impl FakeContainer {
    async fn run(self, spec: Spec, mut signals: watch::Receiver<Option<Signal>>) {
        let mut ignores = false;
        let mut words = spec.command.iter();
        let mut ends = None;
        while let Some(word) = words.next() {
            let mut next = || words.next().map(String::as_str).unwrap_or_default();
            match word.as_str() {
                "ignore" => ignores = true,
                "say" => {
                    let message =
                        spec.mounts.iter().find(|mount| mount.target == Path::new("/dev/termination-log"));
                    let message = message.expect("there is a place for messages");
                    std::fs::write(&message.source, next()).expect("the message is written");
                }
                "exit" => ends = next().parse().ok(),
                "sleep" => {
                    let seconds = next().parse().expect("a number of seconds");
                    let sleep = tokio::time::sleep(Duration::from_secs(seconds));
                    tokio::select! {
                        biased;
                        signal = Self::signal(&mut signals, ignores) => return self.end(128 + signal.0, Some(signal)),
                        () = sleep => {}
                    }
                }
                other => panic!("no such word: {other}"),
            }
        }
        match ends {
            Some(code) => self.end(code, None),
            None => {
                let signal = Self::signal(&mut signals, ignores).await;
                self.end(128 + signal.0, Some(signal));
            }
        }
    }

    async fn signal(signals: &mut watch::Receiver<Option<Signal>>, ignores: bool) -> Signal {
        loop {
            let signal = *signals.borrow_and_update();
            match signal {
                Some(signal) if !ignores || signal == Signal::KILL => return signal,
                _ => {}
            }
            if signals.changed().await.is_err() {
                futures::future::pending::<()>().await;
            }
        }
    }

    fn end(&self, code: i32, signal: Option<Signal>) {
        self.runtime.note(&format!("{} ends {code}", self.name));
        let exit = Exit {
            code,
            signal: signal.map(|signal| signal.0),
            out_of_memory: false,
            at: self.runtime.clock.now().into(),
        };
        self.exit.send_replace(Some(exit));
    }
}

impl Container for FakeContainer {
    fn started_at(&self) -> std::time::SystemTime {
        self.started_at
    }

    fn exited(&self) -> BoxFuture<'static, Exit> {
        let mut exit = self.exit.subscribe();
        let keep = self.exit.clone();
        async move {
            let exit = *exit.wait_for(Option::is_some).await.expect("its sender is kept");
            drop(keep);
            exit.expect("it was waited for")
        }
        .boxed()
    }

    fn log(&self) -> Option<log::Growing> {
        None
    }

    fn signal(&self, signal: Signal) {
        if self.exit.borrow().is_none() {
            self.runtime.note(&format!("{} gets {}", self.name, signal.0));
            self.signals.send_replace(Some(signal));
        }
    }

    fn exec(
        &self,
        command: Vec<String>,
        _: Streams,
        _: Option<Duration>,
    ) -> BoxFuture<'_, Result<Session, ExecError>> {
        let answer = self.runtime.answers.lock().get(&command.join(" ")).copied();
        let (code, output, after) = answer.unwrap_or((0, "", Duration::ZERO));
        let at = self.runtime.clock.now().into();
        async move {
            Ok(Session {
                stdin: None,
                stdout: Some(Box::new(output.as_bytes())),
                stderr: None,
                resize: None,
                exit: async move {
                    tokio::time::sleep(after).await;
                    Ok(Exit { code, signal: None, out_of_memory: false, at })
                }
                .boxed(),
            })
        }
        .boxed()
    }

    fn attach(&self, _: Streams) -> BoxFuture<'_, Result<Session, ExecError>> {
        async { Err(ExecError::NotRunning) }.boxed()
    }
}
