//! What is known of an operator.

use serde::Deserialize;
use serde_json::Value;

/// The namespace that the manifests for a Helm chart are made with: wherever it is in them, the chart has that of its release.
pub const RELEASE_NAMESPACE: &str = "kubewright-release-namespace";

/// All that files are made of.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// Its name: that of the program and of what is installed.
    pub name: String,
    /// Its version, as in Cargo.toml.
    pub version: String,
    /// What Cargo.toml says of it.
    pub about: About,
    /// What installs it.
    pub installed: Manifests,
    /// The same in the [namespace of a release](RELEASE_NAMESPACE).
    pub released: Manifests,
    /// What users are to apply first.
    pub samples: Vec<Sample>,
}

/// What `<operator> manifests` prints, in its order.
#[derive(Clone, Debug, Default)]
pub struct Manifests {
    /// By default: the operator makes the certificate of its webhooks itself.
    pub own: Vec<Value>,
    /// With `--webhook-certificate=cert-manager`; `None` for an operator without webhooks.
    pub certified: Option<Vec<Value>>,
}

/// A file of `config/samples`.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Its name, without a folder.
    pub file: String,
    /// What is in it.
    pub objects: Vec<Value>,
}

/// What Cargo.toml says of an operator.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct About {
    /// One sentence.
    pub description: Option<String>,
    /// Where there is more to read.
    pub homepage: Option<String>,
    /// Where its source is.
    pub repository: Option<String>,
    /// An SPDX expression.
    pub license: Option<String>,
    /// `Name <address>`.
    pub authors: Vec<String>,
    /// What it is found by.
    pub keywords: Vec<String>,
    /// `[package.metadata.kubewright.olm]`.
    pub olm: Olm,
}

/// What an OLM bundle says beyond that: `[package.metadata.kubewright.olm]` in Cargo.toml.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Olm {
    /// How a catalog calls it; its name if not told.
    pub display_name: Option<String>,
    /// What it does, at length, in Markdown.
    pub description: Option<String>,
    /// Who provides it.
    pub provider: Option<String>,
    /// `Basic Install` (if not told), `Seamless Upgrades`, `Full Lifecycle`, `Deep Insights`, `Auto Pilot`.
    pub capabilities: Option<String>,
    /// Of OperatorHub's.
    pub categories: Vec<String>,
    /// `alpha` if not told.
    pub maturity: Option<String>,
    /// The oldest Kubernetes that it works with.
    pub min_kube_version: Option<String>,
    /// `alpha` if not told.
    pub channels: Vec<String>,
    /// The first of the channels if not told.
    pub default_channel: Option<String>,
    /// The CSV that it replaces.
    pub replaces: Option<String>,
    /// A file of the project: PNG, JPEG, GIF or SVG.
    pub icon: Option<String>,
    /// What is in that file.
    #[serde(skip)]
    pub icon_data: Vec<u8>,
}
