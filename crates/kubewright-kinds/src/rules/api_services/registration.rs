//! What an APIService says, as far as requests and discovery go by it.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::availability::{self, Status};
use super::{HTTPS, local};

/// Who serves a version of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiService {
    /// The object's name: `version.group`.
    pub name: String,
    /// API group; empty for core.
    pub group: String,
    /// API version within the group.
    pub version: String,
    /// `spec.groupPriorityMinimum`.
    pub group_priority: i64,
    /// `spec.versionPriority`.
    pub version_priority: i64,
    /// The API server behind a Service that serves it; none where this one does.
    pub backend: Option<Backend>,
    /// Whether it is there for as long as a definition serves the version.
    pub of_definition: bool,
    /// Whether the condition `Available` is true.
    pub is_available: bool,
}

/// An API server behind a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    /// The namespace of the Service.
    pub namespace: String,
    /// The name of the Service.
    pub service: String,
    /// The port of the Service.
    pub port: u16,
    /// Who vouches for its certificate, in PEM; empty where the field is.
    pub bundle: Arc<[u8]>,
    /// Whether any certificate will do.
    pub insecure: bool,
}

impl ApiService {
    /// What an object says. What it leaves out is empty or zero.
    #[must_use]
    pub fn read(object: &Value) -> Self {
        let spec = &object["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let service = &spec["service"];
        let backend = service.is_object().then(|| Backend {
            namespace: text(&service["namespace"]),
            service: text(&service["name"]),
            port: service["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or(HTTPS),
            bundle: bundle(spec).into(),
            insecure: spec["insecureSkipTLSVerify"] == true,
        });
        Self {
            name: text(&object["metadata"]["name"]),
            group: text(&spec["group"]),
            version: text(&spec["version"]),
            group_priority: spec["groupPriorityMinimum"].as_i64().unwrap_or_default(),
            version_priority: spec["versionPriority"].as_i64().unwrap_or_default(),
            backend,
            of_definition: local::is_always_managed(object),
            is_available: availability::status(object) == Status::True,
        }
    }

    /// `group/version`, or the version alone for core.
    #[must_use]
    pub fn group_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
}

/// The bytes of `spec.caBundle`.
pub(super) fn bundle(spec: &Value) -> Vec<u8> {
    STANDARD.decode(spec["caBundle"].as_str().unwrap_or_default()).unwrap_or_default()
}
