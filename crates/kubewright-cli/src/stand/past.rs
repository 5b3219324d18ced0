//! A stand that begins with the objects of a recording.

use std::{fs::File, path::Path};

use anyhow::Context;
use kubewright_cluster::{Builder, Cluster, recording::Recording};
use kubewright_recording::{At, Write};
use kubewright_trial::story::is_upkeep;

/// A webhook of a program that is not there would be in the way of everybody.
const WEBHOOKS: [&str; 2] = [
    "admissionregistration.k8s.io/mutatingwebhookconfigurations",
    "admissionregistration.k8s.io/validatingwebhookconfigurations",
];

/// Whether a write is of the configuration of webhooks.
pub(crate) fn is_webhook(write: &Write) -> bool {
    WEBHOOKS.contains(&write.collection.as_str())
}

/// What a program is to find of these writes: without the configurations of webhooks, and without Leases, by which somebody who is not
/// there would lead.
pub(crate) fn state(writes: Vec<Write>) -> Vec<Write> {
    let is_found = |write: &Write| !is_webhook(write) && !is_upkeep(&write.collection);
    writes.into_iter().filter(is_found).collect()
}

/// The state at a moment of a file, at its end where none is said.
///
/// # Errors
/// When it is no recording, or does not have that moment.
pub(crate) fn read(path: &Path, at: Option<At>) -> anyhow::Result<Recording> {
    let name = || format!("--from {}", path.display());
    let opened = Recording::open(File::open(path).with_context(name)?, at).with_context(name)?;
    let writes = opened.recording.writes().iter().map(|write| write.record());
    Ok(Recording::of_records(state(writes.collect::<Result<_, _>>()?)))
}

/// A cluster with these objects, in which nothing acts.
pub(crate) fn builder(past: Recording) -> Builder {
    let builder = Cluster::builder().nodes(0).controllers("");
    if past.writes().is_empty() { builder } else { builder.recording(past) }
}
