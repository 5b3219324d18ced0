//! A project's folder.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    Error, Project,
    apply::STAGING,
    change::Found,
    project::{self, PROJECT},
};

/// A folder that is, or will be, a project's.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// The folder at a path.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Its project, for a command of `version`.
    ///
    /// # Errors
    /// When there is none, its `PROJECT` cannot be used, or was written by a later version.
    pub fn project(&self, version: &str) -> Result<Project, Error> {
        match self.text(PROJECT)? {
            Some(text) => {
                project::check_age(&text, version)?;
                Project::parse(&text)
            }
            None => Err(Error::Refused(
                "Command must be run from a directory containing PROJECT (kubewright init makes one)"
                    .to_owned(),
            )),
        }
    }

    /// Refuses a folder in which no project can begin.
    pub(crate) fn check_is_new(&self) -> Result<(), Error> {
        if self.text(PROJECT)?.is_some() {
            let remedy = "nothing was changed; kubewright create api adds to it";
            return Err(Error::Refused(format!("the project is already initialized ({remedy})")));
        }
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.0).map_err(Error::io("read", &self.0))? {
            let entry = entry.map_err(Error::io("read", &self.0))?;
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        let allowed = |name: &String| {
            name.starts_with('.')
                || name.ends_with(".md")
                || (name != "Cargo.toml" && name.starts_with(|first: char| first.is_uppercase()))
        };
        match names.iter().find(|name| !allowed(name)) {
            None => Ok(()),
            Some(found) => Err(Error::Refused(format!(
                "target directory is not empty (only files and directories with the prefix \".\", files with the suffix \
                 \".md\" or capitalized files names are allowed); found existing file {found:?}"
            ))),
        }
    }

    /// The texts of those of the files that are there.
    pub(crate) fn found<'a>(&self, paths: impl Iterator<Item = &'a str>) -> Result<Found, Error> {
        let mut found = Found::new();
        for path in paths {
            if let Some(text) = self.text(path)? {
                found.insert(path.to_owned(), text);
            }
        }
        Ok(found)
    }

    /// The text of a file, if it is there.
    pub(crate) fn text(&self, path: &str) -> Result<Option<String>, Error> {
        let full = self.0.join(path);
        match fs::read_to_string(&full) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                let why = "a file is where a folder has to be";
                Err(Error::Refused(format!("cannot write {}: {why}", full.display())))
            }
            Err(error) => Err(Error::io("read", full)(error)),
        }
    }

    /// The texts of all files below a folder, by their paths from there.
    pub(crate) fn below(&self, path: &str) -> Result<Found, Error> {
        let root = self.0.join(path);
        let (mut found, mut folders) = (Found::new(), vec![root.clone()]);
        while let Some(folder) = folders.pop() {
            let entries = match fs::read_dir(&folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                result => result.map_err(Error::io("read", &folder))?,
            };
            for entry in entries {
                let entry = entry.map_err(Error::io("read", &folder))?;
                let path = entry.path();
                if entry.file_type().map_err(Error::io("read", &path))?.is_dir() {
                    folders.push(path);
                } else if let Ok(name) = path.strip_prefix(&root) {
                    let text = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
                    found.insert(name.to_string_lossy().replace('\\', "/"), text);
                }
            }
        }
        Ok(found)
    }

    /// Whether a command was interrupted here.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.0.join(STAGING).exists()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::{
        collections::BTreeMap,
        sync::atomic::{AtomicU32, Ordering},
    };

    use super::*;

    /// A folder of its own for one test, removed at its end.
    #[derive(Debug)]
    pub(crate) struct Scratch(PathBuf);

    impl Scratch {
        pub(crate) fn new(test: &str) -> Self {
            static NUMBER: AtomicU32 = AtomicU32::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir()
                .join(format!("kubewright-scaffold-{test}-{}-{number}", std::process::id()));
            fs::create_dir_all(&path).expect("a temporary folder");
            Self(path)
        }

        pub(crate) fn path(&self) -> &Path {
            &self.0
        }

        pub(crate) fn put(&self, path: &str, text: &str) {
            let full = self.0.join(path);
            fs::create_dir_all(full.parent().expect("a folder")).expect("made");
            fs::write(full, text).expect("written");
        }

        /// All files with their texts.
        pub(crate) fn files(&self) -> BTreeMap<String, String> {
            let mut files = BTreeMap::new();
            let mut folders = vec![self.0.clone()];
            while let Some(folder) = folders.pop() {
                for entry in fs::read_dir(folder).expect("read") {
                    let path = entry.expect("read").path();
                    if path.is_dir() {
                        folders.push(path);
                    } else {
                        let name = path.strip_prefix(&self.0).expect("inside").display().to_string();
                        files.insert(name, fs::read_to_string(path).expect("text"));
                    }
                }
            }
            files
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn kb_32_a_folder_with_other_files_is_refused_with_one_of_them() {
        let scratch = Scratch::new("kb-32");
        for allowed in [".git/config", "README.md", "notes.md", "LICENSE", "OWNERS"] {
            scratch.put(allowed, "");
        }
        let folder = Folder::new(scratch.path());
        folder.check_is_new().expect("only what is allowed");
        scratch.put("main.go", "");
        let refused = folder.check_is_new().expect_err("not empty").to_string();
        assert!(refused.starts_with("target directory is not empty"), "{refused}");
        assert!(refused.ends_with("found existing file \"main.go\""), "{refused}");
    }

    #[test]
    fn kb_13_without_a_project_there_is_nothing_to_add_to() {
        let scratch = Scratch::new("kb-13");
        let refused = Folder::new(scratch.path()).project("0.1.0").expect_err("no project");
        assert!(refused.to_string().starts_with("Command must be run from a directory containing PROJECT"));
        assert_eq!(refused.exit_code(), 1);
    }
}
