//! One rule of a role: what it allows, and what it covers of another rule
//! (`k8s.io/kubernetes/pkg/apis/rbac/v1/evaluation_helpers.go` and `k8s.io/component-helpers/auth/rbac/validation`).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::objects::null_is_default;

/// Stands for everything, in every list of a rule but the resource names.
const ALL: &str = "*";

/// A `rbac.authorization.k8s.io/v1` PolicyRule.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Rule {
    /// Verbs, or `*`.
    #[serde(deserialize_with = "null_is_default")]
    pub verbs: Vec<String>,
    /// API groups (`""` is core), or `*`.
    #[serde(deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    /// `pods`, `pods/status`, `*/scale`, or `*`.
    #[serde(deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// Names of single objects; empty means all.
    #[serde(deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// Paths outside the API; a trailing `*` stands for any rest.
    #[serde(
        rename = "nonResourceURLs",
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub non_resource_urls: Vec<String>,
}

/// What somebody wants to do, as rules see it.
#[derive(Clone, Copy, Debug)]
pub enum Action<'a> {
    /// Something with a resource.
    Resource {
        /// What is done, such as `get`.
        verb: &'a str,
        /// Its API group; empty for core.
        group: &'a str,
        /// Its plural.
        resource: &'a str,
        /// The part of it that is meant; empty for the whole.
        subresource: &'a str,
        /// The name of the one that is meant; empty for all.
        name: &'a str,
    },
    /// A request to a path outside the API.
    Path {
        /// What is done, such as `get`.
        verb: &'a str,
        /// The path of the URL.
        path: &'a str,
    },
}

impl Rule {
    /// Two rules that allow everything.
    pub fn everything() -> [Self; 2] {
        let all = || vec![ALL.to_owned()];
        [
            Self { verbs: all(), api_groups: all(), resources: all(), ..Self::default() },
            Self { verbs: all(), non_resource_urls: all(), ..Self::default() },
        ]
    }

    /// Whether this rule alone allows the action.
    pub fn allows(&self, action: &Action<'_>) -> bool {
        match *action {
            Action::Resource { verb, group, resource, subresource, name } => {
                has(&self.verbs, verb)
                    && has(&self.api_groups, group)
                    && self.resources.iter().any(|rule| resource_matches(rule, resource, subresource))
                    && (self.resource_names.is_empty() || self.resource_names.iter().any(|one| one == name))
            }
            Action::Path { verb, path } => {
                has(&self.verbs, verb) && self.non_resource_urls.iter().any(|rule| url_covers(rule, path))
            }
        }
    }

    /// Whether whoever holds this rule holds everything in `other`. Rules together may cover what none covers alone:
    /// ask with its atoms for that.
    pub fn covers(&self, other: &Rule) -> bool {
        let names = self.resource_names.is_empty()
            || (!other.resource_names.is_empty()
                && contains_all(&self.resource_names, &other.resource_names));
        names
            && has_all(&self.verbs, &other.verbs)
            && has_all(&self.api_groups, &other.api_groups)
            && covers_resources(&self.resources, &other.resources)
            && other
                .non_resource_urls
                .iter()
                .all(|url| self.non_resource_urls.iter().any(|own| url_covers(own, url)))
    }

    /// How many [`atoms`](Rule::atoms) there are.
    pub(crate) fn atom_count(&self) -> usize {
        let names = self.resource_names.len().max(1);
        let product =
            |factors: &[usize]| factors.iter().fold(1_usize, |all, factor| all.saturating_mul(*factor));
        product(&[self.api_groups.len(), self.resources.len(), self.verbs.len(), names])
            .saturating_add(product(&[self.non_resource_urls.len(), self.verbs.len()]))
    }

