//! `cargo xtask release`: the version, change log, commit and tag of a release, and the check that all crates can be published.

mod check;
mod prepare;
mod registry;

use anyhow::{Result, bail};
use clap::Args;
use semver::Version;

pub(crate) use self::check::dry_run;

/// What `cargo xtask release` is told.
#[derive(Args)]
pub(crate) struct Options {
    /// The version to release, such as `0.2.0`: it is written into the manifests and the change log, committed and tagged
    #[arg(value_name = "VERSION", required_unless_present = "check", conflicts_with = "check")]
    version: Option<Version>,
    /// Push the commit and its tag, and publish the crates: the one command of who has the right to
    #[arg(long, requires = "version")]
    publish: bool,
    /// Build each crate from its packaged files, then take the packages as a registry: `cargo add kubewright` and the guide's operator
    /// with its test, and `cargo install kubewright-cli` (half an hour)
    #[arg(long)]
    check: bool,
}

/// Makes a release, or checks that one can be made.
///
/// # Errors
/// When a step fails; what was written by then is told by git.
pub(crate) fn release(options: &Options) -> Result<()> {
    match &options.version {
        None => check::check(),
        Some(version) if !version.build.is_empty() => bail!("{version}: crates.io takes no build metadata"),
        Some(version) => {
            prepare::prepare(version)?;
            if options.publish { prepare::publish(version) } else { Ok(()) }
        }
    }
}
