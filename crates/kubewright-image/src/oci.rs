//! The documents of OCI's image format (`github.com/opencontainers/image-spec` v1.1), as far as they are read here, and what
//! Docker calls the same.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize, de::IgnoredAny};

use crate::{Config, Digest, platform::Platform};

/// How large a document may be; those of real images have some kilobytes.
pub(crate) const MAX_DOCUMENT: u64 = 4 << 20;

/// The media type of a manifest.
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// The media type of a list of manifests.
pub(crate) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// The media type of an image's configuration.
pub(crate) const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// The media type of a layer of unknown compression; what it is, its first bytes say.
pub(crate) const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// The file that tells an OCI image layout from any folder, and what it says.
pub(crate) const LAYOUT_FILE: &str = "oci-layout";
/// What is in [`LAYOUT_FILE`].
pub(crate) const LAYOUT: &str = r#"{"imageLayoutVersion":"1.0.0"}"#;
/// The file of a layout that lists its images.
pub(crate) const INDEX_FILE: &str = "index.json";

/// What a descriptor of a layout stands for: a tag, or a whole reference.
pub(crate) const REF_NAME: &str = "org.opencontainers.image.ref.name";
/// A whole reference, by containerd and Docker.
pub(crate) const IMAGE_NAME: &str = "io.containerd.image.name";

/// Points to content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) media_type: String,
    pub(crate) digest: Digest,
    pub(crate) size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) platform: Option<Platform>,
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annotations: BTreeMap<String, String>,
}

impl Descriptor {
    /// Points to content of this machine.
    pub(crate) fn new(media_type: &str, digest: Digest, size: u64) -> Self {
        Self { media_type: media_type.to_owned(), digest, size, platform: None, annotations: BTreeMap::new() }
    }

    /// Whether it points to a list of manifests.
    pub(crate) fn is_index(&self) -> bool {
        let types = [INDEX, "application/vnd.docker.distribution.manifest.list.v2+json"];
        types.contains(&self.media_type.as_str())
    }

    /// Whether it points to a manifest.
    pub(crate) fn is_manifest(&self) -> bool {
        [MANIFEST, "application/vnd.docker.distribution.manifest.v2+json"].contains(&self.media_type.as_str())
    }

    /// Whether it points to the configuration of a container image; there is much else that is kept like images.
    pub(crate) fn is_config(&self) -> bool {
        [CONFIG, "application/vnd.docker.container.image.v1+json"].contains(&self.media_type.as_str())
    }

    /// Whether it points to a layer that is an archive, compressed or not: neither encrypted nor something else.
    pub(crate) fn is_layer(&self) -> bool {
        let kinds = [
            LAYER,
            "application/vnd.oci.image.layer.nondistributable.v1.tar",
            "application/vnd.docker.image.rootfs.diff.tar",
            "application/vnd.docker.image.rootfs.foreign.diff.tar",
        ];
        let compression = kinds.iter().find_map(|kind| self.media_type.strip_prefix(kind));
        compression.is_some_and(|rest| ["", "+gzip", ".gzip", "+zstd", ".zstd"].contains(&rest))
    }
}

/// A list of manifests, or of lists.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Index {
    pub(crate) schema_version: u32,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) manifests: Vec<Descriptor>,
}

impl Default for Index {
    fn default() -> Self {
        Self { schema_version: 2, manifests: Vec::new() }
    }
}

/// What an image consists of.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manifest {
    pub(crate) schema_version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) media_type: Option<String>,
    pub(crate) config: Descriptor,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) layers: Vec<Descriptor>,
}

/// An image's configuration.
#[derive(Debug, Deserialize)]
pub(crate) struct ConfigFile {
    #[serde(flatten)]
    platform: Platform,
    created: Option<String>,
    config: Option<ContainerConfig>,
    rootfs: RootFs,
}

/// The part of a configuration that is about a container.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct ContainerConfig {
    #[serde(deserialize_with = "nullable")]
    user: String,
    #[serde(deserialize_with = "nullable")]
    env: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    entrypoint: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    cmd: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    working_dir: String,
    #[serde(deserialize_with = "nullable")]
    labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable")]
    exposed_ports: BTreeMap<String, IgnoredAny>,
    #[serde(deserialize_with = "nullable")]
    volumes: BTreeMap<String, IgnoredAny>,
    stop_signal: Option<String>,
}

/// The layers by what they are uncompressed.
#[derive(Debug, Deserialize)]
struct RootFs {
    #[serde(default, deserialize_with = "nullable")]
    diff_ids: Vec<Digest>,
}

