//! What was built last, kept for `deploy`.

use std::{
    fs, io,
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
    /// Where cargo put the program.
    program: PathBuf,
    /// The digest of the program: there may be another by now.
    content: Digest,
}

impl Last {
    const FILE: &'static str = "build.json";

    pub(super) fn of(name: &Reference, made: &Made, program: &Path) -> anyhow::Result<Self> {
        let content = digest(program).with_context(|| format!("cannot read {}", program.display()))?;
        Ok(Self { name: name.clone(), digest: made.digest, program: program.to_owned(), content })
    }

    /// Keeps it in a folder, in one step.
    pub(super) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let (path, new) = (folder.join(Self::FILE), folder.join(format!(".{}", Self::FILE)));
        let written =
            fs::write(&new, serde_json::to_vec_pretty(self)?).and_then(|()| fs::rename(&new, &path));
        written.with_context(|| format!("cannot write {}", path.display()))
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
    use super::*;

    #[test]
    fn a_program_that_was_built_again_is_not_the_one_in_the_image() {
        let folder = kubewright_image::testing::Folder::new("last-build");
        let program = folder.path().join("app");
        fs::write(&program, "one").expect("written");
        let made = Made { digest: Digest::of(b"manifest"), id: Digest::of(b"config"), size: 1 };
        let name = Reference::parse("app:1").expect("a name");
        assert_eq!(Last::read(folder.path()), None);
        Last::of(&name, &made, &program).expect("there").write(folder.path()).expect("written");
        let last = Last::read(folder.path()).expect("kept");
        assert_eq!(last.image(), format!("app:1@{}", Digest::of(b"manifest")));
        assert_eq!(last.program(), Some(&*program));
        fs::write(&program, "two").expect("written");
        assert_eq!(last.program(), None);
    }
}
