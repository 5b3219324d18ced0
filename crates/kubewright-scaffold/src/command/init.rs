//! `init`.

use std::path::{Component, Path, PathBuf};

use clap::Args;

use super::{Environment, Planned, Source, WriteOptions, planned};
use crate::{
    Error, Folder, Project, begin,
    names::{Domain, ProjectName},
    project::{License, Sdk},
    record::Record,
    rustfmt::SETTINGS,
};

/// What `init` takes.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct Init {
    /// What the groups of its kinds end with
    #[arg(long, default_value = "my.domain")]
    pub domain: String,

    /// What others may do with it, for the heads of files and Cargo.toml
    #[arg(long, value_enum, default_value_t = License::Apache2)]
    pub license: License,

    /// Whose it is, for the heads of files; without, they say nothing of it
    #[arg(long)]
    pub owner: Option<String>,

    /// Its name, which is that of the crate and of the operator too [default: that of the folder]
    #[arg(long, visible_alias = "name")]
    pub project_name: Option<String>,

    /// Where the SDK comes from: a version (0.1), a folder (a checkout, or the crate in it), or a repository (URL#revision) [default: this version, or until it
    /// is released the checkout that the command was built in]
    #[arg(long, value_name = "SDK")]
    pub sdk: Option<String>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment would be shown as a heading of the help")]
    pub write_options: WriteOptions,
}

impl Init {
    pub(super) fn plan(&self, folder: &Folder, around: &Environment) -> Result<Planned, Error> {
        let domain = Domain::new(&self.domain)?;
        let name = match &self.project_name {
            Some(name) => ProjectName::new(name)?,
            None => {
                let path = folder.path().canonicalize().map_err(Error::io("find", folder.path()))?;
                let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
                ProjectName::of_folder(name.as_deref().unwrap_or_default())?
            }
        };
        let (sdk, note) = self.sdk(folder, around)?;
        if let Some(owner) = &self.owner
            && (owner.trim().is_empty() || owner.chars().any(char::is_control))
        {
            return Err(Error::Usage(format!("--owner must be a name in one line (was {owner:?})")));
        }
        folder.check_is_new()?;
        let mut project = Project::new(&around.version, name, domain, self.license, around.year, sdk);
        project.owner.clone_from(&self.owner);
        let files = begin::files(&project)?;
        let mut rustfmt = around.formatter(folder);
        if let Some(settings) = files.iter().find(|file| file.path == SETTINGS)
            && folder.text(SETTINGS)?.is_none()
        {
            rustfmt = rustfmt.with_settings(&settings.text)?;
        }
        let changes = planned(folder, files, Record::begin(folder)?, &rustfmt, self.write_options.force)?;
        let next = format!("{note}Next: define a resource with:\n$ kubewright create api\n");
        Ok(Planned::new(changes, next))
    }

    /// Where the SDK comes from, and what is to be told of that.
    fn sdk(&self, folder: &Folder, around: &Environment) -> Result<(Sdk, String), Error> {
        if let Some(said) = &self.sdk {
            return Ok((Sdk::said(said, folder)?, String::new()));
        }
        let version = &around.version;
        let of_version = || Sdk::parse(version);
        Ok(match &around.sdk {
            Source::Registry => (of_version()?, String::new()),
            Source::Checkout(checkout) => {
                let from = folder.path().canonicalize().map_err(Error::io("find", folder.path()))?;
                let sdk = Sdk::parse(&nearest(&from, &checkout.join("crates/kubewright")).to_string_lossy())?;
                let note = format!(
                    "kubewright {version} is not released: the SDK is that of {}. Before others build the project, \
                     name a repository:\n$ kubewright upgrade --sdk URL#REVISION\n",
                    checkout.display()
                );
                (sdk, note)
            }
            Source::Unknown => {
                let note = format!(
                    "kubewright {version} is not released: cargo will not find the SDK before you say where it is, as \
                     crates/kubewright of a checkout or a repository:\n$ kubewright upgrade --sdk FOLDER|URL#REVISION\n"
                );
                (of_version()?, note)
            }
        })
    }
}

/// The way from one folder to another: by way of a folder that has both, unless that is the root.
fn nearest(from: &Path, to: &Path) -> PathBuf {
    let shared = from.components().zip(to.components()).take_while(|(one, other)| one == other).count();
    if shared < 2 {
        return to.to_owned();
    }
    let up = from.components().skip(shared).map(|_| Component::ParentDir);
    up.chain(to.components().skip(shared)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_nearby_is_named_by_the_way_to_it() {
        let way = |from: &str, to: &str| nearest(Path::new(from), Path::new(to)).display().to_string();
        assert_eq!(way("/home/me/foo", "/home/me/k/crates/k"), "../k/crates/k");
        assert_eq!(way("/home/me/k/x/y", "/home/me/k/crates/k"), "../../crates/k");
        assert_eq!(way("/tmp/foo", "/home/me/k"), "/home/me/k");
    }
}
