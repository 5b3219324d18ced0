//! Which versions a user means, as setup-envtest has it said (`versions/parse.go` and `versions/version.go` there).

use std::fmt;
use std::str::FromStr;

use kubewright_spec::Version;

/// A release of Kubernetes: 1.35.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Release {
    major: u32,
    minor: u32,
    patch: u32,
}

impl Release {
    /// Those that this program has, the newest first.
    pub(super) fn available() -> Vec<Self> {
        Version::ALL.iter().rev().filter_map(|version| version.release().parse().ok()).collect()
    }

    /// Whether this program serves its minor version.
    pub(super) fn is_supported(self) -> bool {
        self.major == 1 && Version::ALL.iter().any(|version| version.minor() == self.minor)
    }

    fn next_patch(self) -> Self {
        Self { patch: self.patch + 1, ..self }
    }

    fn next_minor(self) -> Self {
        Self { minor: self.minor + 1, patch: 0, ..self }
    }
}

/// `1.35.4`.
impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// Takes three numbers, such as `1.35.4`.
impl FromStr for Release {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text.split('.').map(number).collect::<Option<Vec<_>>>().as_deref() {
            Some(&[major, minor, patch]) => Ok(Self { major, minor, patch }),
            _ => Err(()),
        }
    }
}

/// A number as semantic versions have it, and small.
fn number(text: &str) -> Option<u32> {
    let is_plain = text == "0" || !text.starts_with(['0', '+']);
    text.parse::<u16>().ok().filter(|_| is_plain).map(u32::from)
}

/// Which releases are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selector {
    /// As the user wrote it.
    text: String,
    from: Release,
    /// Where it ends; this one is not meant any more.
    until: Option<Release>,
    pub(super) prefers: Preference,
}

/// Which of the releases that are meant is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preference {
    /// The newest that is installed; if none is, the newest that there is.
    Installed,
    /// The newest that there is.
    Newest,
    /// The newest that is installed.
    InstalledOnly,
}

impl Selector {
    const ZERO: Release = Release { major: 0, minor: 0, patch: 0 };

    /// The release that is served unless another is asked for.
    pub(super) fn default_release() -> Self {
        let text = Version::DEFAULT.release();
        text.parse().unwrap_or_else(|_: String| Self::any(text, Preference::Newest))
    }

    /// All releases.
    pub(super) fn all() -> Self {
        Self::any("*", Preference::Installed)
    }

    fn any(text: &str, prefers: Preference) -> Self {
        Self { text: text.to_owned(), from: Self::ZERO, until: None, prefers }
    }

    /// Whether it means this release.
    pub(super) fn matches(&self, release: Release) -> bool {
        release >= self.from && self.until.is_none_or(|until| release < until)
    }

    /// The only release that it means, where it names one.
    fn exact(&self) -> Option<Release> {
        Some(self.from).filter(|from| self.until == Some(from.next_patch()))
    }

    /// The release to take, of those that are `installed` and those that this program has.
    ///
    /// # Errors
    /// When none is meant.
    pub(super) fn choose(&self, installed: &[Release]) -> Result<Release, String> {
        let newest = |releases: &[Release]| {
            releases.iter().copied().filter(|one| one.is_supported() && self.matches(*one)).max()
        };
        let (here, all) = (newest(installed), newest(&Release::available()));
        let chosen = match (self.exact(), self.prefers) {
            (_, Preference::InstalledOnly) => here,
            (Some(exact), _) => Some(exact).filter(|exact| exact.is_supported()),
            (None, Preference::Installed) => here.or(all),
            (None, Preference::Newest) => here.max(all),
        };
        chosen.ok_or_else(|| match self.prefers {
            Preference::InstalledOnly if all.is_some() || self.exact().is_some_and(Release::is_supported) => {
                let list = match installed {
                    [] => "none is".to_owned(),
                    some => {
                        format!("{} are", some.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
                    }
                };
                format!("no Kubernetes version {:?} is installed; {list}", self.text)
            }
            _ => {
                let known = Version::ALL.map(|version| version.to_string()).join(", ");
                format!("Kubernetes version {:?} is not supported; supported are {known}", self.text)
            }
        })
    }
}

impl FromStr for Selector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "latest" => return Ok(Self::any(text, Preference::Newest)),
            "latest-on-disk" => return Ok(Self::any(text, Preference::InstalledOnly)),
            _ => {}
        }
        let (ranges, prefers) = match text.strip_suffix('!') {
            Some(ranges) => (ranges, Preference::Newest),
            None => (text, Preference::Installed),
        };
        let mut selector = Self::any(text, prefers);
        let mut terms = 0;
        for term in ranges.split([' ', ',']).filter(|term| !term.is_empty()) {
            let (from, until) = range(term).ok_or_else(|| unreadable(text))?;
            selector.from = selector.from.max(from.unwrap_or(Self::ZERO));
            selector.until = match (selector.until, until) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
            terms += 1;
        }
        if terms == 0 { Err(unreadable(text)) } else { Ok(selector) }
    }
}

fn unreadable(text: &str) -> String {
    format!(
        "{text:?} is no version: write 1.35.4, 1.35, 1.35.x, ~1.35.4, <1.36, a range such as \">=1.35 <1.37\", any of \
         them with a ! for the newest there is, latest, or latest-on-disk"
    )
}

