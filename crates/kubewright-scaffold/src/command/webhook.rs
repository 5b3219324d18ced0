//! `create webhook`.

use clap::Args;

use super::{Manner, Names, Planned, Surroundings, changed};
use crate::{Error, Folder, kind};

/// What `create webhook` takes.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct CreateWebhook {
    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment would be shown as a heading of the help")]
    pub names: Names,

    /// Write a webhook that fills in what is left out
    #[arg(long)]
    pub defaulting: bool,

    /// Write a webhook that refuses what must not be
    #[arg(long, visible_alias = "validation")]
    pub programmatic_validation: bool,

    /// Convert between the versions of the kind, which `create version` has made
    #[arg(long)]
    pub conversion: bool,

    /// The versions that --conversion is to be for, besides --version
    #[arg(long, value_name = "VERSIONS", requires = "conversion", value_delimiter = ',')]
    pub spoke: Vec<String>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment would be shown as a heading of the help")]
    pub manner: Manner,
}

impl CreateWebhook {
    pub(super) fn plan(&self, folder: &Folder, around: &Surroundings) -> Result<Planned, Error> {
        let old = folder.project(&around.version)?;
        let (group, version, of) = (self.names.group()?, self.names.version()?, self.names.kind()?);
        if !(self.defaulting || self.programmatic_validation || self.conversion) {
            let flags = "--defaulting, --programmatic-validation or --conversion";
            return Err(Error::Usage(format!("Must specify {flags}")));
        }
        let Some(known) = old.find(&group, &of).filter(|known| known.origin.is_own()) else {
            let remedy = "kubewright create api makes one";
            return Err(Error::Refused(format!(
                "there is no {of} of group {group} in this project ({remedy})"
            )));
        };
        if version != known.hub {
            let why = format!("webhooks work with the version that is stored, {}", known.hub);
            return Err(Error::Refused(format!(
                "{of} {version}: {why}; the API server asks them about all versions"
            )));
        }
        self.check_conversion(known)?;
        let mut resource = known.clone();
        let mut files = Vec::new();
        for (wanted, there, file) in [
            (self.defaulting, &mut resource.webhooks.defaulting, kind::defaulting(&old, known)),
            (self.programmatic_validation, &mut resource.webhooks.validation, kind::validation(&old, known)),
        ] {
            if !wanted {
                continue;
            }
            if *there && !self.manner.force {
                return Err(Error::Refused(format!("webhook resource already exists: {}", file.path)));
            }
            *there = true;
            files.push(file);
        }
        let mut new = old.clone();
        if let Some(there) = new.resources.iter_mut().find(|other| *other == known) {
            *there = resource;
        }
        let changes = changed(folder, &old, new, files, around, self.manner.force)?;
        let next =
            "Next: implement your new webhook, and see that the tests pass with:\n$ cargo test\n".to_owned();
        Ok(Planned::new(changes, next))
    }

    /// Conversions are made with the versions that need them.
    fn check_conversion(&self, known: &crate::project::Resource) -> Result<(), Error> {
        if !self.conversion {
            return Ok(());
        }
        let remedy = "kubewright create version makes a version with its conversion";
        if known.spokes().next().is_none() {
            return Err(Error::Refused(format!(
                "{} has one version: nothing is to be converted ({remedy})",
                known.kind
            )));
        }
        for spoke in &self.spoke {
            if !known.spokes().any(|version| version.as_str() == spoke) {
                return Err(Error::Refused(format!(
                    "{} has no version {spoke} besides its hub {} ({remedy})",
                    known.kind, known.hub
                )));
            }
        }
        Ok(())
    }
}
