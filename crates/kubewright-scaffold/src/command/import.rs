//! `import crd`.

use std::{
    fs,
    io::{self, Read},
    path::PathBuf,
};

use clap::Args;

use super::{Environment, Planned, WriteOptions, changed};
use crate::{
    Error, File, Folder, import, kind,
    names::Version,
    project::{Body, Origin, Resource, Webhooks},
    templates::rust,
};

/// What `import crd` takes.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct ImportCrd {
    /// The definition, as YAML or JSON, or `-` for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Which of its versions [default: the one that is stored]
    #[arg(long)]
    pub version: Option<String>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment would be shown as a heading of the help")]
    pub write_options: WriteOptions,
}

impl ImportCrd {
    pub(super) fn plan(&self, folder: &Folder, around: &Environment) -> Result<Planned, Error> {
        let old = folder.project(&around.version)?;
        let version = self.version.as_deref().map(Version::new).transpose()?;
        let told = |error: Error| match error {
            Error::Refused(why) => Error::Refused(format!("{}: {why}", self.file.display())),
            other => other,
        };
        let imported = import::read(&self.text(folder)?, version.as_ref()).map_err(told)?;
        let resource = Resource {
            group: imported.group,
            kind: imported.kind,
            plural: imported.plural,
            namespaced: imported.namespaced,
            origin: Origin::Imported,
            controller: false,
            body: Body::Empty,
            versions: vec![imported.version.clone()],
            hub: imported.version,
            conversions: Vec::new(),
            webhooks: Webhooks::default(),
        };
        let types = kind::types_path(&resource, &resource.hub);
        let files = vec![File::copied(types, rust(&old, &imported.text))];
        let mut new = old.clone();
        let next = format!(
            "Next: read it in a controller of yours with .watches or .owns, or add one of its own with:\n\
             $ kubewright create api --group {} --version {} --kind {} --resource=false --controller\n",
            resource.group, resource.hub, resource.kind
        );
        new.add(resource)?;
        let changes = changed(folder, &old, new, files, around, self.write_options.force)?;
        Ok(Planned::new(changes, next))
    }

    fn text(&self, folder: &Folder) -> Result<String, Error> {
        if self.file.as_os_str() == "-" {
            return io::read_to_string(io::stdin().lock().take(LARGEST))
                .map_err(Error::io("read", "standard input"));
        }
        let path = folder.path().join(&self.file);
        fs::read_to_string(&path).map_err(Error::io("read", &self.file))
    }
}

/// No definition is larger than what an API server takes.
const LARGEST: u64 = 16 << 20;
