//! Which objects of a kind are watched.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use kube::{
    api::ObjectMeta,
    core::{Selector, SelectorExt},
};

/// A part of the objects of a kind: all that is not said is not restricted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Scope {
    /// Empty for all namespaces.
    pub(crate) namespaces: BTreeSet<String>,
    /// A field selector; empty for all objects.
    pub(crate) fields: String,
    pub(crate) labels: Selector,
}

impl Scope {
    /// Whether an object is in it, as far as its labels say.
    pub(super) fn selects(&self, meta: &ObjectMeta) -> bool {
        let none = BTreeMap::new();
        self.labels.selects_all() || self.labels.matches(meta.labels.as_ref().unwrap_or(&none))
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespaces.is_empty() {
            f.write_str("in all namespaces")?;
        } else {
            let namespaces: Vec<_> = self.namespaces.iter().map(String::as_str).collect();
            write!(f, "in the namespaces {}", namespaces.join(", "))?;
        }
        if !self.fields.is_empty() {
            write!(f, ", with the field selector {}", self.fields)?;
        }
        if !self.labels.selects_all() {
            write!(f, ", with the label selector {}", self.labels)?;
        }
        Ok(())
    }
}

/// What a controller asks for: what it leaves out is the manager's to say.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScopeRequest {
    pub(crate) namespaces: Option<BTreeSet<String>>,
    pub(crate) fields: String,
    pub(crate) labels: Selector,
}

impl ScopeRequest {
    /// What that is for a kind, in a manager for these namespaces.
    pub(super) fn scope(&self, is_namespaced: bool, namespaces: &BTreeSet<String>) -> Scope {
        let namespaces = self.namespaces.as_ref().unwrap_or(namespaces);
        Scope {
            namespaces: if is_namespaced { namespaces.clone() } else { BTreeSet::new() },
            fields: self.fields.clone(),
            labels: self.labels.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Expression;

    use super::*;

    #[test]
    fn a_scope_reads_as_a_sentence() {
        assert_eq!(Scope::default().to_string(), "in all namespaces");
        let asked = ScopeRequest {
            namespaces: None,
            fields: "metadata.name=a".into(),
            labels: Expression::Equal("app".into(), "x".into()).into(),
        };
        let namespaces = ["b", "a"].map(str::to_owned).into();
        assert_eq!(
            asked.scope(true, &namespaces).to_string(),
            "in the namespaces a, b, with the field selector metadata.name=a, with the label selector app=x"
        );
        assert!(asked.scope(false, &namespaces).namespaces.is_empty());
    }
}
