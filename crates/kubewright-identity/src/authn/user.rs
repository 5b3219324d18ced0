//! Who somebody is, and the names that Kubernetes gives its own
//! (`k8s.io/apiserver/pkg/authentication/{user,serviceaccount}`).

use std::collections::BTreeMap;

use kubewright_meta::text::{is_dns_label, is_dns_subdomain};
use serde::Serialize;
use serde_json::Value;

/// The group whose members may do everything.
pub const SYSTEM_MASTERS: &str = "system:masters";
/// The name of whoever gives no credentials.
pub const ANONYMOUS: &str = "system:anonymous";
/// The group of everyone with credentials.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group of everyone without.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group of all nodes.
pub const NODES: &str = "system:nodes";
/// The key in [`User::extra`] that tells which credential was shown.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";
const NODE_PREFIX: &str = "system:node:";

/// Who makes a request. In process, a transport that vouches for its caller puts a `User` into the request's
/// extensions; over a socket it comes from a client certificate or a bearer token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// Such as `system:admin`, `system:serviceaccount:default:web`.
    pub name: String,
    /// Unique id, where there is one.
    pub uid: String,
    /// Such as `system:masters`, `system:authenticated`.
    pub groups: Vec<String>,
    /// Further facts.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user of these groups, without uid and further facts.
    pub fn new<G: Into<String>>(name: impl Into<String>, groups: impl IntoIterator<Item = G>) -> Self {
        Self { name: name.into(), groups: groups.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Whoever gives no credentials.
    #[must_use]
    pub fn anonymous() -> Self {
        Self::new(ANONYMOUS, [UNAUTHENTICATED])
    }

    /// No user at all.
    pub fn nobody() -> &'static Self {
        static NOBODY: User =
            User { name: String::new(), uid: String::new(), groups: Vec::new(), extra: BTreeMap::new() };
        &NOBODY
    }

    /// A service account with its fixed groups.
    #[must_use]
    pub fn service_account(namespace: &str, name: &str, uid: &str) -> Self {
        Self {
            uid: uid.to_owned(),
            ..Self::new(service_account_name(namespace, name), service_account_groups(namespace))
        }
    }

    /// Whether the user is in this group.
    #[must_use]
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|one| one == group)
    }

    /// With `system:authenticated`, which everyone but the anonymous gets.
    #[must_use]
    pub fn authenticated(mut self) -> Self {
        if self.name != ANONYMOUS && !self.is_in(AUTHENTICATED) && !self.is_in(UNAUTHENTICATED) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }

    /// [`User::info`] as a value.
    pub fn to_info(&self) -> Value {
        serde_json::to_value(self.info()).unwrap_or_default()
    }

    /// The `authentication.k8s.io/v1` UserInfo, with its members in the order of Kubernetes.
    #[must_use]
    pub fn info(&self) -> UserInfo<'_> {
        UserInfo { username: &self.name, uid: &self.uid, groups: &self.groups, extra: &self.extra }
    }
}

/// Who somebody is, as the API tells it.
#[derive(Debug, Serialize)]
pub struct UserInfo<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    username: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    groups: &'a [String],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    extra: &'a BTreeMap<String, Vec<String>>,
}

/// `system:serviceaccount:<namespace>:<name>`.
#[must_use]
pub fn service_account_name(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}")
}

/// Namespace and name of a service account's user name; `None` for every other user.
#[must_use]
pub fn split_service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
    (is_dns_label(namespace) && is_dns_subdomain(name)).then_some((namespace, name))
}

/// The groups of all service accounts of a namespace.
pub(crate) fn service_account_groups(namespace: &str) -> [String; 2] {
    ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
}

/// The node of a node's user name; `None` for every other user.
pub(crate) fn split_node(user: &str) -> Option<&str> {
    user.strip_prefix(NODE_PREFIX).filter(|name| is_dns_subdomain(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_account_names_are_told_apart_from_users_who_only_look_alike() {
        assert_eq!(split_service_account("system:serviceaccount:ns:bot.v1"), Some(("ns", "bot.v1")));
        for other in [
            "alice",
            "system:serviceaccount:ns",
            "system:serviceaccount:ns:",
            "system:serviceaccount::bot",
            "system:serviceaccount:ns:bot:x",
            "system:serviceaccount:Ns:bot",
            "system:serviceaccount:n.s:bot",
            "system:serviceaccount:ns:-bot",
        ] {
            assert_eq!(split_service_account(other), None, "{other}");
        }
    }

    #[test]
    fn everyone_but_the_anonymous_is_authenticated() {
        assert_eq!(User::new("a", ["g"]).authenticated().groups, ["g", AUTHENTICATED]);
        assert_eq!(User::new("a", [AUTHENTICATED]).authenticated().groups, [AUTHENTICATED]);
        assert_eq!(User::anonymous().authenticated().groups, [UNAUTHENTICATED]);
    }
}
