//! `upgrade`.

#[cfg(test)]
mod tests;

use clap::Args;

use super::{Environment, Planned};
use crate::{
    ChangeSet, Error, File, Folder,
    change::{Found, Whose, diff, merged},
    manifest,
    project::{Project, Sdk},
    record::Record,
    rendered,
    rustfmt::Rustfmt,
};

/// What `upgrade` takes.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct Upgrade {
    /// Where the SDK comes from now: a version, a folder (a checkout, or the crate in it), or a repository (URL#revision) [default: this version, in place of
    /// an older one]
    #[arg(long, value_name = "SDK")]
    pub sdk: Option<String>,

    /// Where you and this version have changed the same lines, write both into the file, between marks as git has them;
    /// without, nothing is changed then
    #[arg(long)]
    pub conflicts: bool,

    /// Change nothing; print what would change, and the diff
    #[arg(long)]
    pub dry_run: bool,
}

/// The mark at which a conflict begins.
const MARK: &str = "<<<<<<< yours";

impl Upgrade {
    pub(super) fn plan(&self, folder: &Folder, around: &Environment) -> Result<Planned, Error> {
        let version = around.version.as_str();
        let old = folder.project(version)?;
        let record = Record::of(folder, &old, version)?;
        let mut new = old.clone();
        version.clone_into(&mut new.cli_version);
        new.sdk = match &self.sdk {
            Some(sdk) => Sdk::said(sdk, folder)?,
            None => old.sdk.raised(version),
        };
        let files = rendered::files(&new, &record)?;
        let paths =
            files.iter().map(|file| file.path.as_str()).chain(record.texts().keys().map(String::as_str));
        let found = folder.found(paths)?;
        check_settled(&found)?;

        let mut upgrade = Merge {
            old: &old,
            new: &new,
            found: &found,
            record,
            rustfmt: around.formatter(folder),
            changes: ChangeSet::default(),
            notes: String::new(),
            conflicts: Vec::new(),
        };
        upgrade.dropped(&files);
        for file in files {
            upgrade.file(file);
        }
        if !self.conflicts {
            upgrade.refuse(version)?;
        }
        Ok(upgrade.planned(version))
    }
}

/// Refuses files in which the conflicts of an earlier upgrade still are.
fn check_settled(found: &Found) -> Result<(), Error> {
    let is_marked = |text: &String| text.lines().any(|line| line == MARK);
    let marked: Vec<&str> =
        found.iter().filter(|(_, text)| is_marked(text)).map(|(path, _)| path.as_str()).collect();
    if marked.is_empty() {
        return Ok(());
    }
    let remedy = "nothing was changed; choose between the lines at the marks, remove the marks, and run the command again";
    Err(Error::Refused(format!("an earlier upgrade left conflicts in {} ({remedy})", marked.join(", "))))
}

/// An upgrade on its way.
struct Merge<'a> {
    old: &'a Project,
    new: &'a Project,
    found: &'a Found,
    record: Record,
    rustfmt: Rustfmt,
    changes: ChangeSet,
    /// What else is to be told, in lines.
    notes: String,
    conflicts: Vec<Conflict>,
}

/// A file in which the user and the new version have changed the same lines.
struct Conflict {
    path: String,
    /// What the new version changes.
    wanted: String,
}

