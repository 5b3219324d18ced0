//! What `kubewright envtest` and `kubewright-envtest` do but to stand in for the two programs: they put links by their names into
//! the folders where setup-envtest would have put the real ones, one a version, and tell of these folders.

mod links;
mod selector;
mod store;

use std::{env, fmt::Write, path::PathBuf};

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand, ValueEnum};

use self::{
    links::{Installed, KUBECTL, on_path},
    selector::{Preference, Release, Selector},
    store::Store,
};
use super::{help::print, say};

/// What `kubewright envtest` and `kubewright-envtest` do.
#[derive(Debug, Subcommand)]
pub enum EnvtestCommand {
    /// Put links named kube-apiserver and etcd where setup-envtest puts the real ones, and print what to export
    Install {
        /// Which, and where
        #[command(flatten)]
        place: EnvtestPlace,

        /// Replace the real programs if they are there
        #[arg(long)]
        force: bool,
    },
    /// Print what to export, for `eval "$(kubewright envtest env)"`; installs what is missing
    Env {
        /// Which, and where
        #[command(flatten)]
        place: EnvtestPlace,
    },
    /// As `setup-envtest use`: print the folder of a version; installs what is missing
    Use {
        /// Which, and where
        #[command(flatten)]
        place: EnvtestPlace,

        /// Only what is installed already
        #[arg(long, short)]
        installed_only: bool,

        /// What is printed
        #[arg(long, short, value_name = "FORMAT", value_enum, default_value_t = PrintFormat::Overview)]
        print: PrintFormat,
    },
    /// List the versions that are installed, and those that can be
    List {
        /// Which, and where
        #[command(flatten)]
        place: EnvtestPlace,

        /// Only what is installed already
        #[arg(long, short)]
        installed_only: bool,
    },
    /// Remove what `install` has put there, of all versions or of some; real programs are left alone
    Cleanup {
        /// Which, and where
        #[command(flatten)]
        place: EnvtestPlace,
    },
}

/// Which versions, and where their folders are, as setup-envtest says it.
#[derive(Args, Debug)]
pub struct EnvtestPlace {
    /// A version or some, as setup-envtest has it: 1.35.4, 1.35, 1.35.x, ~1.35.2, <1.36, ">=1.35 <1.37", with a ! at the end for the
    /// newest there is, latest, or latest-on-disk
    #[arg(value_name = "VERSION", conflicts_with = "version", value_parser = selector)]
    positional: Option<ParsedSelector>,

    /// The same as VERSION
    #[arg(long, value_name = "VERSION", value_parser = selector)]
    version: Option<ParsedSelector>,

    /// Where the folders of versions are: setup-envtest's --bin-dir, and by default the same as there
    #[arg(long, visible_alias = "bin-dir", value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// What `use` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PrintFormat {
    /// The version, the platform and the folder, a line each.
    Overview,
    /// The folder alone, without a line break.
    Path,
    /// What a shell has to export.
    Env,
}

/// A selector that was read.
#[derive(Clone, Debug)]
struct ParsedSelector(Selector);

fn selector(text: &str) -> Result<ParsedSelector, String> {
    text.parse().map(ParsedSelector)
}

impl EnvtestPlace {
    fn selector(&self) -> Option<Selector> {
        self.positional.as_ref().or(self.version.as_ref()).map(|parsed| parsed.0.clone())
    }

    fn store(&self) -> anyhow::Result<Store> {
        Store::at(self.dir.as_deref())
    }

    /// The release that is meant of those that are there and those that can be.
    fn release(&self, store: &Store, installed_only: bool) -> anyhow::Result<Release> {
        let mut selector = self.selector().unwrap_or_else(Selector::default_release);
        if installed_only {
            selector.prefers = Preference::InstalledOnly;
        }
        let ours = store.items()?.into_iter().filter(|item| item.is_ours).map(|item| item.release);
        selector.choose(&ours.collect::<Vec<_>>()).map_err(|why| anyhow!(why))
    }
}

