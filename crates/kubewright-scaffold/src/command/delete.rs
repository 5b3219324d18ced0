//! `delete api`.

use clap::Args;

use super::{Ask, Environment, Names, Planned, WriteOptions, changed};
use crate::{ChangeSet, Error, Folder, kind, record::Record, rendered};

/// What `delete api` takes.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct DeleteApi {
    /// The group, without the project's domain, such as `police`
    #[arg(long)]
    pub group: Option<String>,

    /// The kind, such as `WhiteList`
    #[arg(long)]
    pub kind: Option<String>,

    /// Change nothing; print what would change, and the diff
    #[arg(long)]
    pub dry_run: bool,

    /// Remove files that you have changed, too; what they had is printed
    #[arg(long)]
    pub force: bool,
}

impl DeleteApi {
    pub(super) fn write_options(&self) -> WriteOptions {
        WriteOptions { dry_run: self.dry_run, force: self.force }
    }

    pub(super) fn plan(
        &self,
        folder: &Folder,
        around: &Environment,
        ask: &mut dyn Ask,
    ) -> Result<Planned, Error> {
        let old = folder.project(&around.version)?;
        let names = Names { group: self.group.clone(), version: None, kind: self.kind.clone() };
        let (group, kind_name) = (names.group(ask)?, names.kind(ask)?);
        let Some(known) = old.find(&group, &kind_name) else {
            let there: Vec<String> = old
                .resources
                .iter()
                .map(|known| format!("{} of group {}", known.kind, known.group))
                .collect();
            return Err(Error::Refused(format!(
                "there is no API resource {kind_name} of group {group} (there is: {})",
                if there.is_empty() { "none".to_owned() } else { there.join(", ") }
            )));
        };
        let mut new = old.clone();
        new.resources.retain(|resource| resource != known);

        let record = Record::of(folder, &old, &around.version)?;
        let after = rendered::files(&new, &record)?;
        let stays = |path: &str| after.iter().any(|file| file.path == path);
        let mut paths: Vec<String> =
            rendered::files(&old, &record)?.into_iter().map(|file| file.path).collect();
        paths.extend(
            folder.below(&known.folder())?.into_keys().map(|path| format!("{}/{path}", known.folder())),
        );
        // Those of later versions are copies.
        paths.extend(known.versions.iter().map(|version| kind::sample_path(known, version)));
        paths.retain(|path| !stays(path));
        paths.sort();
        paths.dedup();

        let found = folder.found(paths.iter().map(String::as_str))?;
        let rustfmt = around.formatter(folder);
        let is_as_written = |path: &str, text: &str| {
            record.text(path).is_some_and(|base| base == text || rustfmt.formatted(path, base) == text)
        };
        let edited: Vec<&str> = paths
            .iter()
            .filter(|path| found.get(*path).is_some_and(|text| !is_as_written(path, text)))
            .map(String::as_str)
            .collect();
        if !self.force && !edited.is_empty() {
            let remedy = "nothing was changed; see with --force --dry-run what --force would remove";
            return Err(Error::Refused(format!(
                "there is work of yours in {} ({remedy})",
                edited.join(", ")
            )));
        }
        let mut changes = changed(folder, &old, new, Vec::new(), around, self.force)?;
        changes.remove(&found, record, &paths);
        let head = format!("Removing {kind_name} of group {group}...\n");
        let next = "Objects of the kind, and its definition, stay in clusters where they are: kubectl delete crd removes them.\n";
        Ok(Planned { head, is_removal: true, ..Planned::new(changes, next.to_owned()) })
    }
}

impl ChangeSet {
    /// Removes files, from the project and from the record of what was written.
    fn remove(&mut self, found: &crate::Found, mut record: Record, paths: &[String]) {
        for path in paths {
            record.forget(path);
            if let Some(text) = found.get(path) {
                self.change(path.clone(), Some(text.clone()), None, false);
            }
        }
        let gone = record.changes().into_iter().filter(|change| change.after.is_none());
        self.record.extend(gone);
    }
}
