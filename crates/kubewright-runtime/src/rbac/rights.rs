//! Rights as code declares them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::{core::v1::Pod, rbac::v1::PolicyRule};

use super::{Right, Verb};
use crate::{DynamicKind, Object};

/// What objects a right is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ResourceAttributes {
    pub(super) group: String,
    /// The plural, with the subresource behind a slash.
    pub(super) resource: String,
    namespaced: bool,
    /// The only object that it is about.
    pub(super) name: Option<String>,
}

impl ResourceAttributes {
    pub(crate) fn of<K: Object>(subresource: Option<&str>) -> Self {
        let plural = K::plural(&());
        let resource = subresource.map_or_else(|| plural.to_string(), |part| format!("{plural}/{part}"));
        Self { group: K::group(&()).into_owned(), resource, namespaced: K::is_namespaced(), name: None }
    }

    fn named<K: Object>(name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..Self::of::<K>(None) }
    }

    /// `apps/deployments`, `configmaps`, with the only object's name in brackets.
    fn text(&self) -> String {
        let slash = if self.group.is_empty() { "" } else { "/" };
        let name = self.name.as_ref().map(|name| format!("[{name}]")).unwrap_or_default();
        format!("{}{slash}{}{name}", self.group, self.resource)
    }
}

/// Who says that a right is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// What else was declared: a right to watch comes with a controller, a right to ask whether a write is still there with
    /// that to write. That it was not used means nothing.
    Implied,
    /// The author.
    Declared,
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
pub struct Rights(BTreeMap<ResourceAttributes, BTreeMap<Verb, Source>>);

impl Rights {
    /// The right to do this with objects of a kind.
    pub fn add<K: Object>(&mut self, verbs: impl IntoIterator<Item = Verb>) -> &mut Self {
        self.put(ResourceAttributes::of::<K>(None), verbs)
    }

    /// The right to do this with a part of objects of a kind, such as `status` or `scale`.
    pub fn add_subresource<K: Object>(
        &mut self,
        subresource: &str,
        verbs: impl IntoIterator<Item = Verb>,
    ) -> &mut Self {
        self.put(ResourceAttributes::of::<K>(Some(subresource)), verbs)
    }

    /// The right to do this with the one object of a kind that has this name (`resourceNames`). Kubernetes knows no such right
    /// to [create](Verb::Create), as an object has no name before; [list](Verb::List) and [watch](Verb::Watch) are granted
    /// to who asks with the field selector `metadata.name=<name>`.
    pub fn add_named<K: Object>(&mut self, name: &str, verbs: impl IntoIterator<Item = Verb>) -> &mut Self {
        self.put(ResourceAttributes::named::<K>(name), verbs)
    }

    /// The right to do this with objects of a kind that is known only at run time.
    pub fn add_dynamic(&mut self, kind: &DynamicKind, verbs: impl IntoIterator<Item = Verb>) -> &mut Self {
        let attributes = ResourceAttributes {
            group: kind.resource().group.clone(),
            resource: kind.resource().plural.clone(),
            namespaced: kind.is_namespaced(),
            name: None,
        };
        self.put(attributes, verbs)
    }

    /// What [`Context::watch`](crate::Context::watch) and [`DynamicContext::watch`](crate::DynamicContext::watch) take.
    pub fn watching<K: Object>(&mut self) -> &mut Self {
        self.add::<K>([Verb::List, Verb::Watch])
    }

    /// What [`Context::live`](crate::Context::live) takes.
    pub fn live_reads<K: Object>(&mut self) -> &mut Self {
        self.add::<K>([Verb::Get])
    }

    /// What [`Context::scale`](crate::Context::scale) takes.
    pub fn scaling<K: Object>(&mut self) -> &mut Self {
        self.add_subresource::<K>("scale", [Verb::Get, Verb::Patch]);
        // Of a kind that is cached the object is read behind the write.
        self.imply(ResourceAttributes::of::<K>(None), [Verb::Get])
    }

    /// What [`Context::guard`](crate::Context::guard) takes: the finalizer, and the condition of a cleanup that fails.
    pub fn guarding<K: Object>(&mut self) -> &mut Self {
        self.add::<K>([Verb::Patch]);
        self.imply(ResourceAttributes::of::<K>(Some("status")), [Verb::Patch])
    }

    /// What probes by a command in a container take (`pods/exec`; a WebSocket is asked for with `get`, and what it does with
    /// `create`, `k8s.io/kubernetes/pkg/registry/core/pod/rest/authorize.go`).
    pub fn exec(&mut self) -> &mut Self {
        self.add_subresource::<Pod>("exec", [Verb::Create]);
        self.imply(ResourceAttributes::of::<Pod>(Some("exec")), [Verb::Get])
    }

    pub(crate) fn put(
        &mut self,
        attributes: ResourceAttributes,
        verbs: impl IntoIterator<Item = Verb>,
    ) -> &mut Self {
        let granted = self.0.entry(attributes).or_default();
        granted.extend(verbs.into_iter().map(|verb| (verb, Source::Declared)));
        self
    }

