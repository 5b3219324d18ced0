//! `create version`.

use clap::Args;

use super::{Ask, Environment, Names, Planned, WriteOptions, changed};
use crate::{
    Error, File, Folder, Project, kind,
    names::Version,
    project::Resource,
    templates::{conversion_module, rust},
    version::{Types, by_way_of},
};

/// What `create version` takes.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct CreateVersion {
    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment would be shown as a heading of the help")]
    pub names: Names,

    /// Make it the one that is stored, and that the controller and the webhooks work with; without, it is a spoke
    #[arg(long)]
    pub hub: bool,

    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment would be shown as a heading of the help")]
    pub write_options: WriteOptions,
}

impl CreateVersion {
    pub(super) fn plan(
        &self,
        folder: &Folder,
        around: &Environment,
        ask: &mut dyn Ask,
    ) -> Result<Planned, Error> {
        let old = folder.project(&around.version)?;
        let (group, version, of) = (self.names.group(ask)?, self.names.version(ask)?, self.names.kind(ask)?);
        let Some(known) = old.find(&group, &of).filter(|known| known.origin.is_own()) else {
            let remedy = "kubewright create api makes its first version";
            return Err(Error::Refused(format!(
                "there is no {of} of group {group} in this project ({remedy})"
            )));
        };
        if known.versions.contains(&version) {
            return Err(Error::Refused(format!(
                "API resource already exists: {of} has the version {version}"
            )));
        }
        let mut resource = known.clone();
        resource.versions.push(version.clone());
        let mut files = copy(folder, &old, known, &version)?;
        resource.conversions.push((known.hub.clone(), version.clone()));
        if self.hub {
            for spoke in known.spokes() {
                let text = by_way_of(&of, spoke, &version, &known.hub);
                files.push(conversion_file(&old, known, spoke, &version, &text));
                resource.conversions.push((spoke.clone(), version.clone()));
            }
            resource.hub = version;
        }
        let mut new = old.clone();
        if let Some(there) = new.resources.iter_mut().find(|other| *other == known) {
            *there = resource;
        }
        let changes = changed(folder, &old, new, files, around, self.write_options.force)?;
        let next =
            "Next: change its types and the conversion, and see that nothing is lost with:\n$ cargo test\n"
                .to_owned();
        Ok(Planned::new(changes, next))
    }
}

/// The files of a version that begins as a copy of the hub.
fn copy(folder: &Folder, project: &Project, known: &Resource, version: &Version) -> Result<Vec<File>, Error> {
    let path = kind::types_path(known, &known.hub);
    let Some(source) = folder.text(&path)? else {
        return Err(Error::Refused(format!("{path} is not there: a new version begins as a copy of it")));
    };
    let types = Types::read(&path, &source, &known.hub)?;
    let mut files = vec![
        File::copied(kind::types_path(known, version), types.copied(version)?),
        conversion_file(project, known, &known.hub, version, &types.conversions(&known.kind, version)),
    ];
    let sample_path = kind::sample_path(known, &known.hub);
    let Some(sample) = folder.text(&sample_path)? else {
        return Err(Error::Refused(format!(
            "{sample_path} is not there: the sample of a new version begins as a copy of it"
        )));
    };
    let group = project.api_group(known);
    let sample = sample.replace(
        &format!("apiVersion: {group}/{}\n", known.hub),
        &format!("apiVersion: {group}/{version}\n"),
    );
    files.push(File::copied(kind::sample_path(known, version), sample));
    files.push(kind::version_test(project, known, version));
    Ok(files)
}

fn conversion_file(project: &Project, known: &Resource, one: &Version, other: &Version, text: &str) -> File {
    let path = format!("{}/{}.rs", known.folder(), conversion_module(one, other));
    File::copied(path, rust(project, text))
}
