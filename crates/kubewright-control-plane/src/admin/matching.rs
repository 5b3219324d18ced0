//! Which requests are meant: by a rule for faults, or by who looks at the log.

use serde::{Deserialize, Serialize};

use super::request_info::RequestInfo;

/// A verb of requests for objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// One object is read.
    Get,
    /// Objects are read.
    List,
    /// Changes are followed.
    Watch,
    /// An object is made.
    Create,
    /// An object is replaced.
    Update,
    /// An object is changed.
    Patch,
    /// An object is deleted.
    Delete,
    /// Objects are deleted together.
    DeleteCollection,
}

impl Verb {
    /// As RBAC writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

/// Requests for objects that have something in common. What is not given may be anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Match {
    /// They do one of these; with none of them named, anything.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub verbs: Vec<Verb>,
    /// API group; `""` is core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Plural of the resource, such as `deployments`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Plurals of resources that are not meant, such as `leases`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<String>,
    /// Such as `status`; `""` is the object itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subresource: Option<String>,
    /// Namespace; `""` is a request for none or for all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name in the URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Who acts, such as `system:serviceaccount:default:web`; with a `*` at its end, all who begin so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// How the header `User-Agent` begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
}

impl Match {
    /// Requests for a resource, by its plural.
    #[must_use]
    pub fn resource(plural: &str) -> Self {
        Self { resource: Some(plural.to_owned()), ..Self::default() }
    }

    /// Only those that do one of `verbs`.
    #[must_use]
    pub fn verbs(mut self, verbs: impl IntoIterator<Item = Verb>) -> Self {
        self.verbs = verbs.into_iter().collect();
        self
    }

    /// Whether a request is meant. One that is not for objects never is.
    #[must_use]
    pub fn matches(&self, info: &RequestInfo) -> bool {
        (self.verbs.is_empty() || self.verbs.iter().any(|verb| verb.name() == info.verb))
            && self.concerns(info)
    }

    /// Whether a request would be meant if it had another verb.
    pub(super) fn concerns(&self, info: &RequestInfo) -> bool {
        let is = |wanted: &Option<String>, text: &str| wanted.as_ref().is_none_or(|wanted| wanted == text);
        info.is_for_objects()
            && is(&self.group, &info.group)
            && is(&self.resource, &info.resource)
            && !self.except.contains(&info.resource)
            && is(&self.subresource, &info.subresource)
            && is(&self.namespace, &info.namespace)
            && is(&self.name, &info.name)
            && self.user.as_ref().is_none_or(|wanted| is_user(wanted, &info.user))
            && self.user_agent.as_ref().is_none_or(|start| info.user_agent.starts_with(start.as_str()))
    }
}

/// Whether a user is the one who is wanted, or one of those if that ends in `*`.
fn is_user(wanted: &str, user: &str) -> bool {
    wanted.strip_suffix('*').map_or(wanted == user, |start| user.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info() -> RequestInfo {
        RequestInfo {
            user: "alice".into(),
            user_agent: "manager/v1 (linux)".into(),
            verb: "update",
            group: "apps".into(),
            version: "v1".into(),
            resource: "deployments".into(),
            subresource: "status".into(),
            namespace: "prod".into(),
            name: "web".into(),
            patch: "",
            path: String::new(),
        }
    }

    fn read(json: &str) -> Match {
        serde_json::from_str(json).expect(json)
    }

    #[test]
    fn each_thing_that_is_given_has_to_be_so() {
        for (json, meant) in [
            ("{}", true),
            (r#"{"verbs": ["get", "update"]}"#, true),
            (r#"{"verbs": ["get"]}"#, false),
            (r#"{"group": "apps"}"#, true),
            (r#"{"group": ""}"#, false),
            (r#"{"resource": "deployments"}"#, true),
            (r#"{"resource": "deployment"}"#, false),
            (r#"{"except": ["leases", "events"]}"#, true),
            (r#"{"except": ["leases", "deployments"]}"#, false),
            (r#"{"subresource": "status"}"#, true),
            (r#"{"subresource": ""}"#, false),
            (r#"{"namespace": "prod"}"#, true),
            (r#"{"namespace": "test"}"#, false),
            (r#"{"name": "web"}"#, true),
            (r#"{"name": "we"}"#, false),
            (r#"{"user": "alice"}"#, true),
            (r#"{"user": "bob"}"#, false),
            (r#"{"user": "al*"}"#, true),
            (r#"{"user": "bo*"}"#, false),
            (r#"{"userAgent": "manager/"}"#, true),
            (r#"{"userAgent": "kubectl"}"#, false),
            (r#"{"resource": "deployments", "namespace": "test"}"#, false),
        ] {
            assert_eq!(read(json).matches(&info()), meant, "{json}");
        }
    }

    #[test]
    fn what_is_not_for_objects_is_never_meant() {
        let health = RequestInfo { verb: "get", path: "/healthz".into(), ..RequestInfo::default() };
        assert!(!Match::default().matches(&health));
    }
}
