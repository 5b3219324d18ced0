//! Changes are made all at once: whoever is killed half-way leaves a project that is as before, or is as planned after the
//! next command.
//!
//! New contents are first written beside the project's files, into [`STAGING`]. A journal that is moved into place there is
//! the moment from which the change is decided: a folder with a journal is rolled forward by the next command, one without
//! is removed. What is decided is on the disk before it is, and what was done is before the journal goes; what need not wait for
//! each other goes to the disk at once, as that is what takes the time.

use std::{
    collections::BTreeSet,
    fmt,
    fs::{self, File},
    io::{self, Write},
    panic,
    path::{Path, PathBuf},
    thread,
};

use serde::{Deserialize, Serialize};

use crate::{ChangeSet, Error};

/// The folder in the project in which changes are prepared.
pub(crate) const STAGING: &str = ".kubewright-scaffold";
const JOURNAL: &str = "journal";
/// How many files are brought to the disk at once.
const AT_ONCE: usize = 16;

/// One step of making a change. Paths are those from the project's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// Make a folder and those above it, where they are not there.
    Folder(PathBuf),
    /// Write a file.
    Write { path: PathBuf, bytes: Vec<u8>, executable: bool },
    /// Move a file to its place, over one that is there.
    Move { from: PathBuf, to: PathBuf },
    /// See that files, and what is in folders, are on the disk.
    Sync(Vec<PathBuf>),
    /// Remove a file that may be gone already, and the folders that are empty without it.
    Delete(PathBuf),
    /// Remove a folder with all that is in it.
    Remove(PathBuf),
}

/// How what another command had begun was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mended {
    /// It had not been decided.
    Undone,
    /// It had been decided.
    Completed,
}

impl fmt::Display for Mended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Undone => "an interrupted command was undone",
            Self::Completed => "an interrupted command was completed",
        })
    }
}

/// What is decided once it is there.
#[derive(Debug, Serialize, Deserialize)]
struct Journal {
    /// Where the staged files 0, 1, ... belong.
    files: Vec<PathBuf>,
    /// Files that go.
    #[serde(default)]
    removed: Vec<PathBuf>,
}

impl Journal {
    /// The folders that files come into, and all above them.
    fn folders(&self) -> Vec<PathBuf> {
        let folders = self.files.iter().flat_map(|path| path.ancestors().skip(1));
        folders.map(Path::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// A project's folder that this process alone is changing.
#[derive(Debug)]
pub(crate) struct Locked<'a> {
    root: &'a Path,
    /// Released when it is closed.
    _lock: File,
}

impl<'a> Locked<'a> {
    /// Takes the folder, and ends what another command had begun. Gives how.
    ///
    /// # Errors
    /// When another command is at work in it, or it cannot be written.
    pub(crate) fn take(root: &'a Path) -> Result<(Self, Option<Mended>), Error> {
        let lock = File::open(root).map_err(Error::io("open", root))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                let path = root.display();
                return Err(Error::Refused(format!(
                    "another kubewright is changing {path}: try again when it is done"
                )));
            }
            Err(fs::TryLockError::Error(error)) => return Err(Error::io("lock", root)(error)),
        }
        let locked = Self { root, _lock: lock };
        let mended = locked.recover()?;
        Ok((locked, mended))
    }

    /// Makes the changes.
    ///
    /// # Errors
    /// When the machine does not do a step. Then nothing is changed, or it is once the next command comes.
    pub(crate) fn apply(&self, changes: &ChangeSet) -> Result<(), Error> {
        let Err(error) = steps(changes).iter().try_for_each(|step| self.step(step)) else { return Ok(()) };
        // The disk may be full: what was staged makes room again. Of what was decided the journal goes on to tell.
        match self.recover() {
            Ok(Some(Mended::Completed)) => Ok(()),
            _ => Err(error),
        }
    }