impl Merge<'_> {
    /// Files that earlier versions wrote and this one does not.
    fn dropped(&mut self, files: &[File]) {
        let is_written = |path: &String| files.iter().any(|file| file.path == *path);
        let dropped: Vec<(String, String)> = self
            .record
            .texts()
            .iter()
            .filter(|(path, _)| !is_written(path))
            .map(|(path, text)| (path.clone(), text.clone()))
            .collect();
        for (path, base) in dropped {
            self.record.forget(&path);
            match self.found.get(&path) {
                Some(theirs) if *theirs == base || *theirs == self.rustfmt.formatted(&path, &base) => {
                    self.changes.change(path, Some(theirs.clone()), None, false);
                }
                Some(_) => {
                    self.notes +=
                        &format!("{path} is no longer scaffolded; you have changed it, and it stays\n");
                }
                None => {}
            }
        }
    }

    /// A file that this version writes.
    fn file(&mut self, file: File) {
        let base = self.record.text(&file.path).map(str::to_owned);
        let theirs = self.found.get(&file.path).cloned();
        let after = match (base, theirs.as_deref()) {
            (None, None) => self.rustfmt.formatted(&file.path, &file.text),
            (None, Some(theirs))
                if theirs == file.text || theirs == self.rustfmt.formatted(&file.path, &file.text) =>
            {
                theirs.to_owned()
            }
            (None, Some(_)) => {
                if file.whose != Whose::UsersOwn {
                    self.notes += &format!(
                        "{} is yours and stays as it is; this version would write it, too\n",
                        file.path
                    );
                }
                return;
            }
            (Some(base), None) => {
                if base != file.text && !self.is_alike(&file, &base) {
                    self.notes += &format!("{} was removed by you and stays away\n", file.path);
                }
                return self.record.note(&file);
            }
            (Some(base), Some(theirs)) => self.merged(&file, &base, theirs),
        };
        self.record.note(&file);
        self.changes.change(file.path, theirs, Some(after), file.executable);
    }

    /// What the user and this version have made of `base`.
    fn merged(&mut self, file: &File, base: &str, theirs: &str) -> String {
        // Where the SDK comes from is said in a line that users add to: it is raised in place.
        let raised = |text: &str| match file.path.as_str() {
            manifest::MANIFEST => manifest::raised(text, &self.old.sdk, &self.new.sdk),
            _ => text.to_owned(),
        };
        let (base, mine) = (raised(base), raised(theirs));
        let elsewhere = || manifest::raised(&mine, &self.new.sdk, &self.old.sdk) == mine;
        if file.path == manifest::MANIFEST && self.old.sdk != self.new.sdk && elsewhere() {
            self.notes += "Cargo.toml does not say where the SDK comes from as it was scaffolded: raise it where that is said\n";
        }
        if base == file.text {
            return mine;
        }
        let ours = self.rustfmt.formatted(&file.path, &file.text);
        if base == mine {
            return ours;
        }
        let base = self.rustfmt.formatted(&file.path, &base);
        match merged(&base, &ours, &mine) {
            Ok(merged) => merged,
            // What a project could have had before it was one is not worth a conflict.
            Err(_) if file.whose == Whose::UsersOwn => {
                self.notes +=
                    &format!("{} stays as you have made it; this version changes it, too\n", file.path);
                mine
            }
            Err(marked) => {
                let wanted = diff(&file.path, Some(&base), Some(&ours));
                self.conflicts.push(Conflict { path: file.path.clone(), wanted });
                labelled(&marked, &self.new.cli_version)
            }
        }
    }

    /// Whether a file is what was written before but for how it is formatted.
    fn is_alike(&self, file: &File, base: &str) -> bool {
        self.rustfmt.formatted(&file.path, &file.text) == self.rustfmt.formatted(&file.path, base)
    }

    fn refuse(&self, version: &str) -> Result<(), Error> {
        if self.conflicts.is_empty() {
            return Ok(());
        }
        let remedy = "nothing was changed. Put these lines into it and run the command again, or let --conflicts write both, \
                      between marks";
        let mut told = format!(
            "you have changed what kubewright {version} changes in {}; {remedy}:\n",
            self.in_conflict().join(", ")
        );
        for conflict in &self.conflicts {
            told += &format!("\n{}", conflict.wanted);
        }
        Err(Error::Refused(told))
    }

    fn in_conflict(&self) -> Vec<String> {
        self.conflicts.iter().map(|conflict| conflict.path.clone()).collect()
    }

    fn planned(mut self, version: &str) -> Planned {
        self.changes.record = self.record.changes();
        self.changes.unformatted = self.rustfmt.failed();
        let conflicts = self.in_conflict();
        if self.changes.changes.is_empty() {
            let head =
                format!("{}nothing to do: the project is as kubewright {version} makes it\n", self.notes);
            return Planned {
                head,
                changes: self.changes,
                next: String::new(),
                conflicts,
                is_removal: false,
            };
        }
        Planned {
            is_removal: false,
            head: format!("Upgrading what was scaffolded to kubewright {version}...\n"),
            changes: self.changes,
            next: format!(
                "{}Next: see what has changed, and that the tests pass with:\n$ cargo test\n",
                self.notes
            ),
            conflicts,
        }
    }
}

/// A text with marks, which say whose the lines are.
fn labelled(marked: &str, version: &str) -> String {
    let label = |line: &str| match line {
        "<<<<<<< ours" => format!("{MARK}\n"),
        ">>>>>>> theirs" => format!(">>>>>>> kubewright {version}\n"),
        line => format!("{line}\n"),
    };
    marked.lines().map(label).collect()
}