/// Does it.
///
/// # Errors
/// When no version is meant, or the folder cannot be had or has the real programs in it.
pub fn run(command: &EnvtestCommand) -> anyhow::Result<()> {
    match command {
        EnvtestCommand::Install { place, force } => {
            let (_, installed) = install(place, false, *force)?;
            let program = this_program()?;
            say(&format!(
                "etcd and kube-apiserver in {} are {}",
                installed.folder.display(),
                program.display()
            ));
            if !installed.kubectl {
                say(
                    "There is no kubectl on the PATH: only suites that run it themselves (Kubectl()) need one.",
                );
            }
            Ok(print(&installed.exports()?)?)
        }
        EnvtestCommand::Env { place } => Ok(print(&install(place, false, false)?.1.exports()?)?),
        EnvtestCommand::Use { place, installed_only, print: format } => {
            let (release, installed) = install(place, *installed_only, false)?;
            Ok(print(&describe(release, &installed, *format)?)?)
        }
        EnvtestCommand::List { place, installed_only } => Ok(print(&list(place, *installed_only)?)?),
        EnvtestCommand::Cleanup { place } => cleanup(place),
    }
}

fn this_program() -> anyhow::Result<PathBuf> {
    env::current_exe().context("cannot tell where this program is")
}

/// Lays the links of a version out; those that are right already are not touched.
fn install(place: &EnvtestPlace, installed_only: bool, force: bool) -> anyhow::Result<(Release, Installed)> {
    let store = place.store()?;
    let release = place.release(&store, installed_only)?;
    let kubectl = on_path(KUBECTL, env::var_os("PATH").unwrap_or_default().as_os_str());
    let installed = Installed::at(store.folder(release), &this_program()?, kubectl.as_deref(), force)?;
    Ok((release, installed))
}

/// A version as `setup-envtest use` prints it (`env/env.go`, `PrintInfo`).
fn describe(release: Release, installed: &Installed, format: PrintFormat) -> anyhow::Result<String> {
    let path = || installed.folder.to_str().context("the folder's name is not UTF-8");
    Ok(match format {
        PrintFormat::Overview => {
            format!("Version: {release}\nOS/Arch: {}\nPath: {}\n", store::platform(), path()?)
        }
        PrintFormat::Path => path()?.to_owned(),
        PrintFormat::Env => installed.exports()?,
    })
}

/// A line for each version that is there, and for each that can be (`env/env.go`, `ListVersions`).
fn list(place: &EnvtestPlace, installed_only: bool) -> anyhow::Result<String> {
    let selector = place.selector().unwrap_or_else(Selector::all);
    let mut rows = Vec::new();
    for item in place.store()?.items()? {
        rows.push((if item.is_ours { "(installed)" } else { "(another's)" }, item.release));
    }
    if !installed_only && selector.prefers != Preference::InstalledOnly {
        rows.extend(Release::available().into_iter().map(|release| ("(available)", release)));
    }
    rows.retain(|(_, release)| selector.matches(*release));
    let width = rows.iter().map(|(_, release)| release.to_string().len()).max().unwrap_or_default();
    Ok(rows.into_iter().fold(String::new(), |mut text, (state, release)| {
        let _ = writeln!(text, "{state}  v{:width$}  {}", release.to_string(), store::platform());
        text
    }))
}

/// Removes the links of the versions that are meant, and tells of each (`env/env.go`, `Remove`).
fn cleanup(place: &EnvtestPlace) -> anyhow::Result<()> {
    let selector = place.selector().unwrap_or_else(Selector::all);
    for item in place.store()?.items()?.into_iter().filter(|item| selector.matches(item.release)) {
        let name = format!("{} ({})", item.release, store::platform());
        if !item.is_ours {
            say(&format!("left {name}: its programs are another's; setup-envtest removes them"));
            continue;
        }
        let context = || format!("cannot remove {}", item.folder.display());
        let is_gone = links::remove(&item.folder).with_context(context)?;
        print(&format!("removed {name}\n"))?;
        if !is_gone {
            say(&format!("left what else is in {}", item.folder.display()));
        }
    }
    Ok(())
}
