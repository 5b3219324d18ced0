//! `init`.

use clap::Args;

use super::{Manner, Planned, Surroundings, planned};
use crate::{
    Error, Folder, Project, begin,
    names::{Domain, ProjectName},
    project::{License, Sdk},
    record::Record,
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

    /// Where the SDK comes from: a version (0.1), a folder, or a repository (URL#revision) [default: this version]
    #[arg(long, value_name = "SDK")]
    pub sdk: Option<String>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment would be shown as a heading of the help")]
    pub manner: Manner,
}

impl Init {
    pub(super) fn plan(&self, folder: &Folder, around: &Surroundings) -> Result<Planned, Error> {
        let domain = Domain::new(&self.domain)?;
        let name = match &self.project_name {
            Some(name) => ProjectName::new(name)?,
            None => {
                let path = folder.path().canonicalize().map_err(Error::io("find", folder.path()))?;
                let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
                ProjectName::of_folder(name.as_deref().unwrap_or_default())?
            }
        };
        let sdk = Sdk::parse(self.sdk.as_deref().unwrap_or(&around.version))?;
        if let Some(owner) = &self.owner
            && (owner.trim().is_empty() || owner.chars().any(char::is_control))
        {
            return Err(Error::Usage(format!("--owner must be a name in one line (was {owner:?})")));
        }
        folder.check_is_new()?;
        let mut project = Project::new(&around.version, name, domain, self.license, around.year, sdk);
        project.owner.clone_from(&self.owner);
        let changes = planned(folder, begin::files(&project)?, Record::begin(folder)?, self.manner.force)?;
        let next = "Next: define a resource with:\n$ kubewright create api\n".to_owned();
        Ok(Planned::new(changes, next))
    }
}
