//! Which objects of a kind are watched.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use kube::{
    api::ObjectMeta,
    core::{Selector, SelectorExt},
};

use crate::Namespaces;

/// In which namespaces objects are watched.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Reach {
    /// In all, and those that live in none.
    #[default]
    Everywhere,
    /// In these.
    In(BTreeSet<String>),
    /// In those that are in this set at the time.
    Following(Namespaces),
}

impl Reach {
    /// These namespaces; all if there are none.
    pub(crate) fn of(namespaces: BTreeSet<String>) -> Self {
        if namespaces.is_empty() { Self::Everywhere } else { Self::In(namespaces) }
    }

    /// What is watched now, each by a watch of its own, in order; `None` for all namespaces.
    pub(super) fn parts(&self) -> Vec<Option<String>> {
        match self {
            Self::Everywhere => vec![None],
            Self::In(namespaces) => namespaces.iter().cloned().map(Some).collect(),
            Self::Following(namespaces) => namespaces.all().into_iter().map(Some).collect(),
        }
    }
}

/// A part of the objects of a kind: all that is not said is not restricted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Scope {
    pub(crate) reach: Reach,
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
        match &self.reach {
            Reach::Everywhere => f.write_str("in all namespaces")?,
            Reach::In(namespaces) => {
                let namespaces: Vec<_> = namespaces.iter().map(String::as_str).collect();
                write!(f, "in the namespaces {}", namespaces.join(", "))?;
            }
            Reach::Following(_) => f.write_str("in namespaces that come and go")?,
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
    /// `None` for the manager's.
    pub(crate) reach: Option<Reach>,
    pub(crate) fields: String,
    pub(crate) labels: Selector,
}

impl ScopeRequest {
    /// What that is for a kind, in a manager that looks at this.
    pub(super) fn scope(&self, is_namespaced: bool, of_manager: &Reach) -> Scope {
        let reach = self.reach.as_ref().unwrap_or(of_manager);
        Scope {
            reach: if is_namespaced { reach.clone() } else { Reach::Everywhere },
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
            reach: None,
            fields: "metadata.name=a".into(),
            labels: Expression::Equal("app".into(), "x".into()).into(),
        };
        let reach = Reach::In(["b", "a"].map(str::to_owned).into());
        assert_eq!(
            asked.scope(true, &reach).to_string(),
            "in the namespaces a, b, with the field selector metadata.name=a, with the label selector app=x"
        );
        assert_eq!(asked.scope(false, &reach).reach, Reach::Everywhere);
    }
}
