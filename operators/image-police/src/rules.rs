//! What lists allow, compiled.

use kubewright_image::Reference;
use regex::Regex;
use semver::{Version, VersionReq};

use crate::{AllowedImage, Matching, WhiteListSpec, glob, image::Image};

/// The rules of one list.
#[derive(Debug)]
pub struct Rules {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    name: Name,
    tags: Tags,
    versions: Vec<VersionReq>,
    digests: Vec<String>,
}

#[derive(Debug)]
enum Name {
    Written(String),
    Meant(String),
    Pattern(Regex),
}

#[derive(Debug)]
enum Tags {
    Listed(Vec<String>),
    Patterns(Vec<Regex>),
}

/// Why an image is not allowed: how close it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// No container runtime can read it, and no list has it letter by letter.
    Unreadable,
    /// No list has its name.
    NameNotListed,
    /// A list has its name, and not its tag.
    TagNotListed,
    /// A list has versions of its name, and its tag is none of them.
    VersionNotListed,
    /// It is named by a digest, which no list has.
    DigestNotListed,
}

impl Reason {
    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unreadable => "Unreadable",
            Self::NameNotListed => "NameNotListed",
            Self::TagNotListed => "TagNotListed",
            Self::VersionNotListed => "VersionNotListed",
            Self::DigestNotListed => "DigestNotListed",
        }
    }
}

impl Rules {
    /// Compiles the rules of a list.
    ///
    /// # Errors
    /// What is wrong with them that the schema cannot tell, with the field.
    pub fn compile(spec: &WhiteListSpec) -> Result<Self, Vec<String>> {
        let mut mistakes = Vec::new();
        let mut rules = Vec::new();
        for (index, allowed) in spec.images.iter().enumerate() {
            match Rule::compile(allowed) {
                Ok(rule) => rules.push(rule),
                Err(mistake) => mistakes.push(format!("spec.images[{index}].{mistake}")),
            }
        }
        if mistakes.is_empty() { Ok(Self { rules }) } else { Err(mistakes) }
    }

    /// Whether the list allows `image`.
    ///
    /// # Errors
    /// Why it does not.
    pub fn judge(&self, image: &Image<'_>) -> Result<(), Reason> {
        let mut closest = Reason::NameNotListed;
        for rule in &self.rules {
            match rule.judge(image) {
                Ok(()) => return Ok(()),
                Err(reason) => closest = closest.max(reason),
            }
        }
        let unreadable = closest == Reason::NameNotListed && image.meant().is_none();
        Err(if unreadable { Reason::Unreadable } else { closest })
    }
}

impl Rule {
    fn compile(allowed: &AllowedImage) -> Result<Self, String> {
        let name = match allowed.matching {
            Matching::Exact => Name::Written(allowed.name.clone()),
            Matching::Normalized => {
                let meant = Reference::parse(&allowed.name)
                    .map_err(|error| format!("name: {:?} is no image: {error}", allowed.name))?;
                Name::Meant(meant.name())
            }
            Matching::Glob => {
                Name::Pattern(pattern(&allowed.name).map_err(|error| format!("name: {error}"))?)
            }
        };
        let tags = match allowed.matching {
            Matching::Exact | Matching::Normalized => Tags::Listed(allowed.tags.clone()),
            Matching::Glob => {
                let patterns: Result<_, _> = allowed.tags.iter().map(|tag| pattern(tag)).collect();
                Tags::Patterns(patterns.map_err(|error| format!("tags: {error}"))?)
            }
        };
        let range = |text: &String| {
            text.parse().map_err(|error| format!("versions: {text:?} is no range of versions: {error}"))
        };
        let versions = allowed.versions.iter().map(range).collect::<Result<_, String>>()?;
        Ok(Self { name, tags, versions, digests: allowed.digests.clone() })
    }

