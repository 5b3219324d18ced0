//! Discovery: which groups, versions and resources are served. Pure functions of [`kubewright_kinds::Kinds`].
//!
//! Two forms tell the same: the plain documents, one for each group and version, and the aggregated one, which tells all in
//! one answer. Both list groups and versions in the order of kube-aggregator.

mod aggregated;
mod elsewhere;
mod order;
mod plain;
mod registered;

pub use aggregated::aggregated;
pub use elsewhere::{Elsewhere, resources_of_aggregated, resources_of_plain};
pub use order::compare_versions;
pub use plain::{api_versions, resources};
pub use registered::{group, groups};

use kubewright_kinds::{Kind, Subresource};

/// The subresources of a kind in the order in which discovery tells them: sorted by name; those of a custom kind with
/// `status` first.
fn subresources(kind: &Kind) -> Vec<&Subresource> {
    let mut served: Vec<&Subresource> = kind.subresources.iter().collect();
    served.sort_by_key(|subresource| subresource.name());
    if kind.custom.is_some() {
        served.reverse();
    }
    served
}

/// The verbs of a kind in the order in which discovery tells them: sorted, but of a custom kind
/// (`k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_discovery_controller.go`).
fn verbs(kind: &Kind) -> &'static [&'static str] {
    match kind.custom {
        Some(_) => &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
        None => kind.verbs.names(),
    }
}

/// Group, version and kind of a subresource's body, where its group and version are told: where they are not those of the
/// version that discovery speaks of.
fn foreign_body(
    kind: &Kind,
    subresource: &Subresource,
) -> Option<(&'static str, &'static str, &'static str)> {
    subresource.body_kind().filter(|(group, version, _)| (*group, *version) != (&kind.group, &kind.version))
}

/// The `kind` of a subresource's body.
fn body_kind<'a>(kind: &'a Kind, subresource: &Subresource) -> &'a str {
    subresource.body_kind().map_or(kind.kind.as_str(), |(_, _, body)| body)
}