/// Where a term such as `~1.35` begins, and where it ends.
fn range(term: &str) -> Option<(Option<Release>, Option<Release>)> {
    let operator = [">=", "<=", ">", "<", "~"].into_iter().find(|operator| term.starts_with(operator));
    let version = term.strip_prefix(operator.unwrap_or_default())?;
    let version = version.strip_prefix('v').unwrap_or(version);
    let parts: Vec<&str> = version.split('.').collect();
    let (major, minor, patch) = match parts[..] {
        [major, minor] | [major, minor, "x" | "*"] => (number(major)?, number(minor)?, None),
        [major, minor, patch] => (number(major)?, number(minor)?, Some(number(patch)?)),
        _ => return None,
    };
    let first = Release { major, minor, patch: patch.unwrap_or_default() };
    // Behind all that is meant without an operator.
    let next = if patch.is_some() { first.next_patch() } else { first.next_minor() };
    Some(match operator {
        Some(">=") => (Some(first), None),
        Some(">") => (Some(next), None),
        Some("<=") => (None, Some(next)),
        Some("<") => (None, Some(first)),
        Some(_) => (Some(first), Some(first.next_minor())),
        None => (Some(first), Some(next)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(text: &str) -> Release {
        text.parse().expect(text)
    }

    fn chosen(selector: &str, installed: &[&str]) -> Result<String, String> {
        let installed: Vec<_> = installed.iter().map(|text| release(text)).collect();
        selector.parse::<Selector>()?.choose(&installed).map(|release| release.to_string())
    }

    #[test]
    fn a_selector_means_what_it_means_to_setup_envtest() {
        // Asked of setup-envtest v0.25.1, but for `>` and ranges, which it does not have.
        for (selector, meant, not_meant) in [
            ("1.16.3", &["1.16.3"][..], &["1.16.2", "1.16.4", "1.17.3", "2.16.3"][..]),
            ("1.16", &["1.16.0", "1.16.3"], &["1.15.3", "1.17.0", "2.16.0"]),
            ("1.16.x", &["1.16.0", "1.16.3"], &["1.15.3", "1.17.0"]),
            ("1.16.*!", &["1.16.0", "1.16.3"], &["1.15.3", "1.17.0"]),
            ("~1.16.3", &["1.16.3", "1.16.4"], &["1.16.2", "1.17.3", "2.16.3"]),
            ("~1.16", &["1.16.0", "1.16.3"], &["1.17.0"]),
            ("<1.16.3", &["1.16.2", "1.15.9", "0.16.3"], &["1.16.3", "1.16.4", "1.17.0", "2.16.0"]),
            ("<1.16", &["1.15.9"], &["1.16.0"]),
            ("<=1.16.3", &["1.16.3", "1.16.2"], &["1.16.4"]),
            ("<=1.16", &["1.16.9", "1.15.0"], &["1.17.0"]),
            (">1.16", &["1.17.0"], &["1.16.9"]),
            (">=1.35 <1.37", &["1.35.0", "1.36.9"], &["1.34.9", "1.37.0"]),
            (">=1.35,<=1.36.1", &["1.35.0", "1.36.1"], &["1.36.2"]),
            ("latest", &["0.0.1", "1.37.2"], &[]),
        ] {
            let parsed: Selector = selector.parse().expect(selector);
            assert!(meant.iter().all(|one| parsed.matches(release(one))), "{selector}");
            assert!(!not_meant.iter().any(|one| parsed.matches(release(one))), "{selector}");
        }
    }

    #[test]
    fn what_is_no_selector_is_told_with_those_that_are() {
        for bad in
            ["", "!", "x", "1", "1.x", "1.36.3.1", "01.36", "1.36.03", "1.36.3/..", "=1.36", "1.99999999.0"]
        {
            let told = bad.parse::<Selector>().expect_err(bad);
            assert!(told.contains("is no version: write 1.35.4, 1.35, 1.35.x"), "{told}");
        }
    }

    #[test]
    fn what_is_installed_is_taken_before_what_would_have_to_be_unless_the_newest_is_asked_for() {
        let newest = Version::V1_35.release().to_owned();
        assert_eq!(chosen("1.35", &[]), Ok(newest.clone()));
        assert_eq!(chosen("1.35", &["1.36.0", "1.35.1", "1.35.0"]), Ok("1.35.1".to_owned()));
        assert_eq!(chosen("1.35.x!", &["1.35.1"]), Ok(newest));
        assert_eq!(chosen("1.35!", &["1.35.99"]), Ok("1.35.99".to_owned()));
        assert_eq!(chosen("latest", &["1.35.99"]), Ok(Version::ALL[2].release().to_owned()));
        assert_eq!(chosen("latest-on-disk", &["1.35.99", "1.35.0"]), Ok("1.35.99".to_owned()));
        assert_eq!(chosen("1.36.1", &["1.36.0"]), Ok("1.36.1".to_owned()), "a release has its own name");
        assert_eq!(chosen(">=1.35 <1.37", &[]), Ok(Version::V1_36.release().to_owned()));
    }

    #[test]
    fn a_version_that_is_not_supported_is_told_with_those_that_are() {
        for bad in ["1.30", "1.30.1", "<1.35", "~1.99", ">1.36 <1.36", "2.35.0"] {
            let told = chosen(bad, &["1.30.1"]).expect_err(bad);
            assert_eq!(
                told,
                format!("Kubernetes version {bad:?} is not supported; supported are 1.35, 1.36, 1.37")
            );
        }
        let told = chosen("latest-on-disk", &[]).expect_err("nothing is there");
        assert_eq!(told, r#"no Kubernetes version "latest-on-disk" is installed; none is"#);
    }

    #[test]
    fn the_default_is_the_release_that_is_served_by_default() {
        let chosen = Selector::default_release().choose(&[]).expect("it is supported");
        assert_eq!(chosen.to_string(), Version::DEFAULT.release());
    }
}
