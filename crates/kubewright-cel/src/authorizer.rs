//! What the variable `authorizer` asks, and who answers.
//!
//! Source: k8s.io/apiserver/pkg/cel/library/authz.go.

/// Answers the checks that expressions make. Implemented by the API server over its own authorization.
pub trait Authorizer: Sync {
    /// Whether `subject` may do what `attributes` describe.
    fn authorize(&self, subject: &Subject, attributes: &Attributes) -> Decision;
}

/// Who is asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Subject {
    /// Whoever made the request.
    #[default]
    Requester,
    /// The service account that `authorizer.serviceAccount(namespace, name)` names: the user
    /// `system:serviceaccount:NAMESPACE:NAME` in the groups `system:serviceaccounts`, `system:serviceaccounts:NAMESPACE` and
    /// `system:authenticated`.
    ServiceAccount {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attributes {
    /// `authorizer.path(...).check(verb)`
    Path {
        /// The path of the URL.
        path: String,
        /// The verb, as HTTP spells it in lower case.
        verb: String,
    },
    /// `authorizer.group(...).resource(...)....check(verb)`
    Resource {
        /// The resource.
        resource: ResourceAttributes,
        /// The verb of the API.
        verb: String,
    },
}

/// The resource that is asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceAttributes {
    /// The API group, empty for the core group.
    pub group: String,
    /// The API version; `*` if the expression cannot say it.
    pub version: String,
    /// The resource.
    pub resource: String,
    /// The subresource, or empty.
    pub subresource: String,
    /// The namespace, or empty.
    pub namespace: String,
    /// The name, or empty.
    pub name: String,
    /// The field selector, if the expression gave one.
    pub field_selector: Option<String>,
    /// The label selector, if the expression gave one.
    pub label_selector: Option<String>,
}

/// The answer to a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether it is allowed.
    pub allowed: bool,
    /// Why.
    pub reason: String,
    /// What went wrong while deciding.
    pub error: Option<String>,
}
