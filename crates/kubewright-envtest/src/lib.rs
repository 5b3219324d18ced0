//! kube-apiserver and etcd by name: what envtest and its relatives start.
//!
//! They start two programs, pass them flags, wait until each answers that it is healthy, and end them with a signal. Called
//! by the name of one of the two (a link or a copy), a program that asks [`called_as`] first does the same.
//!
//! There are two of them: `kubewright-envtest`, which is no more than this, and the command `kubewright`, which has the built-in
//! controllers too and lends them ([`Controllers`]).

mod apiserver;
mod environment;
mod etcd;
mod flags;
mod help;
pub mod install;
mod kubernetes;
mod record;
mod test_options;

use std::{
    ffi::{OsStr, OsString},
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

use flags::{Flags, Table};
use futures::future::BoxFuture;
use kubewright_control_plane::{Builder, ControlPlane, StartError};
use tracing::Level;
use tracing_subscriber::EnvFilter;

/// A program that this one stands in for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The API server.
    KubeApiserver,
    /// Its store, which here has none of it.
    Etcd,
}

/// How a program starts a control plane with built-in controllers in it: which, and on how many simulated nodes.
pub type Controllers = fn(
    builder: Builder,
    selection: String,
    nodes: usize,
) -> BoxFuture<'static, Result<ControlPlane, StartError>>;

impl Program {
    /// What a file name, or the first argument, calls.
    fn named(name: &OsStr) -> Option<Self> {
        match name.to_str()?.trim_end_matches(".exe") {
            "kube-apiserver" => Some(Self::KubeApiserver),
            "etcd" => Some(Self::Etcd),
            _ => None,
        }
    }

    fn table(self) -> &'static Table {
        match self {
            Self::KubeApiserver => &flags::KUBE_APISERVER,
            Self::Etcd => &flags::ETCD,
        }
    }
}

/// Which program a command line means, with the rest of it: by the name of the file that was started, or by the first
/// argument. `None` when it means this program.
pub fn called_as(mut words: impl Iterator<Item = OsString>) -> Option<(Program, Vec<OsString>)> {
    let path = words.next()?;
    if let Some(program) = Path::new(&path).file_name().and_then(Program::named) {
        return Some((program, words.collect()));
    }
    let program = Program::named(&words.next()?)?;
    Some((program, words.collect()))
}

/// Is that program to its end, with these controllers where it is asked for some and has any.
#[must_use]
pub fn run(program: Program, arguments: Vec<OsString>, controllers: Option<Controllers>) -> ExitCode {
    match try_run(program, arguments, controllers) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("Error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn try_run(
    program: Program,
    arguments: Vec<OsString>,
    controllers: Option<Controllers>,
) -> anyhow::Result<()> {
    let table = program.table();
    let flags = Flags::parse(table, arguments)?;
    if flags.switch("help") == Some(true) {
        return Ok(help::print(&help::of(program))?);
    }
    if flags.switch("version") == Some(true) {
        return Ok(help::print(&help::version(program, kubernetes::version()?))?);
    }
    for name in flags.unknown() {
        say(&format!("Warning: {} has no flag --{name}: it is ignored", table.program));
    }
    match program {
        Program::KubeApiserver => apiserver::run(&flags, controllers),
        Program::Etcd => etcd::run(&flags),
    }
}

/// Logs go to stderr, where whoever attached it looks: warnings, or what `RUST_LOG` says. `--v=4` and above is for those
/// who want to know what happens.
fn log(flags: &Flags) {
    let level = if flags.number("v").unwrap_or(0) >= 4 { Level::DEBUG } else { Level::WARN };
    let logs = tracing_subscriber::fmt().with_writer(io::stderr).with_ansi(false).log_internal_errors(false);
    match EnvFilter::try_from_default_env() {
        Ok(filter) => logs.with_env_filter(filter).init(),
        Err(_) => logs.with_max_level(level).init(),
    }
}

/// Says something to whoever reads standard error; that may be nobody any more.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
