//! What an image is called: the grammar, the defaults and the messages of `github.com/distribution/reference` v0.6.0, which
//! Docker, containerd and the kubelet read names with.

use std::{fmt, str::FromStr, sync::LazyLock};

use regex::Regex;
use serde::{Deserialize, Serialize, de};

/// The registry of names that have none.
const DEFAULT_DOMAIN: &str = "docker.io";

/// What [`DEFAULT_DOMAIN`] was called before, and is still called by some.
const LEGACY_DEFAULT_DOMAIN: &str = "index.docker.io";

/// Where [`DEFAULT_DOMAIN`] keeps what has no other namespace.
const OFFICIAL: &str = "library/";

/// The tag of references that have neither tag nor digest.
const DEFAULT_TAG: &str = "latest";

/// How long the path in a registry may be.
const MAX_REPOSITORY: usize = 255;

/// What has this form is an image's id, never its name.
static IDENTIFIER: LazyLock<Regex> = LazyLock::new(|| pattern("[a-f0-9]{64}"));

/// `[domain/]repository[:tag][@digest]` (`regexp.go`).
static REFERENCE: LazyLock<Regex> = LazyLock::new(|| {
    let label = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])";
    let domain = format!(r"(?:{label}(?:\.{label})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?");
    let component = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
    let tag = "[0-9A-Za-z_][0-9A-Za-z_.-]{0,127}";
    let digest = "[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}";
    pattern(&format!(
        "(?:(?<domain>{domain})/)?(?<repository>{component}(?:/{component})*)(?::(?<tag>{tag}))?(?:@(?<digest>{digest}))?"
    ))
});

fn pattern(whole: &str) -> Regex {
    Regex::new(&format!("^(?:{whole})$")).expect("the patterns above are regular expressions")
}

/// The name of an image with all that is usually left out: `busybox` is `docker.io/library/busybox:latest`.
///
/// It has a tag, a digest, or both. Two texts that mean the same image by name give equal references.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    domain: String,
    repository: String,
    tag: Option<String>,
    digest: Option<String>,
}

/// Why a text is no [`Reference`], in the words of `github.com/distribution/reference` and `github.com/opencontainers/go-digest`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// It is none.
    #[error("invalid reference format")]
    Format,
    /// It would be one in lower case.
    #[error("repository name must be lowercase")]
    UpperCase,
    /// The repository has upper case letters; here it is.
    #[error("invalid reference format: repository name ({0}) must be lowercase")]
    UpperCaseRepository(String),
    /// It is an image's id.
    #[error("invalid repository name ({0}), cannot specify 64-byte hexadecimal strings")]
    Identifier(String),
    /// The repository is too long.
    #[error("repository name must not be more than {MAX_REPOSITORY} characters")]
    TooLong,
    /// The digest is by an algorithm that nobody has.
    #[error("unsupported digest algorithm")]
    DigestAlgorithm,
    /// The digest is longer or shorter than those of its algorithm.
    #[error("invalid checksum digest length")]
    DigestLength,
    /// The digest has characters that those of its algorithm do not have.
    #[error("invalid checksum digest format")]
    DigestFormat,
}

