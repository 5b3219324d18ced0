//! What may be done with objects.

use std::fmt;

/// Verb of RBAC: what may be done with objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Verb {
    /// Create one.
    Create,
    /// Delete one.
    Delete,
    /// Delete many at once.
    DeleteCollection,
    /// Read one.
    Get,
    /// Read all.
    List,
    /// Change parts of one; apply, which needs [`Verb::Create`] too where the object may not be there.
    Patch,
    /// Replace one.
    Update,
    /// Be told of changes.
    Watch,
}

impl Verb {
    /// All of them, by name.
    pub(super) const ALL: [Self; 8] = [
        Self::Create,
        Self::Delete,
        Self::DeleteCollection,
        Self::Get,
        Self::List,
        Self::Patch,
        Self::Update,
        Self::Watch,
    ];

    /// The verb of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.as_str() == name)
    }

    /// As it stands in a rule.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Get => "get",
            Self::List => "list",
            Self::Patch => "patch",
            Self::Update => "update",
            Self::Watch => "watch",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
