//! Where an operator's manifests go: one file, a tree for kustomize, a Helm chart, an OLM bundle. Objects in, files out;
//! nothing here reads a disk or a cluster.
//!
//! ```
//! use kubewright_layout::{Format, Input, Manifests, generate};
//! use serde_json::json;
//!
//! let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "web-system"}});
//! let deployment = json!({
//!     "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "web-system"},
//!     "spec": {"template": {"spec": {"containers": [{"name": "operator", "image": "web:1.0.0"}]}}},
//! });
//! let installed = Manifests { own: vec![namespace, deployment], certified: None };
//! let input = Input { name: "web".into(), version: "1.0.0".into(), installed, ..Input::default() };
//! let files = generate(&input, &[Format::Plain])?;
//! assert!(files.get("dist/install.yaml").unwrap().contains("image: web:1.0.0"));
//! # Ok::<(), kubewright_layout::Error>(())
//! ```
//!
//! What is generated is generated as a whole, again and again: whoever wants it otherwise changes the operator, an overlay
//! of kustomize, or the values of the chart.

mod extras;
mod files;
mod helm;
mod input;
mod inventory;
mod kustomize;
mod monitoring;
mod olm;
#[cfg(test)]
mod testing;

use thiserror::Error;

pub use self::{
    files::{Change, Files, MARK, changes},
    input::{About, Input, Manifests, Olm, RELEASE_NAMESPACE, Sample},
    olm::{Finding, Level},
};
use crate::inventory::Inventory;

/// What is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// `dist/install.yaml`: all of it in one file.
    Plain,
    /// `config/`: the tree that users of kubebuilder know.
    Kustomize,
    /// `dist/chart`: a Helm chart.
    Helm,
    /// `bundle/` and `bundle.Dockerfile`: for the Operator Lifecycle Manager.
    Olm,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Plain, Self::Kustomize, Self::Helm, Self::Olm];
}

/// Why nothing can be made.
#[derive(Debug, Error)]
pub enum Error {
    /// What is printed is no set of manifests of an operator.
    #[error("the operator's manifests have no {0}: is it made of `command::Operator`?")]
    Missing(&'static str),
    /// What cannot be said in this format.
    #[error("{0}")]
    Unsayable(String),
    /// A value that YAML cannot hold.
    #[error("this cannot be written as YAML: {0}")]
    Yaml(String),
}

/// The files of these formats. The same input gives the same text.
///
/// # Errors
/// When a format cannot say what the operator needs, or the manifests are none of an operator.
pub fn generate(input: &Input, formats: &[Format]) -> Result<Files, Error> {
    let mut files = Files::default();
    for format in formats {
        match format {
            Format::Plain => files.objects("dist/install.yaml", &input.installed.own)?,
            Format::Kustomize => files.extend(kustomize::files(input)?),
            Format::Helm => files.extend(helm::files(input)?),
            Format::Olm => files.extend(olm::files(input)?),
        }
    }
    Ok(files)
}

/// What is wrong with the bundle of an operator, or could be better: what `operator-sdk bundle validate` looks at.
///
/// # Errors
/// As [`generate`].
pub fn findings(input: &Input) -> Result<Vec<Finding>, Error> {
    olm::findings(input)
}

/// The objects of an operator, sorted by what they are for.
fn sorted<'a>(input: &Input, objects: &'a [serde_json::Value]) -> Result<Inventory<'a>, Error> {
    Inventory::of(&input.name, objects)
}