impl Reference {
    /// Reads a reference as Docker does (`ParseNormalizedNamed`, then `TagNameOnly`): without a registry it is at
    /// `docker.io`, without a namespace there in `library`, without tag and digest it is `latest`.
    ///
    /// # Errors
    /// When it is none, in that library's words.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        if IDENTIFIER.is_match(text) {
            return Err(ReferenceError::Identifier(text.to_owned()));
        }
        let (domain, rest) = split_domain(text);
        let repository = rest.split(':').next().unwrap_or_default();
        if repository.to_lowercase() != repository {
            return Err(ReferenceError::UpperCaseRepository(repository.to_owned()));
        }
        Self::parse_whole(&format!("{domain}/{rest}"))
    }

    /// Reads a reference whose registry is written out.
    fn parse_whole(text: &str) -> Result<Self, ReferenceError> {
        let Some(parts) = REFERENCE.captures(text) else {
            let lower = REFERENCE.is_match(&text.to_lowercase());
            return Err(if lower { ReferenceError::UpperCase } else { ReferenceError::Format });
        };
        let part = |name| parts.name(name).map(|part| part.as_str().to_owned());
        let (repository, digest) = (part("repository").unwrap_or_default(), part("digest"));
        if repository.len() > MAX_REPOSITORY {
            return Err(ReferenceError::TooLong);
        }
        if let Some(digest) = &digest {
            check_digest(digest)?;
        }
        let tag = part("tag").or_else(|| digest.is_none().then(|| DEFAULT_TAG.to_owned()));
        Ok(Self { domain: part("domain").unwrap_or_default(), repository, tag, digest })
    }

    /// The registry, with its port where one is named. Empty for the few names that the grammar has no registry in although
    /// they look so, such as `a_b.c/d`.
    #[must_use]
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// The path in the registry, such as `library/busybox`.
    #[must_use]
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The tag; there may be none where there is a digest.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest with its algorithm, such as `sha256:…`.
    #[must_use]
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// Registry and repository, such as `docker.io/library/busybox`.
    #[must_use]
    pub fn name(&self) -> String {
        if self.domain.is_empty() {
            return self.repository.clone();
        }
        format!("{}/{}", self.domain, self.repository)
    }

    /// Registry and repository as people write them, such as `busybox`.
    #[must_use]
    pub fn familiar_name(&self) -> String {
        if self.domain != DEFAULT_DOMAIN {
            return self.name();
        }
        let official = self.repository.strip_prefix(OFFICIAL).filter(|name| !name.contains('/'));
        official.unwrap_or(&self.repository).to_owned()
    }

    /// All of it as people write it, such as `busybox:latest`.
    #[must_use]
    pub fn familiar(&self) -> String {
        self.familiar_name() + &self.suffix()
    }

    /// The same image of the same repository by the digest of its manifest, and by nothing else.
    #[must_use]
    pub(crate) fn by_digest(&self, digest: crate::Digest) -> Self {
        Self { tag: None, digest: Some(digest.to_string()), ..self.clone() }
    }

    /// Without the digest, where a tag is left then.
    #[must_use]
    pub(crate) fn without_digest(&self) -> Self {
        let digest = self.digest.clone().filter(|_| self.tag.is_none());
        Self { digest, ..self.clone() }
    }

    /// Whether both are of the same repository.
    pub(crate) fn has_name_of(&self, other: &Self) -> bool {
        (&self.domain, &self.repository) == (&other.domain, &other.repository)
    }

    /// Tag and digest, each with what it begins with.
    fn suffix(&self) -> String {
        let tag = self.tag.as_ref().map(|tag| format!(":{tag}"));
        let digest = self.digest.as_ref().map(|digest| format!("@{digest}"));
        tag.unwrap_or_default() + &digest.unwrap_or_default()
    }
}

/// The registry that a text names or means, and the rest (`splitDockerDomain`).
fn split_domain(text: &str) -> (&str, String) {
    let Some((first, rest)) = text.split_once('/') else {
        return (DEFAULT_DOMAIN, format!("{OFFICIAL}{text}"));
    };
    let is_domain = first == "localhost" || first.contains(['.', ':']) || first.to_lowercase() != first;
    let (domain, rest) = match first {
        LEGACY_DEFAULT_DOMAIN => (DEFAULT_DOMAIN, rest),
        _ if is_domain => (first, rest),
        _ => (DEFAULT_DOMAIN, text),
    };
    if domain == DEFAULT_DOMAIN && !rest.contains('/') {
        return (domain, format!("{OFFICIAL}{rest}"));
    }
    (domain, rest.to_owned())
}

/// Checks what the grammar says nothing of: algorithm and length (go-digest's `Validate`).
fn check_digest(digest: &str) -> Result<(), ReferenceError> {
    let (algorithm, encoded) = digest.split_once(':').unwrap_or_default();
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ if algorithm.bytes().any(|byte| byte.is_ascii_uppercase()) => {
            return Err(ReferenceError::DigestFormat);
        }
        _ => return Err(ReferenceError::DigestAlgorithm),
    };
    let is_hex = encoded.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if encoded.len() != length {
        return Err(ReferenceError::DigestLength);
    }
    if is_hex { Ok(()) } else { Err(ReferenceError::DigestFormat) }
}

impl fmt::Display for Reference {
    /// The canonical form, such as `docker.io/library/busybox:latest`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.name(), self.suffix())
    }
}

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        Self::parse(text)
    }
}

impl Serialize for Reference {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Reference {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
