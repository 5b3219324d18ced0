//! The rights that an operator needs, from its code: what its controllers watch is known, what they write is
//! [declared](crate::Controller::writes) by type.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::rbac::v1::PolicyRule;

use crate::Object;

/// What may be done with objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

/// What objects a right is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Subject {
    group: String,
    /// The plural, with the subresource behind a slash.
    resource: String,
    namespaced: bool,
}

impl Subject {
    pub(crate) fn of<K: Object>(subresource: Option<&str>) -> Self {
        let plural = K::plural(&());
        let resource = subresource.map_or_else(|| plural.to_string(), |part| format!("{plural}/{part}"));
        Self { group: K::group(&()).into_owned(), resource, namespaced: K::is_namespaced() }
    }
}

/// Rights to do things with objects, merged: no resource is in them twice.
///
/// ```
/// use k8s_openapi::api::{apps::v1::Deployment, core::v1::{ConfigMap, Secret}};
/// use kubewright_runtime::rbac::{Rights, Verb};
///
/// let mut rights = Rights::default();
/// rights.add::<Secret>([Verb::Get]).add::<ConfigMap>([Verb::Get]).add::<Deployment>([Verb::Patch]);
/// let told: Vec<String> = rights.iter().map(|(resource, verbs)| format!("{resource} {verbs}")).collect();
/// assert_eq!(told, ["configmaps get", "secrets get", "apps/deployments patch"]);
/// assert_eq!(rights.rules().len(), 2, "what two resources of a group have in common is one rule");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights(BTreeMap<Subject, BTreeSet<Verb>>);

impl Rights {
    /// The right to do this with objects of a kind.
    pub fn add<K: Object>(&mut self, verbs: impl IntoIterator<Item = Verb>) -> &mut Self {
        self.put(Subject::of::<K>(None), verbs)
    }

    /// The right to do this with a part of objects of a kind, such as `status` or `scale`.
    pub fn add_subresource<K: Object>(
        &mut self,
        subresource: &str,
        verbs: impl IntoIterator<Item = Verb>,
    ) -> &mut Self {
        self.put(Subject::of::<K>(Some(subresource)), verbs)
    }

    pub(crate) fn put(&mut self, subject: Subject, verbs: impl IntoIterator<Item = Verb>) -> &mut Self {
        self.0.entry(subject).or_default().extend(verbs);
        self
    }

    /// All of these as well.
    pub fn merge(&mut self, others: Self) -> &mut Self {
        for (subject, verbs) in others.0 {
            self.put(subject, verbs);
        }
        self
    }

    /// Whether the parts of these objects, or they themselves, are in it with one of these verbs.
    pub(crate) fn concern(&self, subject: &Subject, verbs: &[Verb]) -> bool {
        self.0.iter().any(|(other, have)| {
            let plural = other.resource.split('/').next();
            other.group == subject.group
                && plural == Some(subject.resource.as_str())
                && verbs.iter().any(|verb| have.contains(verb))
        })
    }

    /// Those on objects in namespaces, and the others.
    #[must_use]
    pub fn by_scope(self) -> (Self, Self) {
        let (inside, outside) = self.0.into_iter().partition(|(subject, _)| subject.namespaced);
        (Self(inside), Self(outside))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every resource (`<group>/<plural>`, the plural alone for the core group) with its verbs, separated by commas, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (String, String)> {
        self.0.iter().map(|(subject, verbs)| {
            let slash = if subject.group.is_empty() { "" } else { "/" };
            let verbs: Vec<_> = verbs.iter().map(|verb| verb.as_str()).collect();
            (format!("{}{slash}{}", subject.group, subject.resource), verbs.join(","))
        })
    }

    /// The fewest rules that say it, sorted: resources of a group that the same may be done with are in one.
    #[must_use]
    pub fn rules(&self) -> Vec<PolicyRule> {
        let mut merged: BTreeMap<(&str, &BTreeSet<Verb>), Vec<&str>> = BTreeMap::new();
        for (subject, verbs) in self.0.iter().filter(|(_, verbs)| !verbs.is_empty()) {
            merged.entry((&subject.group, verbs)).or_default().push(&subject.resource);
        }
        let mut rules: Vec<_> = merged.into_iter().collect();
        rules.sort_by(|((group, _), resources), ((other, _), others)| {
            (group, resources).cmp(&(other, others))
        });
        let rule = |((group, verbs), resources): ((&str, &BTreeSet<Verb>), Vec<&str>)| PolicyRule {
            api_groups: Some(vec![group.to_owned()]),
            resources: Some(resources.into_iter().map(str::to_owned).collect()),
            verbs: verbs.iter().map(|verb| verb.as_str().to_owned()).collect(),
            ..PolicyRule::default()
        };
        rules.into_iter().map(rule).collect()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Secret};
    use proptest::{collection::vec, prelude::*, sample::subsequence};

    use super::*;

    const VERBS: [Verb; 8] = [
        Verb::Create,
        Verb::Delete,
        Verb::DeleteCollection,
        Verb::Get,
        Verb::List,
        Verb::Patch,
        Verb::Update,
        Verb::Watch,
    ];

    fn verbs() -> impl Strategy<Value = Vec<Verb>> {
        subsequence(VERBS.to_vec(), 0..4)
    }

    fn rights() -> impl Strategy<Value = Rights> {
        vec((0..5_usize, verbs()), 0..8).prop_map(|grants| {
            let mut rights = Rights::default();
            for (kind, verbs) in grants {
                match kind {
                    0 => rights.add::<ConfigMap>(verbs),
                    1 => rights.add::<Secret>(verbs),
                    2 => rights.add::<Node>(verbs),
                    3 => rights.add_subresource::<Node>("status", verbs),
                    _ => rights.add_subresource::<Namespace>("finalize", verbs),
                };
            }
            rights
        })
    }

    /// Resource and verb of every grant.
    fn grants(rights: &Rights) -> BTreeSet<(String, Verb)> {
        let each = |(subject, verbs): (&Subject, &BTreeSet<Verb>)| {
            verbs.iter().map(|verb| (subject.resource.clone(), *verb)).collect::<Vec<_>>()
        };
        rights.0.iter().flat_map(each).collect()
    }

    fn granted(rules: &[PolicyRule]) -> Vec<(String, String)> {
        let mut granted = Vec::new();
        for rule in rules {
            for resource in rule.resources.iter().flatten() {
                granted.extend(rule.verbs.iter().map(|verb| (resource.clone(), verb.clone())));
            }
        }
        granted
    }

    proptest! {
        #[test]
        fn the_rules_grant_each_right_once_and_nothing_else(rights in rights()) {
            let wanted: BTreeSet<_> = grants(&rights)
                .into_iter()
                .map(|(resource, verb)| (resource, verb.as_str().to_owned()))
                .collect();
            let granted = granted(&rights.rules());
            prop_assert_eq!(granted.len(), wanted.len());
            prop_assert_eq!(granted.into_iter().collect::<BTreeSet<_>>(), wanted);
        }

        #[test]
        fn merging_is_the_union_and_the_scopes_are_apart(one in rights(), other in rights()) {
            let mut merged = one.clone();
            merged.merge(other.clone());
            let union: BTreeSet<_> = grants(&one).union(&grants(&other)).cloned().collect();
            prop_assert_eq!(grants(&merged), union.clone());
            let (inside, outside) = merged.by_scope();
            prop_assert!(grants(&inside).iter().all(|(resource, _)| resource == "configmaps" || resource == "secrets"));
            prop_assert_eq!(grants(&inside).union(&grants(&outside)).cloned().collect::<BTreeSet<_>>(), union);
        }
    }
}