    fn judge(&self, image: &Image<'_>) -> Result<(), Reason> {
        if !self.has_name_of(image) {
            return Err(Reason::NameNotListed);
        }
        if let Some(digest) = image.digest() {
            let listed = self.digests.iter().any(|listed| listed == digest);
            return if listed { Ok(()) } else { Err(Reason::DigestNotListed) };
        }
        let tag = image.tag().unwrap_or_default();
        let listed = match &self.tags {
            Tags::Listed(tags) => tags.iter().any(|listed| listed == tag),
            Tags::Patterns(patterns) => patterns.iter().any(|pattern| pattern.is_match(tag)),
        };
        if listed || self.has_version(tag) {
            return Ok(());
        }
        Err(if self.versions.is_empty() { Reason::TagNotListed } else { Reason::VersionNotListed })
    }

    fn has_name_of(&self, image: &Image<'_>) -> bool {
        match &self.name {
            Name::Written(name) => name == image.name,
            Name::Meant(name) => image.meant().is_some_and(|meant| meant.name() == *name),
            Name::Pattern(pattern) => image.meant().is_some_and(|meant| pattern.is_match(&meant.name())),
        }
    }

    /// Whether a tag is a whole version (three numbers; a tag like `1.14` moves and is none) in one of the ranges. What
    /// follows a dash makes a version a pre-release, which is only in ranges that name one, as in Cargo.
    fn has_version(&self, tag: &str) -> bool {
        let version = Version::parse(tag.strip_prefix('v').unwrap_or(tag));
        version.is_ok_and(|version| self.versions.iter().any(|range| range.matches(&version)))
    }
}

