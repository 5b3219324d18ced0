//! The set of kinds that are served.

use std::sync::{Arc, OnceLock};

use kubewright_spec::Version;

use crate::{BuiltIn, Kind};

/// All kinds that are served at one moment: an immutable value, replaced when a CustomResourceDefinition changes.
#[derive(Clone, Debug, Default)]
pub struct Kinds {
    ordered: Vec<Arc<Kind>>,
    /// The same, by group, version and plural.
    by_path: Vec<Arc<Kind>>,
    /// The version of Kubernetes that the built-in ones are of.
    version: Version,
}

impl Kinds {
    /// The built-in kinds of the version that is served by default.
    #[must_use]
    pub fn built_in() -> Self {
        Self::of_version(Version::DEFAULT)
    }

    /// The built-in kinds that a version of Kubernetes has.
    #[must_use]
    pub fn of_version(version: Version) -> Self {
        static ALL: [OnceLock<Kinds>; Version::ALL.len()] = [const { OnceLock::new() }; Version::ALL.len()];
        let made = || {
            let kinds = BuiltIn::all().filter_map(|kind| Kind::of_version(version, kind));
            Self { version, ..Self::of(kinds.map(Arc::new)) }
        };
        ALL[version as usize].get_or_init(made).clone()
    }

    /// The version of Kubernetes that the built-in kinds are of.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Others of the same version, in this order.
    #[must_use]
    pub fn with(&self, kinds: impl IntoIterator<Item = Arc<Kind>>) -> Self {
        Self { version: self.version, ..Self::of(kinds) }
    }

    /// These kinds, in this order.
    #[must_use]
    pub fn of(kinds: impl IntoIterator<Item = Arc<Kind>>) -> Self {
        let ordered: Vec<_> = kinds.into_iter().collect();
        let mut by_path = ordered.clone();
        by_path.sort_by(|one, other| path(one).cmp(&path(other)));
        Self { ordered, by_path, version: Version::DEFAULT }
    }

    /// The kind served at `group/version/plural`.
    #[inline]
    #[must_use]
    pub fn get(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Kind>> {
        let wanted = (group, version, plural);
        let found = self.by_path.binary_search_by(|kind| path(kind).cmp(&wanted)).ok()?;
        self.by_path.get(found)
    }

    /// A built-in kind, where it is served.
    #[must_use]
    pub fn find(&self, kind: &BuiltIn) -> Option<&Arc<Kind>> {
        self.get(kind.group, kind.version, kind.plural)
    }

    /// All kinds: built-in ones in discovery's order, then custom ones as they came.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.ordered.iter()
    }

    /// The kinds of a group and version, in discovery's order.
    pub fn in_version<'a>(&'a self, group: &'a str, version: &'a str) -> impl Iterator<Item = &'a Arc<Kind>> {
        self.ordered.iter().filter(move |kind| kind.group == group && kind.version == version)
    }

    /// Whether kube-apiserver itself serves a group: it answers then for all that is below it, whatever the version.
    #[must_use]
    pub fn has_built_in_group(&self, group: &str) -> bool {
        group.is_empty() || self.ordered.iter().any(|kind| kind.group == group && kind.custom.is_none())
    }
}

/// Where a kind is served: group, version and plural.
fn path(kind: &Kind) -> (&str, &str, &str) {
    (&kind.group, &kind.version, &kind.plural)
}
