//! `cargo xtask crds`: how long the definitions of many projects take, applied twice in both ways of `kubectl apply`.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::kubectl::{Kubectl, eventually};

/// What `cargo xtask crds` is told.
#[derive(Args)]
pub(crate) struct Options {
    /// A folder with CustomResourceDefinitions, one a file, in folders of any depth
    #[arg(value_name = "FOLDER")]
    definitions: PathBuf,

    /// The kubeconfig of a cluster in which anything may be done, and in which there are no definitions
    #[arg(long, value_name = "FILE")]
    kubeconfig: PathBuf,

    /// That of a cluster to compare with: it is an error to be slower than that one
    #[arg(long, value_name = "FILE")]
    beside: Option<PathBuf>,
}

/// The ways of `kubectl apply`. What was applied in one way is deleted before the next.
const WAYS: [(&str, &[&str]); 2] =
    [("server-side", &["apply", "--server-side", "-R", "-f"]), ("client-side", &["apply", "-R", "-f"])];
const TIMES: [&str; 2] = ["first", "second"];

/// What applying all of them once came to.
struct Pass {
    name: String,
    seconds: f64,
    accepted: usize,
    requests: u64,
}

/// Applies the definitions to one cluster after the other, and prints what it took.
///
/// # Errors
/// When a cluster does not answer, has definitions already, accepts less than the other or takes longer.
pub(crate) fn crds(options: &Options) -> Result<()> {
    let measured = passes(&options.kubeconfig, &options.definitions)?;
    let Some(beside) = &options.beside else { return Ok(()) };
    let reference = passes(beside, &options.definitions)?;
    for (ours, theirs) in measured.iter().zip(&reference) {
        let Pass { name, seconds, accepted, .. } = ours;
        if *accepted < theirs.accepted {
            bail!("{name}: {accepted} were accepted, and {} by the other cluster", theirs.accepted);
        }
        if *seconds > theirs.seconds {
            bail!("{name}: {seconds:.1} s, and {:.1} s on the other cluster", theirs.seconds);
        }
    }
    Ok(())
}

fn passes(kubeconfig: &Path, definitions: &Path) -> Result<Vec<Pass>> {
    let kubectl = Kubectl::new(kubeconfig)?;
    let folder = definitions.to_str().context("the folder has a name in UTF-8")?;
    if served(&kubectl)? > 0 {
        bail!("{} has definitions already, which would be deleted", kubeconfig.display());
    }
    let mut out = io::stdout();
    writeln!(out, "{}, {}", kubeconfig.display(), kubectl.version()?)?;
    let mut passes = Vec::new();
    for (way, apply) in WAYS {
        for time in TIMES {
            let pass = applied(&kubectl, format!("{way}, {time} time"), &[apply, &[folder]].concat())?;
            let Pass { name, seconds, accepted, requests } = &pass;
            writeln!(
                out,
                "{name:<28}{seconds:>9.1} s{accepted:>7} definitions{requests:>7} requests of the server"
            )?;
            passes.push(pass);
        }
        kubectl.run(&["delete", "customresourcedefinitions", "--all", "--wait=false"])?;
        eventually("the definitions are gone", || Ok((served(&kubectl)? == 0).then_some(())))?;
    }
    Ok(passes)
}

#[expect(clippy::disallowed_methods, reason = "what a user waits for is measured")]
fn applied(kubectl: &Kubectl, name: String, apply: &[&str]) -> Result<Pass> {
    let before = requests(kubectl)?;
    let begun = Instant::now();
    // Some are refused, by every server; kubectl ends with an error then, and goes on before that.
    let accepted = kubectl.said(apply)?.lines().count();
    let seconds = begun.elapsed().as_secs_f64();
    Ok(Pass { name, seconds, accepted, requests: requests(kubectl)? - before })
}

/// How many definitions there are.
fn served(kubectl: &Kubectl) -> Result<usize> {
    let list = kubectl.run(&["get", "customresourcedefinitions", "-o", "name"])?;
    Ok(list.lines().count())
}

/// How many requests the server has answered, as it counts them.
fn requests(kubectl: &Kubectl) -> Result<u64> {
    let metrics = kubectl.run(&["get", "--raw", "/metrics"])?;
    let counts = metrics.lines().filter(|line| line.starts_with("apiserver_request_total"));
    let count = |line: &str| line.rsplit(' ').next().and_then(|count| count.parse::<f64>().ok());
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts are whole numbers")]
    Ok(counts.filter_map(count).sum::<f64>() as u64)
}