fn pattern(text: &str) -> Result<Regex, String> {
    glob::whole(&glob::expression(text)).map_err(|error| format!("{text:?} is no pattern: {error}"))
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn allowed(name: &str, tags: &[&str]) -> AllowedImage {
        AllowedImage {
            name: name.to_owned(),
            tags: tags.iter().map(ToString::to_string).collect(),
            ..AllowedImage::default()
        }
    }

    pub(crate) fn spec(images: Vec<AllowedImage>) -> WhiteListSpec {
        WhiteListSpec { images, max_deletions_per_minute: 10, ..WhiteListSpec::default() }
    }

    fn judge(images: Vec<AllowedImage>, image: &str) -> Result<(), Reason> {
        Rules::compile(&spec(images)).expect("rules").judge(&Image::read(image))
    }

    fn sample() -> Vec<AllowedImage> {
        vec![allowed("nginx", &["latest", "1.14.2"]), allowed("gcr.io/busybox", &["latest"])]
    }

    /// IP-03, IP-04, IP-05, IP-06.
    #[test]
    fn ip_06_names_and_tags_are_compared_as_they_are_written() {
        for good in ["nginx", "nginx:latest", "nginx:1.14.2", "gcr.io/busybox", "gcr.io/busybox:latest"] {
            assert_eq!(judge(sample(), good), Ok(()), "{good}");
        }
        for (bad, reason) in [
            ("nginx:1.15.7", Reason::TagNotListed),
            ("gcr.io/busybox:1.36", Reason::TagNotListed),
            ("busybox", Reason::NameNotListed),
            ("docker.io/library/nginx", Reason::NameNotListed),
            ("library/nginx:latest", Reason::NameNotListed),
            ("localhost:5000/nginx", Reason::NameNotListed),
            ("Nginx!", Reason::Unreadable),
            ("", Reason::Unreadable),
        ] {
            assert_eq!(judge(sample(), bad), Err(reason), "{bad}");
        }
    }

    /// IP-13, Beyond 3: a digest is allowed when it is listed, whatever tag stands beside it.
    #[test]
    fn ip_13_digests_are_allowed_by_their_own_list() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let mut listed = allowed("nginx", &["latest"]);
        assert_eq!(judge(vec![listed.clone()], &format!("nginx@{digest}")), Err(Reason::DigestNotListed));
        assert_eq!(
            judge(vec![listed.clone()], &format!("nginx:latest@{digest}")),
            Err(Reason::DigestNotListed)
        );
        listed.digests = vec![digest.clone()];
        for good in [format!("nginx@{digest}"), format!("nginx:other@{digest}"), "nginx".to_owned()] {
            assert_eq!(judge(vec![listed.clone()], &good), Ok(()), "{good}");
        }
        assert_eq!(
            judge(vec![listed], &format!("nginx@sha256:{}", "b".repeat(64))),
            Err(Reason::DigestNotListed)
        );
    }

    /// Beyond 3.
    #[test]
    fn ip_06_what_is_meant_counts_where_it_is_asked_for() {
        let mut rule = allowed("nginx", &["latest"]);
        rule.matching = Matching::Normalized;
        for good in ["nginx", "docker.io/nginx", "index.docker.io/library/nginx:latest", "library/nginx"] {
            assert_eq!(judge(vec![rule.clone()], good), Ok(()), "{good}");
        }
        for bad in ["gcr.io/nginx", "nginx:1", "localhost:5000/nginx", "Nginx"] {
            assert!(judge(vec![rule.clone()], bad).is_err(), "{bad}");
        }
    }

    /// Beyond 3.
    #[test]
    fn patterns_match_names_with_their_registry_and_tags() {
        let mut rule = allowed("docker.io/library/*", &["1.14.*", "stable"]);
        rule.matching = Matching::Glob;
        for good in ["nginx:1.14.2", "busybox:stable", "docker.io/library/x:1.14.0-alpine"] {
            assert_eq!(judge(vec![rule.clone()], good), Ok(()), "{good}");
        }
        for (bad, reason) in [
            ("nginx", Reason::TagNotListed),
            ("nginx:1.15.0", Reason::TagNotListed),
            ("team/nginx:stable", Reason::NameNotListed),
            ("gcr.io/library/nginx:stable", Reason::NameNotListed),
        ] {
            assert_eq!(judge(vec![rule.clone()], bad), Err(reason), "{bad}");
        }
    }

    /// Beyond 3.
    #[test]
    fn ranges_allow_whole_versions() {
        let mut rule = allowed("nginx", &[]);
        rule.versions = vec![">=1.14, <1.16".to_owned(), "^2".to_owned()];
        for good in ["nginx:1.14.0", "nginx:v1.15.12", "nginx:2.7.1"] {
            assert_eq!(judge(vec![rule.clone()], good), Ok(()), "{good}");
        }
        for bad in ["nginx", "nginx:1.16.0", "nginx:1.14", "nginx:1.15.0-alpine", "nginx:3.0.0"] {
            assert_eq!(judge(vec![rule.clone()], bad), Err(Reason::VersionNotListed), "{bad}");
        }
    }

    #[test]
    fn what_the_schema_cannot_tell_is_told_with_its_field() {
        let mut range = allowed("nginx", &[]);
        range.versions = vec!["1.2.3.4".to_owned()];
        let mut name = allowed("Nginx", &["latest"]);
        name.matching = Matching::Normalized;
        let mistakes = Rules::compile(&spec(vec![allowed("ok", &[]), range, name])).expect_err("mistakes");
        assert_eq!(mistakes.len(), 2, "{mistakes:?}");
        assert!(mistakes[0].starts_with("spec.images[1].versions: \"1.2.3.4\" is no range"), "{mistakes:?}");
        assert!(mistakes[1].starts_with("spec.images[2].name: \"Nginx\" is no image"), "{mistakes:?}");
    }

    proptest! {
        /// IP-16: a list with more rules allows no less.
        #[test]
        fn ip_16_more_rules_allow_no_less(image in "[a-z.:/@]{0,20}", name in "[a-z./]{1,8}", tag in "[a-z]{1,3}") {
            let one = judge(sample(), &image);
            let mut more = sample();
            more.push(allowed(&name, &[&tag]));
            prop_assert!(one.is_err() || judge(more.clone(), &image).is_ok());
            let it = format!("{name}:{tag}");
            prop_assert_eq!(judge(more, &it), Ok(()));
        }
    }
}
