//! The recording of the cluster of this process, every write and every request: `up --record`, or what the environment asks for.

use std::{
    env,
    fs::File,
    path::{Path, PathBuf},
};

use anyhow::Context;
use kubewright_cluster::{
    Cluster,
    recording::{self, place},
};
use kubewright_recording::Header;
use kubewright_world::World;

use super::file;
use crate::args::UpArgs;

/// The file of a recording that has not begun.
pub(crate) struct Target {
    file: File,
    path: PathBuf,
}

impl Target {
    /// That of `--record`; else one of its own where `$KUBEWRIGHT_RECORD` says. None where neither says anything.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn of(args: &UpArgs, port: u16) -> anyhow::Result<Option<Self>> {
        if let Some(path) = &args.record {
            return Ok(Some(Self { file: file::create(path)?, path: path.clone() }));
        }
        let Some(said) = env::var_os(place::VARIABLE).filter(|said| !said.is_empty()) else {
            return Ok(None);
        };
        let said = Path::new(&said);
        let made = place::create(said, World::real().clock.now(), std::process::id(), port);
        let (file, path) = made.with_context(|| format!("{}: {}", place::VARIABLE, said.display()))?;
        Ok(Some(Self { file, path }))
    }
}

/// Writes the recording of a cluster, until it is ended.
pub(crate) struct Recorder {
    recorder: recording::Recorder,
    path: PathBuf,
}

impl Recorder {
    /// Begins a recording in an empty file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn start(
        target: Target,
        args: &UpArgs,
        cluster: &Cluster,
        server: &str,
    ) -> anyhow::Result<Self> {
        let Target { file, path } = target;
        let redactor = recording::redactor(!args.record_secrets, Vec::new())?;
        let header = Header {
            program: format!("kubewright up {}", env!("CARGO_PKG_VERSION")),
            server: server.to_owned(),
            started: Some(cluster.world().clock.now()),
            kubernetes: cluster.kubernetes_version().to_string(),
            seed: args.seed,
            redacted: redactor.names(),
            notes: Vec::new(),
        };
        let started = recording::Recorder::start(file, &header, redactor, cluster, args.clock.is_some());
        let recorder = started.with_context(|| failed(&path))?;
        Ok(Self { recorder, path })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes what is left; gives what there is to say of it.
    ///
    /// # Errors
    /// When something could not be written.
    pub(crate) async fn end(self) -> anyhow::Result<String> {
        let recorded = self.recorder.end().await.with_context(|| failed(&self.path))?;
        let (records, bytes) = (recorded.records, file::size(recorded.bytes));
        Ok(format!("recorded {records} writes and requests in {}, {bytes}", self.path.display()))
    }
}

fn failed(path: &Path) -> String {
    format!("the recording {} cannot be written", path.display())
}
