//! Where a project's SDK comes from.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{Error, Folder, manifest::MANIFEST};

/// The folder of the crate in a checkout.
const IN_CHECKOUT: &str = "crates/kubewright";

/// Where the SDK comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Sdk {
    /// A version of a registry.
    Version(String),
    /// The crate `kubewright` in a folder.
    Path(PathBuf),
    /// A repository, at a revision.
    Git {
        /// Where it is.
        url: String,
        /// A commit, branch or tag; the head of the default branch without.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rev: Option<String>,
    },
}

impl Sdk {
    /// What `--sdk` says: a version (`0.1`), a repository (`https://...#rev`, `git@...`) or a folder.
    ///
    /// # Errors
    /// When it is empty, or cannot be written into a manifest.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.is_empty() || text.chars().any(|c| c.is_control() || c == '"' || c == '\\') {
            let wanted = "a version (0.1), a folder (../kubewright/crates/kubewright) or a repository (https://...#rev)";
            return Err(Error::Usage(format!("--sdk must be {wanted} (was {text:?})")));
        }
        let is_url = text.contains("://") || text.starts_with("git@");
        if is_url {
            let (url, rev) = match text.split_once('#') {
                Some((url, rev)) => (url, Some(rev.to_owned())),
                None => (text, None),
            };
            return Ok(Self::Git { url: url.to_owned(), rev });
        }
        let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let is_version = (1..=3).contains(&text.split('.').count()) && text.split('.').all(number);
        Ok(if is_version { Self::Version(text.to_owned()) } else { Self::Path(text.into()) })
    }

    /// What `--sdk` says for a project in `folder`. A folder is where the crate is, or a checkout that has it in `crates/kubewright`:
    /// the path of the crate is what cargo wants.
    ///
    /// # Errors
    /// When it is none of these, or the folder has no such crate.
    pub(crate) fn said(text: &str, folder: &Folder) -> Result<Self, Error> {
        let sdk = Self::parse(text)?;
        let Self::Path(path) = &sdk else { return Ok(sdk) };
        let places = [path.clone(), path.join(IN_CHECKOUT)];
        for place in places {
            if is_the_sdk(&folder.path().join(&place))? {
                return Ok(Self::Path(place));
            }
        }
        Err(Error::Usage(format!(
            "--sdk {text}: the crate kubewright is not there: name its folder ({IN_CHECKOUT} of a checkout), a version (0.1) or a \
             repository (https://...#rev)"
        )))
    }

    /// It, and in the place of a version that is older than `version` that one.
    #[must_use]
    pub fn raised(&self, version: &str) -> Self {
        match self {
            Self::Version(old) if numbers(old) < numbers(version) => Self::Version(version.to_owned()),
            Self::Version(_) | Self::Path(_) | Self::Git { .. } => self.clone(),
        }
    }
}

/// Whether a folder has the manifest of the SDK.
fn is_the_sdk(folder: &Path) -> Result<bool, Error> {
    let manifest = folder.join(MANIFEST);
    match fs::read_to_string(&manifest) {
        Ok(text) => Ok(is_named_kubewright(&text)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(false)
        }
        Err(error) => Err(Error::io("read", manifest)(error)),
    }
}

/// Whether a manifest is that of the package `kubewright`.
fn is_named_kubewright(manifest: &str) -> bool {
    let Ok(manifest) = manifest.parse::<toml_edit::DocumentMut>() else { return false };
    let name = manifest.get("package").and_then(|package| package.get("name"));
    name.and_then(toml_edit::Item::as_str) == Some("kubewright")
}

/// The numbers of a version, such as 0.1 or 1.2.3-rc.1, without what comes after them.
fn numbers(version: &str) -> [u64; 3] {
    let mut numbers = version
        .split(['-', '+'])
        .next()
        .unwrap_or_default()
        .split('.')
        .map(|number| number.parse().unwrap_or(0));
    std::array::from_fn(|_| numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::tests::Scratch;

    #[test]
    fn a_checkout_is_taken_for_the_crate_that_is_in_it() {
        let scratch = Scratch::new("sdk-said");
        scratch.put("checkout/Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\n");
        scratch.put("checkout/crates/kubewright/Cargo.toml", "[package]\nname = \"kubewright\"\n");
        scratch.put("checkout/crates/kubewright-cli/Cargo.toml", "[package]\nname = \"kubewright-cli\"\n");
        scratch.put("project/PROJECT", "");
        let folder = Folder::new(scratch.path().join("project"));
        let found = Sdk::Path("../checkout/crates/kubewright".into());
        assert_eq!(Sdk::said("../checkout", &folder).expect("a checkout"), found);
        assert_eq!(Sdk::said("../checkout/crates/kubewright", &folder).expect("the crate"), found);
        let absolute = scratch.path().join("checkout");
        let said = Sdk::said(&absolute.to_string_lossy(), &folder).expect("a checkout");
        assert_eq!(said, Sdk::Path(absolute.join("crates/kubewright")));
        for wrong in ["../checkout/crates/kubewright-cli", "../checkout/crates", "../nothing", "PROJECT"] {
            let error = Sdk::said(wrong, &folder).expect_err(wrong);
            assert_eq!(error.exit_code(), 2, "{wrong}");
            let text = error.to_string();
            assert!(text.starts_with(&format!("--sdk {wrong}: the crate kubewright is not there")), "{text}");
        }
        assert_eq!(Sdk::said("0.1", &folder).expect("a version"), Sdk::Version("0.1".to_owned()));
    }
}
