//! `create webhook`.

use clap::Args;

use super::{Ask, Environment, Names, Planned, WriteOptions, changed};
use crate::{Error, Folder, kind, names::Version, project::Resource};

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

    /// The version that --conversion goes by way of: the one that is stored [default: --version]
    #[arg(long, value_name = "VERSION", requires = "conversion")]
    pub hub: Option<String>,

    /// The versions that --conversion is to be for, besides the hub [default: all of them]
    #[arg(long, value_name = "VERSIONS", requires = "conversion", value_delimiter = ',')]
    pub spoke: Vec<String>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment would be shown as a heading of the help")]
    pub write_options: WriteOptions,
}

impl CreateWebhook {
    pub(super) fn plan(
        &self,
        folder: &Folder,
        around: &Environment,
        ask: &mut dyn Ask,
    ) -> Result<Planned, Error> {
        let old = folder.project(&around.version)?;
        let (group, version, of) = (self.names.group(ask)?, self.version(ask)?, self.names.kind(ask)?);
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
        if self.hub.is_some() {
            check_hub(known, &version)?;
        } else if version != known.hub {
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
            if *there && !self.write_options.force {
                return Err(Error::Refused(format!("webhook resource already exists: {}", file.path)));
            }
            *there = true;
            files.push(file);
        }
        let mut new = old.clone();
        if let Some(there) = new.resources.iter_mut().find(|other| *other == known) {
            *there = resource;
        }
        let changes = changed(folder, &old, new, files, around, self.write_options.force)?;
        if changes.changes.is_empty() {
            let spokes: Vec<&str> = known.spokes().map(Version::as_str).collect();
            let (hub, spokes) = (&known.hub, spokes.join(", "));
            let head =
                format!("nothing to write: {of} is converted between its hub {hub} and {spokes} already\n");
            return Ok(Planned { head, ..Planned::new(changes, String::new()) });
        }
        let next =
            "Next: implement your new webhook, and see that the tests pass with:\n$ cargo test\n".to_owned();
        Ok(Planned::new(changes, next))
    }

    /// The version that is asked for: --hub says it, too.
    fn version(&self, ask: &mut dyn Ask) -> Result<Version, Error> {
        let Some(hub) = &self.hub else { return self.names.version(ask) };
        let hub = Version::new(hub)?;
        match &self.names.version {
            Some(version) if version != hub.as_str() => {
                let why = "webhooks work with the hub";
                Err(Error::Usage(format!("--version {version} and --hub {hub} have to be the same: {why}")))
            }
            _ => Ok(hub),
        }
    }

    /// Conversions are made with the versions that need them.
    fn check_conversion(&self, known: &Resource) -> Result<(), Error> {
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
            if Version::new(spoke)? == known.hub {
                return Err(Error::Refused(format!(
                    "{} {spoke} is the hub: it cannot be a spoke, too",
                    known.kind
                )));
            }
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

/// Refuses a hub that is not the version that is stored.
fn check_hub(known: &Resource, hub: &Version) -> Result<(), Error> {
    if *hub == known.hub {
        return Ok(());
    }
    let (kind, stored) = (&known.kind, &known.hub);
    Err(Error::Refused(match known.versions.contains(hub) {
        true => format!(
            "{hub} is not the hub of {kind}: {stored} is, the version that is stored (kubewright create version --hub makes a new \
             version that is)"
        ),
        false => {
            let versions: Vec<&str> = known.versions.iter().map(Version::as_str).collect();
            format!(
                "{kind} has no version {hub}, only {} (kubewright create version makes it)",
                versions.join(", ")
            )
        }
    }))
}