    /// As [`Rights::put`], what nobody declared.
    pub(crate) fn imply(
        &mut self,
        attributes: ResourceAttributes,
        verbs: impl IntoIterator<Item = Verb>,
    ) -> &mut Self {
        let granted = self.0.entry(attributes).or_default();
        for verb in verbs {
            granted.entry(verb).or_insert(Source::Implied);
        }
        self
    }

    /// These as what nobody declared.
    pub(crate) fn implied(mut self) -> Self {
        let sources = self.0.values_mut().flat_map(BTreeMap::values_mut);
        sources.for_each(|source| *source = Source::Implied);
        self
    }

    /// All of these as well.
    pub fn merge(&mut self, others: Self) -> &mut Self {
        for (attributes, verbs) in others.0 {
            for (verb, source) in verbs {
                match source {
                    Source::Declared => self.put(attributes.clone(), [verb]),
                    Source::Implied => self.imply(attributes.clone(), [verb]),
                };
            }
        }
        self
    }

    /// Whether the parts of these objects, or they themselves, are in it with one of these verbs.
    pub(crate) fn concern(&self, attributes: &ResourceAttributes, verbs: &[Verb]) -> bool {
        self.0.iter().any(|(other, have)| {
            let plural = other.resource.split('/').next();
            other.group == attributes.group
                && plural == Some(attributes.resource.as_str())
                && verbs.iter().any(|verb| have.contains_key(verb))
        })
    }

    /// Whether they grant a right, wherever that is.
    #[must_use]
    pub fn grant(&self, right: &Right) -> bool {
        self.0.iter().any(|(attributes, verbs)| verbs.contains_key(&right.verb) && right.is_about(attributes))
    }

    /// Those that the author declared and for which `is_used` is false. What no request asks for (`finalizers`, which
    /// admission asks about) is not among them.
    pub(super) fn without_use(&self, is_used: impl Fn(&ResourceAttributes, Verb) -> bool) -> Self {
        let mut unused = Self::default();
        for (attributes, verbs) in
            self.0.iter().filter(|(attributes, _)| !attributes.resource.ends_with("/finalizers"))
        {
            let declared = verbs.iter().filter(|(_, source)| **source == Source::Declared);
            let left: Vec<Verb> =
                declared.map(|(verb, _)| *verb).filter(|verb| !is_used(attributes, *verb)).collect();
            if !left.is_empty() {
                unused.put(attributes.clone(), left);
            }
        }
        unused
    }

    /// Those on objects in namespaces, and the others.
    #[must_use]
    pub fn by_scope(self) -> (Self, Self) {
        let (inside, outside) = self.0.into_iter().partition(|(attributes, _)| attributes.namespaced);
        (Self(inside), Self(outside))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every resource (`<group>/<plural>`, the plural alone for the core group, the name in brackets where it is about one
    /// object) with its verbs, separated by commas, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (String, String)> {
        self.0.iter().map(|(attributes, verbs)| {
            let verbs: Vec<_> = verbs.keys().map(|verb| verb.as_str()).collect();
            (attributes.text(), verbs.join(","))
        })
    }

    /// The fewest rules that say it, sorted: resources of a group that the same may be done with are in one.
    #[must_use]
    pub fn rules(&self) -> Vec<PolicyRule> {
        rules(self.0.iter().map(|(attributes, verbs)| {
            let verbs: BTreeSet<Verb> = verbs.keys().copied().collect();
            (attributes.group.as_str(), attributes.resource.as_str(), attributes.name.as_deref(), verbs)
        }))
    }
}

/// The fewest rules that grant these verbs on these resources (group, plural with the subresource, name), sorted.
pub(super) fn rules<'a>(
    grants: impl IntoIterator<Item = (&'a str, &'a str, Option<&'a str>, BTreeSet<Verb>)>,
) -> Vec<PolicyRule> {
    type What<'a> = (&'a str, Option<&'a str>, BTreeSet<Verb>);
    let mut merged: BTreeMap<What<'_>, Vec<&str>> = BTreeMap::new();
    for (group, resource, name, verbs) in grants {
        if !verbs.is_empty() {
            merged.entry((group, name, verbs)).or_default().push(resource);
        }
    }
    let mut rules: Vec<_> = merged.into_iter().collect();
    rules.sort_by(|((group, name, _), resources), ((other, other_name, _), others)| {
        (group, resources, name).cmp(&(other, others, other_name))
    });
    let rule = |((group, name, verbs), resources): (What<'_>, Vec<&str>)| PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(resources.into_iter().map(str::to_owned).collect()),
        resource_names: name.map(|name| vec![name.to_owned()]),
        verbs: verbs.iter().map(|verb| verb.as_str().to_owned()).collect(),
        ..PolicyRule::default()
    };
    rules.into_iter().map(rule).collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Secret};
    use proptest::{collection::vec, prelude::*, sample::subsequence};

    use super::*;

    fn verbs() -> impl Strategy<Value = Vec<Verb>> {
        subsequence(Verb::ALL.to_vec(), 0..4)
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
        let each = |(attributes, verbs): (&ResourceAttributes, &BTreeMap<Verb, Source>)| {
            verbs.keys().map(|verb| (attributes.resource.clone(), *verb)).collect::<Vec<_>>()
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
