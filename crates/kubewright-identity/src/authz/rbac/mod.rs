//! Role-based access control as a pure value: the four RBAC kinds, compiled for fast decisions
//! (`k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::objects::{Binding, Role, RoleRef, Subject};
use super::rule::{Action, Rule};
use super::{Attributes, Decision};
use crate::authn::{SYSTEM_MASTERS, User, service_account_name};

/// All roles and bindings of a cluster at one moment. A decision parses nothing and looks only at the bindings that
/// name the user or one of the user's groups.
#[derive(Clone, Debug, Default)]
pub struct Rbac {
    roles: Roles,
    cluster: Bindings,
    namespaced: BTreeMap<String, Bindings>,
}

/// Objects to compile: parsed once, shared by the compilations that follow.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    pub cluster_roles: Vec<Arc<Role>>,
    pub roles: Vec<Arc<Role>>,
    pub(crate) cluster_bindings: Vec<Arc<Binding>>,
    pub bindings: Vec<Arc<Binding>>,
}

#[derive(Clone, Debug, Default)]
struct Roles {
    cluster: BTreeMap<String, Arc<Role>>,
    namespaced: BTreeMap<(String, String), Arc<Role>>,
}

/// A role that a binding names and that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingRole {
    /// Role or ClusterRole.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// The bindings of one namespace, or of the cluster.
#[derive(Clone, Debug, Default)]
struct Bindings {
    list: Vec<Resolved>,
    of_users: BTreeMap<String, Vec<Grant>>,
    of_groups: BTreeMap<String, Vec<Grant>>,
}

#[derive(Clone, Debug)]
struct Resolved {
    binding: Arc<Binding>,
    role: Result<Arc<Role>, MissingRole>,
}

/// A binding and which of its subjects it is that matches: indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Grant {
    binding: usize,
    subject: usize,
}

/// A rule that somebody holds, and through what.
struct Held<'a> {
    binding: &'a Binding,
    subject: &'a Subject,
    role: Result<&'a Role, &'a MissingRole>,
}

impl Rbac {
    /// Compiles API objects; objects of other kinds, ones that cannot be read, and role bindings without a namespace
    /// are left out (which allows less, never more).
    #[must_use]
    pub fn of_objects(objects: &[Value]) -> Self {
        let mut sorted = Objects::default();
        for object in objects {
            let read_role = || serde::Deserialize::deserialize(object).map(Arc::new).ok();
            let read_binding = || serde::Deserialize::deserialize(object).map(Arc::new).ok();
            match object["kind"].as_str() {
                Some("ClusterRole") => sorted.cluster_roles.extend(read_role()),
                Some("Role") => sorted.roles.extend(read_role()),
                Some("ClusterRoleBinding") => sorted.cluster_bindings.extend(read_binding()),
                Some("RoleBinding") => sorted.bindings.extend(read_binding()),
                _ => {}
            }
        }
        Self::compile(sorted)
    }

    /// Resolves which rules each subject has.
    pub fn compile(objects: Objects) -> Self {
        let name = |role: &Role| role.metadata.name.clone();
        let roles = Roles {
            cluster: objects.cluster_roles.into_iter().map(|role| (name(&role), role)).collect(),
            namespaced: objects
                .roles
                .into_iter()
                .map(|role| ((role.metadata.namespace.clone(), name(&role)), role))
                .collect(),
        };
        let mut cluster = Bindings::default();
        for binding in objects.cluster_bindings {
            cluster.add(&roles, "", binding);
        }
        let mut namespaced: BTreeMap<String, Bindings> = BTreeMap::new();
        for binding in objects.bindings {
            let namespace = binding.metadata.namespace.clone();
            if namespace.is_empty() {
                continue;
            }
            namespaced.entry(namespace.clone()).or_default().add(&roles, &namespace, binding);
        }
        Self { roles, cluster, namespaced }
    }

    /// May `user` do that? Members of `system:masters` may do everything, whatever the roles say.
    #[must_use]
    pub fn authorize(&self, user: &User, what: &Attributes<'_>) -> Decision {
        if user.is_in(SYSTEM_MASTERS) {
            return Decision::allow("");
        }
        self.decide(user, what.namespace, &what.action())
    }

    /// The rules of RBAC alone for an action in a namespace (empty: cluster-wide).
    pub fn decide(&self, user: &User, namespace: &str, action: &Action<'_>) -> Decision {
        let mut missing = BTreeSet::new();
        for held in self.held(user, namespace) {
            match held.role {
                Ok(role) if role.rules.iter().any(|rule| rule.allows(action)) => {
                    return Decision::allow(format!("RBAC: allowed by {}", held.describe()));
                }
                Ok(_) => {}
                Err(role) => {
                    missing.insert(role.describe(""));
                }
            }
        }
        let reason = if missing.is_empty() { String::new() } else { format!("RBAC: {}", aggregate(missing)) };
        Decision::no_opinion(reason)
    }