    /// This rule broken down into rules with one verb and one group, resource and name (or one path) each.
    pub(crate) fn atoms(&self) -> impl Iterator<Item = Rule> {
        let paths = self.non_resource_urls.iter().flat_map(|url| {
            self.verbs.iter().map(|verb| Rule {
                verbs: vec![verb.clone()],
                non_resource_urls: vec![url.clone()],
                ..Rule::default()
            })
        });
        self.api_groups
            .iter()
            .flat_map(|group| self.resources.iter().map(move |resource| (group, resource)))
            .flat_map(|(group, resource)| self.verbs.iter().map(move |verb| (group, resource, verb)))
            .flat_map(|(group, resource, verb)| {
                let atom = Rule {
                    verbs: vec![verb.clone()],
                    api_groups: vec![group.clone()],
                    resources: vec![resource.clone()],
                    ..Rule::default()
                };
                if self.resource_names.is_empty() {
                    return vec![atom];
                }
                let named = |name: &String| Rule { resource_names: vec![name.clone()], ..atom.clone() };
                self.resource_names.iter().map(named).collect()
            })
            .chain(paths)
    }

    /// As messages show it: `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`.
    pub fn compact(&self) -> String {
        let parts: Vec<String> = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ]
        .into_iter()
        .filter(|(_, values)| !values.is_empty())
        .map(|(label, values)| format!("{label}:{}", quoted_list(values)))
        .collect();
        format!("{{{}}}", parts.join(", "))
    }
}

/// A list of texts as Go's `%q` prints it: `["a" "b"]`.
pub(crate) fn quoted_list(values: &[String]) -> String {
    let quoted: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
    format!("[{}]", quoted.join(" "))
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|one| one == ALL || one == wanted)
}

fn has_all(list: &[String], wanted: &[String]) -> bool {
    list.iter().any(|one| one == ALL) || contains_all(list, wanted)
}

fn contains_all(list: &[String], wanted: &[String]) -> bool {
    let list = Members::of(list, wanted.len());
    wanted.iter().all(|one| list.has(one))
}

