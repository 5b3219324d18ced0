//! Attribute-based access control: a policy on each line of a file (`k8s.io/kubernetes/pkg/auth/authorizer/abac`).

use serde::Deserialize;

use super::{Attributes, Decision, Rule};
use crate::authn::{AUTHENTICATED, User};

const VERSION: &str = "abac.authorization.kubernetes.io/v1beta1";
const ALL: &str = "*";

/// The policies of a file.
#[derive(Clone, Debug, Default)]
pub struct Policies(Vec<Policy>);

/// Who may do what; an empty member names nothing.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Policy {
    user: String,
    group: String,
    readonly: bool,
    #[serde(rename = "apiGroup")]
    api_group: String,
    resource: String,
    namespace: String,
    #[serde(rename = "nonResourcePath")]
    path: String,
}

/// A line, in the version that has one or in the one from before.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    spec: Policy,
    #[serde(flatten)]
    old: Policy,
}

/// A line that is no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error reading policy file {path}, line {line}: {text}: {why}")]
pub struct PolicyError {
    /// The file.
    path: String,
    /// From 1 on.
    line: usize,
    text: String,
    why: String,
}

impl Policies {
    /// The policies in a text: one in JSON on each line, with empty lines and comments (`#`) between. `path` is for the
    /// error.
    ///
    /// # Errors
    /// When a line is no policy.
    pub fn parse(text: &str, path: &str) -> Result<Self, PolicyError> {
        let lines = text.lines().enumerate();
        let lines = lines.filter(|(_, line)| !matches!(line.trim().as_bytes().first(), None | Some(b'#')));
        let read = |(index, text): (usize, &str)| {
            let error = |why: String| PolicyError {
                path: path.to_owned(),
                line: index + 1,
                text: text.to_owned(),
                why,
            };
            let line: Line = serde_json::from_str(text).map_err(|why| error(why.to_string()))?;
            line.policy().map_err(error)
        };
        lines.map(read).collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn decide(&self, user: &User, what: &Attributes<'_>) -> Decision {
        if self.0.iter().any(|policy| policy.is_of(user) && policy.allows(what)) {
            return Decision::allow("");
        }
        Decision::no_opinion("No policy matched.")
    }

    /// The rules that say the same as the policies for a user in a namespace.
    pub(super) fn rules(&self, user: &User, namespace: &str) -> Vec<Rule> {
        let here = |policy: &&Policy| {
            policy.is_of(user) && (policy.namespace == ALL || policy.namespace == namespace)
        };
        self.0.iter().filter(here).flat_map(Policy::rules).collect()
    }
}

impl Line {
    fn policy(self) -> Result<Policy, String> {
        match (self.api_version.as_str(), self.kind.as_str()) {
            (VERSION, "Policy") => Ok(self.spec.of_everyone()),
            ("", _) | (_, "") => Ok(self.old.upgraded()),
            (version, kind) => Err(format!("no kind {kind:?} is registered for version {version:?}")),
        }
    }
}

impl Policy {
    /// `*` as a user or a group stands for all who are somebody.
    fn of_everyone(mut self) -> Self {
        if self.user == ALL || self.group == ALL {
            self.group = AUTHENTICATED.to_owned();
            self.user.clear();
        }
        self
    }

    /// A policy from before there were versions: what it does not name is everything.
    fn upgraded(mut self) -> Self {
        if self.user.is_empty() && self.group.is_empty() {
            self.group = ALL.to_owned();
        }
        self.path = if self.namespace.is_empty() && self.resource.is_empty() { ALL } else { "" }.to_owned();
        self.api_group = ALL.to_owned();
        for member in [&mut self.namespace, &mut self.resource] {
            if member.is_empty() {
                *member = ALL.to_owned();
            }
        }
        self.of_everyone()
    }

    fn is_of(&self, user: &User) -> bool {
        let named = self.user.is_empty() || self.user == user.name;
        let member = self.group.is_empty() || user.is_in(&self.group);
        named && member && !(self.user.is_empty() && self.group.is_empty())
    }

    fn allows(&self, what: &Attributes<'_>) -> bool {
        let reads = matches!(what.verb, "get" | "list" | "watch");
        if self.readonly && !reads {
            return false;
        }
        let Some(path) = what.path else {
            let covers = |policy: &str, asked: &str| policy == ALL || policy == asked;
            return covers(&self.namespace, what.namespace)
                && covers(&self.resource, what.resource)
                && covers(&self.api_group, what.group);
        };
        let below = || self.path.ends_with('*') && path.starts_with(self.path.trim_end_matches('*'));
        self.path == path || below()
    }

    fn rules(&self) -> Vec<Rule> {
        let verbs: &[&str] = if self.readonly { &["get", "list", "watch"] } else { &[ALL] };
        let verbs = || verbs.iter().map(|verb| (*verb).to_owned()).collect();
        let mut rules = Vec::new();
        if !self.resource.is_empty() {
            let (api_groups, resources) = (vec![self.api_group.clone()], vec![self.resource.clone()]);
            rules.push(Rule { verbs: verbs(), api_groups, resources, ..Rule::default() });
        }
        if !self.path.is_empty() {
            let non_resource_urls = vec![self.path.clone()];
            rules.push(Rule { verbs: verbs(), non_resource_urls, ..Rule::default() });
        }
        rules
    }
}

#[cfg(test)]
mod tests;
