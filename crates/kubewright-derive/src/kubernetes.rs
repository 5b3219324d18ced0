//! The versions of Kubernetes that a test may choose from.

/// What `kubernetes = ...` takes, each with its name in `kubewright::testing::KubernetesVersion`. One that is not there does not
/// compile in a test that names it; one that is missing here is found by `each_version_can_be_chosen` of `kubewright-testing`.
pub(crate) const VERSIONS: &[(&str, &str)] = &[("1.35", "V1_35"), ("1.36", "V1_36"), ("1.37", "V1_37")];

/// The version's name in Rust.
pub(crate) fn variant(text: &str) -> Option<&'static str> {
    let number = text.strip_prefix('v').unwrap_or(text);
    VERSIONS.iter().find(|(version, _)| *version == number).map(|(_, variant)| *variant)
}

/// They, in a sentence.
pub(crate) fn names() -> String {
    VERSIONS.iter().map(|(version, _)| *version).collect::<Vec<_>>().join(", ")
}
