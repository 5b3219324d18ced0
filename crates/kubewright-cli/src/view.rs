//! `kubewright view`: a recording in a browser.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::Args;
use kubewright_cluster::recording::{Recording, besides};
use kubewright_recording::Record;
use kubewright_serve::signals::Signals;
use kubewright_view::{Server, View};

use crate::printer::Printer;

/// Of how many requests the page tells: the last ones, as of a cluster that runs.
const REQUESTS: usize = 10_000;

/// What `kubewright view` takes.
#[derive(Args, Debug)]
pub(crate) struct ViewArgs {
    /// The recording, of either format: of `up --record`, of `record`, or of a test that failed
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The port of the page on 127.0.0.1; 0 takes a free one
    #[arg(long, default_value = "0", allow_negative_numbers = true)]
    port: u16,
}

/// Serves the page of a recording until a signal.
///
/// # Errors
/// When the file is no recording, or the port cannot be had.
pub(crate) async fn view(args: &ViewArgs) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let printer = Printer::new(false);
    let (recording, besides) = read(&args.file)?;
    let page = bind(args.port, "--port").await?;
    printer.say(&format!("{} writes, to revision {}", recording.writes().len(), recording.revision()));
    printer.say(&format!("in a browser: {}", page.link()));
    printer.say("Ctrl-C ends it");
    let shown = View::of_recording(&recording, besides, args.file.display().to_string());
    drop(recording);
    tokio::select! {
        () = signals.next() => {}
        () = page.serve(shown) => {}
    }
    Ok(())
}

/// Reads a recording, and what it has besides writes.
///
/// # Errors
/// When the file is none.
pub(crate) fn read(path: &Path) -> anyhow::Result<(Recording, Vec<Record>)> {
    let name = || path.display().to_string();
    let open = || File::open(path).with_context(name);
    let recording = Recording::open(open()?, None).with_context(name)?.recording;
    Ok((recording, besides(open()?, REQUESTS).with_context(name)?))
}

/// Takes the port of the page, which `flag` says.
///
/// # Errors
/// When another program has it.
pub(crate) async fn bind(port: u16, flag: &str) -> anyhow::Result<Server> {
    Server::bind(port).await.with_context(|| format!("{flag}: port {port} on 127.0.0.1 cannot be had"))
}
