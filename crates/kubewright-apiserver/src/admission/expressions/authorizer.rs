//! The authorizer that expressions ask: the cluster's own.

use kubewright_cel::{Attributes, Authorizer, Decision, Subject};

use crate::authn::User;
use crate::authz::{self, Rbac};

/// Answers by the roles of this moment, for who makes the request and for service accounts.
pub(super) struct Asked<'a> {
    pub(super) rbac: &'a Rbac,
    pub(super) user: &'a User,
}

impl Authorizer for Asked<'_> {
    fn authorize(&self, subject: &Subject, attributes: &Attributes) -> Decision {
        let account;
        let user = match subject {
            Subject::Requester => self.user,
            Subject::ServiceAccount { namespace, name } => {
                account = User::service_account(namespace, name, "").authenticated();
                &account
            }
        };
        let what = match attributes {
            Attributes::Path { path, verb } => {
                authz::Attributes { verb, path, ..authz::Attributes::default() }
            }
            Attributes::Resource { resource, verb } => authz::Attributes {
                verb,
                group: &resource.group,
                version: &resource.version,
                resource: &resource.resource,
                subresource: &resource.subresource,
                namespace: &resource.namespace,
                name: &resource.name,
                path: "",
            },
        };
        let decision = self.rbac.authorize(user, &what);
        Decision { allowed: decision.allowed, reason: decision.reason, error: None }
    }
}
