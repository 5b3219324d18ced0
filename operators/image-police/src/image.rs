//! What an image is called, as it is written and as it is meant.

use std::cell::OnceCell;

use kubewright_image::Reference;

/// The tag of an image that names neither tag nor digest.
pub(crate) const DEFAULT_TAG: &str = "latest";

/// An image as a container names it.
#[derive(Clone, Debug)]
pub struct Image<'a> {
    /// The whole text.
    pub written: &'a str,
    /// Without tag and digest.
    pub name: &'a str,
    tag: Option<&'a str>,
    digest: Option<&'a str>,
    meant: OnceCell<Option<Reference>>,
}

impl<'a> Image<'a> {
    /// Takes a text apart: what follows `@` is a digest, what follows the last `:` a tag unless a slash follows (a registry's
    /// port). Every text has a name, perhaps an empty one.
    #[must_use]
    pub fn read(written: &'a str) -> Self {
        let (rest, digest) =
            written.split_once('@').map_or((written, None), |(rest, digest)| (rest, Some(digest)));
        let tagged = rest.rsplit_once(':').filter(|(_, tag)| !tag.contains('/'));
        let (name, tag) = tagged.map_or((rest, None), |(name, tag)| (name, Some(tag)));
        Self { written, name, tag, digest, meant: OnceCell::new() }
    }

    /// Its tag, `latest` where it names none; `None` for an image with a digest, whose tag nobody looks at when it is
    /// pulled.
    #[must_use]
    pub fn tag(&self) -> Option<&'a str> {
        if self.digest.is_some() { None } else { Some(self.tag.unwrap_or(DEFAULT_TAG)) }
    }

    /// Its digest.
    #[must_use]
    pub fn digest(&self) -> Option<&'a str> {
        self.digest
    }

    /// What a container runtime takes it for; `None` when it could not read it.
    #[must_use]
    pub fn meant(&self) -> Option<&Reference> {
        self.meant.get_or_init(|| Reference::parse(self.written).ok()).as_ref()
    }

    /// The image for people: what a runtime takes it for, such as `docker.io/library/nginx:latest`; as it is written where that
    /// is nothing.
    #[must_use]
    pub fn normalized(&self) -> String {
        self.meant().map_or_else(|| self.written.to_owned(), ToString::to_string)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> (&str, Option<&str>, Option<&str>) {
        let image = Image::read(text);
        (image.name, image.tag(), image.digest())
    }

    /// IP-03, IP-06: no tag is `latest`. A registry's port is no tag (a defect of the original).
    #[test]
    fn ip_03_a_text_is_taken_apart_as_it_is_written() {
        assert_eq!(read("nginx"), ("nginx", Some("latest"), None));
        assert_eq!(read("gcr.io/busybox:1.36"), ("gcr.io/busybox", Some("1.36"), None));
        assert_eq!(read("localhost:5000/nginx"), ("localhost:5000/nginx", Some("latest"), None));
        assert_eq!(read("localhost:5000/nginx:1"), ("localhost:5000/nginx", Some("1"), None));
        assert_eq!(read(""), ("", Some("latest"), None));
    }

    /// IP-13: a digest is one, and not the tag of a name that ends with `@sha256`.
    #[test]
    fn ip_13_a_digest_is_no_tag() {
        assert_eq!(read("nginx@sha256:aaaa"), ("nginx", None, Some("sha256:aaaa")));
        assert_eq!(read("nginx:1.14.2@sha256:aaaa"), ("nginx", None, Some("sha256:aaaa")));
    }

    #[test]
    fn what_is_meant_is_what_a_runtime_reads() {
        let meant = |text| Image::read(text).meant().map(ToString::to_string);
        assert_eq!(meant("nginx"), Some("docker.io/library/nginx:latest".to_owned()));
        assert_eq!(meant("Nginx:Bad"), None);
    }

    #[test]
    fn people_are_told_what_is_meant() {
        let digest = format!("sha256:{}", "a".repeat(64));
        for (written, told) in [
            ("nginx:1.15.7", "docker.io/library/nginx:1.15.7"),
            ("localhost:5000/nginx", "localhost:5000/nginx:latest"),
            (&*format!("team/app:1@{digest}"), &*format!("docker.io/team/app:1@{digest}")),
            ("Nginx:Bad", "Nginx:Bad"),
        ] {
            assert_eq!(Image::read(written).normalized(), told);
        }
    }

    proptest! {
        #[test]
        fn every_text_is_read(text in ".*") {
            let image = Image::read(&text);
            prop_assert!(image.tag().is_some() != image.digest().is_some());
            prop_assert!(text.starts_with(image.name));
            let _ = image.meant();
        }
    }
}
