//! Authorization: may they? The modes of kube-apiserver, above all RBAC over the objects in the store.
//!
//! A decision is a pure function of [`Rights`], which are those of one moment: the [`Rbac`] compiled from the four RBAC
//! kinds, and the other [`Mode`]s. Only [`Authorizer`] knows the store, and asks webhooks. What guards RBAC against its own
//! users is in [`escalation`]; the objects that every cluster is born with are in [`bootstrap`]; [`aggregation`] joins
//! cluster roles; [`review`] answers questions about decisions.

mod abac;
pub mod aggregation;
mod authorizer;
pub mod bootstrap;
mod configuration;
mod decision;
pub mod escalation;
mod mode;
mod node;
mod objects;
mod rbac;
pub mod review;
mod rights;
mod rule;
mod webhook;

use kubewright_meta::ApiError;

pub use abac::{Policies, PolicyError};
pub use authorizer::Authorizer;
pub use configuration::{BadConfiguration, Configuration, OpenRemote};
pub use decision::{Decision, DecisionKind};
pub use mode::{Mode, ModeError};
pub use objects::GROUP;
pub use rbac::Rbac;
pub use rights::Rights;
pub use rule::Rule;
pub use webhook::{
    FailurePolicy, MatchCondition, MatchConditions, ReviewVersion, Reviewer, UnsupportedVersion,
};

pub(crate) use objects::null_is_default;
pub use rule::Action;

use crate::authn::User;

/// What somebody wants to do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attributes<'a> {
    /// Such as `get`, `list`; for paths outside the API the lower-case HTTP method.
    pub verb: &'a str,
    /// API group of the resource.
    pub group: &'a str,
    /// API version of the resource.
    pub version: &'a str,
    /// Plural of the resource; empty for paths outside the API.
    pub resource: &'a str,
    /// Such as `status`.
    pub subresource: &'a str,
    /// Empty for cluster-wide requests.
    pub namespace: &'a str,
    /// Empty when no single object is meant.
    pub name: &'a str,
    /// The path of a request outside the API, such as `/healthz`; none for resources.
    pub path: Option<&'a str>,
    /// The field selector of a list, as a text.
    pub field_selector: &'a str,
    /// The label selector of a list, as a text.
    pub label_selector: &'a str,
}

impl<'a> Attributes<'a> {
    /// What is asked, as rules see it.
    pub fn action(&self) -> Action<'a> {
        let Self { verb, group, resource, subresource, name, path, .. } = *self;
        match path {
            None => Action::Resource { verb, group, resource, subresource, name },
            Some(path) => Action::Path { verb, path },
        }
    }
}

impl std::fmt::Display for Attributes<'_> {
    /// The words after `User "x" cannot`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { verb, group, resource, subresource, namespace, path, .. } = *self;
        if let Some(path) = path {
            return write!(f, "{verb} path {path:?}");
        }
        let slash = if subresource.is_empty() { "" } else { "/" };
        let resource = format!("{resource}{slash}{subresource}");
        write!(f, "{verb} resource {resource:?} in API group {group:?} ")?;
        if namespace.is_empty() {
            write!(f, "at the cluster scope")
        } else {
            write!(f, "in the namespace {namespace:?}")
        }
    }
}

/// 403 for what `user` may not do, with a decision's reason (which may be empty). The words are those of
/// `k8s.io/apiserver/pkg/endpoints/handlers/responsewriters`, which keep anything that reads as HTML out.
#[must_use]
pub fn forbidden(user: &User, what: &Attributes<'_>, reason: &str) -> ApiError {
    let told = format!("User {:?} cannot {what}", user.name);
    let told = told.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let why = if reason.is_empty() { told } else { format!("{told}: {reason}") };
    ApiError::forbidden(what.group, what.resource, what.name, &why)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn alice() -> User {
        User { name: "alice".into(), ..User::default() }
    }

    #[test]
    fn refusals_name_the_object_the_group_and_the_namespace() {
        let what = Attributes {
            verb: "patch",
            group: "apps",
            version: "v1",
            resource: "deployments",
            subresource: "scale",
            namespace: "ns",
            name: "a",
            ..Attributes::default()
        };
        let error = forbidden(&alice(), &what, "");
        assert_eq!(
            error.message,
            "deployments.apps \"a\" is forbidden: User \"alice\" cannot patch resource \"deployments/scale\" in API \
             group \"apps\" in the namespace \"ns\""
        );
        assert_eq!(error.details, Some(json!({"name": "a", "group": "apps", "kind": "deployments"})));
    }

    #[test]
    fn refusals_at_the_cluster_scope_say_so() {
        let what = Attributes { verb: "list", resource: "nodes", ..Attributes::default() };
        assert_eq!(
            forbidden(&alice(), &what, "RBAC: x").message,
            "nodes is forbidden: User \"alice\" cannot list resource \"nodes\" in API group \"\" at the cluster scope: RBAC: x"
        );
    }

    #[test]
    fn refusals_of_paths_have_empty_details_and_no_html() {
        let what = Attributes { verb: "get", path: Some("/<b>&"), ..Attributes::default() };
        let error = forbidden(&alice(), &what, "");
        assert_eq!(error.message, "forbidden: User \"alice\" cannot get path \"/&lt;b&gt;&amp;\"");
        assert_eq!(error.details, Some(json!({})));
    }
}
