//! The files of a project.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use kubewright_layout::{Files, MARK};

/// How many lines of a difference are shown.
const SHOWN: usize = 40;

/// The text of the files at these paths, and of the marked ones in the folders that are generated.
///
/// # Errors
/// When one is there, and cannot be read.
pub(super) fn existing(root: &Path, files: &Files) -> anyhow::Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for (path, _) in files.iter() {
        if let Some(text) = read(&root.join(path))? {
            found.insert(path.to_owned(), text);
        }
    }
    for folder in files.roots() {
        walk(root, folder, &mut found)?;
    }
    Ok(found)
}

fn walk(root: &Path, folder: &str, found: &mut BTreeMap<String, String>) -> anyhow::Result<()> {
    for (name, kind) in listed(&root.join(folder))? {
        let path = format!("{folder}/{name}");
        if kind.is_dir() {
            walk(root, &path, found)?;
        } else if kind.is_file()
            && !found.contains_key(&path)
            && let Some(text) = read(&root.join(&path))?
            && text.contains(MARK)
        {
            found.insert(path, text);
        }
    }
    Ok(())
}

/// What is in a folder, by name; nothing where there is none.
fn listed(folder: &Path) -> anyhow::Result<Vec<(String, fs::FileType)>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", folder.display())),
    };
    let mut listed = Vec::new();
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot read {}", folder.display()))?;
        // A name that is no text is none of ours.
        if let Ok(name) = entry.file_name().into_string() {
            listed.push((name, entry.file_type()?));
        }
    }
    listed.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(listed)
}

/// The text of a file, where there is one. What is no text is as good as any other text that we did not write.
fn read(path: &Path) -> anyhow::Result<Option<String>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// The files of `config/samples`, but for a kustomization of one's own.
///
/// # Errors
/// When one cannot be read.
pub(super) fn samples(root: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let folder = root.join("config/samples");
    let mut samples = Vec::new();
    for (name, _) in listed(&folder)? {
        let is_sample = name.ends_with(".yaml") && name != "kustomization.yaml" && !name.starts_with('.');
        if is_sample && let Some(text) = read(&folder.join(&name))? {
            samples.push((name, text));
        }
    }
    Ok(samples)
}

/// Puts a file in its place in one step: whoever reads it sees the old one or the new one, also when we are killed.
///
/// # Errors
/// When the file system refuses.
pub(super) fn write(root: &Path, path: &str, text: &str) -> anyhow::Result<()> {
    let path = root.join(path);
    let written = (|| {
        let folder = path.parent().unwrap_or(root);
        fs::create_dir_all(folder)?;
        let temporary = temporary(&path);
        fs::write(&temporary, text).and_then(|()| fs::rename(&temporary, &path)).inspect_err(|_| {
            let _ = fs::remove_file(&temporary);
        })
    })();
    written.map_err(|error: io::Error| {
        anyhow!(
            "cannot write {}: {error}: choose a folder that you may write to with --output",
            path.display()
        )
    })
}

fn temporary(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    path.with_file_name(name)
}

/// Removes a file.
///
/// # Errors
/// When the file system refuses.
pub(super) fn remove(root: &Path, path: &str) -> anyhow::Result<()> {
    let path = root.join(path);
    fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))
}

/// How two texts differ, line by line: the part between what they begin and end with alike.
pub(super) fn difference(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let alike = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let rest = old.len().min(new.len()) - alike;
    let tail = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(old, new)| old == new).count();
    let removed = old[alike..old.len() - tail].iter().map(|line| format!("-{line}"));
    let added = new[alike..new.len() - tail].iter().map(|line| format!("+{line}"));
    let lines: Vec<String> = removed.chain(added).collect();
    let mut text = format!("@@ line {} @@\n", alike + 1) + &lines[..lines.len().min(SHOWN)].join("\n");
    if lines.len() > SHOWN {
        text += &format!("\n... and {} lines more", lines.len() - SHOWN);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_what_lies_between_what_is_alike() {
        assert_eq!(difference("a\nb\nc\n", "a\nx\ny\nc\n"), "@@ line 2 @@\n-b\n+x\n+y");
        assert_eq!(difference("a\na\n", "a\n"), "@@ line 2 @@\n-a");
        assert_eq!(difference("", "a\n"), "@@ line 1 @@\n+a");
        let many: String = (0..100).map(|line| format!("{line}\n")).collect();
        assert!(difference("", &many).ends_with("... and 60 lines more"));
    }

    #[test]
    fn a_file_is_written_in_one_step_and_no_other_is_left() {
        let root = std::env::temp_dir().join(format!("kubewright-disk-{}", std::process::id()));
        for text in ["one", "two"] {
            write(&root, "a/b.yaml", text).expect("written");
            assert_eq!(fs::read_to_string(root.join("a/b.yaml")).expect("there"), text);
        }
        assert_eq!(fs::read_dir(root.join("a")).expect("a folder").count(), 1);
        let refused = write(&root, "a/b.yaml/c", "x").expect_err("a file is no folder").to_string();
        assert!(refused.contains("--output"), "{refused}");
        fs::remove_dir_all(&root).expect("removed");
    }
}