    /// All rules that `user` holds in a namespace (empty: only what holds cluster-wide), and what could not be resolved.
    pub(crate) fn rules_for(&self, user: &User, namespace: &str) -> (Vec<&Rule>, Vec<&MissingRole>) {
        let mut rules = Vec::new();
        let mut missing = Vec::new();
        for held in self.held(user, namespace) {
            match held.role {
                Ok(role) => rules.extend(&role.rules),
                Err(role) => missing.push(role),
            }
        }
        (rules, missing)
    }

    /// The rules of the role that a binding in `namespace` (empty: a cluster role binding) names.
    ///
    /// # Errors
    /// There is no such role.
    pub fn rules_of(&self, reference: &RoleRef, namespace: &str) -> Result<&[Rule], MissingRole> {
        match self.roles.find(reference, namespace) {
            Some(role) => Ok(&role.rules),
            None => Err(MissingRole { kind: reference.kind.clone(), name: reference.name.clone() }),
        }
    }

    fn held<'a>(&'a self, user: &User, namespace: &str) -> impl Iterator<Item = Held<'a>> {
        let local = self.namespaced.get(namespace);
        [Some(&self.cluster), local]
            .into_iter()
            .flatten()
            .flat_map(|bindings| bindings.grants(user).into_iter().map(|grant| bindings.resolve(grant)))
    }
}

impl Roles {
    fn find(&self, reference: &RoleRef, namespace: &str) -> Option<&Arc<Role>> {
        match reference.kind.as_str() {
            "ClusterRole" => self.cluster.get(&reference.name),
            "Role" => self.namespaced.get(&(namespace.to_owned(), reference.name.clone())),
            _ => None,
        }
    }
}

impl Bindings {
    fn add(&mut self, roles: &Roles, namespace: &str, binding: Arc<Binding>) {
        let index = self.list.len();
        for (subject, one) in binding.subjects.iter().enumerate() {
            let grant = Grant { binding: index, subject };
            match one.kind.as_str() {
                "User" => self.of_users.entry(one.name.clone()).or_default().push(grant),
                "Group" => self.of_groups.entry(one.name.clone()).or_default().push(grant),
                "ServiceAccount" => {
                    let home = if one.namespace.is_empty() { namespace } else { &one.namespace };
                    if !home.is_empty() {
                        let user = service_account_name(home, &one.name);
                        self.of_users.entry(user).or_default().push(grant);
                    }
                }
                _ => {}
            }
        }
        let role = roles.find(&binding.role_ref, namespace).cloned().ok_or_else(|| MissingRole {
            kind: binding.role_ref.kind.clone(),
            name: binding.role_ref.name.clone(),
        });
        self.list.push(Resolved { binding, role });
    }

    /// What applies to the user, in the order of the bindings; of a binding's subjects the first that matches.
    fn grants(&self, user: &User) -> Vec<Grant> {
        let of_groups = user.groups.iter().filter_map(|group| self.of_groups.get(group)).flatten();
        let mut grants: Vec<Grant> =
            self.of_users.get(&user.name).into_iter().flatten().chain(of_groups).copied().collect();
        grants.sort_unstable();
        grants.dedup_by_key(|grant| grant.binding);
        grants
    }

    fn resolve(&self, grant: Grant) -> Held<'_> {
        let Resolved { binding, role } = &self.list[grant.binding];
        Held { binding, subject: &binding.subjects[grant.subject], role: role.as_deref() }
    }
}

impl Held<'_> {
    fn describe(&self) -> String {
        let metadata = &self.binding.metadata;
        let (kind, name) = if metadata.namespace.is_empty() {
            ("ClusterRoleBinding", metadata.name.clone())
        } else {
            ("RoleBinding", format!("{}/{}", metadata.name, metadata.namespace))
        };
        let subject = match self.subject.kind.as_str() {
            "ServiceAccount" if self.subject.namespace.is_empty() => {
                format!("{}/{}", self.subject.name, metadata.namespace)
            }
            "ServiceAccount" => format!("{}/{}", self.subject.name, self.subject.namespace),
            _ => self.subject.name.clone(),
        };
        let role = &self.binding.role_ref;
        format!("{kind} {name:?} of {} {:?} to {} {subject:?}", role.kind, role.name, self.subject.kind)
    }
}

impl MissingRole {
    /// `clusterrole.rbac.authorization.k8s.io "x" not found`; with `ending` "s" the resource's plural.
    pub(crate) fn describe(&self, ending: &str) -> String {
        format!("{}{ending}.{} {:?} not found", self.kind.to_ascii_lowercase(), super::GROUP, self.name)
    }
}

/// One text for several errors (`k8s.io/apimachinery/pkg/util/errors.Aggregate`).
pub(super) fn aggregate(errors: BTreeSet<String>) -> String {
    aggregate_in_order(&errors.into_iter().collect::<Vec<_>>())
}

/// The same, in the order of the errors.
pub(crate) fn aggregate_in_order(errors: &[String]) -> String {
    match errors {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

#[cfg(test)]
mod tests;
