//! A runtime in a directory of its own, and what runs in it.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::TryStreamExt;
use kubewright_kubelet::container::log::{self, Options};
use kubewright_kubelet::container::{
    Container, Exit, Identity, Mount, ProcessRuntime, Root, Runtime, Session, Spec, StartError, Streams,
};
use kubewright_world::Clock;
use tokio::io::AsyncReadExt;

/// A runtime in a directory that goes with it.
pub(crate) struct Bench {
    pub(crate) runtime: ProcessRuntime,
    pub(crate) directory: PathBuf,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory = env::temp_dir().join(format!("kubewright-test-{}-{number}", std::process::id()));
        let containers = directory.join("containers");
        let runtime =
            ProcessRuntime::open(&containers, launcher(), Clock::system()).await.expect("a runtime");
        Self { runtime, directory }
    }

    /// A shell of this machine with a script.
    pub(crate) fn script(&self, script: &str) -> Spec {
        self.spec(&["/bin/sh", "-c", script])
    }

    pub(crate) fn spec(&self, command: &[&str]) -> Spec {
        Spec {
            id: "test".to_owned(),
            root: Root::Host,
            read_only_root: false,
            command: command.iter().map(|&word| word.to_owned()).collect(),
            environment: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
            working_directory: PathBuf::from("/"),
            identity: Identity::default(),
            hostname: "box".to_owned(),
            sysctls: BTreeMap::new(),
            mounts: Vec::new(),
            stdin: false,
            stdin_once: false,
            tty: false,
            log: self.directory.join("log"),
        }
    }

    pub(crate) async fn start(&self, spec: Spec) -> Arc<dyn Container> {
        self.runtime.start(spec).await.expect("it starts")
    }

    pub(crate) async fn refusal(&self, spec: Spec) -> StartError {
        self.runtime.start(spec).await.expect_err("it does not start")
    }

    /// Runs something to its end: how it ended, and what it wrote.
    pub(crate) async fn run(&self, spec: Spec) -> (Exit, String) {
        let path = spec.log.clone();
        let exit = self.start(spec).await.exited().await;
        (exit, read(&path, Options::default()).await)
    }

    pub(crate) fn has(&self, namespace: &str) -> bool {
        self.runtime.isolation().namespaces.contains(&namespace)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

pub(crate) fn launcher() -> PathBuf {
    env::current_exe().expect("its own name")
}

/// All of a file or folder of this machine, for a container.
pub(crate) fn mount(source: &Path, target: &str, read_only: bool) -> Mount {
    Mount { source: source.to_owned(), sub_path: PathBuf::new(), target: target.into(), read_only }
}

/// All of a log.
pub(crate) async fn read(path: &Path, options: Options) -> String {
    let stream = log::read(path, options, None).expect("a log");
    let pieces: Vec<_> = stream.try_collect().await.expect("a log");
    String::from_utf8(pieces.concat()).expect("text")
}

pub(crate) const OUTPUT: Streams = Streams { stdin: false, stdout: true, stderr: true, tty: false };

/// What a session's process wrote to standard output, all of it.
pub(crate) async fn output(session: &mut Session) -> String {
    let mut text = String::new();
    session.stdout.as_mut().expect("standard output").read_to_string(&mut text).await.expect("text");
    text
}
