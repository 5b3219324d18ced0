//! What a command is about to change, as a value: computed from what is wanted and what is there.

use std::{collections::BTreeMap, fmt::Write};

use crate::{Error, record::Record, rustfmt::Rustfmt};

/// A file that a scaffold wants to be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Where, from the project's folder.
    pub path: String,
    /// What is in it, as the scaffold has it: Rust is formatted when it is written.
    pub text: String,
    /// Whether it is a program.
    pub executable: bool,
    /// Whose it is once it is there.
    pub whose: Whose,
}

/// Whose a file is once it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The user's: it is written once, and that it is there is a reason to refuse.
    Users,
    /// The user's, and made of what was theirs: no other version of Kubewright would make it better.
    Copied,
    /// The user's, who may have had it before: then it stays as it is.
    UsersOwn,
    /// Kubewright's, which goes on with it: from what it wrote before. What a user has changed meanwhile is merged.
    Kept,
}

impl File {
    /// A file that is the user's from now on.
    #[must_use]
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into(), executable: false, whose: Whose::Users }
    }

    /// A file that was made of what was the user's already.
    #[must_use]
    pub fn copied(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { whose: Whose::Copied, ..Self::new(path, text) }
    }

    /// A file that Kubewright goes on with.
    #[must_use]
    pub fn kept(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { whose: Whose::Kept, ..Self::new(path, text) }
    }
}

/// Texts of files by their path; of one that is not there, nothing.
pub type Found = BTreeMap<String, String>;

/// What is about to change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeSet {
    /// The files that are created, replaced or removed, each once.
    pub changes: Vec<Change>,
    /// What changes in the record of what was written.
    pub record: Vec<Change>,
    /// The files that were there before and stay as they are.
    pub untouched: Vec<String>,
    /// Why Rust in it is not formatted, if it was to be.
    pub unformatted: Option<String>,
}

/// A file that is created, replaced or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where, from the project's folder.
    pub path: String,
    /// What is in it, if it is there.
    pub before: Option<String>,
    /// What will be in it, if it will be there.
    pub after: Option<String>,
    /// Whether it is a program.
    pub executable: bool,
}

impl ChangeSet {
    /// What has to change so that `files` are there, and what was written before is in `record`. With `force` files of the
    /// user's are replaced, too. What is merged is formatted alike before: both what was written and what would be now.
    ///
    /// # Errors
    /// When a file of the user's is in the way, or one of Kubewright's has been changed so that it cannot be gone on with.
    pub(crate) fn plan(
        files: Vec<File>,
        found: &Found,
        mut record: Record,
        rustfmt: &Rustfmt,
        force: bool,
    ) -> Result<Self, Error> {
        let mut planned = Self::default();
        let (mut in_the_way, mut by_hand) = (Vec::new(), String::new());
        for file in files {
            let before = found.get(&file.path);
            let written = record.text(&file.path).map(str::to_owned);
            let ours = match (&file.whose, before) {
                (Whose::Kept, Some(theirs)) if written.as_ref() == Some(&file.text) => theirs.clone(),
                _ => rustfmt.formatted(&file.path, &file.text),
            };
            let after = match (&file.whose, before) {
                (_, None) => ours,
                (_, Some(before)) if *before == ours || *before == file.text => before.clone(),
                (Whose::UsersOwn, Some(_)) if !force => {
                    planned.untouched.push(file.path);
                    continue;
                }
                (Whose::Users | Whose::Copied, Some(_)) if !force => {
                    in_the_way.push(file.path);
                    continue;
                }
                (Whose::Kept, Some(theirs)) => match &written {
                    Some(base) if base == theirs => ours,
                    Some(base) => {
                        let base = rustfmt.formatted(&file.path, base);
                        match merged(&base, &ours, theirs) {
                            Ok(merged) => merged,
                            Err(_) if force => ours,
                            Err(_) => {
                                by_hand += &format!("\n{}", diff(&file.path, Some(&base), Some(&ours)));
                                continue;
                            }
                        }
                    }
                    None if force => ours,
                    None => {
                        in_the_way.push(file.path);
                        continue;
                    }
                },
                (_, Some(_)) => ours,
            };
            record.note(&file);
            planned.change(file.path, before.cloned(), Some(after), file.executable);
        }
        if !in_the_way.is_empty() {
            let remedy = "nothing was changed; move it away, or see with --force --dry-run what --force would overwrite";
            return Err(Error::Refused(format!("{} already exists ({remedy})", in_the_way.join(", "))));
        }
        if !by_hand.is_empty() {
            let why = "was edited where it has to change; nothing was changed. Put these lines into it, and run the command again";
            return Err(Error::Refused(format!("a file that kubewright keeps {why}:\n{by_hand}")));
        }
        planned.record = record.changes();
        planned.unformatted = rustfmt.failed();
        Ok(planned)
    }

