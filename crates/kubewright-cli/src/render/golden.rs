//! `render --golden`: what an operator makes of each sample, compared with files that are kept.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;

use super::compare::patch;
use crate::printer::{BOLD, painted};

/// Texts by the names of samples.
pub(super) type Texts = BTreeMap<String, String>;

/// How a file is called.
const EXTENSION: &str = "yaml";

/// What is kept in a folder; nothing where there is none.
///
/// # Errors
/// When something there cannot be read.
pub(super) fn read(folder: &Path) -> anyhow::Result<Texts> {
    let mut kept = Texts::new();
    if !folder.exists() {
        return Ok(kept);
    }
    let cannot = |path: &Path| format!("--golden: cannot read {}", path.display());
    for entry in fs::read_dir(folder).with_context(|| cannot(folder))? {
        let path = entry?.path();
        if path.is_file() && path.extension().is_some_and(|extension| extension == EXTENSION) {
            let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
            kept.insert(name, fs::read_to_string(&path).with_context(|| cannot(&path))?);
        }
    }
    Ok(kept)
}

/// Writes what differs from what is kept; gives how many files these are. Files of no sample stay.
///
/// # Errors
/// When the folder cannot be written to.
pub(super) fn write(folder: &Path, kept: &Texts, made: &Texts) -> anyhow::Result<usize> {
    fs::create_dir_all(folder).with_context(|| format!("--golden: cannot make {}", folder.display()))?;
    let changed = || made.iter().filter(|(name, text)| kept.get(*name) != Some(*text));
    for (name, text) in changed() {
        let path = file(folder, name);
        fs::write(&path, text).with_context(|| format!("--golden: cannot write {}", path.display()))?;
    }
    Ok(changed().count())
}

/// What is to be said where both differ, by files; empty where they do not.
pub(super) fn differences(folder: &Path, kept: &Texts, made: &Texts, colours: bool) -> String {
    let mut all = String::new();
    let mut tell = |name: &str, what: &str| {
        let path = file(folder, name);
        all += &painted(&format!("{}: {what}\n", path.display()), BOLD, colours);
    };
    for name in kept.keys().filter(|name| !made.contains_key(*name)) {
        tell(name, "there is no sample of this name: remove it");
    }
    for name in made.keys().filter(|name| !kept.contains_key(*name)) {
        tell(name, "is missing: --write writes it");
    }
    for (name, text) in made {
        let Some(before) = kept.get(name).filter(|before| *before != text) else { continue };
        let path = file(folder, name);
        all += &painted(&format!("{}: differs\n", path.display()), BOLD, colours);
        all += &patch(before, text, colours);
    }
    all
}

/// The files of which there is no sample.
pub(super) fn without_sample<'a>(kept: &'a Texts, made: &'a Texts) -> impl Iterator<Item = &'a str> {
    kept.keys().filter(|name| !made.contains_key(*name)).map(String::as_str)
}

fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.{EXTENSION}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(all: &[(&str, &str)]) -> Texts {
        all.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn files_that_are_missing_too_many_or_otherwise_are_told() {
        let (kept, made) = (
            texts(&[("a", "x\n"), ("b", "x\n"), ("c", "x\n")]),
            texts(&[("a", "x\n"), ("b", "y\n"), ("d", "x\n")]),
        );
        assert_eq!(
            differences(Path::new("golden"), &kept, &made, false),
            "golden/c.yaml: there is no sample of this name: remove it\ngolden/d.yaml: is missing: --write writes it\n\
             golden/b.yaml: differs\n@@ -1 +1 @@\n-x\n+y\n"
        );
        assert_eq!(differences(Path::new("golden"), &made, &made, false), "");
        assert_eq!(without_sample(&kept, &made).collect::<Vec<_>>(), ["c"]);
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        let folder = std::env::temp_dir().join(format!("kubewright-golden-{}", std::process::id()));
        let made = texts(&[("a", "x\n"), ("b", "")]);
        assert_eq!(read(&folder).expect("no folder is empty"), Texts::new());
        assert_eq!(write(&folder, &Texts::new(), &made).expect("written"), 2);
        let kept = read(&folder).expect("files");
        assert_eq!((&kept, write(&folder, &kept, &made).expect("written")), (&made, 0));
        fs::remove_dir_all(&folder).expect("removed");
    }
}
