//! What the scaffold has written into a project: where a later version begins when it merges what it would write now with
//! what the user has made of it. Rust is in it as the templates have it, before rustfmt: whichever rustfmt with whichever
//! settings formats what is merged, it formats both sides, and what is the same here needs none.
//!
//! It is in the project, beside `PROJECT`, so that no version has to know the texts of all that were before it.

use crate::{
    Error, Folder, Project,
    change::{Change, File, Found, Whose},
    rendered,
};

/// The folder in the project that has them, each at its path.
pub(crate) const RECORD: &str = ".kubewright/scaffold";

/// What was written, and what the record on the disk says of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    texts: Found,
    on_disk: Found,
}

impl Record {
    /// That of a project that begins.
    pub(crate) fn begin(folder: &Folder) -> Result<Self, Error> {
        Ok(Self { texts: Found::new(), on_disk: folder.below(RECORD)? })
    }

    /// That of a project. Where it is lost, what this version would have written takes its place, if this version wrote it.
    ///
    /// # Errors
    /// When it is lost and another version wrote the project, or it cannot be read.
    pub(crate) fn of(folder: &Folder, project: &Project, version: &str) -> Result<Self, Error> {
        let on_disk = folder.below(RECORD)?;
        if !on_disk.is_empty() {
            return Ok(Self { texts: on_disk.clone(), on_disk });
        }
        if project.cli_version != version {
            let wrote = &project.cli_version;
            return Err(Error::Refused(format!(
                "{RECORD} is not there, which says what kubewright {wrote} wrote: restore it from your version control, or let \
                 the `kubewright upgrade` of that version write it anew"
            )));
        }
        let mut record = Self::default();
        let files = rendered::files(project, &record)?;
        let found = folder.found(files.iter().map(|file| file.path.as_str()))?;
        for file in files {
            match found.get(&file.path) {
                Some(there) if file.whose != Whose::UsersOwn || *there == file.text => record.note(&file),
                _ => {}
            }
        }
        Ok(record)
    }

    /// What was written to a path.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    /// All that was written.
    pub(crate) fn texts(&self) -> &Found {
        &self.texts
    }

    /// Notes that a file was written, unless it is one that no other version will write.
    pub(crate) fn note(&mut self, file: &File) {
        if file.whose != Whose::Copied {
            self.texts.insert(file.path.clone(), file.text.clone());
        }
    }

    /// Forgets a file, which the scaffold has no more.
    pub(crate) fn forget(&mut self, path: &str) {
        self.texts.remove(path);
    }

    /// What has to change on the disk.
    pub(crate) fn changes(&self) -> Vec<Change> {
        let gone = self.on_disk.keys().filter(|path| !self.texts.contains_key(*path));
        let paths = self.texts.keys().chain(gone);
        let change = |path: &String| Change {
            path: format!("{RECORD}/{path}"),
            before: self.on_disk.get(path).cloned(),
            after: self.texts.get(path).cloned(),
            executable: false,
        };
        paths.map(change).filter(|change| change.before != change.after).collect()
    }
}