    /// Adds a change, if it is one.
    pub(crate) fn change(
        &mut self,
        path: String,
        before: Option<String>,
        after: Option<String>,
        executable: bool,
    ) {
        if before != after {
            self.changes.push(Change { path, before, after, executable });
        }
    }

    /// All that is done on the disk.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().chain(&self.record)
    }

    /// The unified diff of all changes.
    #[must_use]
    pub fn diff(&self) -> String {
        self.changes
            .iter()
            .map(|change| diff(&change.path, change.before.as_deref(), change.after.as_deref()))
            .collect()
    }

    /// Those of its changes that replace a file.
    #[must_use]
    pub fn replaced(self) -> Self {
        let changes = self.changes.into_iter().filter(|change| change.before.is_some()).collect();
        Self { changes, ..Self::default() }
    }
}

/// What Kubewright and its user made of the same text, together; both with marks between them when they changed the same lines.
/// A hunk that the user has put in by hand is no conflict.
pub(crate) fn merged(before: &str, ours: &str, theirs: &str) -> Result<String, String> {
    let mut options = diffy::MergeOptions::new();
    options.set_conflict_style(diffy::ConflictStyle::Merge);
    options.merge(before, theirs, ours).or_else(|marked| {
        let patch = diffy::create_patch(before, ours);
        let (done, left): (Vec<_>, Vec<_>) = patch.hunks().iter().partition(|hunk| {
            options.merge(before, theirs, &with_hunks(before, &[hunk])).is_err()
                && is_done(hunk, ours, theirs)
        });
        if done.is_empty() {
            return Err(marked);
        }
        options.merge(before, theirs, &with_hunks(before, &left))
    })
}