/// A list to be asked many times (as a set) or a few times (as it is): lists come from request bodies, and a hundred
/// thousand words in two of them must not make ten thousand million comparisons.
enum Members<'a> {
    List(&'a [String]),
    Set(BTreeSet<&'a str>),
}

impl<'a> Members<'a> {
    fn of(list: &'a [String], questions: usize) -> Self {
        if questions < 16 { Self::List(list) } else { Self::Set(list.iter().map(String::as_str).collect()) }
    }

    fn has(&self, wanted: &str) -> bool {
        match self {
            Self::List(list) => list.iter().any(|one| one == wanted),
            Self::Set(set) => set.contains(wanted),
        }
    }
}

/// `pods/*` is no wildcard; `*/scale` is.
fn resource_matches(rule: &str, resource: &str, subresource: &str) -> bool {
    if rule == ALL {
        return true;
    }
    if subresource.is_empty() {
        return rule == resource;
    }
    rule.split_once('/')
        .is_some_and(|(left, right)| right == subresource && (left == ALL || left == resource))
}

fn covers_resources(held: &[String], wanted: &[String]) -> bool {
    let held = Members::of(held, wanted.len());
    held.has(ALL)
        || wanted.iter().all(|one| {
            held.has(one)
                || one.split_once('/').is_some_and(|(_, subresource)| held.has(&format!("*/{subresource}")))
        })
}

fn url_covers(held: &str, wanted: &str) -> bool {
    held == wanted || (held.ends_with(ALL) && wanted.starts_with(held.trim_end_matches(ALL)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(value: serde_json::Value) -> Rule {
        serde_json::from_value(value).unwrap()
    }

    fn on<'a>(resource: &'a str, subresource: &'a str) -> Action<'a> {
        Action::Resource { verb: "get", group: "apps", resource, subresource, name: "a" }
    }

    #[test]
    fn a_subresource_is_not_its_resource_and_only_the_left_half_may_be_a_wildcard() {
        let of = |resource| rule(json!({"verbs": ["get"], "apiGroups": ["apps"], "resources": [resource]}));
        assert!(of("deployments").allows(&on("deployments", "")));
        assert!(!of("deployments").allows(&on("deployments", "scale")));
        assert!(of("deployments/scale").allows(&on("deployments", "scale")));
        assert!(!of("deployments/scale").allows(&on("deployments", "")));
        assert!(of("*/scale").allows(&on("deployments", "scale")));
        assert!(!of("*/scale").allows(&on("deployments", "status")));
        assert!(!of("deployments/*").allows(&on("deployments", "scale")));
        assert!(of("*").allows(&on("deployments", "scale")));
    }

    #[test]
    fn a_rule_with_names_allows_nothing_without_a_name() {
        let named = rule(
            json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["deployments"], "resourceNames": ["a"]}),
        );
        assert!(named.allows(&on("deployments", "")));
        for name in ["", "b"] {
            let action = Action::Resource {
                verb: "get",
                group: "apps",
                resource: "deployments",
                subresource: "",
                name,
            };
            assert!(!named.allows(&action), "{name:?}");
        }
    }

    #[test]
    fn a_trailing_star_in_a_path_stands_for_any_rest() {
        let paths = rule(json!({"verbs": ["get"], "nonResourceURLs": ["/golden/*", "/metrics"]}));
        let get = |path| Action::Path { verb: "get", path };
        assert!(paths.allows(&get("/golden/x/y")));
        assert!(paths.allows(&get("/metrics")));
        assert!(!paths.allows(&get("/metrics/x")));
        assert!(!paths.allows(&get("/golden")));
        assert!(!paths.allows(&Action::Path { verb: "post", path: "/metrics" }));
        assert!(!paths.allows(&on("deployments", "")));
    }

    #[test]
    fn covering_needs_every_dimension() {
        let held =
            rule(json!({"verbs": ["get", "list"], "apiGroups": ["apps"], "resources": ["*/scale", "a"]}));
        let wants = |verb, group, resource| {
            rule(json!({"verbs": [verb], "apiGroups": [group], "resources": [resource]}))
        };
        assert!(held.covers(&wants("get", "apps", "deployments/scale")));
        assert!(held.covers(&wants("list", "apps", "a")));
        assert!(!held.covers(&wants("delete", "apps", "a")));
        assert!(!held.covers(&wants("get", "batch", "a")));
        assert!(!held.covers(&wants("get", "apps", "deployments")));
        assert!(!held.covers(&wants("*", "apps", "a")));
        let named = Rule { resource_names: vec!["x".into()], ..wants("get", "apps", "a") };
        assert!(held.covers(&named), "all names cover one");
        assert!(!named.covers(&wants("get", "apps", "a")), "one name does not cover all");
    }

    #[test]
    fn atoms_are_counted_without_being_made() {
        let many: Vec<String> = (0..100_000).map(|n| n.to_string()).collect();
        let huge = Rule {
            verbs: many.clone(),
            api_groups: many.clone(),
            resources: many.clone(),
            resource_names: many.clone(),
            non_resource_urls: many,
        };
        assert_eq!(huge.atom_count(), usize::MAX);
        let small = rule(json!({"verbs": ["a", "b"], "apiGroups": [""], "resources": ["x", "y"],
            "resourceNames": ["n", "m"]}));
        let paths = rule(json!({"verbs": ["a", "b"], "nonResourceURLs": ["/z", "/y"]}));
        for (rule, count) in [(small, 8), (paths, 4)] {
            assert_eq!((rule.atoms().count(), rule.atom_count()), (count, count));
            assert!(rule.atoms().all(|atom| rule.covers(&atom)));
        }
    }

    #[test]
    fn the_compact_text_leaves_out_what_is_empty() {
        let shown =
            rule(json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]})).compact();
        assert_eq!(shown, r#"{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}"#);
    }
}
