//! Fields of a pod that not every version of k8s-openapi has. A program chooses the version (`v1_33` and later); one that is compiled
//! with an older one reads pods without these fields, and this node then runs them as if nobody had set them.

use k8s_openapi::api::core::v1::{Container, EnvVarSource, Pod, VolumeProjection};

/// A `fileKeyRef`: a variable from a file of a volume (`FileKeySelector`, since v1.34).
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileKey<'a> {
    pub(crate) key: &'a str,
    pub(crate) optional: bool,
    pub(crate) path: &'a str,
    pub(crate) volume_name: &'a str,
}

/// A rule of `restartPolicyRules` (`ContainerRestartRule`, since v1.34).
#[derive(Clone, Copy, Debug)]
pub(crate) struct RestartRule<'a> {
    pub(crate) action: &'a str,
    /// The operator and the values of `exitCodes`.
    pub(crate) exit_codes: Option<(&'a str, &'a [i32])>,
}

k8s_openapi::k8s_if_ge_1_34! {
    pub(crate) fn file_key(source: &EnvVarSource) -> Option<FileKey<'_>> {
        let selector = source.file_key_ref.as_ref()?;
        Some(FileKey {
            key: &selector.key,
            optional: selector.optional.unwrap_or_default(),
            path: &selector.path,
            volume_name: &selector.volume_name,
        })
    }

    pub(crate) fn restart_rules(container: &Container) -> impl Iterator<Item = RestartRule<'_>> {
        container.restart_policy_rules.iter().flatten().map(|rule| RestartRule {
            action: &rule.action,
            exit_codes: rule
                .exit_codes
                .as_ref()
                .map(|codes| (codes.operator.as_str(), codes.values.as_deref().unwrap_or_default())),
        })
    }

    /// `hostnameOverride`.
    pub(crate) fn host_name_override(pod: &Pod) -> Option<&str> {
        pod.spec.as_ref()?.hostname_override.as_deref()
    }

    pub(crate) fn is_pod_certificate(projection: &VolumeProjection) -> bool {
        projection.pod_certificate.is_some()
    }
}

k8s_openapi::k8s_if_le_1_33! {
    pub(crate) fn file_key(_: &EnvVarSource) -> Option<FileKey<'_>> {
        None
    }

    pub(crate) fn restart_rules(_: &Container) -> impl Iterator<Item = RestartRule<'_>> {
        std::iter::empty()
    }

    /// `hostnameOverride`.
    pub(crate) fn host_name_override(_: &Pod) -> Option<&str> {
        None
    }

    pub(crate) fn is_pod_certificate(_: &VolumeProjection) -> bool {
        false
    }
}
