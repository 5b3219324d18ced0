//! What an image is called.

/// The name of an image with all that is usually left out, such as `docker.io/library/busybox:latest`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// The registry, with its port where one is named.
    pub domain: String,
    /// The path in the registry.
    pub repository: String,
    /// The tag; `None` where there is a digest only.
    pub tag: Option<String>,
    /// The digest, such as `sha256:…`.
    pub digest: Option<String>,
}
