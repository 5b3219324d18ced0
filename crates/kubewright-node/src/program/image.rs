//! What the name of an image says.

/// The last part of an image's name, without tag and digest: `agnhost` of `registry.k8s.io/e2e-test-images/agnhost:2.53`.
pub(super) fn name(image: &str) -> &str {
    let last = image.split('@').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    last.split(':').next().unwrap_or_default()
}

/// Whether the name says that there is no such image: its registry is in the domain `invalid` (RFC 2606) or called so, or
/// its tag says that it is not there (`404`, `non-existent`).
pub(crate) fn is_unpullable(image: &str) -> bool {
    let name = image.split('@').next().unwrap_or_default();
    let (registry, last) = match name.split_once('/') {
        Some((registry, _)) => (registry, name.rsplit('/').next().unwrap_or_default()),
        None => ("", name),
    };
    let host = registry.split(':').next().unwrap_or_default();
    let is_host = host.contains('.');
    let tag = last.split_once(':').map_or("", |(_, tag)| tag);
    (is_host && (host.starts_with("invalid.") || host.ends_with(".invalid")))
        || matches!(tag, "404" | "non-existent" | "nonexistent" | "does-not-exist")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_last_part_without_tag_and_digest() {
        assert_eq!(name("registry.k8s.io/e2e-test-images/agnhost:2.53"), "agnhost");
        assert_eq!(name("localhost:5000/busybox@sha256:00"), "busybox");
        assert_eq!(name("busybox"), "busybox");
    }

    #[test]
    fn an_image_that_nobody_has_cannot_be_pulled() {
        for image in
            ["webserver:404", "foo:non-existent", "invalid.registry.k8s.io/invalid/alpine:3.1", "a.invalid/b"]
        {
            assert!(is_unpullable(image), "{image}");
        }
        for image in ["web:1", "localhost:404/web", "invalid/web:1", "registry.k8s.io/pause:3.10"] {
            assert!(!is_unpullable(image), "{image}");
        }
    }
}