    /// Ends what was begun: forward where it was decided, back where it was not.
    fn recover(&self) -> Result<Option<Mended>, Error> {
        let staging = self.root.join(STAGING);
        if !staging.exists() {
            return Ok(None);
        }
        // An empty folder is the first step of a command, or the last: nothing is to be told of it.
        let has_files = fs::read_dir(&staging).is_ok_and(|mut entries| entries.next().is_some());
        let journal = staging.join(JOURNAL);
        let told = match fs::read(&journal) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Some(Mended::Undone).filter(|_| has_files)
            }
            Err(error) => return Err(Error::io("read", journal)(error)),
            Ok(text) => {
                let decided: Journal = serde_json::from_slice(&text).map_err(|error| {
                    let path = journal.display();
                    Error::Refused(format!("{path} is damaged ({error}): the new files are beside it; remove {STAGING} when you have what you need"))
                })?;
                self.roll_forward(&decided)?;
                Some(Mended::Completed)
            }
        };
        self.step(&Step::Remove(STAGING.into()))?;
        Ok(told)
    }

    fn roll_forward(&self, journal: &Journal) -> Result<(), Error> {
        for (index, path) in journal.files.iter().enumerate() {
            let from = staged(index);
            if self.root.join(&from).exists() {
                for step in placing(from, path.clone()) {
                    self.step(&step)?;
                }
            }
        }
        journal.removed.iter().try_for_each(|path| self.step(&Step::Delete(path.clone())))?;
        self.step(&Step::Sync(journal.folders()))
    }

    fn step(&self, step: &Step) -> Result<(), Error> {
        match step {
            Step::Folder(path) => {
                let path = self.root.join(path);
                fs::create_dir_all(&path).map_err(Error::io("make the folder", &path))
            }
            Step::Write { path, bytes, executable } => {
                let path = self.root.join(path);
                write(&path, bytes, *executable).map_err(Error::io("write", &path))
            }
            Step::Move { from, to } => {
                let (from, to) = (self.root.join(from), self.root.join(to));
                fs::rename(&from, &to).map_err(Error::io("write", &to))
            }
            Step::Sync(paths) => self.sync(paths),
            Step::Delete(path) => self.delete(path),
            Step::Remove(path) => {
                let path = self.root.join(path);
                // First the journal: what is half removed is not to be taken for what is to be undone or done.
                match fs::remove_file(path.join(JOURNAL)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(Error::io("remove", path.join(JOURNAL))(error));
                    }
                    _ => {}
                }
                fs::remove_dir_all(&path).map_err(Error::io("remove", &path))
            }
        }
    }

    fn sync(&self, paths: &[PathBuf]) -> Result<(), Error> {
        let each = |paths: &[PathBuf]| paths.iter().try_for_each(|path| sync(&self.root.join(path)));
        let share = paths.len().div_ceil(AT_ONCE).max(1);
        thread::scope(|scope| {
            let begun: Vec<_> = paths.chunks(share).map(|share| scope.spawn(move || each(share))).collect();
            let mut ended =
                begun.into_iter().map(|one| one.join().unwrap_or_else(|why| panic::resume_unwind(why)));
            ended.try_for_each(|result| result)
        })
    }

    fn delete(&self, path: &Path) -> Result<(), Error> {
        let full = self.root.join(path);
        match fs::remove_file(&full) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", full)(error)),
            _ => {
                let above = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
                for folder in above {
                    // One that is not empty stays.
                    if fs::remove_dir(self.root.join(folder)).is_err() {
                        return Ok(());
                    }
                }
                Ok(())
            }
        }
    }
}

/// All that is done for a change, in order.
fn steps(changes: &ChangeSet) -> Vec<Step> {
    let staging = Path::new(STAGING);
    let mut steps = vec![Step::Folder(staging.to_owned())];
    let mut decided = Journal { files: Vec::new(), removed: Vec::new() };
    for change in changes.all() {
        let path = PathBuf::from(&change.path);
        let Some(text) = &change.after else {
            decided.removed.push(path);
            continue;
        };
        let (staged, bytes) = (staged(decided.files.len()), text.clone().into_bytes());
        steps.push(Step::Write { path: staged, bytes, executable: change.executable });
        decided.files.push(path);
    }
    if decided.files.is_empty() && decided.removed.is_empty() {
        return Vec::new();
    }
    let mut written: Vec<PathBuf> = (0..decided.files.len()).map(staged).collect();
    written.extend([staging.to_owned(), PathBuf::new()]);
    steps.push(Step::Sync(written));
    let (journal, folders) = (serde_json::to_vec(&decided).unwrap_or_default(), decided.folders());
    let draft = staging.join("journal.new");
    steps.push(Step::Write { path: draft.clone(), bytes: journal, executable: false });
    steps.push(Step::Sync(vec![draft.clone()]));
    steps.push(Step::Move { from: draft, to: staging.join(JOURNAL) });
    steps.push(Step::Sync(vec![staging.to_owned()]));
    for (index, path) in decided.files.into_iter().enumerate() {
        steps.extend(placing(staged(index), path));
    }
    steps.extend(decided.removed.into_iter().map(Step::Delete));
    steps.push(Step::Sync(folders));
    steps.push(Step::Remove(staging.to_owned()));
    steps
}

fn placing(from: PathBuf, to: PathBuf) -> [Step; 2] {
    let folder = to.parent().unwrap_or_else(|| Path::new("")).to_owned();
    [Step::Folder(folder), Step::Move { from, to }]
}

fn staged(index: usize) -> PathBuf {
    Path::new(STAGING).join(index.to_string())
}

