//! What a command is about to change, as a value: computed from what is wanted and what is there.

use std::{collections::BTreeMap, fmt::Write};

use crate::Error;

/// A file that a scaffold wants to be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Where, from the project's folder.
    pub path: String,
    /// What is in it.
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
    /// The user's, who may have had it before: then it stays as it is.
    UsersOwn,
    /// Kubewright's, which goes on with it: from this text, when it had written it before. What a user has changed meanwhile
    /// is merged.
    Kept {
        /// What the same command would have written for the project as it was.
        before: Option<String>,
    },
}

impl File {
    /// A file that is the user's from now on.
    #[must_use]
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into(), executable: false, whose: Whose::Users }
    }

    /// A file that Kubewright goes on with, from what it wrote `before`.
    #[must_use]
    pub fn kept(path: impl Into<String>, text: impl Into<String>, before: Option<String>) -> Self {
        Self { whose: Whose::Kept { before }, ..Self::new(path, text) }
    }
}

/// Texts of files by their path; of one that is not there, nothing.
pub type Found = BTreeMap<String, String>;

/// What is about to change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeSet {
    /// The files that are created or replaced, each once.
    pub changes: Vec<Change>,
    /// The files that were there before and stay as they are.
    pub untouched: Vec<String>,
}

/// A file that is created or replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where, from the project's folder.
    pub path: String,
    /// What is in it, if it is there.
    pub before: Option<String>,
    /// What will be in it.
    pub after: String,
    /// Whether it is a program.
    pub executable: bool,
}

impl ChangeSet {
    /// What has to change so that `files` are there. With `force` files of the user's are replaced, too.
    ///
    /// # Errors
    /// When a file of the user's is in the way, or one of Kubewright's has been changed so that it cannot be gone on with.
    pub fn plan(files: Vec<File>, found: &Found, force: bool) -> Result<Self, Error> {
        let mut planned = Self::default();
        let (mut in_the_way, mut by_hand) = (Vec::new(), String::new());
        for file in files {
            let before = found.get(&file.path);
            let after = match (&file.whose, before) {
                (_, None) => file.text,
                (_, Some(before)) if *before == file.text => continue,
                (Whose::UsersOwn, Some(_)) if !force => {
                    planned.untouched.push(file.path);
                    continue;
                }
                (Whose::Users, Some(_)) if !force => {
                    in_the_way.push(file.path);
                    continue;
                }
                (Whose::Kept { before: Some(ours) }, Some(theirs)) => {
                    match merged(ours, &file.text, theirs) {
                        Some(merged) => merged,
                        None if force => file.text,
                        None => {
                            by_hand += &format!("\n{}", diff(&file.path, Some(ours), &file.text));
                            continue;
                        }
                    }
                }
                (Whose::Kept { before: None }, Some(_)) if !force => {
                    in_the_way.push(file.path);
                    continue;
                }
                (_, Some(_)) => file.text,
            };
            let before = before.cloned();
            planned.changes.push(Change { path: file.path, before, after, executable: file.executable });
        }
        if !in_the_way.is_empty() {
            let remedy = "nothing was changed; move it away, or see with --force --dry-run what --force would overwrite";
            return Err(Error::Refused(format!("{} already exists ({remedy})", in_the_way.join(", "))));
        }
        if !by_hand.is_empty() {
            let why = "was edited where it has to change; nothing was changed. Put these lines into it, and run the command again";
            return Err(Error::Refused(format!("a file that kubewright keeps {why}:\n{by_hand}")));
        }
        Ok(planned)
    }

    /// The unified diff of all changes.
    #[must_use]
    pub fn diff(&self) -> String {
        self.changes
            .iter()
            .map(|change| diff(&change.path, change.before.as_deref(), &change.after))
            .collect()
    }

    /// Those of its changes that replace a file.
    #[must_use]
    pub fn replaced(self) -> Self {
        let changes = self.changes.into_iter().filter(|change| change.before.is_some()).collect();
        Self { changes, untouched: Vec::new() }
    }
}

/// What Kubewright and its user made of the same text, together; nothing when they changed the same lines.
fn merged(before: &str, ours: &str, theirs: &str) -> Option<String> {
    match diffy::merge(before, ours, theirs) {
        Ok(merged) => Some(merged),
        Err(_) => is_done(before, ours, theirs).then(|| theirs.to_owned()),
    }
}

/// Whether a user has done by hand what Kubewright would have done to `before`.
fn is_done(before: &str, ours: &str, theirs: &str) -> bool {
    let there = |line: &str| theirs.lines().any(|other| other.trim() == line.trim());
    let patch = diffy::create_patch(before, ours);
    let mut lines = patch.hunks().iter().flat_map(diffy::Hunk::lines);
    lines.all(|line| match line {
        diffy::Line::Insert(line) => there(line),
        diffy::Line::Context(_) | diffy::Line::Delete(_) => true,
    })
}

/// The unified diff of a file.
fn diff(path: &str, before: Option<&str>, after: &str) -> String {
    let mut options = diffy::DiffOptions::new();
    let old = if before.is_some() { format!("a/{path}") } else { "/dev/null".to_owned() };
    options.set_original_filename(old).set_modified_filename(format!("b/{path}"));
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write!(text, "{}", options.create_patch(before.unwrap_or_default(), after));
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
        ChangeSet::plan(vec![file], &found, force)
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
        assert_eq!(plan(File::new("a", "same"), Some("same"), false).expect("a plan"), ChangeSet::default());
    }

    #[test]
    fn a_new_file_is_shown_as_one() {
        let planned = plan(File::new("a", "text\n"), None, false).expect("a plan");
        assert_eq!(planned.diff(), "--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+text\n");
    }

    #[test]
    fn what_a_user_added_to_a_kept_file_stays() {
        let theirs = BASE.replace("//! Kept.", "//! Kept.\n//! And read.");
        let kept = File::kept("kinds.rs", OURS, Some(BASE.to_owned()));
        let planned = plan(kept, Some(&theirs), false).expect("a plan");
        assert_eq!(planned.changes[0].after, OURS.replace("//! Kept.", "//! Kept.\n//! And read."));
    }

    #[test]
    fn an_edit_in_the_way_is_told_with_the_lines_to_add_and_accepted_once_they_are_there() {
        let theirs = BASE.replace("mod a;", "mod mine;").replace("    a::add();", "    mine::add();");
        let kept = || File::kept("kinds.rs", OURS, Some(BASE.to_owned()));
        let refused = plan(kept(), Some(&theirs), false).expect_err("refused").to_string();
        assert!(refused.contains("\n+mod b;\n") && refused.contains("\n+    b::add();\n"), "{refused}");

        let by_hand = theirs.replace("mod mine;", "mod mine;\nmod b;").replace("}", "    b::add();\n}");
        let planned = plan(kept(), Some(&by_hand), false).expect("a plan");
        assert!(planned.changes.iter().all(|change| change.after == by_hand), "{planned:?}");
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
            let kept = File::kept("kinds.rs", OURS, Some(BASE.to_owned()));
            if let Ok(planned) = plan(kept, Some(&theirs), false) {
                prop_assert!(planned.changes[0].after.lines().any(|kept| kept == line));
            }
        }
    }
}
