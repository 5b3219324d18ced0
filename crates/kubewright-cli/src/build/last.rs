//! What was built last, kept for `deploy`.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use anyhow::Context;
use kubewright_image::{Digest, Made, Reference};
use serde::{Deserialize, Serialize};

/// The image that was built last, and the program in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Last {
    /// What the image is called.
    name: Reference,
    /// The digest of its manifest.
    digest: Digest,
    /// Its layout.
    layout: PathBuf,
    /// Where cargo put the program.
    program: PathBuf,
    /// The digest of the program: there may be another by now.
    content: Digest,
}

/// The folder of what was built, which one process at a time changes: a folder for each image, and a file that says which was
/// the last. An image comes first, then that file, then the image of before goes: whoever is killed in between leaves the one
/// that the file says.
pub(super) struct Kept {
    folder: PathBuf,
    _lock: File,
}

impl Kept {
    /// Waits until nobody else changes it.
    pub(super) fn lock(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join("build.lock");
        let taken = fs::create_dir_all(folder).and_then(|()| {
            let lock = OpenOptions::new().write(true).create(true).truncate(false).open(&path)?;
            lock.lock()?;
            Ok(lock)
        });
        let lock = taken.with_context(|| format!("cannot lock {}", path.display()))?;
        Ok(Self { folder: folder.to_owned(), _lock: lock })
    }

    /// Where the images are.
    pub(super) fn layouts(&self) -> PathBuf {
        self.folder.join("images")
    }

    /// Says which image was the last, in one step.
    pub(super) fn remember(&self, last: &Last) -> anyhow::Result<()> {
        let (path, new) = (self.folder.join(Last::FILE), self.folder.join(format!(".{}", Last::FILE)));
        let written =
            fs::write(&new, serde_json::to_vec_pretty(last)?).and_then(|()| fs::rename(&new, &path));
        written.with_context(|| format!("cannot write {}", path.display()))
    }

    /// Removes all images but the last, and what those left who were killed.
    pub(super) fn sweep(&self, last: &Last) -> anyhow::Result<()> {
        let layouts = self.layouts();
        let swept = fs::read_dir(&layouts).and_then(|entries| {
            for entry in entries {
                let path = entry?.path();
                if path != last.layout {
                    fs::remove_dir_all(path)?;
                }
            }
            Ok(())
        });
        swept.with_context(|| format!("cannot clean {}", layouts.display()))
    }
}

impl Last {
    const FILE: &'static str = "build.json";

    pub(super) fn of(name: &Reference, made: &Made, program: &Path) -> anyhow::Result<Self> {
        let content = digest(program).with_context(|| format!("cannot read {}", program.display()))?;
        Ok(Self {
            name: name.clone(),
            digest: made.digest,
            layout: made.layout.clone(),
            program: program.to_owned(),
            content,
        })
    }

    /// What is kept in a folder; `None` where nothing was built, or what was is not known any more.
    pub(crate) fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(folder.join(Self::FILE)).ok()?).ok()
    }

    /// The image by name and digest: what this names does not change when the tag is given to another.
    pub(crate) fn image(&self) -> String {
        format!("{}@{}", self.name.familiar(), self.digest)
    }

    /// The program in the image, if it is still there.
    pub(crate) fn program(&self) -> Option<&Path> {
        digest(&self.program).is_ok_and(|digest| digest == self.content).then_some(&*self.program)
    }
}

fn digest(path: &Path) -> io::Result<Digest> {
    fs::read(path).map(|bytes| Digest::of(&bytes))
}

#[cfg(test)]
mod tests {
    use kubewright_image::testing::Folder;

    use super::*;

    /// What is built in a folder, in so many of its steps; a last one that is cut short is half done.
    fn built(folder: &Folder, name: &str, steps: usize, cut_short: bool) {
        let program = folder.path().join("app");
        fs::write(&program, name).expect("written");
        let kept = Kept::lock(folder.path()).expect("nobody has it");
        let made = |layout: PathBuf| {
            let digest = Digest::of(name.as_bytes());
            Made { layout, digest, id: Digest::of(b"config"), size: 1 }
        };
        let unfinished = kept.layouts().join(".1");
        fs::create_dir_all(&unfinished).expect("made");
        fs::write(unfinished.join("index.json"), name).expect("written");
        if steps == 0 {
            return;
        }
        let made = made(kept.layouts().join(name));
        let _ = fs::remove_dir_all(&made.layout);
        fs::rename(&unfinished, &made.layout).expect("moved");
        if steps == 1 {
            return;
        }
        let last = Last::of(&Reference::parse(&format!("app:{name}")).expect("a name"), &made, &program);
        let last = last.expect("the program is there");
        if steps == 2 && cut_short {
            fs::write(folder.path().join(".build.json"), "{\"na").expect("written");
            return;
        }
        kept.remember(&last).expect("written");
        if steps == 2 {
            return;
        }
        if cut_short {
            let old = fs::read_dir(kept.layouts()).expect("images").flatten().map(|entry| entry.path());
            let old = old.filter(|path| *path != made.layout).map(|path| path.join("index.json"));
            old.for_each(|file| fs::remove_file(file).expect("removed"));
            return;
        }
        kept.sweep(&last).expect("swept");
    }

    fn in_folder(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).expect("a folder").flatten();
        let mut names: Vec<_> = names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn whoever_is_killed_at_a_step_leaves_the_old_image_or_the_new_one_whole() {
        for (steps, cut_short, left) in
            [(0, false, "old"), (1, false, "old"), (2, true, "old"), (2, false, "new"), (3, true, "new")]
        {
            let folder = Folder::new("last-killed");
            built(&folder, "old", 3, false);
            built(&folder, "new", steps, cut_short);
            let last = Last::read(folder.path()).expect("one is kept");
            assert_eq!(last.image(), format!("app:{left}@{}", Digest::of(left.as_bytes())), "{steps}");
            let content = fs::read_to_string(last.layout.join("index.json")).expect("its image is whole");
            assert_eq!(content, left, "{steps}");
            // The next one goes through, and leaves nothing of it.
            built(&folder, "next", 3, false);
            assert_eq!(in_folder(&folder.path().join("images")), ["next"], "{steps}");
            assert_eq!(in_folder(folder.path()), ["app", "build.json", "build.lock", "images"], "{steps}");
        }
    }

    #[test]
    fn a_program_that_was_built_again_is_not_the_one_in_the_image() {
        let folder = Folder::new("last-build");
        assert_eq!(Last::read(folder.path()), None);
        built(&folder, "one", 3, false);
        let last = Last::read(folder.path()).expect("kept");
        assert_eq!(last.program(), Some(&*folder.path().join("app")));
        fs::write(folder.path().join("app"), "two").expect("written");
        assert_eq!(last.program(), None);
    }
}
