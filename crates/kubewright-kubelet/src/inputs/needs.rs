//! What has to be fetched for a pod.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, ProjectedVolumeSource, Volume};

use super::place;
use super::token::TokenNeed;

/// What has to be fetched before the volumes of a pod can be made and its containers started: names, in the pod's namespace
/// where they have one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Config maps.
    pub config_maps: BTreeSet<String>,
    /// Secrets.
    pub secrets: BTreeSet<String>,
    /// Claims; the volumes that these are bound to are needed too ([`Fetched::persistent_volumes`](super::Fetched)).
    pub claims: BTreeSet<String>,
    /// Tokens of the pod's service account.
    pub tokens: BTreeSet<TokenNeed>,
    /// Images that volumes show.
    pub images: BTreeSet<String>,
    /// Whether all Services of the namespace are needed (`enableServiceLinks`).
    pub services: bool,
}

impl Needs {
    /// What this pod needs. A volume that no container uses is none of it: the kubelet passes it over
    /// (`desired_state_of_world_populator.go`).
    #[must_use]
    pub fn of(pod: &Pod) -> Self {
        let mut needs = Self::default();
        let Some(spec) = &pod.spec else { return needs };
        needs.services = spec.enable_service_links.unwrap_or(true);
        for container in containers(spec) {
            needs.environment(container);
        }
        for volume in used_volumes(spec) {
            needs.volume(pod, volume);
        }
        needs
    }

    fn environment(&mut self, container: &Container) {
        for source in container.env_from.iter().flatten() {
            self.config_maps.extend(source.config_map_ref.iter().map(|map| map.name.clone()));
            self.secrets.extend(source.secret_ref.iter().map(|secret| secret.name.clone()));
        }
        for source in container.env.iter().flatten().filter_map(|variable| variable.value_from.as_ref()) {
            self.config_maps.extend(source.config_map_key_ref.iter().map(|key| key.name.clone()));
            self.secrets.extend(source.secret_key_ref.iter().map(|key| key.name.clone()));
        }
    }

    fn volume(&mut self, pod: &Pod, volume: &Volume) {
        self.config_maps.extend(volume.config_map.iter().map(|source| source.name.clone()));
        self.secrets.extend(volume.secret.iter().filter_map(|source| source.secret_name.clone()));
        self.claims.extend(claim(pod, volume));
        self.images.extend(volume.image.iter().filter_map(|source| source.reference.clone()));
        for source in volume.projected.iter().flat_map(sources) {
            self.config_maps.extend(source.config_map.iter().map(|source| source.name.clone()));
            self.secrets.extend(source.secret.iter().map(|source| source.name.clone()));
            self.tokens.extend(source.service_account_token.iter().map(TokenNeed::of));
        }
    }
}

pub(super) fn sources(
    projected: &ProjectedVolumeSource,
) -> impl Iterator<Item = &k8s_openapi::api::core::v1::VolumeProjection> {
    projected.sources.iter().flatten()
}

/// Init containers and containers, in their order.
pub(super) fn containers(spec: &PodSpec) -> impl Iterator<Item = &Container> {
    spec.init_containers.iter().flatten().chain(&spec.containers)
}

/// The claim of a volume; that of an ephemeral one is called after pod and volume
/// (`component-helpers/storage/ephemeral`).
pub(super) fn claim(pod: &Pod, volume: &Volume) -> Option<String> {
    let named = volume.persistent_volume_claim.as_ref().map(|source| source.claim_name.clone());
    named.or_else(|| volume.ephemeral.as_ref().map(|_| format!("{}-{}", place::name(pod), volume.name)))
}

/// The volumes that some container mounts or wants as a device (`GetPodVolumeNames`).
pub(super) fn used_volumes(spec: &PodSpec) -> impl Iterator<Item = &Volume> {
    let mut used = BTreeSet::new();
    for container in containers(spec) {
        used.extend(container.volume_mounts.iter().flatten().map(|mount| mount.name.as_str()));
        used.extend(container.volume_devices.iter().flatten().map(|device| device.name.as_str()));
    }
    spec.volumes.iter().flatten().filter(move |volume| used.contains(volume.name.as_str()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::inputs::fixture::pod;

    #[test]
    fn everything_that_containers_and_used_volumes_name_is_needed_and_nothing_else() {
        let mounts = ["map", "secret", "all", "claim", "own", "image"]
            .map(|name| json!({"name": name, "mountPath": format!("/{name}")}));
        let pod = pod(json!({
            "initContainers": [{"name": "init", "envFrom": [{"configMapRef": {"name": "c1"}}, {"secretRef": {"name": "s1"}}]}],
            "containers": [{"name": "app", "volumeMounts": mounts, "env": [
                {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c2", "key": "k"}}},
                {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s2", "key": "k"}}}]}],
            "volumes": [
                {"name": "map", "configMap": {"name": "c3"}},
                {"name": "secret", "secret": {"secretName": "s3"}},
                {"name": "all", "projected": {"sources": [
                    {"configMap": {"name": "c4"}}, {"secret": {"name": "s4"}},
                    {"serviceAccountToken": {"path": "token", "audience": "vault", "expirationSeconds": 600}},
                    {"serviceAccountToken": {"path": "token"}}]}},
                {"name": "claim", "persistentVolumeClaim": {"claimName": "data"}},
                {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
                {"name": "image", "image": {"reference": "busybox"}},
                {"name": "unused", "configMap": {"name": "unused"}}]}));
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let token = |audience: &str, expiration_seconds| TokenNeed {
            audience: audience.to_owned(),
            expiration_seconds,
        };
        let expected = Needs {
            config_maps: names(&["c1", "c2", "c3", "c4"]),
            secrets: names(&["s1", "s2", "s3", "s4"]),
            claims: names(&["data", "web-own"]),
            tokens: BTreeSet::from([token("vault", 600), token("", 3600)]),
            images: names(&["busybox"]),
            services: true,
        };
        assert_eq!(Needs::of(&pod), expected);
    }
}