/// A text after these hunks of a patch of it.
fn with_hunks(before: &str, hunks: &[&diffy::Hunk<'_, str>]) -> String {
    let lines: Vec<&str> = before.split_inclusive('\n').collect();
    let (mut text, mut next) = (String::new(), 0);
    for hunk in hunks {
        let range = hunk.old_range();
        // Lines are counted from 1; a hunk has lines around it, so that it has none of the old text only where that is empty.
        let start = range.start().saturating_sub(1);
        text.extend(lines[next..start].iter().copied());
        for line in hunk.lines() {
            if let diffy::Line::Context(line) | diffy::Line::Insert(line) = line {
                text.push_str(line);
            }
        }
        next = start + range.len();
    }
    text.extend(lines[next..].iter().copied());
    text
}

/// Whether a user has done by hand what a hunk does: there is what it adds, and not what it takes away. Lines without a word,
/// such as braces, say nothing of that.
fn is_done(hunk: &diffy::Hunk<'_, str>, ours: &str, theirs: &str) -> bool {
    let says = |line: &str| line.contains(char::is_alphanumeric);
    let there = |line: &str| theirs.lines().any(|other| other.trim() == line.trim());
    let mut added = false;
    for line in hunk.lines() {
        match line {
            diffy::Line::Insert(line) if says(line) => {
                if !there(line) {
                    return false;
                }
                added = true;
            }
            diffy::Line::Delete(line) if says(line) && there(line) && !ours.contains(line) => return false,
            _ => {}
        }
    }
    added
}

/// The unified diff of a file.
pub(crate) fn diff(path: &str, before: Option<&str>, after: Option<&str>) -> String {
    let mut options = diffy::DiffOptions::new();
    let name = |side: char, text: Option<&str>| match text {
        Some(_) => format!("{side}/{path}"),
        None => "/dev/null".to_owned(),
    };
    options.set_original_filename(name('a', before)).set_modified_filename(name('b', after));
    let mut text = String::new();
    let patch = options.create_patch(before.unwrap_or_default(), after.unwrap_or_default());
    // Writing to a String cannot fail.
    let _ = write!(text, "{patch}");
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BASE: &str = "//! Kept.\n\nmod a;\n\npub fn all() {\n    a::add();\n}\n";
    const OURS: &str = "//! Kept.\n\nmod a;\nmod b;\n\npub fn all() {\n    a::add();\n    b::add();\n}\n";

    fn plan(file: File, there: Option<&str>, force: bool) -> Result<ChangeSet, Error> {
        let found = there.map(|text| (file.path.clone(), text.to_owned())).into_iter().collect();
        ChangeSet::plan(vec![file], &found, Record::default(), &Rustfmt::default(), force)
    }

    /// [`OURS`] into a file that was [`BASE`], and that its user has made `theirs` of.
    fn gone_on(theirs: &str) -> Result<ChangeSet, Error> {
        let mut record = Record::default();
        record.note(&File::kept("kinds.rs", BASE));
        let found = [("kinds.rs".to_owned(), theirs.to_owned())].into();
        ChangeSet::plan(vec![File::kept("kinds.rs", OURS)], &found, record, &Rustfmt::default(), false)
    }

    #[test]
    fn kb_14_a_file_of_the_user_is_in_the_way_and_nothing_changes() {
        let refused =
            plan(File::new("src/a.rs", "new"), Some("mine"), false).expect_err("refused").to_string();
        assert!(refused.starts_with("src/a.rs already exists (nothing was changed;"), "{refused}");
    }

    #[test]
    fn with_force_it_is_replaced_and_the_diff_shows_what_is_lost() {
        let planned = plan(File::new("src/a.rs", "new\n"), Some("mine\n"), true).expect("a plan");
        assert_eq!(planned.diff(), "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1 @@\n-mine\n+new\n");
    }

    #[test]
    fn what_is_there_already_is_no_change() {
        let planned = plan(File::new("a", "same"), Some("same"), false).expect("a plan");
        assert_eq!(planned.changes, []);
    }

    #[test]
    fn a_new_file_is_shown_as_one() {
        let planned = plan(File::new("a", "text\n"), None, false).expect("a plan");
        assert_eq!(planned.diff(), "--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+text\n");
    }

    #[test]
    fn what_a_user_added_to_a_kept_file_stays() {
        let theirs = BASE.replace("//! Kept.", "//! Kept.\n//! And read.");
        let after = gone_on(&theirs).expect("a plan").changes[0].after.clone();
        assert_eq!(after, Some(OURS.replace("//! Kept.", "//! Kept.\n//! And read.")));
    }

    #[test]
    fn an_edit_in_the_way_is_told_with_the_lines_to_add_and_accepted_once_they_are_there() {
        let theirs = BASE.replace("mod a;", "mod mine;").replace("    a::add();", "    mine::add();");
        let refused = gone_on(&theirs).expect_err("refused").to_string();
        assert!(refused.contains("\n+mod b;\n") && refused.contains("\n+    b::add();\n"), "{refused}");

        let by_hand = theirs.replace("mod mine;", "mod mine;\nmod b;").replace("}", "    b::add();\n}");
        assert_eq!(gone_on(&by_hand).expect("a plan").changes, []);
    }

    #[test]
    fn a_readme_that_was_there_first_stays() {
        let file = File { whose: Whose::UsersOwn, ..File::new("README.md", "ours") };
        let planned = plan(file, Some("theirs"), false).expect("a plan");
        assert_eq!((planned.changes.len(), planned.untouched), (0, vec!["README.md".to_owned()]));
    }

    proptest! {
        /// Without --force no line that a user has put into a kept file is lost.
        #[test]
        fn no_line_of_the_users_is_lost(at in 0..9_usize, line in "// [a-z]{1,8}") {
            let mut theirs: Vec<&str> = BASE.lines().collect();
            theirs.insert(at.min(theirs.len()), &line);
            let theirs = theirs.join("\n") + "\n";
            if let Ok(planned) = gone_on(&theirs) {
                let after = planned.changes[0].after.clone().unwrap_or_default();
                prop_assert!(after.lines().any(|kept| kept == line));
            }
        }
    }
}