impl ConfigFile {
    /// The digest of each layer, uncompressed.
    pub(crate) fn diff_ids(&self) -> &[Digest] {
        &self.rootfs.diff_ids
    }

    /// What it is built for.
    pub(crate) fn platform(&self) -> &Platform {
        &self.platform
    }

    /// What it says to whoever runs it.
    pub(crate) fn into_config(self) -> Config {
        let container = self.config.unwrap_or_default();
        let keys = |map: BTreeMap<String, IgnoredAny>| map.into_keys().collect::<BTreeSet<_>>();
        let pair = |entry: String| match entry.split_once('=') {
            Some((name, value)) => (name.to_owned(), value.to_owned()),
            None => (entry, String::new()),
        };
        Config {
            entrypoint: container.entrypoint,
            cmd: container.cmd,
            env: container.env.into_iter().map(pair).collect(),
            working_dir: container.working_dir,
            user: container.user,
            labels: container.labels,
            exposed_ports: keys(container.exposed_ports),
            volumes: keys(container.volumes),
            stop_signal: container.stop_signal.filter(|signal| !signal.is_empty()),
            architecture: self.platform.architecture,
            os: self.platform.os,
            created: self.created,
        }
    }
}

/// Go writes `null` for what is empty.
fn nullable<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_configuration_full_of_nulls_is_an_empty_one() {
        let file: ConfigFile = serde_json::from_str(&json!({
            "architecture": "amd64", "os": "linux", "created": null, "rootfs": {"type": "layers", "diff_ids": null},
            "config": {"Env": null, "Cmd": null, "Entrypoint": null, "Labels": null, "Volumes": null, "User": null,
                "WorkingDir": null, "ExposedPorts": null, "StopSignal": ""},
        }).to_string())
        .expect("a configuration");
        let expected = Config { architecture: "amd64".into(), os: "linux".into(), ..Config::default() };
        assert_eq!(file.into_config(), expected);
    }

    #[test]
    fn a_configuration_tells_all_that_a_container_needs() {
        let file: ConfigFile = serde_json::from_str(&json!({
            "architecture": "arm64", "variant": "v8", "os": "linux", "created": "2026-01-02T03:04:05Z",
            "rootfs": {"type": "layers", "diff_ids": []}, "history": [{"created_by": "COPY"}],
            "config": {"Env": ["PATH=/bin", "EMPTY=", "A=b=c", "BARE"], "Cmd": ["-v"], "Entrypoint": ["/app"],
                "Labels": {"a": "b"}, "Volumes": {"/data": {}}, "User": "65532:0", "WorkingDir": "/srv",
                "ExposedPorts": {"80/tcp": {}, "53/udp": {}}, "StopSignal": "SIGQUIT", "Shell": ["/bin/sh"]},
        }).to_string())
        .expect("a configuration");
        let config = file.into_config();
        let env: Vec<(&str, &str)> =
            config.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(env, [("PATH", "/bin"), ("EMPTY", ""), ("A", "b=c"), ("BARE", "")]);
        assert_eq!((config.entrypoint, config.cmd), (vec!["/app".to_owned()], vec!["-v".to_owned()]));
        assert_eq!((config.user.as_str(), config.working_dir.as_str()), ("65532:0", "/srv"));
        assert_eq!(config.exposed_ports.into_iter().collect::<Vec<_>>(), ["53/udp", "80/tcp"]);
        assert_eq!(config.volumes.into_iter().collect::<Vec<_>>(), ["/data"]);
        assert_eq!(config.stop_signal.as_deref(), Some("SIGQUIT"));
        assert_eq!(
            (config.architecture.as_str(), config.created.as_deref()),
            ("arm64", Some("2026-01-02T03:04:05Z"))
        );
    }

    #[test]
    fn encrypted_layers_and_other_artifacts_are_no_layers() {
        let of = |media_type: &str| Descriptor::new(media_type, Digest::of(b""), 0);
        for layer in [
            "application/vnd.oci.image.layer.v1.tar",
            "application/vnd.oci.image.layer.v1.tar+gzip",
            "application/vnd.oci.image.layer.v1.tar+zstd",
            "application/vnd.docker.image.rootfs.diff.tar.gzip",
        ] {
            assert!(of(layer).is_layer(), "{layer}");
        }
        for other in [
            "",
            "application/vnd.oci.image.layer.v1.tar+gzip+encrypted",
            "application/vnd.wasm.content.layer.v1+wasm",
        ] {
            assert!(!of(other).is_layer(), "{other}");
        }
        assert!(!of("application/vnd.cncf.helm.config.v1+json").is_config());
    }
}
