//! What a folder says of itself: in which form it is, and which version of Kubernetes has written its objects.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use kubewright_spec::Version;
use kubewright_store::Revision;

use super::{DataError, private};

/// The file, and its name while it is written.
const FILE: &str = "version";
const UNFINISHED: &str = "version.new";

/// The form of the folder: what lies in it, and how. The store's files say their own.
const FORMAT: u32 = 1;

/// The version that wrote folders that do not say: there was no other.
const UNSAID: Version = Version::V1_36;

/// What the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// The version of Kubernetes that writes the objects.
    pub(super) kubernetes: Version,
    /// The last revision that an older version has written.
    pub(super) since: Revision,
}

impl Stamp {
    /// What a folder says; none where it does not.
    ///
    /// # Errors
    /// When the file cannot be read, or is of another form or version than this program knows.
    pub(super) fn read(folder: &Path) -> Result<Option<Self>, DataError> {
        let path = folder.join(FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(DataError::Io { path, source }),
        };
        Self::of(&text, folder).map(Some).map_err(|why| {
            why.unwrap_or_else(|| DataError::Damaged {
                path,
                why: "it does not say which version of Kubernetes has written the objects".to_owned(),
            })
        })
    }

    fn of(text: &str, folder: &Path) -> Result<Self, Option<DataError>> {
        let line = |key: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            lines.find(|(name, _)| *name == key).map(|(_, value)| value)
        };
        let newer = |what: String| DataError::NewerProgram { path: folder.to_owned(), what };
        let format: u32 = line("format").and_then(|text| text.parse().ok()).ok_or(None)?;
        if format > FORMAT {
            return Err(Some(newer(format!("form {format}, and this program knows {FORMAT}"))));
        }
        let release = line("kubernetes").ok_or(None)?;
        let kubernetes =
            release.parse().map_err(|why: String| if is_newer(release) { Some(newer(why)) } else { None })?;
        let since = line("since").and_then(|text| text.parse().ok()).map(Revision).ok_or(None)?;
        Ok(Self { kubernetes, since })
    }

    /// Whether a version may go on with its objects.
    ///
    /// # Errors
    /// When they are of a newer one.
    pub(super) fn check(self, opened: Version, folder: &Path) -> Result<(), DataError> {
        let written = self.kubernetes;
        if written > opened {
            return Err(DataError::Newer { path: folder.to_owned(), written, opened });
        }
        Ok(())
    }

    /// The last revision that versions before this one have written, of a folder that says nothing or this.
    pub(super) fn written_before(said: Option<Self>, opened: Version) -> Revision {
        match said {
            Some(said) if said.kubernetes == opened => said.since,
            None if opened == UNSAID => Revision(0),
            _ => Revision(u64::MAX),
        }
    }

    /// What a folder has to say that a version goes on with at a revision.
    ///
    /// # Errors
    /// When it says nothing, and the version is older than those were that did not.
    pub(super) fn from_now_on(
        said: Option<Self>,
        opened: Version,
        revision: Revision,
        folder: &Path,
    ) -> Result<Self, DataError> {
        let nothing_yet = revision == Revision(0);
        if said.is_none() && !nothing_yet {
            Self { kubernetes: UNSAID, since: Revision(0) }.check(opened, folder)?;
        }
        let since = if nothing_yet { revision } else { Self::written_before(said, opened).min(revision) };
        Ok(Self { kubernetes: opened, since })
    }

    /// Has the folder say it.
    ///
    /// # Errors
    /// When the file system refuses.
    pub(super) fn write(self, folder: &Path) -> Result<(), DataError> {
        let Self { kubernetes, since } = self;
        let text = format!("format {FORMAT}\nkubernetes {}\nsince {since}\n", kubernetes.release());
        let unfinished = folder.join(UNFINISHED);
        let write = || -> io::Result<()> {
            let mut file = private().create(true).truncate(true).open(&unfinished)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&unfinished, folder.join(FILE))?;
            File::open(folder)?.sync_all()
        };
        write().map_err(|source| DataError::Io { path: unfinished.clone(), source })
    }
}

/// Whether it is a version behind all that this program has.
fn is_newer(release: &str) -> bool {
    let mut numbers = release.split('.').map(str::parse::<u32>);
    let newest = Version::ALL.map(Version::minor).into_iter().max().unwrap_or_default();
    matches!((numbers.next(), numbers.next()), (Some(Ok(1)), Some(Ok(minor))) if minor > newest)
}

/// The version of Kubernetes that has written the objects of a folder; none where the folder keeps no cluster.
///
/// # Errors
/// When the folder cannot be read, or is a newer program's.
pub fn version_of(folder: &Path) -> Result<Option<Version>, DataError> {
    Ok(Stamp::read(folder)?.map(|stamp| stamp.kubernetes))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn read(text: &str) -> Result<Stamp, String> {
        let said = Stamp::of(text, &PathBuf::from("/data"));
        said.map_err(|why| why.map_or_else(|| "damaged".to_owned(), |why| why.to_string()))
    }

    #[test]
    fn what_is_written_is_read() {
        let stamp = Stamp { kubernetes: Version::V1_35, since: Revision(70) };
        assert_eq!(read("format 1\nkubernetes 1.35.4\nsince 70\n"), Ok(stamp));
        for bad in [
            "",
            "format 1\n",
            "format x\nkubernetes 1.35.4\nsince 1\n",
            "format 1\nkubernetes 1.0.0\nsince 1\n",
        ] {
            assert_eq!(read(bad), Err("damaged".to_owned()), "{bad:?}");
        }
    }

    #[test]
    fn what_a_newer_program_has_written_is_told_apart_from_what_is_damaged() {
        let told = read("format 2\nanything\n").expect_err("another form");
        assert_eq!(
            told,
            "/data was written by a newer kubewright (form 2, and this program knows 1): open it with that one"
        );
        let told = read("format 1\nkubernetes 1.99.0\nsince 1\n").expect_err("another version");
        assert!(
            told.starts_with(
                "/data was written by a newer kubewright (Kubernetes version \"1.99.0\" is not supported"
            ),
            "{told}"
        );
    }
}
