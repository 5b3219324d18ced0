//! The set of kinds that are served.

use std::sync::{Arc, LazyLock};

use crate::{BuiltIn, Kind};

/// All kinds that are served at one moment: an immutable value, replaced when a CustomResourceDefinition changes.
#[derive(Clone, Debug, Default)]
pub struct Kinds {
    ordered: Vec<Arc<Kind>>,
    /// The same, by group, version and plural.
    by_path: Vec<Arc<Kind>>,
}

impl Kinds {
    /// The built-in kinds.
    #[must_use]
    pub fn built_in() -> Self {
        static BUILT_IN: LazyLock<Kinds> =
            LazyLock::new(|| Kinds::of(BuiltIn::all().map(|kind| Arc::new(Kind::built_in(kind)))));
        BUILT_IN.clone()
    }

    /// These kinds, in this order.
    #[must_use]
    pub fn of(kinds: impl IntoIterator<Item = Arc<Kind>>) -> Self {
        let ordered: Vec<_> = kinds.into_iter().collect();
        let mut by_path = ordered.clone();
        by_path.sort_by(|one, other| path(one).cmp(&path(other)));
        Self { ordered, by_path }
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
}

/// Where a kind is served: group, version and plural.
fn path(kind: &Kind) -> (&str, &str, &str) {
    (&kind.group, &kind.version, &kind.plural)
}