fn write(path: &Path, bytes: &[u8], executable: bool) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    #[cfg(unix)]
    if executable {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

fn sync(path: &Path) -> Result<(), Error> {
    File::open(path).and_then(|file| file.sync_all()).map_err(Error::io("write", path))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{change::Change, folder::tests::Scratch};

    fn change(path: &str, before: Option<&str>, after: &str) -> Change {
        let before = before.map(str::to_owned);
        Change { path: path.to_owned(), before, after: Some(after.to_owned()), executable: path == "run" }
    }

    /// Does the first `done` steps of a change as one command that is killed then, and lets the next one look at it. Gives
    /// whether there were more steps.
    pub(crate) fn killed_after(root: &Path, changes: &ChangeSet, done: usize) -> bool {
        let all = steps(changes);
        let (locked, _) = Locked::take(root).expect("free");
        all.iter().take(done).try_for_each(|step| locked.step(step)).expect("done");
        drop(locked);
        Locked::take(root).expect("free");
        done < all.len()
    }

    fn changes() -> ChangeSet {
        let changes = vec![
            change("PROJECT", Some("old"), "new"),
            change("src/kinds/a.rs", None, "a"),
            change("run", None, "#!/bin/sh"),
            change("src/lib.rs", Some("old lib"), "new lib"),
            Change { after: None, ..change("src/gone/old.rs", Some("old"), "") },
        ];
        ChangeSet { changes, record: vec![change("kept/PROJECT", None, "new")], ..ChangeSet::default() }
    }

    fn begun(test: &str) -> Scratch {
        let scratch = Scratch::new(test);
        scratch.put("PROJECT", "old");
        scratch.put("src/lib.rs", "old lib");
        scratch.put("src/gone/old.rs", "old");
        scratch.put("src/mine.rs", "mine");
        scratch
    }

    /// Killed between any two steps, a project is as before or as planned when the next command has looked at it.
    #[test]
    fn killed_at_any_step_the_old_or_the_new_is_left() {
        let all = steps(&changes());
        let (mut old, mut new) = (0, 0);
        let before = begun("untouched").files();
        let after = {
            let scratch = begun("changed");
            Locked::take(scratch.path()).expect("free").0.apply(&changes()).expect("applied");
            scratch.files()
        };
        assert_eq!(after["src/kinds/a.rs"], "a");
        assert!(!after.contains_key("src/gone/old.rs") && after.contains_key("kept/PROJECT"), "{after:?}");
        for done in 0..=all.len() {
            let scratch = begun("killed");
            let (locked, _) = Locked::take(scratch.path()).expect("free");
            all[..done].iter().try_for_each(|step| locked.step(step)).expect("done");
            drop(locked);
            let (_, told) = Locked::take(scratch.path()).expect("free");
            let left = scratch.files();
            assert!(left == before || left == after, "killed after {done}: {left:?}");
            if left == before {
                old += 1;
            } else {
                new += 1;
            }
            assert_eq!(told.is_none(), done < 2 || done == all.len(), "killed after {done}: {told:?}");
        }
        assert!(old > 4 && new > 4, "{old} {new}");
    }

    /// Nor does it matter when the command that cleans up is killed.
    #[test]
    fn killed_while_it_is_completed_it_is_completed_later() {
        let all = steps(&changes());
        let decided = all.iter().position(|step| matches!(step, Step::Move { .. })).expect("a journal") + 1;
        for done in decided..all.len() {
            for again in done..all.len() {
                let scratch = begun("twice");
                let (locked, _) = Locked::take(scratch.path()).expect("free");
                all[..done].iter().try_for_each(|step| locked.step(step)).expect("done");
                // What is completed are the same steps.
                all[done..again].iter().try_for_each(|step| locked.step(step)).expect("done");
                drop(locked);
                Locked::take(scratch.path()).expect("free");
                let left: BTreeMap<_, _> = scratch.files();
                assert_eq!((&*left["PROJECT"], &*left["src/lib.rs"]), ("new", "new lib"));
            }
        }
    }

    #[test]
    fn two_commands_do_not_change_a_project_at_once() {
        let scratch = begun("two");
        let _first = Locked::take(scratch.path()).expect("free");
        let refused = Locked::take(scratch.path()).expect_err("taken").to_string();
        assert!(refused.contains("another kubewright is changing"), "{refused}");
    }

    #[cfg(unix)]
    #[test]
    fn programs_can_be_run() {
        use std::os::unix::fs::PermissionsExt;
        let scratch = begun("mode");
        Locked::take(scratch.path()).expect("free").0.apply(&changes()).expect("applied");
        let mode =
            |path: &str| fs::metadata(scratch.path().join(path)).expect("there").permissions().mode() & 0o111;
        assert_eq!((mode("run"), mode("PROJECT")), (0o111, 0));
    }

    /// A folder in the place of a file is found before anything is decided, or while it is: both end well.
    #[test]
    fn a_step_that_fails_leaves_a_journal_or_nothing() {
        let scratch = begun("fails");
        fs::create_dir_all(scratch.path().join("run/inside")).expect("made");
        let (locked, _) = Locked::take(scratch.path()).expect("free");
        assert!(locked.apply(&changes()).is_err());
        drop(locked);
        fs::remove_dir_all(scratch.path().join("run")).expect("removed");
        let (_, told) = Locked::take(scratch.path()).expect("free");
        assert_eq!(told, Some(Mended::Completed));
        assert_eq!(scratch.files()["src/lib.rs"], "new lib");
    }
}
