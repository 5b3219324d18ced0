//! The order of groups and versions.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use kubewright_kinds::{Kind, Kinds};

/// A group with its versions, the preferred one first.
pub(super) struct Group<'a> {
    pub(super) name: &'a str,
    pub(super) versions: Vec<Version<'a>>,
}

/// A version of a group with its kinds, sorted by plural.
pub(super) struct Version<'a> {
    pub(super) name: &'a str,
    pub(super) kinds: Vec<&'a Kind>,
}

impl Version<'_> {
    /// `group/version`, or the version alone for core.
    pub(super) fn group_version(&self, group: &str) -> String {
        if group.is_empty() { self.name.to_owned() } else { format!("{group}/{}", self.name) }
    }
}

/// All groups: built-in ones in the order of their table (it is that of their priorities), then custom ones by name;
/// built-in versions likewise, then custom ones, the most stable and newest first
/// (`calculateAPIGroupsLocked` of `k8s.io/apiserver/pkg/endpoints/discovery/aggregated/handler.go`).
pub(super) fn groups(kinds: &Kinds) -> Vec<Group<'_>> {
    let (built_in, mut custom): (Vec<&Kind>, Vec<&Kind>) =
        kinds.iter().map(AsRef::as_ref).partition(|kind| kind.custom.is_none());
    custom.sort_by(|one, other| {
        one.group.cmp(&other.group).then_with(|| compare_versions(&one.version, &other.version).reverse())
    });
    let mut groups: Vec<Group> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for kind in built_in.into_iter().chain(custom) {
        let place = *places.entry(kind.group.as_str()).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Group { name: &kind.group, versions: Vec::new() });
        }
        let group = &mut groups[place];
        let version = position_or_push(
            &mut group.versions,
            |version| version.name == kind.version,
            || Version { name: &kind.version, kinds: Vec::new() },
        );
        version.kinds.push(kind);
    }
    for version in groups.iter_mut().flat_map(|group| &mut group.versions) {
        version.kinds.sort_by(|one, other| one.plural.cmp(&other.plural));
    }
    groups
}

/// The item for which the condition holds; it is made when there is none.
fn position_or_push<T>(items: &mut Vec<T>, is: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> &mut T {
    let index = items.iter().position(is).unwrap_or_else(|| {
        items.push(make());
        items.len() - 1
    });
    &mut items[index]
}

/// How stable a version is, as its name tells it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Stability {
    Alpha,
    Beta,
    Stable,
}

/// Compares names of versions: `v2` is greater than `v1`, that than `v1beta2`, that than `v1beta1`, that than `v1alpha1`,
/// and that than all that is not of this form, which is ordered by name backwards
/// (`CompareKubeAwareVersionStrings` of `k8s.io/apimachinery/pkg/version/helpers.go`).
#[must_use]
pub fn compare_versions(one: &str, other: &str) -> Ordering {
    match (parsed(one), parsed(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (None, None) => Reverse(one).cmp(&Reverse(other)),
    }
}

/// Stability, major version, and the number after `alpha` or `beta`.
fn parsed(name: &str) -> Option<(Stability, u64, u64)> {
    let rest = name.strip_prefix('v')?;
    let (major, rest) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()));
    let (stability, minor) = if rest.is_empty() {
        (Stability::Stable, 0)
    } else if let Some(minor) = rest.strip_prefix("beta") {
        (Stability::Beta, number(minor)?)
    } else {
        (Stability::Alpha, number(rest.strip_prefix("alpha")?)?)
    };
    Some((stability, number(major)?, minor))
}

/// A number that starts with neither zero nor a sign.
fn number(text: &str) -> Option<u64> {
    if text.starts_with(['0', '+']) { None } else { text.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_stability_and_number() {
        let sorted = [
            "v10",
            "v2",
            "v1",
            "v11beta2",
            "v10beta3",
            "v3beta1",
            "v12alpha1",
            "v11alpha2",
            "a",
            "foo1",
            "v0",
        ];
        for (index, one) in sorted.iter().enumerate() {
            for (place, other) in sorted.iter().enumerate() {
                assert_eq!(compare_versions(one, other), index.cmp(&place).reverse(), "{one} and {other}");
            }
        }
    }

    #[test]
    fn groups_come_in_the_order_of_their_priorities() {
        let kinds = Kinds::built_in();
        let names: Vec<&str> = groups(&kinds).iter().map(|group| group.name).collect();
        assert_eq!(names[..4], ["", "apiregistration.k8s.io", "apps", "events.k8s.io"]);
        let all = groups(&kinds);
        let autoscaling = all.iter().find(|group| group.name == "autoscaling").expect("a group");
        assert_eq!(autoscaling.versions.iter().map(|version| version.name).collect::<Vec<_>>(), ["v2", "v1"]);
    }
}
